package repro

import (
	"fmt"
	"io"
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
	most     int // threads; 0: all that the workload has
	warm, by mm.Nanos
	memory   mm.Bytes
	setup    func(cpus int) []mm.Op
	threads  func(m *mm.Machine, cpus int) []spfThread
}

// spfThread is a thread and the space that it runs in.
type spfThread struct {
	space mm.Space
	st    mm.Stream
}

// spfRun is what a run showed within its window.
type spfRun struct {
	touches, faults float64 // a second
	held            float64 // share of the time that mmap_lock was held for writing
	wanted          float64 // or that a writer waited for it
	paths           [mm.NumPathEvents]float64
}

// machine makes the machine and its threads, each ended after so many of its
// stream's batches; 0: never.
func (c *spfCase) machine(env Env, seed uint64, batches int) (*sim.Sim, *mm.Machine, error) {
	cpus := c.cpus
	if cpus == 0 {
		cpus = processors(env)
	}
	rules, err := mm.RulesFor(c.kernel)
	if err != nil {
		return nil, nil, err
	}
	rules.Speculative, rules.PerVMALock = c.path.speculative, c.path.vma
	sizes, err := mm.SizesOf(4096)
	if err != nil {
		return nil, nil, err
	}
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: c.memory}}, CPUs: cpus, Rules: rules,
		Policy: mm.DefaultPolicy(sizes)})
	if err != nil {
		return nil, nil, err
	}
	if _, err := m.Exec(c.setup(cpus), nil); err != nil {
		return nil, nil, err
	}
	s, err := sim.New(env.Machine, m, sim.Config{CPUs: cpus, Seed: env.Seed*1000 + seed, Worst: c.path.worst})
	if err != nil {
		return nil, nil, err
	}
	for i, t := range c.threads(m, cpus) {
		if i == c.most && i > 0 {
			break
		}
		if batches > 0 {
			t.st = &upTo{t.st, batches}
		}
		s.Add(t.space, t.st)
	}
	return s, m, nil
}

// processors is how many the machine has.
func processors(env Env) int {
	return env.Machine.Int("cpu.sockets") * env.Machine.Int("cpu.cores") * env.Machine.Int("cpu.threads")
}

// upTo ends a stream after so many batches.
type upTo struct {
	st   mm.Stream
	left int
}

// Next implements mm.Stream.
func (u *upTo) Next(ops []mm.Op) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	u.left--
	return u.st.Next(ops)
}

// run does a case once.
func (c *spfCase) run(env Env, seed uint64) (r spfRun, err error) {
	s, m, err := c.machine(env, seed, 0)
	if err != nil {
		return r, err
	}
	if err := s.Run(c.warm); err != nil {
		return r, err
	}
	from, paths := s.Stats(), m.Paths
	if err := s.Run(c.warm + c.by); err != nil {
		return r, err
	}
	to, second := s.Stats(), float64(c.by)/1e9
	r.touches = float64(to.Touches-from.Touches) / second
	r.faults = float64(to.Faults-from.Faults) / second
	r.held = float64(to.WriteHeld-from.WriteHeld) / float64(c.by)
	r.wanted = float64(to.WriteWanted-from.WriteWanted) / float64(c.by)
	for i := range paths {
		r.paths[i] = float64(m.Paths[i]-paths[i]) / second
	}
	return r, nil
}

// hugePerRecord is how many huge pages a record of ebizzy faults in: one thread
// does so many, of two batches each. Beside others the C library's headers may
// lie in a huge page too, between two threads' buffers.
func (c spfCase) hugePerRecord(env Env, records int) (float64, error) {
	c.cpus, c.most = 1, 1
	s, m, err := c.machine(env, 1, 2*records)
	if err != nil {
		return 0, err
	}
	from := m.Counters.Get(mm.THPFaultAlloc)
	if err := s.Run(math.MaxInt64); err != nil {
		return 0, err
	}
	return float64(m.Counters.Get(mm.THPFaultAlloc)-from) / float64(records), nil
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

func wantedPercent(r *spfRun) float64 { return 100 * r.wanted }

func gain(base, now float64) float64 { return (now/base - 1) * 100 }

// ebizzyCase is ebizzy with options; threads is how many run on so many
// processors.
func ebizzyCase(kernel string, memory mm.Bytes, warm, by mm.Nanos, threads func(cpus int) int,
	args ...string) (spfCase, error) {
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
		threads: func(m *mm.Machine, cpus int) (all []spfThread) {
			e := with(cpus)
			for i := range e.Threads {
				all = append(all, spfThread{1, e.Thread(m, 1, i)})
			}
			return all
		}}, nil
}

