package calibrate

import (
	"math"
	"strconv"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// leastSpread bounds the weight of a row: no time is known better than to two
// percent, whatever its repetitions say.
const leastSpread = 0.02

// rounds of fitting: the prior's scales follow what was found.
const refits = 8

// mostExtra is the share of a step's faults that the kernel may take beyond
// the model's, or less, before its row is left out of the fit.
const mostExtra = 0.02

// fit finds the costs that price the rows nearest to their times, relative to
// those times, and tells which primitives no row had.
//
// The prior is the preset scaled by one factor, the median of what the rows
// took over what the preset says. Its scale is the cost itself, be it found or
// presumed: a factor of two away from the prior weighs about as much as a row
// that is missed by its spread.
func fit(rows []Row, preset *hw.Profile, time func(*Row) float64) (x [mm.NumPrims]float64, guessed []mm.Prim) {
	var s system
	var ratios []float64
	known := [mm.NumPrims]bool{}
	for i := range rows {
		r := &rows[i]
		if !r.Used {
			continue
		}
		b := time(r)
		e := equation{a: make([]float64, mm.NumPrims), b: b}
		sd := max(r.Spread, leastSpread) * b
		e.weight = 1 / (sd * sd)
		for p, n := range r.work {
			e.a[p] = float64(n)
			known[p] = known[p] || n > 0
		}
		s.rows = append(s.rows, e)
		ratios = append(ratios, b/float64(preset.PriceSum(&r.work)))
	}
	scale := 1.0
	if len(ratios) > 0 {
		scale = quantile(ratios, 0.5)
	}
	for p, n := range preset.Nanos {
		s.prior = append(s.prior, n*scale)
		if !known[p] {
			guessed = append(guessed, mm.Prim(p))
		}
	}
	s.scales = append([]float64(nil), s.prior...)
	for range refits {
		found := s.solve()
		copy(x[:], found)
		for i := range found {
			s.scales[i] = max(found[i], s.prior[i])
		}
	}
	for i := range x {
		x[i] = round(x[i])
	}
	return x, guessed
}

// round keeps four digits: more would claim what no measurement knows.
func round(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		return x
	}
	return v
}

// use decides which rows the fit takes, and adds the faults that forking
// steps take on the helper's own pages.
func use(rows []Row, counts []counted) {
	var copied *Row
	for i := range rows {
		if rows[i].Name == copyFault {
			copied = &rows[i]
		}
	}
	for i := range rows {
		r := &rows[i]
		model := float64(counts[i].faults)
		switch {
		case !r.any() || r.Name == hotFault || r.Name == coldFault:
		case r.Name == fileFault:
			// How much of a file one fault maps is the page cache's matter.
			r.Used = model+r.Extra >= 1
			r.work[mm.PrimFaultFile] = uint64(max(1, model+r.Extra))
			r.perFault(model + r.Extra)
		case r.forks && r.Extra >= 0:
			r.Used = true
			if copied != nil && copied.Per > 0 {
				for p, n := range copied.work {
					r.work[p] += uint64(float64(n) * r.Extra / float64(copied.Per))
				}
			}
		default:
			r.Used = math.Abs(r.Extra) <= max(2, mostExtra*model)
		}
	}
}

// any says whether the kernel has anything to do in this step.
func (r *Row) any() bool { return r.work != mm.WorkSum{} }
