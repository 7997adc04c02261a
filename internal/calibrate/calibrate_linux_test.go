package calibrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

func TestMain(m *testing.M) {
	kernel.Guardian()
	Helper()
	os.Exit(m.Run())
}

// TestRun calibrates this kernel, shortly and without changing a setting. What
// it holds are the faults: the kernel takes as many as the model, step by step.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of the machine's time")
	}
	rounds := 0
	r, err := Run(t.Context(), Options{Time: time.Millisecond, Least: 1, Keep: true,
		Progress: func(int, time.Duration) { rounds++ }})
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 1 {
		t.Errorf("%d rounds", rounds)
	}
	seen := map[string]bool{}
	for i := range r.Rows {
		x := &r.Rows[i]
		seen[x.Name] = true
		// Where the kernel has nothing to do, no sample may have found it.
		if x.Measured < 0 || x.any() && x.Measured == 0 || x.Elapsed < x.Measured || x.N < 1 || x.priced() && x.Fitted <= 0 {
			t.Errorf("%s: %+v", x.Name, x)
		}
		if x.priced() && !x.Used && !x.forks {
			t.Errorf("%s: %+.0f faults against the model's", x.Name, x.Extra)
		}
	}
	for _, name := range []string{smallFault, copyFault, fileFault, "fork, exec, exit", "mmap, munmap"} {
		if !seen[name] {
			t.Errorf("no row %q", name)
		}
	}
	var out bytes.Buffer
	if err := r.Profile.Save(&out); err != nil {
		t.Fatal(err)
	}
	back, err := hw.Load(&out)
	if err != nil {
		t.Fatal(err)
	}
	if back.Nanos != r.Profile.Nanos || back.Elapsed != r.Profile.Elapsed || back.Made.Kernel != r.Kernel {
		t.Error("the profile changed on its way")
	}
	out.Reset()
	if err := Write(&out, r); err != nil || !strings.Contains(out.String(), "write fault, copy") {
		t.Errorf("table: %v\n%s", err, out.String())
	}
}

// TestInterrupted: a calibration that is told to end ends, with that reason.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{Keep: true, Progress: func(int, time.Duration) { stop() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWorldRefuses: what the kernel refuses is an error, not a measurement.
func TestWorldRefuses(t *testing.T) {
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	k := newMaker(w.sizes)
	for name, ops := range map[string][]mm.Op{
		"unmapped": {advise(regionB, 1, mm.AdviseDontNeed)},
		"twice":    {k.mapping(regionA, 1), k.mapping(regionA, 1)},
		"no kind":  {op(mm.OpUffd, regionA, 0, 1, 1)},
	} {
		if err := w.exec(ops); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := w.exec([]mm.Op{unmap(regionA, 1)}); err != nil {
		t.Error(err)
	}
}
