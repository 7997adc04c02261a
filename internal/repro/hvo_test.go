package repro

import (
	"testing"

	"github.com/hugelab/hugelab/hw"
)

// modelOn runs a result on its machine, changed as set says.
func modelOn(t *testing.T, r Result, set ...[2]string) Values {
	t.Helper()
	m, err := hw.LoadMachine(r.Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set {
		if m, err = m.With(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	v, err := r.Model(Env{Machine: m, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// within holds a metric to a band.
func within(t *testing.T, v Values, name string, low, high float64) {
	t.Helper()
	if x, ok := v.Get(name); !ok || x < low || x > high {
		t.Errorf("%s is %v (%v), want %v to %v", name, x, ok, low, high)
	}
}

// TestGUPBands: the published effect comes out, and goes when struct pages cost
// nothing to look at.
func TestGUPBands(t *testing.T) {
	v := modelOn(t, gup1G())
	within(t, v, "get_ratio", 2.5, 100)
	within(t, v, "unpin_ratio_single", 1, 1.15)
	within(t, v, "unpin_ratio_grouped", 4, 100)
	v = modelOn(t, gup1G(), [2]string{"memory.latency", "*0"})
	within(t, v, "get_ratio", 0.95, 1.05)
	within(t, v, "unpin_ratio_grouped", 0.95, 1.05)
	v = modelOn(t, gup1G(), [2]string{"llc.size", "1g"})
	within(t, v, "get_ratio", 1, 2)
}

// TestHVOBands: the arithmetic is exact, a pool costs more with than without, and
// nearly nothing more once nobody has to be interrupted.
func TestHVOBands(t *testing.T) {
	v := modelOn(t, hvo())
	for name, want := range map[string]float64{
		"pages_freed_2m": 6, "pages_freed_1g": 4094, "saved_1tib_2m_gib": 12,
		"pages_freed_2m_one_kept": 7, "pages_freed_1g_one_kept": 4095, "saved_1tib_2m_gib_one_kept": 14,
	} {
		within(t, v, name, want, want)
	}
	within(t, v, "grow_ratio", 1.5, 10)
	batched, _ := v.Get("grow_ratio_batched")
	if unbatched, _ := v.Get("grow_ratio"); batched >= unbatched {
		t.Errorf("growing costs %.2f times as much batched, %.2f one by one", batched, unbatched)
	}
	v = modelOn(t, hvo(), [2]string{"ipi.wait", "*0"}, [2]string{"ipi.send", "*0"})
	within(t, v, "grow_ratio", 1, 1.5)
	// A machine of 32 hardware threads instead of 88 has flushes that much cheaper.
	v = modelOn(t, hvo(), [2]string{"cpu.cores", "8"})
	within(t, v, "grow_ratio", 2, 3)
}
