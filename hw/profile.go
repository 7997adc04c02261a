package hw

import "github.com/hugelab/hugelab/mm"

// Profile is a machine's cost of each primitive of mm.Work.
type Profile struct {
	Name   string
	Source string // where the numbers come from: a preset, or measured by calibrate on a kernel and date
	Nanos  [mm.NumPrims]float64
}

// Price is what w costs on this machine.
func (p *Profile) Price(w *mm.Work) mm.Nanos {
	var t float64
	for i, n := range w {
		t += p.Nanos[i] * float64(n)
	}
	return mm.Nanos(t)
}

// PriceSum is what a sum of work costs.
func (p *Profile) PriceSum(w *mm.WorkSum) mm.Nanos {
	var t float64
	for i, n := range w {
		t += p.Nanos[i] * float64(n)
	}
	return mm.Nanos(t)
}
