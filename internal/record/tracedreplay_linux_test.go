package record

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// TestTracedReplay holds the unprivileged recordings of real programs to their
// reader: every touch lies in a mapping that was told before.
func TestTracedReplay(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		for _, c := range [][]string{
			{"/bin/sh", "-c", "ls -l / | sort | wc -l; (cat /proc/self/maps)"},
			{"perl", "-e", "my @a = map { $_ x 40 } 1 .. 20000; fork; print scalar(@a)"},
			{"gcc", "--version"},
		} {
			if _, err := findCommand(c[0]); err != nil {
				t.Logf("%s is not here, left out", c[0])
				continue
			}
			replayTraced(t, usePerf, c)
		}
	})
}

func replayTraced(t *testing.T, usePerf bool, c []string) {
	o := Options{Command: c, Method: trace.MethodPagemap, Quiet: true}
	if usePerf {
		o.Method = trace.MethodPerf
	}
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, Header(o, o.Method))
	if err != nil {
		t.Fatal(err)
	}
	o.Out = w
	foot, err := Run(context.Background(), o)
	if errors.Is(err, ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(foot); err != nil {
		t.Fatal(err)
	}
	var other uint64
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for e := (trace.Event{}); r.Next(&e) == nil; {
		if e.Kind == trace.KindOtherFaults {
			other += e.A
		}
	}
	if r, err = trace.NewReader(bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	p := trace.NewReplay(r)
	for buf := make([]mm.Op, 512); err == nil; {
		_, err = p.Next(buf)
	}
	if err != io.EOF {
		t.Fatalf("%v: replay: %v", c, err)
	}
	st := p.Stats()
	if st.Unknown != other {
		t.Errorf("%v: %d of %d touches in no known mapping", c, st.Unknown-other, st.Faults)
	}
	t.Logf("%v: %d faults, %d found, %d other, %d spaces, notes %q %q",
		c, st.Faults, st.Found, other, st.Spaces, foot.Notes, st.Notes)
}
