package repro

import (
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// fewProcesses is the reviewer's question: does it hold where the last-level
// cache is not crowded?
const fewProcesses = 4

const noHostClear = "it takes dozens of processes on a last-level cache of less than 2 MB each"

// anonWSeqHugetlb is the letter that passes the fault's address to the clearing
// of hugetlb pages: before it, the first sub-page was cleared last whichever
// was to be used.
func anonWSeqHugetlb() Result {
	return Result{
		Name: "anon-w-seq-hugetlb", Machine: "xeon-e5-2699v4", Main: "throughput_gain_percent",
		Did: "one process a hardware thread: they clear surplus 2 MB pages by the order of Linux 4.14 " +
			"and write them from end to start through simulated caches, the page's start or the fault's address " +
			"being the target",
		NoHost: noHostClear,
		Tries: []Try{
			{"a last-level cache four times as large", []string{"llc.size=*4"}},
			{"cores without second threads, a process each", []string{"cpu.threads=1"}},
			{"a last-level cache that gives up what was used longest ago", []string{"llc.policy=0"}},
			{"clearing that reads what it overwrites", []string{"clear.reads=1"}},
		},
		Causes: []string{
			"base_ipc: memory moves what STREAM measured, to the last byte; two thirds of this traffic are " +
				"writes, which DRAM serves less well, and no measurement of that mix was found",
		},
		Model: func(e Env) (Values, error) {
			p := hugetlbPair()
			v, err := p.model(e)
			if err != nil || e.MainOnly {
				return v, err
			}
			// Forward, where the letter changes nothing, and what later kernels'
			// order for clearing does to it.
			p.use.Reverse = false
			base, patched, err := p.run(e)
			if err != nil {
				return nil, err
			}
			v.Add("gain_forward_percent", change(base.throughput, patched.throughput))
			p.patched.use, p.patched.order = p.use, mm.ClearNear
			near, err := runClear(e.Machine, e.Seed, p.patched)
			if err != nil {
				return nil, err
			}
			v.Add("forward_near_order_change_percent", change(patched.throughput, near.throughput))
			return v, nil
		},
	}
}

func hugetlbPair() clearPair {
	return clearPair{
		use: workload.Usemem{
			Step: workload.Word, Repeat: 1, Reverse: true, Anonymous: true, Hugetlb: true,
		},
		base:    clearSetup{order: mm.ClearTowards},
		patched: clearSetup{order: mm.ClearTowards, known: true},
	}
}

// anonWSeqTHP is the commit that brought the order: before it, sub-pages were
// cleared from the first to the last, so that the first, which the program
// wants, had left the cache.
func anonWSeqTHP() Result {
	return Result{
		Name: "anon-w-seq-thp", Machine: "xeon-e5-2699v3", Main: "throughput_gain_percent",
		Did: "one process a hardware thread: they clear transparent 2 MB pages ascending or by the order " +
			"of Linux 4.14 and write them from start to end through simulated caches",
		NoHost: noHostClear,
		Tries: []Try{
			{"a last-level cache four times as large", []string{"llc.size=*4"}},
			{"cores without second threads, a process each", []string{"cpu.threads=1"}},
		},
		Causes: []string{
			"miss_rate_change_percent: the published rate hardly moves, though throughput and instructions a " +
				"cycle do as in the model; what else was counted as an access is not known",
		},
		Model: func(e Env) (Values, error) {
			p := orderPair(workload.Usemem{Step: workload.Word, Repeat: 1})
			return p.model(e)
		},
	}
}

// anonCowSeq is the letter that copies in that order too.
func anonCowSeq() Result {
	return Result{
		Name: "anon-cow-seq", Machine: "xeon-e5-2699v3", Main: "throughput_gain_percent",
		Did: "one child a core: they copy huge pages of their parent ascending or by the order of Linux 4.14 " +
			"and write them from start to end through simulated caches; no two copy the same page at the same time",
		NoHost: noHostClear,
		Tries: []Try{
			{"a last-level cache four times as large", []string{"llc.size=*4"}},
		},
		Causes: []string{
			"throughput_gain_percent: in the model the parent's memory lies on the children's own node, and one " +
				"child at a time reads it; where it lay, and how far children drifted apart, was not published",
		},
		Model: func(e Env) (Values, error) {
			p := orderPair(workload.Usemem{
				Step: workload.Word, Repeat: 1, Prealloc: true, Populate: true,
			})
			p.perCore = true
			return p.model(e)
		},
	}
}

// orderPair is the ascending order against the one of Linux 4.14.
func orderPair(u workload.Usemem) clearPair {
	return clearPair{
		use:     u,
		base:    clearSetup{order: mm.ClearAscending, known: true},
		patched: clearSetup{order: mm.ClearTowards, known: true},
	}
}

// clearPair is a workload before and after a change.
type clearPair struct {
	use           workload.Usemem // of no processes: as many as the machine has hardware threads
	perCore       bool            // one a core instead
	base, patched clearSetup
}

// run runs both. The processes key of the machine overrules the workload's.
func (p *clearPair) run(e Env) (base, patched clearRun, err error) {
	m := e.Machine
	switch n := m.Int("processes"); {
	case n > 0:
		p.use.Processes = n
	case p.use.Processes == 0:
		p.use.Processes = m.Int("cpu.sockets") * m.Int("cpu.cores")
		if !p.perCore {
			p.use.Processes *= m.Int("cpu.threads")
		}
	}
	p.base.use, p.patched.use = p.use, p.use
	if base, err = runClear(e.Machine, e.Seed, p.base); err != nil {
		return base, patched, err
	}
	if p.patched.sameOrder(p.base) {
		return base, base, nil // the same run to the last line
	}
	patched, err = runClear(e.Machine, e.Seed, p.patched)
	return base, patched, err
}

// model is the metrics that all results of this kind have. Times are shares of
// a run of fixed length, as the suite's are: who writes more in it clears more.
func (p *clearPair) model(e Env) (Values, error) {
	b, a, err := p.run(e)
	if err != nil {
		return nil, err
	}
	var v Values
	v.Add("throughput_gain_percent", change(b.throughput, a.throughput))
	if e.MainOnly {
		return v, nil
	}
	v.Add("miss_rate_change_percent", change(b.missRate(), a.missRate()))
	v.Add("ipc_gain_percent", change(b.ipc, a.ipc))
	v.Add("user_time_change_percent", change(b.user, a.user))

	few := *p
	few.use.Processes = min(fewProcesses, p.use.Processes)
	if e.Machine, err = e.Machine.With("processes", "0"); err != nil {
		return nil, err
	}
	fb, fa, err := few.run(e)
	if err != nil {
		return nil, err
	}
	v.Add("gain_4_processes_percent", change(fb.throughput, fa.throughput))

	v.Add("kernel_time_change_percent", change(b.kernel, a.kernel))
	v.Add("user_time_a_byte_change_percent", change(b.userNanosAPage, a.userNanosAPage))
	v.Add("base_miss_rate_percent", 100*b.missRate())
	v.Add("patched_miss_rate_percent", 100*a.missRate())
	v.Add("base_ipc", b.ipc)
	v.Add("patched_ipc", a.ipc)
	v.Add("base_written_gb_s", b.throughput/1e9)
	v.Add("base_reported_gb_s", b.credited/1e9)
	v.Add("base_memory_gb_s", b.bandwidth*float64(e.Machine.Int("cpu.sockets")))
	v.Add("base_user_share", b.user)
	return v, nil
}

// change is from a to b in percent of a.
func change(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return 100 * (b/a - 1)
}
