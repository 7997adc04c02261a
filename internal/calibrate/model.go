package calibrate

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// ballast is what the helper process has mapped beside the workloads: a fork
// copies it too.
type ballast struct {
	Pages mm.Pages `json:"pages"` // anonymous
	Maps  int      `json:"maps"`
}

// counted is what the model says of one step.
type counted struct {
	work   mm.WorkSum
	faults uint64
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
	if err := do(m, start(m.Sizes().Base, b), &now); err != nil {
		return nil, err
	}
	out := make([]counted, len(w.steps))
	for range cycles {
		for i := range w.steps {
			program, _ := m.WorkDone()
			was, faults := *program, m.Usage.Faults
			if err := do(m, w.steps[i].ops, &now); err != nil {
				return nil, fmt.Errorf("calibrate: model: workload %s, step %d: %w", w.name, i, err)
			}
			program, _ = m.WorkDone()
			out[i] = counted{*program, m.Usage.Faults - faults}
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
func start(base mm.Bytes, b ballast) []mm.Op {
	ops := []mm.Op{
		{Kind: mm.OpExec, Space: self},
		{Kind: mm.OpMap, Flags: mm.MapAtExec, Space: self, Region: regionHeap, Arg: addrOf(regionHeap), Aux: uint64(mm.AreaHeap)},
	}
	at := addrOf(regionBallast)
	add := func(n mm.Pages, f mm.OpFlags) {
		ops = append(ops, mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Flags: f | mm.MapAtExec, Space: self,
			Region: regionBallast, N: n, Arg: at})
		at += uint64(n+1) * uint64(base)
	}
	for range b.Maps {
		add(1, mm.MapFile)
	}
	if b.Pages > 0 {
		add(b.Pages, 0)
		ops = append(ops, advise(regionBallast, b.Pages, mm.AdviseNoHugePage),
			mm.Op{Kind: mm.OpPopulate, Space: self, Region: regionBallast, N: b.Pages})
	}
	return ops
}
