package calibrate

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// result fits a profile to what was measured.
func (s *session) result() (*Result, error) {
	r := &Result{Kernel: s.facts.Release, CPU: cpuModel(),
		Nanos: map[string]float64{}, Elapsed: map[string]float64{}}
	var counts []counted
	var warm []float64
	for i := range s.all {
		w, g := &s.all[i], &s.got[i]
		if g.Steps == nil {
			continue
		}
		warm = append(warm, g.Warm...)
		c, err := count(w, s.config(s.policy[i]), s.hello.Ballast)
		if err != nil {
			return nil, err
		}
		for j := range w.steps {
			if w.steps[j].name != "" {
				r.Rows = append(r.Rows, rowOf(w.name, &w.steps[j], g.Steps[j], s.hello.Clock, &c[j]))
				counts = append(counts, c[j])
			}
		}
	}
	s.notes = append(s.notes, s.missing()...)
	if !split(r.Rows) {
		s.notes = append(s.notes, "kernel and user time of faults could not be told apart: too few ticks: "+
			"give a longer --time")
	}
	use(r.Rows, counts)
	preset, _ := hw.Preset("vm")
	var guessed []mm.Prim
	r.Profile.Nanos, guessed = fit(r.Rows, &preset, func(r *Row) float64 { return r.total })
	r.Profile.Elapsed, _ = fit(r.Rows, &preset, func(r *Row) float64 { return r.all })
	for _, p := range guessed {
		r.Guessed = append(r.Guessed, p.String())
	}
	r.Memory = memoryOf(warm)
	s.judge(r)
	return r, nil
}

// missing says which workloads were not measured, once for each reason.
func (s *session) missing() []string {
	var notes []string
	for i := range s.all {
		why := s.out[i]
		if why == "" {
			continue
		}
		var names []string
		for j := i; j < len(s.all); j++ {
			if s.out[j] == why {
				names = append(names, s.all[j].name)
				delete(s.out, j)
			}
		}
		notes = append(notes, "not measured: "+strings.Join(names, ", ")+": "+why)
	}
	return notes
}

// config is a model machine like this one.
func (s *session) config(p mm.Policy) mm.Config {
	mem := max(s.facts.MemTotal, 1<<30)
	return mm.Config{Nodes: []mm.Node{{Mem: mem}}, CPUs: max(s.facts.CPUs, 1),
		BasePage: mm.Bytes(os.Getpagesize()), Rules: s.rules, Policy: p}
}

func memoryOf(warm []float64) Memory {
	var m Memory
	if len(warm) > 1 {
		m.First = warm[0]
		rest := append([]float64(nil), warm[1:]...)
		m.Median = quantile(rest, 0.5)
		m.Worst = rest[len(rest)-1]
	}
	return m
}

// judge fills in what the profile makes of the rows, and what is to be said.
func (s *session) judge(r *Result) {
	var spreads, residuals []float64
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Fitted = float64(r.Profile.PriceSum(&row.work)) / float64(row.Per)
		if !row.priced() {
			row.Fitted = 0
			continue
		}
		row.Residual = row.Fitted/row.Measured - 1
		if !row.Used {
			s.notes = append(s.notes, fmt.Sprintf("%s: left out: %+.0f faults against the model's",
				row.Name, row.Extra))
			continue
		}
		spreads, residuals = append(spreads, row.Spread), append(residuals, math.Abs(row.Residual))
	}
	r.Spread, r.Residual = quantile(spreads, 0.5), quantile(residuals, 0.5)
	r.cool()
	if r.Profile.Unbacked = r.unbacked(newMaker(s.facts.Sizes)); r.Profile.Unbacked > 0 {
		s.notes = append(s.notes, fmt.Sprintf("the hypervisor takes free memory back: a fresh page of a large block "+
			"costs %s more, which is in the profile", nanos(r.Profile.Unbacked)))
	}
	if s.hello.Traced {
		r.Profile.Traced = round(max(0, r.elapsed(tracedFault)-r.elapsed(hotFault)))
	}
	for p, n := range r.Profile.Nanos {
		r.Nanos[mm.Prim(p).String()] = n
		r.Elapsed[mm.Prim(p).String()] = r.Profile.Elapsed[p]
	}
	if s.hello.Sampler != "" {
		s.notes = append(s.notes, "perf may not sample here ("+s.hello.Sampler+
			"): kernel and user time are told apart by the kernel's ticks, less exactly")
	}
	if r.Memory.Late() {
		s.notes = append(s.notes, fmt.Sprintf("memory was not backed at first use: %.0f ns a page, %.0f ns later; "+
			"times are those of backed memory", r.Memory.First, r.Memory.Median))
	}
	r.Notes = append([]string{}, s.notes...) // a list in JSON, be it empty
	now := time.Now().UTC().Format("2006-01-02")
	n := 0
	for i := range r.Rows {
		n = max(n, r.Rows[i].N)
	}
	r.Profile.Name = "machine"
	r.Profile.Source = fmt.Sprintf("measured on Linux %s, %s", r.Kernel, now)
	r.Profile.Made = &hw.Made{Kernel: r.Kernel, CPU: r.CPU, Date: now, Runs: n,
		Spread: r.Spread, Residual: r.Residual}
	for i := range r.Rows {
		x := &r.Rows[i]
		r.Profile.Made.Rows = append(r.Profile.Made.Rows, hw.MadeRow{Name: x.Name, Measured: round(x.Measured),
			Elapsed: round(x.Elapsed), Fitted: round(x.Fitted), Spread: round(x.Spread)})
	}
	r.Profile.Made.Guessed = r.Guessed
}

// cool adds to every fault what it costs more when the program has used its
// caches since the last one. Workloads fault back to back, where all of the
// kernel's code and data are in the caches; programs do not. All of it counts
// as kernel time: ticks found that much more of it in a loop of such faults
// (docs/calibrate.md).
func (r *Result) cool() {
	byName := map[string]*Row{}
	for i := range r.Rows {
		byName[r.Rows[i].Name] = &r.Rows[i]
	}
	hot, cold, usual := byName[hotFault], byName[coldFault], byName[smallFault]
	if hot == nil || cold == nil || usual == nil {
		return
	}
	r.Cold = max(0, cold.Elapsed-hot.Elapsed)
	hot.Measured = hot.Elapsed * usual.Measured / usual.Elapsed
	cold.Measured = hot.Measured + r.Cold
	for _, p := range []mm.Prim{mm.PrimFaultUser, mm.PrimFaultKernel, mm.PrimFaultFile} {
		r.Profile.Nanos[p] = round(r.Profile.Nanos[p] + r.Cold)
		r.Profile.Elapsed[p] = round(r.Profile.Elapsed[p] + r.Cold)
	}
}

// elapsed is a row's processor time, 0 when there is none.
func (r *Result) elapsed(name string) float64 {
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return r.Rows[i].Elapsed
		}
	}
	return 0
}

// unbacked is what a page of a fresh block takes longer than one of a block
// that was used just now; 0 if a fresh one is no slower.
func (r *Result) unbacked(k maker) float64 {
	fresh, backed := r.elapsed(freshFault), r.elapsed(k.blockFault())
	if backed == 0 || fresh < 2*backedLate*backed {
		return 0
	}
	return round((fresh - backed) / float64(k.PMD.Pages()))
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
