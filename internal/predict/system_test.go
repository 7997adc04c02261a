package predict

import (
	"testing"
	"time"
)

// TestDivide: the row without huge pages is the recorded run again, unless the
// profile is too dear; only what no price explains is time for other things.
func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		recorded, model time.Duration
		scale           float64
		rest, never     time.Duration
	}{
		{1000, 1000, 1, 0, 1000},
		{1200, 1000, 1.2, 0, 1200},
		{900, 1000, 0.9, 0, 900},
		{2000, 1000, 1.25, 750, 2000},
		{100, 1000, 0.8, 0, 800},
		{0, 1000, 0.8, 0, 800},
	} {
		p := Prediction{Times: Divide(tt.recorded, tt.model)}
		got, ok := p.System(&Row{Kernel: tt.model})
		if p.Times.Scale != tt.scale || p.Times.Rest != tt.rest || got != tt.never || !ok {
			t.Errorf("%v of %v: %+v, never %d", tt.recorded, tt.model, p.Times, got)
		}
		// A hypervisor's search for memory is added, not scaled.
		fresh, _ := p.System(&Row{Kernel: tt.model + 500, Backing: 500})
		if fresh != got+500 {
			t.Errorf("%v of %v: with backing %d, want %d", tt.recorded, tt.model, fresh, got+500)
		}
	}
	if _, ok := (&Prediction{}).System(&Row{Kernel: 1}); ok {
		t.Error("system time of a recording that does not tell")
	}
}
