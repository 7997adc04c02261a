package lab

import (
	"slices"
	"time"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// Value is one number of a cell, over its runs.
type Value struct {
	Predicted  float64 // mean, each at its run's own addresses
	Measured   float64 // mean
	Median     float64 // of the measured
	Least      float64 // of the measured
	Most       float64
	Error      float64 // mean over runs of (predicted - measured) / measured
	WorstError float64 // the same of the run where it is largest
}

// getter reads what is predicted and measured of a run.
type getter func(p *Pair) (predicted, measured float64)

// valueOf pairs up what is predicted and measured.
func valueOf(pairs []Pair, get getter) Value {
	var v Value
	n := float64(len(pairs))
	var all []float64
	for i := range pairs {
		p, m := get(&pairs[i])
		all = append(all, m)
		e := 0.0
		if m != 0 {
			e = (p - m) / m
		}
		v.Predicted += p / n
		v.Measured += m / n
		v.Error += e / n
		if abs(e) > abs(v.WorstError) {
			v.WorstError = e
		}
	}
	if slices.Sort(all); len(all) > 0 {
		v.Least, v.Most = all[0], all[len(all)-1]
		v.Median = (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	return v
}

func abs(x float64) float64 { return max(x, -x) }

func faults(p *Pair) (predicted, measured float64) {
	return float64(p.Predicted.Faults), float64(p.Measured.Faults)
}

func peak(p *Pair) (predicted, measured float64) {
	return float64(p.Predicted.PeakAnon), float64(p.Measured.Peak)
}

// seconds gets a time that is only measured.
func seconds(get func(r *Run) time.Duration) getter {
	return func(p *Pair) (float64, float64) {
		s := get(&p.Measured).Seconds()
		return s, s
	}
}

// Faults are the page faults.
func (c *Cell) Faults() Value { return valueOf(c.Pairs, faults) }

// Peak is the anonymous memory at most, in bytes.
func (c *Cell) Peak() Value { return valueOf(c.Pairs, peak) }

// Real and User are measured only, in seconds.
func (c *Cell) Real() Value {
	return valueOf(c.Pairs, seconds(func(r *Run) time.Duration { return r.Real }))
}

// User is the time in the program itself.
func (c *Cell) User() Value {
	return valueOf(c.Pairs, seconds(func(r *Run) time.Duration { return r.User }))
}

// divide takes the division of time in the kernel from the plain runs: a
// recorded run was traced, and its memory may have been new to the machine.
func (v *Verification) divide() {
	if len(v.Plain) == 0 {
		return
	}
	system := valueOf(v.Plain, func(p *Pair) (float64, float64) {
		return (p.Predicted.Kernel - p.Predicted.Backing).Seconds(), p.Measured.System.Seconds()
	})
	v.Times = predict.Divide(time.Duration(system.Median*1e9), time.Duration(system.Predicted*1e9))
}

// System is the time in the kernel, in seconds: predicted is the model's time for
// memory under this policy at the program's own prices, and what the plain runs
// spent on other things. Error is of the median. Memory that a warm pass has
// used is not new to the machine.
func (v *Verification) System(c *Cell) Value {
	s := valueOf(c.Pairs, func(p *Pair) (float64, float64) {
		t := v.Times.Of(&p.Predicted)
		if v.Warm {
			t -= p.Predicted.Backing
		}
		return t.Seconds(), p.Measured.System.Seconds()
	})
	if s.Error = 0; s.Median > 0 {
		s.Error = (s.Predicted - s.Median) / s.Median
	}
	return s
}

// Folios are the large folios of one size that faults and collapses made.
func (v *Verification) Folios(c *Cell, o mm.Order) Value {
	return valueOf(c.Pairs, func(p *Pair) (float64, float64) { return v.folios(p, o) })
}

func (v *Verification) folios(p *Pair, o mm.Order) (predicted, measured float64) {
	if p.Measured.OwnFolios {
		return float64(p.Predicted.Folios[o]), float64(p.Measured.Folios[o])
	}
	n := p.Measured.Events.Folios[o]
	if o == v.Sizes.PMD {
		n += p.Measured.Events.Collapses
	}
	return float64(p.Predicted.Folios[o]), float64(n)
}

// HasRuns says whether there is any result; a nil Verification has none.
func (v *Verification) HasRuns() bool {
	if v == nil {
		return false
	}
	for i := range v.Cells {
		if len(v.Cells[i].Pairs) > 0 {
			return true
		}
	}
	return false
}

// OwnFolios says that all folios were counted for the command alone.
func (v *Verification) OwnFolios() bool {
	for i := range v.Cells {
		for k := range v.Cells[i].Pairs {
			if r := &v.Cells[i].Pairs[k].Measured; !r.OwnFolios && len(v.SizesUsed(&v.Cells[i])) > 0 {
				return false
			}
		}
	}
	return true
}

// SizesUsed lists the sizes of which a cell has folios, predicted or measured.
func (v *Verification) SizesUsed(c *Cell) []mm.Order {
	var all []mm.Order
	for _, o := range v.Sizes.Orders() {
		for i := range c.Pairs {
			// What the whole machine had under a policy without large folios is not the
			// command's.
			if p, m := v.folios(&c.Pairs[i], o); p+m > 0 && (c.Pairs[i].Measured.OwnFolios || p > 0) {
				all = append(all, o)
				break
			}
		}
	}
	return all
}

// SameAgain compares a cell's first runs with its second ones (A/A): how far the
// means are apart, by the mean, and half the range of all, by the mean.
type SameAgain struct{ Apart, Spread float64 }

// AA is SameAgain of a number; get's first result is not used.
func (c *Cell) AA(get getter) SameAgain {
	a, b := valueOf(c.Pairs, get), valueOf(c.Again, get)
	mean := (a.Measured + b.Measured) / 2
	if mean == 0 {
		return SameAgain{}
	}
	return SameAgain{(a.Measured - b.Measured) / mean,
		(max(a.Most, b.Most) - min(a.Least, b.Least)) / 2 / mean}
}

// AAFaults, AAPeak and AASystem hold the runs of a policy against one another.
func (c *Cell) AAFaults() SameAgain { return c.AA(faults) }

// AAPeak is of the peak.
func (c *Cell) AAPeak() SameAgain { return c.AA(peak) }

// AASystem is of the time in the kernel.
func (c *Cell) AASystem() SameAgain {
	return c.AA(seconds(func(r *Run) time.Duration { return r.System }))
}

// ActiveFaults are the faults with khugepaged at work.
func (c *Cell) ActiveFaults() Value { return valueOf(c.Active, faults) }

// ActiveFolios are the huge pages of the PMD's size with khugepaged at work, of
// which Collapses are its own.
func (v *Verification) ActiveFolios(c *Cell) (folios, collapses Value) {
	return valueOf(c.Active, func(p *Pair) (float64, float64) { return v.folios(p, v.Sizes.PMD) }),
		valueOf(c.Active, func(p *Pair) (float64, float64) {
			n := float64(p.Measured.Events.Collapses)
			return n, n
		})
}

// Row is the prediction over the runs' addresses.
func (c *Cell) Row() predict.Row {
	rows := make([]predict.Row, len(c.Pairs))
	for i := range c.Pairs {
		rows[i] = c.Pairs[i].Predicted
	}
	return predict.MeanRow(rows)
}

// Merge puts what was predicted at the runs' own addresses into a prediction.
func (v *Verification) Merge(p *predict.Prediction) {
	for i := range v.Cells {
		c := &v.Cells[i]
		row := p.Row(c.Policy)
		if row == nil || len(c.Pairs) == 0 {
			continue
		}
		named := row.Named
		*row = c.Row()
		row.Named = named
	}
}