// twice is ebizzy's default: two threads a processor.
func twice(cpus int) int { return 2 * cpus }

func once(cpus int) int { return cpus }

// thpRuns is how many runs ebizzyTHP takes of each path: a second of one run
// differs by about half a percent from the next.
const thpRuns = 8

// ebizzyTHP is ebizzy -HT -s 134217728, where all faults are huge and so none
// is speculative.
func ebizzyTHP(env Env) (Values, error) {
	const pages = 128 << 20 >> 12
	c, err := ebizzyCase("4.15", 24<<30, 130e6, 1000e6, twice, "-HT", "-s", "134217728")
	if err != nil {
		return nil, err
	}
	var v Values
	base, err := c.runs(env, basePath, 0, thpRuns)
	if err != nil {
		return nil, err
	}
	spf, err := c.runs(env, spfPath{speculative: mm.SpecV6}, 0, thpRuns)
	if err != nil {
		return nil, err
	}
	const touches = pages + 2 // the C library writes two headers
	b, s := addRates(&v, touches, base, spf)
	v.Add("means_differ_percent", math.Abs(gain(b, s)))
	if env.MainOnly {
		return v, nil
	}
	vma, err := c.runs(env, vmaPath, 0, 1)
	if err != nil {
		return nil, err
	}
	_, bsd, _ := base.rate(touches)
	_, ssd, _ := spf.rate(touches)
	v.Add("standard_error_percent", 100*math.Sqrt((bsd*bsd+ssd*ssd)/thpRuns)/b)
	v.Add("notsup_share", spf.share(mm.SPFVMANotSup))
	v.Add("speculative_share", spf.share(mm.SPF))
	huge, err := c.hugePerRecord(env, 3)
	if err != nil {
		return nil, err
	}
	v.Add("huge_faults_per_record", huge)
	l, _, _ := vma.rate(touches)
	v.Add("vma_lock_gain_percent", gain(b, l))
	return v, nil
}

