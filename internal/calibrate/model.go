package calibrate

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// ballast is what the helper process has mapped beside the workloads: a fork
// copies it too.
type ballast struct {
	Pages  mm.Pages `json:"pages"`  // anonymous
	Tables int      `json:"tables"` // page tables, of the lowest level nearly all
	Maps   int      `json:"maps"`
}

// counted is what the model says of one step.
type counted struct {
	work   mm.WorkSum
	faults uint64 // as getrusage counts them: populate's too
}

// cycles are how often the model runs a workload; the last counts. The first
// ones fill the allocator's lists as the real kernel's are filled.
const cycles = 3

// count runs a workload on the model and tells the Work of each step.
func count(w *workload, cfg mm.Config, b ballast) ([]counted, error) {
	cfg.AsRecorded = true
	m, err := mm.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("calibrate: model: %w", err)
	}
	var now mm.Nanos
	if err := do(m, start(m.Sizes(), b), &now); err != nil {
		return nil, err
	}
	out := make([]counted, len(w.steps))
	for range cycles {
		for i := range w.steps {
			program, _ := m.WorkDone()
			was, faults := *program, m.Usage.Faults+m.Usage.SoftFaults
			if err := do(m, w.steps[i].ops, &now); err != nil {
				return nil, fmt.Errorf("calibrate: model: workload %s, step %d: %w", w.name, i, err)
			}
			program, _ = m.WorkDone()
			out[i] = counted{*program, m.Usage.Faults + m.Usage.SoftFaults - faults}
			for p := range was {
				out[i].work[p] -= was[p]
			}
		}
	}
	return out, nil
}

// do does ops at a time of their own and takes a refusal for an error: the
// real kernel refuses none of them.
func do(m *mm.Machine, ops []mm.Op, now *mm.Nanos) error {
	timed := append([]mm.Op(nil), ops...)
	for i := range timed {
		*now += 1000
		timed[i].When = *now
	}
	res := make([]mm.Result, len(timed))
	n, err := m.Exec(timed, res)
	if err != nil {
		return fmt.Errorf("operation %d: %w", n, err)
	}
	for i := range res {
		if res[i].Errno != mm.OK {
			return fmt.Errorf("operation %d of kind %d: refused: errno %d", i, timed[i].Kind, res[i].Errno)
		}
	}
	return nil
}

// start makes an address space like the helper's.
func start(s mm.Sizes, b ballast) []mm.Op {
	ops := []mm.Op{
		{Kind: mm.OpExec, Space: self},
		{Kind: mm.OpMap, Flags: mm.MapAtExec, Space: self, Region: regionHeap,
			Arg: addrOf(regionHeap), Aux: uint64(mm.AreaHeap)},
	}
	at := addrOf(regionBallast)
	add := func(n mm.Pages, f mm.OpFlags) {
		ops = append(ops, mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Flags: f | mm.MapAtExec, Space: self,
			Region: regionBallast, N: n, Arg: at})
		at += uint64(n+1) * uint64(s.Base)
	}
	for range b.Maps {
		add(1, mm.MapFile)
	}
	for i := range max(b.Tables, min(1, int(b.Pages))) {
		n := b.Pages / mm.Pages(max(b.Tables, 1))
		if i == 0 {
			n = b.Pages - n*mm.Pages(max(b.Tables-1, 0))
		}
		if n > 0 {
			at = (at &^ uint64(s.Bytes(s.PMD)-1)) + 2*uint64(s.Bytes(s.PMD))
			add(n, 0)
			ops = append(ops, advise(regionBallast, n, mm.AdviseNoHugePage), op(mm.OpPopulate, regionBallast, 0, n, 0))
		}
	}
	return ops
}
