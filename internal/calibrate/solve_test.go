package calibrate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSolve(t *testing.T) {
	tests := []struct {
		name  string
		rows  []equation
		prior []float64
		want  []float64
		close float64
	}{
		{"no row keeps the prior", nil, []float64{3, 5}, []float64{3, 5}, 1e-9},
		{"one row fixes one column",
			[]equation{{[]float64{2, 0}, 20, 1e6}}, []float64{3, 5}, []float64{10, 5}, 1e-4},
		{"a sum is shared by the priors' scales", []equation{{[]float64{1, 1}, 16, 1e6}}, []float64{3, 5},
			[]float64{3 + 8*9.0/34, 5 + 8*25.0/34}, 1e-4},
		{"never below zero", []equation{{[]float64{1, 0}, -9, 1e6}}, []float64{3, 5}, []float64{0, 5}, 1e-6},
		{"a difference", []equation{{[]float64{1, 0}, 7, 1e6}, {[]float64{1, 1}, 9, 1e6}}, []float64{3, 5},
			[]float64{7, 2}, 1e-3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := system{rows: tt.rows, prior: tt.prior, scales: tt.prior}
			for i, x := range s.solve() {
				if math.Abs(x-tt.want[i]) > tt.close {
					t.Errorf("column %d is %v, want %v", i, x, tt.want[i])
				}
			}
		})
	}
}

// TestSolveIsTheMinimum checks the conditions that hold at the minimum of a
// convex function over x >= 0, and nowhere else: no slope where x > 0, a slope
// upward where x = 0.
func TestSolveIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "columns")
		some := func(lo, hi float64, name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(lo, hi), n, n).Draw(t, name)
		}
		s := system{prior: some(0.1, 100, "prior")}
		s.scales = s.prior
		for range rapid.IntRange(0, 10).Draw(t, "rows") {
			s.rows = append(s.rows, equation{some(0, 50, "a"), rapid.Float64Range(-100, 1000).Draw(t, "b"),
				rapid.Float64Range(0.001, 10).Draw(t, "weight")})
		}
		x := s.solve()
		for i := range x {
			slope := (x[i] - s.prior[i]) / s.scales[i]
			size := 1.0
			for _, r := range s.rows {
				at := -r.b
				for j, a := range r.a {
					at += a * x[j]
				}
				slope += r.weight * r.a[i] * at * s.scales[i]
				size += r.weight * r.a[i] * r.a[i] * s.scales[i] * s.scales[i]
			}
			if rel := slope / size; rel < -1e-6 || x[i] > 1e-9 && rel > 1e-6 {
				t.Fatalf("column %d at %v: slope %v of curvature %v", i, x[i], slope, size)
			}
		}
	})
}
