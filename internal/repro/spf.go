package repro

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/sim"
)

// The published result of faults without mmap_lock: ebizzy in three ways and
// will-it-scale's page_fault3. Every figure comes from running the workload on
// the machine under each path of a fault.

// spfPath is a path of a fault under which a workload is run.
type spfPath struct {
	speculative mm.SpecRule
	vma         bool
	worst       bool // speculation ends at its last check every time
}

var (
	basePath = spfPath{}
	vmaPath  = spfPath{vma: true}
)

// spfCase is one run of a workload.
type spfCase struct {
	kernel   string
	path     spfPath
	cpus     int // 0: as many as the machine has
	warm, by mm.Nanos
	memory   mm.Bytes
	setup    func(cpus int) []mm.Op
	start    func(s *sim.Sim, m *mm.Machine, cpus int)
}

// spfRun is what a run showed within its window.
type spfRun struct {
	touches, faults float64 // a second
	huge            float64 // huge faults a second
	held            float64 // share of the time that mmap_lock was held for writing
	paths           [mm.NumPathEvents]float64
}

// run does a case once.
func (c *spfCase) run(env Env, seed uint64) (r spfRun, err error) {
	cpus := c.cpus
	if cpus == 0 {
		cpus = env.Machine.Int("cpu.sockets") * env.Machine.Int("cpu.cores") * env.Machine.Int("cpu.threads")
	}
	rules, err := mm.RulesFor(c.kernel)
	if err != nil {
		return r, err
	}
	rules.Speculative, rules.PerVMALock = c.path.speculative, c.path.vma
	sizes, err := mm.SizesOf(4096)
	if err != nil {
		return r, err
	}
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: c.memory}}, CPUs: cpus, Rules: rules,
		Policy: mm.DefaultPolicy(sizes)})
	if err != nil {
		return r, err
	}
	if _, err := m.Exec(c.setup(cpus), nil); err != nil {
		return r, err
	}
	s, err := sim.New(env.Machine, m, sim.Config{CPUs: cpus, Seed: env.Seed*1000 + seed, Worst: c.path.worst})
	if err != nil {
		return r, err
	}
	c.start(s, m, cpus)
	if err := s.Run(c.warm); err != nil {
		return r, err
	}
	from, paths, thp := s.Stats(), m.Paths, m.Counters.Get(mm.THPFaultAlloc)
	if err := s.Run(c.warm + c.by); err != nil {
		return r, err
	}
	to, second := s.Stats(), float64(c.by)/1e9
	r.touches = float64(to.Touches-from.Touches) / second
	r.faults = float64(to.Faults-from.Faults) / second
	r.huge = float64(m.Counters.Get(mm.THPFaultAlloc)-thp) / second
	r.held = float64(to.WriteHeld-from.WriteHeld) / float64(c.by)
	for i := range paths {
		r.paths[i] = float64(m.Paths[i]-paths[i]) / second
	}
	return r, nil
}

// spfRuns is a case with several seeds.
type spfRuns []spfRun

