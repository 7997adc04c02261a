package hw

import "github.com/hugelab/hugelab/mm"

// Profile is a machine's cost of each primitive of mm.Work.
type Profile struct {
	Name   string
	Source string               // a preset, or measured by calibrate on a kernel and date
	Nanos  [mm.NumPrims]float64 // of kernel time: what the kernel accounts as system time

	// Elapsed is processor time, in the kernel or not. A hypervisor that keeps
	// shadow page tables works on every new entry while the guest accounts
	// user time. Nothing but zeros means not measured.
	Elapsed [mm.NumPrims]float64

	// Unbacked is what a page of a block of the PMD's size takes longer in the
	// kernel when the hypervisor has to find memory for it first. A guest that
	// reports free blocks to its hypervisor loses them within seconds, so that
	// nearly every such block is new. 0: no such hypervisor, or not measured.
	Unbacked float64

	// Traced is what recording with tracepoints adds to system time for each
	// fault; 0: not measured.
	Traced float64

	Made *Made // how it was measured; nil for a preset
}

// Made is how a profile was measured.
type Made struct {
	Kernel   string    `yaml:"kernel"`
	CPU      string    `yaml:"cpu"`
	Date     string    `yaml:"date"`
	Runs     int       `yaml:"runs"`              // repetitions of each workload
	Spread   float64   `yaml:"spread"`            // of the rows' repetitions, their median
	Residual float64   `yaml:"residual"`          // of the fit, the rows' median without sign
	Guessed  []string  `yaml:"guessed,omitempty"` // primitives that were not measured: the preset's, scaled
	Rows     []MadeRow `yaml:"rows"`
}

// MadeRow is one measurement, in nanoseconds a page, fault or call.
type MadeRow struct {
	Name     string  `yaml:"name"`
	Measured float64 `yaml:"measured"`
	Fitted   float64 `yaml:"fitted"`
	Elapsed  float64 `yaml:"elapsed"`
	Spread   float64 `yaml:"spread"`
}

// Price is what w costs on this machine.
func (p *Profile) Price(w *mm.Work) mm.Nanos {
	t := p.Unbacked * (float64(w[mm.PrimClearPMD]) + float64(w[mm.PrimCopyCollapse]))
	for i, n := range w {
		t += p.Nanos[i] * float64(n)
	}
	return mm.Nanos(t)
}

// PriceSum is what a sum of work costs.
func (p *Profile) PriceSum(w *mm.WorkSum) mm.Nanos {
	return p.sum(&p.Nanos, w)
}

// ElapsedSum is the processor time that a sum of work takes, the hypervisor's
// with it; 0 when that was not measured.
func (p *Profile) ElapsedSum(w *mm.WorkSum) mm.Nanos {
	if p.Elapsed == ([mm.NumPrims]float64{}) {
		return 0
	}
	return p.sum(&p.Elapsed, w)
}

// BackingSum is the part of both sums that a hypervisor takes to find memory.
func (p *Profile) BackingSum(w *mm.WorkSum) mm.Nanos {
	return mm.Nanos(p.Unbacked * (float64(w[mm.PrimClearPMD]) + float64(w[mm.PrimCopyCollapse])))
}

func (p *Profile) sum(costs *[mm.NumPrims]float64, w *mm.WorkSum) mm.Nanos {
	t := float64(p.BackingSum(w))
	for i, n := range w {
		t += costs[i] * float64(n)
	}
	return mm.Nanos(t)
}
