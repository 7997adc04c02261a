package calibrate

import "math"

// system is a weighted least-squares problem with a prior and x >= 0: minimise
//
//	sum over rows (a.x - b)^2 * weight  +  sum over columns ((x - prior) / scale)^2
//
// The prior decides what the rows leave open: a column that no row has keeps
// its prior, and columns that only appear together share their sum as their
// priors do.
type system struct {
	rows   []equation
	prior  []float64 // above zero
	scales []float64 // above zero: how far a column may lie from its prior
}

// equation is one row of a system.
type equation struct {
	a         []float64
	b, weight float64
}

// The end of the descent: a sweep that moves no column by more than this share
// of its scale, or so many sweeps.
const (
	solved    = 1e-10
	maxSweeps = 200_000
)

// solve finds the minimum by coordinate descent. The prior's part makes the
// problem strictly convex, so that there is one minimum and every sweep comes
// nearer to it; columns are measured in their scales to keep it well
// conditioned.
func (s *system) solve() []float64 {
	n := len(s.prior)
	h := make([][]float64, n) // the normal matrix
	g := make([]float64, n)
	for i := range h {
		h[i] = make([]float64, n)
		h[i][i] = 1
		g[i] = s.prior[i] / s.scales[i]
	}
	for _, r := range s.rows {
		for i, ai := range r.a {
			if ai == 0 {
				continue
			}
			ai *= s.scales[i] * r.weight
			g[i] += ai * r.b
			for j, aj := range r.a {
				h[i][j] += ai * aj * s.scales[j]
			}
		}
	}
	y := make([]float64, n)
	for i := range y {
		y[i] = s.prior[i] / s.scales[i]
	}
	for range maxSweeps {
		moved := 0.0
		for i := range y {
			d := g[i]
			for j, hij := range h[i] {
				d -= hij * y[j]
			}
			was := y[i]
			y[i] = max(0, was+d/h[i][i])
			moved = max(moved, math.Abs(y[i]-was))
		}
		if moved < solved {
			break
		}
	}
	for i := range y {
		y[i] *= s.scales[i]
	}
	return y
}
