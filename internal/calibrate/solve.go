package calibrate

import (
	"math"
	"slices"
)

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

// solve finds the minimum. The prior's part makes the problem strictly convex,
// so that there is one. Columns are measured in their scales to keep it well
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
	y := nonNegative(h, g)
	for i := range y {
		y[i] *= s.scales[i]
	}
	return y
}

// nonNegative minimises y.Hy/2 - g.y over y >= 0 by the active-set method of
// Lawson and Hanson: columns enter the set of free ones while that lowers the
// sum, and leave it when they would fall below zero.
func nonNegative(h [][]float64, g []float64) []float64 {
	y := make([]float64, len(g))
	var free []int
	for {
		in := steepest(h, g, y, free)
		if in < 0 {
			return y
		}
		free = append(free, in)
		for {
			z := cholesky(h, g, free)
			step, all := 1.0, true
			for k, i := range free {
				if z[k] <= 0 {
					all = false
					step = min(step, y[i]/(y[i]-z[k]))
				}
			}
			left := free[:0]
			for k, i := range free {
				y[i] += step * (z[k] - y[i])
				if !all && z[k] <= 0 && y[i] <= 1e-12 {
					y[i] = 0
					continue
				}
				left = append(left, i)
			}
			if free = left; all {
				break
			}
		}
	}
}

// steepest is the column at zero whose growth lowers the sum the most, -1 if
// none does.
func steepest(h [][]float64, g, y []float64, free []int) int {
	best, at := 0.0, -1
	for i := range g {
		if slices.Contains(free, i) {
			continue
		}
		slope, size := g[i], math.Abs(g[i])
		for j, v := range y {
			slope -= h[i][j] * v
			size += math.Abs(h[i][j] * v)
		}
		if slope > best && slope > 1e-9*size {
			best, at = slope, i
		}
	}
	return at
}

// cholesky solves H y = g for the free columns, the others being zero.
func cholesky(h [][]float64, g []float64, free []int) []float64 {
	n := len(free)
	l := make([][]float64, n)
	y := make([]float64, n)
	for i := range l {
		l[i] = make([]float64, i+1)
		for j := range l[i] {
			v := h[free[i]][free[j]]
			for k := range j {
				v -= l[i][k] * l[j][k]
			}
			if i == j {
				l[i][i] = math.Sqrt(v)
			} else {
				l[i][j] = v / l[j][j]
			}
		}
		y[i] = g[free[i]]
		for k := range i {
			y[i] -= l[i][k] * y[k]
		}
		y[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			y[i] -= l[k][i] * y[k]
		}
		y[i] /= l[i][i]
	}
	return y
}
