package sim

import "github.com/hugelab/hugelab/mm"

// flush is a TLB shootdown by th: every other processor that runs its space is
// interrupted, and th waits for the last answer. The time it takes an
// interrupted processor is added to its next step.
// Linux: arch/x86/mm/tlb.c:native_flush_tlb_others (v4.15).
func (s *Sim) flush(th *thread) mm.Nanos {
	s.stats.Flushes++
	d := s.cost.flush
	others := s.spaces[th.space].running - 1
	if others <= 0 {
		return d
	}
	for p := range s.cpus {
		if id := s.cpus[p].thread; id >= 0 && id != th.id && s.threads[id].space == th.space {
			s.threads[id].debt += s.cost.ipiHandle
		}
	}
	s.stats.IPIs += uint64(others)
	return d + s.cost.ipiWait + s.cost.ipiSend*mm.Nanos(others)
}