// addRates adds the records a second of two paths.
func addRates(v *Values, touches float64, base, spf spfRuns) (b, s float64) {
	b, sd, most := base.rate(touches)
	v.Add("records_per_second_base", b)
	v.Add("sd_base", sd)
	v.Add("max_base", most)
	s, sd, most = spf.rate(touches)
	v.Add("records_per_second_spf", s)
	v.Add("sd_spf", sd)
	v.Add("max_spf", most)
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
	if env.MainOnly {
		return v, nil
	}
	v.Add("speculative_share", spf.share(mm.SPF))
	v.Add("pte_lock_share", spf.share(mm.SPFPTELock))
	v.Add("vma_changed_share", spf.share(mm.SPFVMAChanged))
	v.Add("notsup_share", spf.share(mm.SPFVMANotSup))
	v.Add("write_lock_held_percent", spf.mean(func(r *spfRun) float64 { return 100 * r.held }))
	v.Add("write_lock_wanted_percent", spf.mean(wantedPercent))
	for _, cpus := range []int{1, 2, 4, 8, 32, 64} {
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
		v.Add(fmt.Sprintf("write_lock_wanted_%d_cpus_percent", cpus), s.mean(wantedPercent))
	}
	for _, p := range []struct {
		name string
		path spfPath
	}{{"vma_lock_gain_percent", vmaPath}, {"worst_case_percent", spfPath{speculative: rule, worst: true}}} {
		r, err := c.runs(env, p.path, 0, seeds)
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
	return spfCase{kernel: "4.17", warm: 1e6, by: 4e6, memory: 64 << 30,
		setup: func(cpus int) []mm.Op { return w(cpus).Setup(4096) },
		threads: func(_ *mm.Machine, cpus int) (all []spfThread) {
			w := w(cpus)
			for i := range cpus {
				all = append(all, spfThread{w.Space(i), w.Task(i, 4096)})
			}
			return all
		}}
}

// pageFault3 is will-it-scale's page_fault3: nothing but faults of files, none
// of which can be speculative, so that all there is to see is what trying costs.
func pageFault3(env Env) (Values, error) {
	var v Values
	spec := spfPath{speculative: mm.SpecV11}
	for i, t := range []struct {
		name      string
		processes bool
		cpus      int
	}{{"ops_per_thread_", false, 0}, {"ops_per_process_", true, 0}, {"one_thread_", false, 1}} {
		c := pageFaultCase(3, t.processes)
		seeds := 3
		if i > 0 {
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
			n = float64(processors(env))
		}
		b, s := base.mean(perTask(n)), spf.mean(perTask(n))
		if t.cpus == 1 {
			v.Add("one_thread_ops", b)
		} else {
			v.Add(t.name+"base", b)
			v.Add(t.name+"spf", s)
		}
		name := t.name + "gain_percent"
		if i == 0 {
			name = "gain_percent"
		}
		v.Add(name, gain(b, s))
		if env.MainOnly {
			return v, nil
		}
		if i == 0 {
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
	const noHost = "one thread of system calls contends with nobody, and no released kernel speculates"
	freeWaking := Try{"waking a sleeping thread takes no time",
		[]string{"lock.wakeup=0", "lock.wake=0", "sched.switch=0"}}
	oneCPU := Try{"one processor", []string{"cpu.cores=1"}}
	slower := Try{"all kernel work twice as slow", []string{"kernel.factor=*2"}}
	const tooFast = "the rate with speculation is above the published one by the same factor in both " +
		"ebizzy results of small pages: what then limits is work under the write lock, and the prices of that work are of a later " +
		"server and kernel than the machine's, of which no base column tells them"
	return []Result{
		{
			Name: "ebizzy-thp", Machine: "x86-vm-16", Main: "means_differ_percent", Model: ebizzyTHP, Host: ebizzyTHPHost,
			NoHost: noHost,
			Did: "ebizzy -HT -s 134217728 for a second of virtual time, eight times with classic faults and eight " +
				"times with v6 of the series; enabled=always",
			Causes: []string{"eight runs of a second each leave the means uncertain by standard_error_percent; " +
				"the published ones are of 100 runs of ten seconds"},
		},
		{
			Name: "ebizzy-mTRp-16", Machine: "x86-vm-16", Main: "gain_percent", Model: ebizzyMTRp, NoHost: noHost,
			Did: "ebizzy -mTRp, two threads a processor, with the random generator of 0.3: 100 ms of virtual time, " +
				"classic, speculative (v6 to v10), under per-VMA locks, and with every speculation failing at " +
				"its last check",
			Tries: []Try{freeWaking, oneCPU, slower}, Causes: []string{tooFast},
		},
		{
			Name: "ebizzy-mTt-16", Machine: "x86-vm-16-may", Main: "gain_percent", Model: ebizzyMTt, NoHost: noHost,
			Did: "ebizzy -mT with a thread a processor: 100 ms of virtual time, classic, speculative (v11), " +
				"under per-VMA locks, and with every speculation failing at its last check",
			Tries: []Try{freeWaking, oneCPU, slower}, Causes: []string{tooFast},
		},
		{
			Name: "page-fault3", Machine: "skylake-192", Main: "gain_percent", Model: pageFault3, Host: pageFaultHost,
			NoHost: noHost,
			Did: "will-it-scale page_fault3, a thread or a process a processor: 4 ms of virtual time, classic, " +
				"speculative (v11) and under per-VMA locks",
			Tries: []Try{
				{"cache lines move between processors in no time", []string{"line.near=0", "line.far=0"}},
				{"one package", []string{"cpu.sockets=1"}},
			},
			Causes: []string{
				"the loss is larger than published: the model has every load of a line that another processor wrote " +
					"wait as a write does",
				"processes lose nothing in the model and a little as published: a process of one thread does not try, " +
					"and what the series adds to every change of a VMA is not priced",
			},
		},
	}
}
