package predict

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// replayOn runs a recording on one machine and returns it.
func replayOn(t *testing.T, open func() (io.ReadCloser, error), c mm.Config, name string) *mm.Machine {
	t.Helper()
	in, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := trace.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rules, err = mm.RulesFor(r.Header.Kernel); err != nil {
		t.Fatal(err)
	}
	c.Rules.NoZeroPage = r.Header.NoZeroPage
	c.Nodes, c.CPUs, c.BasePage = []mm.Node{{Mem: memoryOf(&r.Header)}}, r.Header.CPUs, 4096
	s, err := mm.SizesOf(c.BasePage)
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy, err = mm.ParsePolicySpec(mm.DefaultPolicy(s), name, s); err != nil {
		t.Fatal(err)
	}
	m, err := mm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := trace.NewReplay(r)
	buf := make([]mm.Op, 4096)
	for {
		n, err := p.Next(buf)
		if _, xerr := m.Exec(buf[:n], nil); xerr != nil {
			t.Fatal(xerr)
		}
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlacesAsRecorded: without randomisation the model places every map where
// the kernel placed it, so that the numbers are the same as with recorded
// addresses. HUGELAB_RECORDING runs it on a recording of one's own.
func TestPlacesAsRecorded(t *testing.T) {
	open := OpenExample
	if f := os.Getenv("HUGELAB_RECORDING"); f != "" {
		open = func() (io.ReadCloser, error) { return os.Open(f) }
	}
	for _, name := range []string{"never", "64k", "1m", "thp", "thp+64k"} {
		a := replayOn(t, open, mm.Config{AsRecorded: true}, name)
		b := replayOn(t, open, mm.Config{}, name)
		if a.Usage.Faults != b.Usage.Faults || a.Usage.AnonPeak != b.Usage.AnonPeak || a.Counters.Size != b.Counters.Size {
			t.Errorf("%s: recorded %d faults, peak %d pages; placed %d and %d", name,
				a.Usage.Faults, a.Usage.AnonPeak, b.Usage.Faults, b.Usage.AnonPeak)
		}
	}
}
