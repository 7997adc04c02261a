package lab

import (
	"time"

	"github.com/hugelab/hugelab/internal/predict"
)

// Value is one number of a cell, over its runs.
type Value struct {
	Predicted  float64 // mean, each at its run's own addresses
	Measured   float64 // mean
	Least      float64 // of the measured
	Most       float64
	Error      float64 // mean over runs of (predicted - measured) / measured
	WorstError float64 // the same of the run where it is largest
}

// value pairs up what is predicted and measured.
func (c *Cell) value(get func(p *Pair) (predicted, measured float64)) Value {
	var v Value
	n := float64(len(c.Pairs))
	for i := range c.Pairs {
		p, m := get(&c.Pairs[i])
		e := 0.0
		if m != 0 {
			e = (p - m) / m
		}
		if i == 0 || m < v.Least {
			v.Least = m
		}
		v.Most = max(v.Most, m)
		v.Predicted += p / n
		v.Measured += m / n
		v.Error += e / n
		if abs(e) > abs(v.WorstError) {
			v.WorstError = e
		}
	}
	return v
}

func abs(x float64) float64 { return max(x, -x) }

// Faults are the page faults.
func (c *Cell) Faults() Value {
	return c.value(func(p *Pair) (float64, float64) {
		return float64(p.Predicted.Faults), float64(p.Measured.Faults)
	})
}

// Peak is the anonymous memory at most, in bytes.
func (c *Cell) Peak() Value {
	return c.value(func(p *Pair) (float64, float64) {
		return float64(p.Predicted.PeakAnon), float64(p.Measured.Peak)
	})
}

// Times are the mean real, user and system time, and the range of each.
func (c *Cell) Times() (real, user, system Value) {
	of := func(get func(r *Run) time.Duration) Value {
		return c.value(func(p *Pair) (float64, float64) {
			s := get(&p.Measured).Seconds()
			return s, s
		})
	}
	return of(func(r *Run) time.Duration { return r.Real }),
		of(func(r *Run) time.Duration { return r.User }),
		of(func(r *Run) time.Duration { return r.System })
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
