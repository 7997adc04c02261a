package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// rowsOf makes rows as a machine with this profile would show them, each time
// off by up to noise.
func rowsOf(t testing.TB, p *hw.Profile, noise float64, rng *rand.Rand) []Row {
	t.Helper()
	k := newMaker(mm.Sizes{Base: 4096, PMD: 9})
	var rows []Row
	var counts []counted
	for _, w := range k.all() {
		c, err := count(&w, machine(t, &w, true), ballast{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.steps {
			if w.steps[i].name == "" {
				continue
			}
			cpu := float64(p.PriceSum(&c[i].work)) * (1 + noise*(2*rng.Float64()-1))
			var xs []sample
			for range 5 {
				xs = append(xs, sample{CPU: int64(cpu) + 1000, Faults: int64(c[i].faults)})
			}
			rows = append(rows, rowOf(w.name, &w.steps[i], xs, 1000, &c[i]))
			counts = append(counts, c[i])
		}
	}
	use(rows, counts)
	return rows
}

// strange is a machine unlike the preset: faults cost thirty times as much,
// and every other cost differs by a factor of up to four.
func strange(rng *rand.Rand) hw.Profile {
	p, _ := hw.Preset("vm")
	for i := range p.Nanos {
		p.Nanos[i] *= math.Pow(4, 2*rng.Float64()-1)
	}
	p.Nanos[mm.PrimFaultUser] *= 30
	p.Nanos[mm.PrimFaultKernel] *= 30
	return p
}

// TestFitFindsTheMachine: from exact times the fit prices every row as the
// machine did, whatever the machine; from times with errors of up to five
// percent no row is off by more than ten.
func TestFitFindsTheMachine(t *testing.T) {
	preset, _ := hw.Preset("vm")
	for _, tt := range []struct{ noise, within float64 }{{0, 0.02}, {0.05, 0.10}} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 0))
			truth := strange(rng)
			rows := rowsOf(t, &truth, tt.noise, rng)
			var found hw.Profile
			found.Nanos, _ = fit(rows, &preset, func(r *Row) float64 { return r.total })
			for i := range rows {
				r := &rows[i]
				want, got := float64(truth.PriceSum(&r.work)), float64(found.PriceSum(&r.work))
				if r.any() && math.Abs(got-want) > tt.within*want {
					t.Errorf("noise %v, seed %d: %s: %.0f ns, want %.0f", tt.noise, seed, r.Name, got, want)
				}
			}
			// A page touched is the commonest thing of all; its parts add up
			// whatever their split.
			if f := found.Nanos[mm.PrimFaultUser] / truth.Nanos[mm.PrimFaultUser]; f < 0.85 || f > 1.15 {
				t.Errorf("noise %v, seed %d: fault_user is %.2f of the truth", tt.noise, seed, f)
			}
		}
	}
}

// TestFitSaysWhatItGuessed: no row, no claim.
func TestFitSaysWhatItGuessed(t *testing.T) {
	preset, _ := hw.Preset("vm")
	x, guessed := fit(nil, &preset, func(r *Row) float64 { return r.total })
	if len(guessed) != mm.NumPrims {
		t.Errorf("%d primitives guessed of %d", len(guessed), mm.NumPrims)
	}
	for p := range x {
		if math.Abs(x[p]-preset.Nanos[p]) > 1e-3*preset.Nanos[p] {
			t.Errorf("%s: %v, want the preset's %v", mm.Prim(p), x[p], preset.Nanos[p])
		}
	}
}

// TestUse: a step whose faults are not the model's is left out; the helper's
// own faults in a fork are added.
func TestUse(t *testing.T) {
	w := mm.WorkSum{}
	w[mm.PrimFaultUser] = 100
	cow := mm.WorkSum{}
	cow[mm.PrimCopyCOW] = 50
	rows := []Row{
		{Name: "same", work: w},
		{Name: "more", work: w, Extra: 50},
		{Name: copyFault, Per: 50, work: cow},
		{Name: "fork", work: w, forks: true, Extra: 7},
		{Name: fileFault, work: w, Extra: -60},
		{Name: "nothing"},
	}
	counts := make([]counted, len(rows))
	for i := range counts {
		counts[i].faults = 100
	}
	use(rows, counts)
	for i, want := range []bool{true, false, true, true, true, false} {
		if rows[i].Used != want {
			t.Errorf("%s: used %v", rows[i].Name, rows[i].Used)
		}
	}
	if n := rows[3].work[mm.PrimCopyCOW]; n != 7 {
		t.Errorf("fork: %d copies, want the helper's 7", n)
	}
	if n := rows[4].work[mm.PrimFaultFile]; n != 40 || rows[4].Per != 40 {
		t.Errorf("file: %d faults, each of %d, want 40", n, rows[4].Per)
	}
}

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		xs      []float64
		q, want float64
	}{
		{[]float64{3}, 0.5, 3}, {[]float64{4, 1}, 0.5, 2.5}, {[]float64{5, 1, 3}, 0.5, 3},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2}, {[]float64{1, 2, 3, 4, 5}, 1, 5},
	} {
		if got := quantile(tt.xs, tt.q); got != tt.want {
			t.Errorf("%v of %v is %v, want %v", tt.q, tt.xs, got, tt.want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("the median of nothing is a number")
	}
}

// TestSplit: a step that too few samples found has the common step's cost
// outside the kernel for each touch.
func TestSplit(t *testing.T) {
	rows := []Row{
		{Name: "fewer", Per: 10, all: 5000, total: 5000, taps: 10},
		{Name: smallFault, Per: 100, all: 30_000, total: 10_000, taps: 100, Samples: 50},
		{Name: "no touch", Per: 10, all: 5000, total: 5000},
		{Name: "sampled", Per: 10, all: 5000, total: 4000, taps: 10, Samples: 90},
		{Name: "all outside", Per: 10, all: 1000, total: 1000, taps: 10},
	}
	if !split(rows) {
		t.Fatal("not split")
	}
	for i, want := range []float64{3000, 10_000, 5000, 4000, 100} {
		if rows[i].total != want {
			t.Errorf("%s: %v, want %v", rows[i].Name, rows[i].total, want)
		}
	}
	if rows[1].Samples = 0; split(rows) {
		t.Error("split by nothing")
	}
}

// TestShare: samples tell kernel from user time; too few are not believed.
func TestShare(t *testing.T) {
	s := step{name: "x", per: 10}
	for _, tt := range []struct {
		name string
		xs   []sample
		want float64
	}{
		{"all kernel", []sample{{CPU: 2000}}, 200},
		{"perf", []sample{{CPU: 2000}, {CPU: 9999, Sampled: true, InKern: 100, InUser: 300}}, 50},
		{"too few", []sample{{CPU: 2000}, {Sampled: true, InKern: 9, InUser: 30}}, 200},
		{"ticks", []sample{{CPU: 2000, System: 300e6, User: 100e6}}, 150},
	} {
		if r := rowOf("w", &s, tt.xs, 0, &counted{}); math.Abs(r.Measured-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, r.Measured, tt.want)
		}
	}
}
