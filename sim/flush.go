package sim

import "github.com/hugelab/hugelab/mm"

// flush is a TLB shootdown by th: every other processor that runs its space is
// interrupted, and th waits for the last answer. The time it takes an
// interrupted processor is added to its next step. An idle processor still has
// the tables of what ran last; it is interrupted once, and drops them.
// Linux: arch/x86/mm/tlb.c:native_flush_tlb_others, flush_tlb_func_common (v4.15).
func (s *Sim) flush(th *thread) mm.Nanos {
	s.stats.Flushes++
	others := 0
	for p := range s.cpus {
		c := &s.cpus[p]
		switch {
		case c.thread == th.id:
		case c.thread >= 0 && s.threads[c.thread].space == th.space:
			s.threads[c.thread].debt += s.cost.ipiHandle
			others++
		case c.thread < 0 && c.lazy == th.space:
			c.lazy = 0
			others++
		}
	}
	if others == 0 {
		return s.cost.flush
	}
	s.stats.IPIs += uint64(others)
	return s.cost.flush + s.cost.ipiWait + s.cost.ipiSend*mm.Nanos(others)
}
