package lab

import (
	"io/fs"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// Events are counters of the whole machine. Other programs move them too.
type Events struct {
	Folios    [mm.NumOrders]uint64 // large folios that faults on anonymous memory made
	Fallbacks uint64               // large folios that could not be had
	Collapses uint64               // ranges that were collapsed to a huge page
	Faults    uint64               // page faults of everybody
	BySize    bool                 // Folios has every size, not only the PMD's
}

// readEvents reads the counters of a machine. Before Linux 6.10 there are none
// by size.
func readEvents(fsys fs.FS, s mm.Sizes) (Events, error) {
	var e Events
	v, err := kstat.ReadVMStat(fsys)
	if err != nil {
		return e, err
	}
	e.Faults, e.Collapses = v["pgfault"], v["thp_collapse_alloc"]
	e.Folios[s.PMD], e.Fallbacks = v["thp_fault_alloc"], v["thp_fault_fallback"]
	stats, err := kstat.ReadSizeStats(fsys)
	if err != nil {
		return e, nil
	}
	e.BySize, e.Fallbacks = true, 0
	for _, o := range s.Orders() {
		st := stats[s.Bytes(o)]
		e.Folios[o] = uint64(st["anon_fault_alloc"])
		e.Fallbacks += uint64(st["anon_fault_fallback"])
	}
	return e, nil
}

// since is what happened from b on to e.
func (e Events) since(b Events) Events {
	for o := range e.Folios {
		e.Folios[o] -= b.Folios[o]
	}
	e.Fallbacks -= b.Fallbacks
	e.Collapses -= b.Collapses
	e.Faults -= b.Faults
	return e
}

// others are the faults of other programs beside a run.
func (r *Run) others() uint64 { return r.Events.Faults - min(r.Events.Faults, r.Faults) }
