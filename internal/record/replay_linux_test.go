package record

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// TestRecordedProgramsReplay holds a recording to its reader: every fault of
// real programs, forks and pipes included, lies in a mapping that the recording
// told of before.
func TestRecordedProgramsReplay(t *testing.T) {
	needRoot(t)
	for _, c := range [][]string{
		{"/bin/ls", "/"},
		{"/bin/sh", "-c", "ls -l / | sort | wc -l; (cat /proc/self/maps)"},
		{"perl", "-e", "my @a = map { $_ x 40 } 1 .. 20000; fork; print scalar(@a)"},
		{"gcc", "--version"},
	} {
		if _, err := findCommand(c[0]); err != nil {
			t.Logf("%s is not here, left out", c[0])
			continue
		}
		var file bytes.Buffer
		o := Options{Command: c, Method: trace.MethodRoot, Quiet: true}
		w, err := trace.NewWriter(&file, Header(o, o.Method))
		if err != nil {
			t.Fatal(err)
		}
		o.Out = w
		foot, err := Run(context.Background(), o)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if err := w.Close(foot); err != nil {
			t.Fatal(err)
		}
		replayAll(t, c, file.Bytes(), foot)
	}
}

func replayAll(t *testing.T, c []string, file []byte, foot trace.Footer) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	p := trace.NewReplay(r)
	buf := make([]mm.Op, 512)
	for {
		_, err := p.Next(buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v: replay: %v", c, err)
		}
	}
	st := p.Stats()
	if st.Faults != foot.Faults || foot.Lost != 0 {
		t.Errorf("%v: %d faults replayed, %d recorded, %d lost", c, st.Faults, foot.Faults, foot.Lost)
	}
	if st.Unknown != 0 {
		t.Errorf("%v: %d of %d faults in no known mapping", c, st.Unknown, st.Faults)
	}
	t.Logf("%v: %d events, %d faults, %d unknown, %d spaces, %d bytes, notes %q %q", c, foot.Events, st.Faults, st.Unknown,
		st.Spaces, len(file), foot.Notes, st.Notes)
	if t.Failed() && os.Getenv("RECORD_TEST_DUMP") != "" {
		dump(t, file)
	}
}

// dump logs a recording's events, for whoever looks for a fault's mapping.
func dump(t *testing.T, file []byte) {
	r, err := trace.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var e trace.Event
	for r.Next(&e) == nil {
		t.Logf("%2d pid %d tid %d %12d A=%x B=%x C=%x D=%x ret=%x acc=%x %s",
			e.Kind, e.PID, e.TID, e.When, e.A, e.B, e.C, e.D, e.Ret, e.Access, e.Name)
	}
}