func (c spfCase) runs(env Env, path spfPath, cpus, seeds int) (spfRuns, error) {
	c.path, c.cpus = path, cpus
	var all spfRuns
	for i := range seeds {
		r, err := c.run(env, uint64(i+1))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", env.Machine.Name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (rs spfRuns) of(f func(*spfRun) float64) (mean, sd, most float64) {
	for i := range rs {
		x := f(&rs[i])
		mean += x / float64(len(rs))
		most = max(most, x)
	}
	for i := range rs {
		d := f(&rs[i]) - mean
		sd += d * d
	}
	if len(rs) > 1 {
		sd = math.Sqrt(sd / float64(len(rs)-1))
	}
	return mean, sd, most
}

// rate is records a second, of so many touches each.
func (rs spfRuns) rate(touches float64) (mean, sd, most float64) {
	return rs.of(func(r *spfRun) float64 { return r.touches / touches })
}

func (rs spfRuns) mean(f func(*spfRun) float64) float64 {
	mean, _, _ := rs.of(f)
	return mean
}

// share is how many of a run's faults ended by an event.
func (rs spfRuns) share(e mm.PathEvent) float64 {
	return rs.mean(func(r *spfRun) float64 { return r.paths[e] / r.faults })
}

func gain(base, now float64) float64 { return (now/base - 1) * 100 }

// ebizzyCase is ebizzy with options; threads is how many run on so many
// processors.
func ebizzyCase(kernel string, memory mm.Bytes, warm, by mm.Nanos, threads func(cpus int) int, args ...string) (spfCase, error) {
	e, err := workload.ParseEbizzy(args...)
	if err != nil {
		return spfCase{}, err
	}
	with := func(cpus int) *workload.Ebizzy {
		x := e
		x.Threads = threads(cpus)
		return &x
	}
	return spfCase{kernel: kernel, warm: warm, by: by, memory: memory,
		setup: func(cpus int) []mm.Op { return with(cpus).Setup(1, 4096) },
		start: func(s *sim.Sim, m *mm.Machine, cpus int) {
			e := with(cpus)
			for i := range e.Threads {
				s.Add(1, e.Thread(m, 1, i))
			}
		}}, nil
}

// twice is ebizzy's default: two threads a processor.
func twice(cpus int) int { return 2 * cpus }

func once(cpus int) int { return cpus }

// ebizzyTHP is ebizzy -HT -s 134217728, where all faults are huge and so none
// is speculative.
func ebizzyTHP(env Env) (Values, error) {
	const pages = 128 << 20 >> 12
	c, err := ebizzyCase("4.15", 24<<30, 60e6, 400e6, twice, "-HT", "-s", "134217728")
	if err != nil {
		return nil, err
	}
	var v Values
	base, err := c.runs(env, basePath, 0, 3)
	if err != nil {
		return nil, err
	}
	spf, err := c.runs(env, spfPath{speculative: mm.SpecV6}, 0, 3)
	if err != nil {
		return nil, err
	}
	vma, err := c.runs(env, vmaPath, 0, 1)
	if err != nil {
		return nil, err
	}
	const touches = pages + 2 // the C library writes two headers
	b, s := addRates(&v, touches, base, spf)
	v.Add("means_differ_percent", math.Abs(gain(b, s)))
	v.Add("notsup_share", spf.share(mm.SPFVMANotSup))
	v.Add("spf_share", spf.share(mm.SPF))
	v.Add("huge_faults_per_record", spf.mean(func(r *spfRun) float64 { return r.huge / (r.touches / touches) }))
	l, _, _ := vma.rate(touches)
	v.Add("vma_lock_gain_percent", gain(b, l))
	return v, nil
}

// addRates adds the records a second of two paths.
func addRates(v *Values, touches float64, base, spf spfRuns) (b, s float64) {
	b, sd, most := base.rate(touches)
	v.Add("base_records", b)
	v.Add("base_records_sd", sd)
	v.Add("base_records_max", most)
	s, sd, most = spf.rate(touches)
	v.Add("spf_records", s)
	v.Add("spf_records_sd", sd)
	v.Add("spf_records_max", most)
	return b, s
}

// ebizzyGain is a case of small pages: the gain, the events, the curve over
// processors, per-VMA locks and the worst case.
func ebizzyGain(env Env, c spfCase, rule mm.SpecRule, touches float64, seeds int) (Values, error) {
	spec := spfPath{speculative: rule}
	var v Values
	base, err := c.runs(env, basePath, 0, seeds)
	if err != nil {
		return nil, err
	}
	spf, err := c.runs(env, spec, 0, seeds)
	if err != nil {
		return nil, err
	}
	b, s := addRates(&v, touches, base, spf)
	v.Add("gain_percent", gain(b, s))
	v.Add("spf_share", spf.share(mm.SPF))
	v.Add("pte_lock_share", spf.share(mm.SPFPTELock))
	v.Add("vma_changed_share", spf.share(mm.SPFVMAChanged))
	v.Add("notsup_share", spf.share(mm.SPFVMANotSup))
	v.Add("write_lock_held_percent", spf.mean(func(r *spfRun) float64 { return 100 * r.held }))
	for _, cpus := range []int{1, 2, 4, 8, 32} {
		b, err := c.runs(env, basePath, cpus, 1)
		if err != nil {
			return nil, err
		}
		s, err := c.runs(env, spec, cpus, 1)
		if err != nil {
			return nil, err
		}
		bm, _, _ := b.rate(touches)
		sm, _, _ := s.rate(touches)
		v.Add(fmt.Sprintf("gain_%d_cpus_percent", cpus), gain(bm, sm))
		v.Add(fmt.Sprintf("write_lock_held_%d_cpus_percent", cpus), s.mean(func(r *spfRun) float64 { return 100 * r.held }))
	}
	for _, p := range []struct {
		name string
		path spfPath
	}{{"vma_lock_gain_percent", vmaPath}, {"worst_case_percent", spfPath{speculative: rule, worst: true}}} {
		r, err := c.runs(env, p.path, 0, 1)
		if err != nil {
			return nil, err
		}
		m, _, _ := r.rate(touches)
		v.Add(p.name, gain(b, m))
	}
	return v, nil
}

// ebizzyMTRp is ebizzy -mTRp, whose record is one page because of its random
// generator: two changes of the address space for every fault.
func ebizzyMTRp(env Env) (Values, error) {
	c, err := ebizzyCase("4.15", 4<<30, 20e6, 100e6, twice, "-mTRp")
	if err != nil {
		return nil, err
	}
	return ebizzyGain(env, c, mm.SpecV6, 1, 3)
}

// ebizzyMTt is ebizzy -mTt with a thread a processor: 128 faults a record.
func ebizzyMTt(env Env) (Values, error) {
	c, err := ebizzyCase("4.17", 4<<30, 20e6, 100e6, once, "-mT")
	if err != nil {
		return nil, err
	}
	return ebizzyGain(env, c, mm.SpecV11, 8*64<<10/4096, 3)
}

// pageFaultCase is will-it-scale's test n with a task a processor.
func pageFaultCase(n int, processes bool) spfCase {
	w := func(cpus int) *workload.PageFault {
		return &workload.PageFault{Kind: n, Tasks: cpus, Processes: processes}
	}
	return spfCase{kernel: "4.16", warm: 2e6, by: 10e6, memory: 64 << 30,
		setup: func(cpus int) []mm.Op { return w(cpus).Setup(4096) },
		start: func(s *sim.Sim, m *mm.Machine, cpus int) {
			w := w(cpus)
			for i := range cpus {
				s.Add(w.Space(i), w.Task(i, 4096))
			}
		}}
}

// pageFault3 is will-it-scale's page_fault3: nothing but faults of files, none
// of which can be speculative, so that all there is to see is what trying costs.
func pageFault3(env Env) (Values, error) {
	var v Values
	spec := spfPath{speculative: mm.SpecV6}
	for _, t := range []struct {
		name      string
		processes bool
		cpus      int
	}{{"", false, 0}, {"process_", true, 0}, {"1_cpu_", false, 1}} {
		c := pageFaultCase(3, t.processes)
		seeds := 3
		if t.name != "" {
			seeds = 1
		}
		base, err := c.runs(env, basePath, t.cpus, seeds)
		if err != nil {
			return nil, err
		}
		spf, err := c.runs(env, spec, t.cpus, seeds)
		if err != nil {
			return nil, err
		}
		n := float64(t.cpus)
		if n == 0 {
			n = float64(env.Machine.Int("cpu.sockets") * env.Machine.Int("cpu.cores") * env.Machine.Int("cpu.threads"))
		}
		b, s := base.mean(perTask(n)), spf.mean(perTask(n))
		if t.cpus != 1 {
			v.Add(t.name+"base_per_task", b)
			v.Add(t.name+"spf_per_task", s)
		}
		v.Add(t.name+"gain_percent", gain(b, s))
		if t.name == "" {
			v.Add("notsup_share", spf.share(mm.SPFVMANotSup))
			vma, err := c.runs(env, vmaPath, t.cpus, 1)
			if err != nil {
				return nil, err
			}
			v.Add("vma_lock_gain_percent", gain(b, vma.mean(perTask(n))))
		}
	}
	return v, nil
}

func perTask(n float64) func(*spfRun) float64 {
	return func(r *spfRun) float64 { return r.touches / n }
}

// spfResults are the results of this file.
func spfResults() []Result {
	const noHost = "one thread of system calls cannot make two threads contend, and no released kernel speculates"
	return []Result{
		{Name: "ebizzy-thp", Machine: "x86-vm-16", Model: ebizzyTHP, Host: noHostFor(noHost), Main: "means_differ_percent"},
		{Name: "ebizzy-mTRp-16", Machine: "x86-vm-16", Model: ebizzyMTRp, Host: noHostFor(noHost), Main: "gain_percent"},
		{Name: "ebizzy-mTt-16", Machine: "x86-vm-16-may", Model: ebizzyMTt, Host: noHostFor(noHost), Main: "gain_percent"},
		{Name: "page-fault3", Machine: "skylake-192", Model: pageFault3, Host: noHostFor(noHost), Main: "gain_percent"},
	}
}

// noHostFor says why the host cannot do a result.
func noHostFor(why string) func(context.Context) (Values, error) {
	return func(context.Context) (Values, error) { return nil, errors.New(why) }
}
