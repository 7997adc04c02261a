package repro

import (
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// fewProcesses is the reviewer's question: does it hold where the last-level
// cache is not crowded?
const fewProcesses = 4

// anonWSeqHugetlb is the letter that passes the fault's address to the clearing
// of hugetlb pages: before it, the first sub-page was cleared last whichever
// was to be used.
func anonWSeqHugetlb() Result {
	return Result{
		Name: "anon-w-seq-hugetlb", Machine: "xeon-e5-2699v4", Main: "throughput_gain_percent",
		Model: func(e Env) (Values, error) {
			p := clearPair{
				use:  workload.Usemem{Processes: 88, Step: workload.Word, Repeat: 1, Reverse: true, Anonymous: true, Hugetlb: true},
				base: clearSetup{order: mm.ClearTowards}, patched: clearSetup{order: mm.ClearTowards, known: true},
			}
			v, err := p.model(e)
			if err != nil {
				return nil, err
			}
			// Forward, where the letter changes nothing, and what later kernels'
			// order for clearing does to it.
			p.use.Reverse = false
			base, patched, err := p.run(e)
			if err != nil {
				return nil, err
			}
			v.Add("gain_forward_percent", change(base.throughput, patched.throughput))
			near, err := runClear(e.Machine, e.Seed, clearSetup{use: p.patched.use, order: mm.ClearNear, known: true})
			if err != nil {
				return nil, err
			}
			v.Add("forward_near_order_change_percent", change(patched.throughput, near.throughput))
			return v, nil
		},
	}
}

// anonWSeqTHP is the commit that brought the order: before it, sub-pages were
// cleared from the first to the last, so that the first, which the program
// wants, had left the cache.
func anonWSeqTHP() Result {
	return Result{
		Name: "anon-w-seq-thp", Machine: "xeon-e5-2699v3", Main: "throughput_gain_percent",
		Model: func(e Env) (Values, error) {
			p := clearPair{
				use:     workload.Usemem{Processes: 72, Step: workload.Word, Repeat: 1},
				base:    clearSetup{order: mm.ClearAscending, known: true},
				patched: clearSetup{order: mm.ClearTowards, known: true},
			}
			return p.model(e)
		},
	}
}

// anonCowSeq is the letter that copies in that order too.
func anonCowSeq() Result {
	return Result{
		Name: "anon-cow-seq", Machine: "xeon-e5-2699v3", Main: "throughput_gain_percent",
		Model: func(e Env) (Values, error) {
			p := clearPair{
				use:     workload.Usemem{Processes: 36, Step: workload.Word, Repeat: 1, Prealloc: true, Populate: true},
				base:    clearSetup{order: mm.ClearAscending, known: true},
				patched: clearSetup{order: mm.ClearTowards, known: true},
			}
			return p.model(e)
		},
	}
}

// clearPair is a workload before and after a change.
type clearPair struct {
	use           workload.Usemem
	base, patched clearSetup
}

// run runs both; the processes key of the machine overrules the workload's.
func (p *clearPair) run(e Env) (base, patched clearRun, err error) {
	if n := e.Machine.Int("processes"); n > 0 {
		p.use.Processes = n
	}
	p.base.use, p.patched.use = p.use, p.use
	if base, err = runClear(e.Machine, e.Seed, p.base); err != nil {
		return base, patched, err
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
