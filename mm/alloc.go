package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// gfp is how hard a large anonymous folio is tried for, by the defrag setting
// (semantics 2.6). Linux: mm/huge_memory.c:vma_thp_gfp_mask (v6.18).
func (m *Machine) gfp(v *vma) buddy.Flags {
	hinted := v.flags&vmHuge != 0
	switch m.policy.Defrag {
	case DefragAlways:
		if hinted {
			return buddy.DirectReclaim
		}
		return buddy.DirectReclaim | buddy.NoRetry
	case DefragDefer:
		return buddy.KswapdReclaim
	case DefragDeferMadvise:
		if hinted {
			return buddy.DirectReclaim
		}
		return buddy.KswapdReclaim
	case DefragMadvise:
		if hinted {
			return buddy.DirectReclaim
		}
	}
	return 0
}

// smallGFP is GFP_HIGHUSER_MOVABLE.
const smallGFP = buddy.DirectReclaim | buddy.KswapdReclaim

// allocBlock takes a block for anonymous memory. A block of the PMD's order is
// first asked of the local node alone (mm/mempolicy.c:alloc_pages_mpol, v6.18).
func (m *Machine) allocBlock(c *Current, o Order, f buddy.Flags) (PFN, bool) {
	var pfn PFN
	var ok bool
	if o == m.pmdOrder && len(m.cfg.Nodes) > 1 {
		pfn, ok = m.physAlloc(c, o, buddy.Movable, f|buddy.ThisNode|buddy.NoRetry)
		if !ok && f&buddy.DirectReclaim == 0 {
			return 0, false
		}
	}
	if !ok {
		if pfn, ok = m.physAlloc(c, o, buddy.Movable, f); !ok {
			return 0, false
		}
	}
	m.pages.ensureFrames(pfn, o)
	m.Counters.VM[PgAlloc] += uint64(o.Pages())
	return pfn, true
}

func (m *Machine) freeBlock(c *Current, pfn PFN, o Order) {
	m.Counters.VM[PgFree] += uint64(o.Pages())
	m.physFree(c, pfn, o, buddy.Movable)
}

// charge accounts a block to the program, or refuses at the cgroup's limit.
func (m *Machine) charge(c *Current, o Order) bool {
	n := o.Pages()
	if m.cfg.Limit != 0 && m.Usage.Anon+m.Usage.Shmem+n > m.cfg.Limit {
		return false
	}
	c.Work[PrimCharge]++
	m.Usage.Anon += n
	m.Usage.ByOrder[o] += n
	return true
}

func (m *Machine) uncharge(c *Current, o Order) {
	c.Work[PrimUncharge]++
	m.Usage.Anon -= o.Pages()
	m.Usage.ByOrder[o] -= o.Pages()
}

// allocResult says how an attempt at a folio ended.
type allocResult uint8

const (
	allocOK allocResult = iota
	allocNone
	allocNoCharge
)

// allocAnon takes and charges a block.
func (m *Machine) allocAnon(c *Current, o Order, f buddy.Flags) (PFN, allocResult) {
	pfn, ok := m.allocBlock(c, o, f)
	if !ok {
		if o > 0 {
			m.Usage.Fallbacks++
		}
		return 0, allocNone
	}
	if !m.charge(c, o) {
		m.freeBlock(c, pfn, o)
		if o > 0 {
			m.Usage.Fallbacks++
		}
		return 0, allocNoCharge
	}
	return pfn, allocOK
}

// allocSmall takes a page for a fault. Before it fails the deferred-split
// shrinker runs, as under memory pressure (semantics 3.4).
func (m *Machine) allocSmall(c *Current) (PFN, bool) {
	pfn, res := m.allocAnon(c, 0, smallGFP)
	if res != allocOK && m.pages.queue.n > 0 {
		m.Shrink(c)
		pfn, res = m.allocAnon(c, 0, smallGFP)
	}
	return pfn, res == allocOK
}

// giveBack undoes allocAnon for a folio that was never mapped.
func (m *Machine) giveBack(c *Current, pfn PFN, o Order) {
	m.uncharge(c, o)
	m.freeBlock(c, pfn, o)
}

// mostClearLarge is the largest order whose clearing is PrimClearLarge. No
// rule of the kernel changes there: larger folios leave the nearest caches
// behind, and a page of theirs was measured to cost half as much again.
const mostClearLarge = 5

// clearPages counts the zeroing of a folio. The step's N is the index of the
// page that faulted, the hint of the clearing order (semantics 7.2).
func (m *Machine) clearPages(c *Current, pfn PFN, o Order, hint uint32) {
	p := PrimClearLarge
	switch {
	case o == 0:
		p = PrimClearSmall
	case o == m.pmdOrder:
		p = PrimClearPMD
	case o > mostClearLarge:
		p = PrimClearBlock
	}
	c.Work[p] += uint32(o.Pages())
	c.step(p, o, hint, pfn)
}
