package calibrate

import (
	"math"
	"slices"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// Result is a calibration.
type Result struct {
	Profile  hw.Profile `json:"-"`
	Kernel   string     `json:"kernel"`
	CPU      string     `json:"cpu"`
	Seconds  float64    `json:"seconds"`  // that it took
	Spread   float64    `json:"spread"`   // median of the rows'
	Residual float64    `json:"residual"` // median of the rows', without sign
	Rows     []Row      `json:"rows"`
	Notes    []string   `json:"notes"`
	Memory   Memory     `json:"memory"`
	Cold     float64    `json:"cold"` // ns that a fault takes longer when caches are cold; in the profile

	Nanos   map[string]float64 `json:"nanoseconds"` // of kernel time, by primitive
	Elapsed map[string]float64 `json:"elapsed"`     // of processor time, by primitive
	Guessed []string           `json:"guessed"`     // primitives that no workload had: the preset's, scaled
}

// Row is one timed step. Times are in nanoseconds for each of Per pages,
// faults or calls.
type Row struct {
	Workload string  `json:"workload"`
	Name     string  `json:"name"`
	Per      int     `json:"per"`
	N        int     `json:"n"`        // repetitions that were timed
	Measured float64 `json:"measured"` // kernel time, the lower quartile
	Spread   float64 `json:"spread"`   // half the distance of the quartiles, over the median
	Elapsed  float64 `json:"elapsed"`  // processor time, kernel or not, the same
	Fitted   float64 `json:"fitted"`   // kernel time by the profile
	Residual float64 `json:"residual"` // Fitted over Measured, less 1
	Samples  int64   `json:"samples"`  // that told kernel from user mode; 0: all kernel
	Extra    float64 `json:"extra"`    // faults beyond the model's
	Used     bool    `json:"used"`     // in the fit

	work   mm.WorkSum
	single bool    // times faults one by one; see cool
	forks  bool    // makes or ends processes
	taps   float64 // pages that the program itself touches
	total  float64 // kernel time of the whole step
	all    float64 // processor time of the whole step
}

// Memory says what the warm passes found, in nanoseconds a page.
type Memory struct {
	First  float64 `json:"first"`  // the first pass
	Worst  float64 `json:"worst"`  // the slowest later one
	Median float64 `json:"median"` // of all later ones
}

// backedLate is how many times slower than usual a first pass is when a
// hypervisor has to find memory for it.
const backedLate = 2

// Late says whether memory was not backed at first use.
func (m Memory) Late() bool { return m.Median > 0 && m.First > backedLate*m.Median }

// quantile is the q-quantile of xs, which it sorts.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	at := q * float64(len(xs)-1)
	i := int(at)
	if i+1 == len(xs) {
		return xs[i]
	}
	return xs[i] + (at-float64(i))*(xs[i+1]-xs[i])
}

// How many samples, and how many ticks, must have found a step before its
// kernel share is believed. A share of one half is then known to 8 and 11 %.
const (
	leastSamples = 40
	leastTicks   = 20
)

// usual is the quantile of a step's times that counts. What disturbs a step,
// the other processor's work above all, makes it longer, so that the lower
// half of the times says what the step costs; the least time would be one
// lucky repetition's.
const (
	usual = 0.25
	half  = 0.5
)

// rowOf sums up the samples of a step. clock is what timing nothing shows.
func rowOf(workload string, s *step, xs []sample, clock int64, c *counted) Row {
	r := Row{Workload: workload, Name: s.name, Per: int(s.per), work: c.work,
		single: s.single, forks: s.forks(), taps: s.taps()}
	var times, faults []float64
	var kernel, samples int64
	var system, user float64
	for _, x := range xs {
		kernel, samples = kernel+x.InKern, samples+x.InKern+x.InUser
		system, user = system+float64(x.System), user+float64(x.User)
		faults = append(faults, float64(x.Faults))
		if !x.Sampled {
			times = append(times, float64(x.CPU-clock))
		}
	}
	share := 1.0
	switch {
	case r.forks:
		// A child that no tick found is accounted by the kernel as all user
		// time, and perf does not see it. It does nothing but system calls.
	case samples >= leastSamples:
		share, r.Samples = float64(kernel)/float64(samples), samples
	case system+user > leastTicks*tick:
		share, r.Samples = system/(system+user), int64((system+user)/tick)
	}
	r.N = len(times)
	r.all = max(quantile(times, usual), 1)
	r.total = r.all * share
	r.Spread = (quantile(times, 0.75) - quantile(times, 0.25)) / 2 / r.all
	r.Measured, r.Elapsed = r.total/float64(s.per), r.all/float64(s.per)
	r.Extra = quantile(faults, 0.5) - float64(c.faults)
	return r
}

// perFault makes a row one of n faults.
func (r *Row) perFault(n float64) {
	if n >= 1 {
		r.Per, r.Measured, r.Elapsed = int(n), r.total/n, r.all/n
	}
}

// tick is the longest that a kernel has between two accounting ticks: HZ=100.
const tick = 10e6

// split tells kernel from user time where too few samples found a step. What
// a touch costs outside the kernel is known from the commonest step. It says
// whether that one is known; without it such steps count as all kernel time.
func split(rows []Row) bool {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == smallFault })
	if i < 0 || rows[i].Samples == 0 {
		return false
	}
	outside := (rows[i].all - rows[i].total) / rows[i].taps
	for i := range rows {
		r := &rows[i]
		if r.Samples == 0 && !r.forks && r.taps > 0 {
			r.total = max(r.all-outside*r.taps, r.all/10)
			r.Measured = r.total / float64(r.Per)
		}
	}
	return true
}

// taps counts the touches by the program itself.
func (s *step) taps() float64 {
	n := mm.Pages(0)
	for _, o := range s.ops {
		if o.Kind == mm.OpTouch && o.Space == self && o.Access&mm.KernelMode == 0 {
			n += o.N
		}
	}
	return float64(n)
}

// forks says whether a step makes or ends processes.
func (s *step) forks() bool {
	return slices.ContainsFunc(s.ops, func(o mm.Op) bool { return o.Kind == mm.OpFork || o.Kind == mm.OpExit })
}
