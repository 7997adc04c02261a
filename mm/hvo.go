package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// HugeTLB vmemmap optimisation (HVO): the struct pages of a hugetlb page say
// nothing but where its head is, and so all pages of the vmemmap that hold
// them are the same but for the first. One is kept, the others' entries are
// pointed at it, and their frames are given back.
//
//	              optimise: entries -> the kept page, frames freed
//	 whole  ------------------------------------------------------> given back
//	(8 pages <------------------------------------------------------ (7 frames
//	of 4 kB)      restore: frames allocated, struct pages copied       fewer)
//	              none to be had: the page stays in its pool, surplus
//
// It happens when a page enters a pool and when it leaves for the buddy
// allocator; faults and unmapping never see it (semantics 8).
// Linux: mm/hugetlb_vmemmap.c (v6.18).

// hvoPages is how many pages of the vmemmap hold a hugetlb page's struct pages.
func (m *Machine) hvoPages(pg *hugePage) uint64 {
	return uint64(m.huge.pools[pg.pool].order.Pages()) / m.structsPerPage()
}

// hvoKept is how many of them are kept.
func (r *Rules) hvoKept() uint64 {
	if r.HVOKeepsOne {
		return 1
	}
	return 2
}

// hvoEnter gives struct pages of a page that enters a pool back, where that is
// switched on and the machine keeps its vmemmap in its own memory. A page whose
// vmemmap mapping cannot be split for want of memory stays as it is.
// Linux: mm/hugetlb_vmemmap.c:__hugetlb_vmemmap_optimize_folio (v6.18).
func (m *Machine) hvoEnter(c *Current, pg *hugePage) {
	n, kept := m.hvoPages(pg), m.rules.hvoKept()
	if !m.policy.HVO || !m.rules.HVO || len(m.vmem.spans) == 0 || n <= kept {
		return
	}
	first := uint64(pg.head) / m.structsPerPage()
	if !m.splitVmemmap(c, first, n) {
		return
	}
	if m.rules.HVOKeepsOne {
		m.moveHead(c, first, int(pg.node))
	}
	for p := first + kept; p < first+n; p++ {
		pfn, _ := m.vmemmapFrame(p)
		_, moved := m.vmem.moved[p]
		m.vmem.gone.set(p)
		m.vmem.saved++
		delete(m.vmem.moved, p)
		m.freeVmemmap(c, pfn, !moved)
	}
	c.Work[PrimVmemmapMap] += uint32(n - kept)
	m.flushVmemmap(c)
	pg.flags |= hugeOptimised
}

// moveHead puts the first page of struct pages into a fresh frame, so that the
// frames of the whole stretch come free together; without memory it stays.
// Linux: mm/hugetlb_vmemmap.c:vmemmap_remap_free (v6.18).
func (m *Machine) moveHead(c *Current, page uint64, node int) {
	pfn, ok := m.takeVmemmap(c, node)
	if !ok {
		return
	}
	old, _ := m.vmemmapFrame(page)
	_, moved := m.vmem.moved[page]
	m.vmem.moved[page] = pfn
	m.freeVmemmap(c, old, !moved)
	c.Work[PrimVmemmapCopy]++
	c.Work[PrimVmemmapMap]++
}

// splitVmemmap makes tables of the 2 MB entries that map pages of the vmemmap.
// They stay. Linux: mm/hugetlb_vmemmap.c:vmemmap_split_pmd (v6.18).
func (m *Machine) splitVmemmap(c *Current, first, n uint64) bool {
	per := uint64(m.pmdOrder.Pages())
	for at := first / per; at <= (first+n-1)/per; at++ {
		if _, ok := m.vmem.split[at]; ok {
			continue
		}
		pfn, ok := m.takeVmemmap(c, AnyNode)
		if !ok {
			return false
		}
		m.vmem.split[at] = pfn
		m.Counters.VM[NrMemmapPages]-- // a page table, not struct pages
		c.Work[PrimVmemmapSplit]++
		m.flushVmemmap(c)
	}
	return true
}

// hvoLeave gives a page that leaves its pool its struct pages again. False says
// that memory for them was not to be had: nothing has changed then, and the page
// has to stay.
// Linux: mm/hugetlb_vmemmap.c:hugetlb_vmemmap_restore_folio (v6.18).
func (m *Machine) hvoLeave(c *Current, pg *hugePage) bool {
	if pg.flags&hugeOptimised == 0 {
		return true
	}
	n := m.hvoPages(pg)
	first := uint64(pg.head) / m.structsPerPage()
	var got []PFN
	for p := first; p < first+n; p++ {
		if !m.vmem.gone.has(p) {
			continue
		}
		pfn, ok := m.takeVmemmap(c, int(pg.node))
		if !ok {
			for _, g := range got {
				m.freeVmemmap(c, g, false)
			}
			return false
		}
		got = append(got, pfn)
	}
	k := 0
	for p := first; p < first+n; p++ {
		if m.vmem.gone.has(p) {
			m.vmem.gone.unset(p)
			m.vmem.saved--
			m.vmem.moved[p] = got[k]
			k++
		}
	}
	c.Work[PrimVmemmapCopy] += uint32(k)
	c.Work[PrimVmemmapMap] += uint32(k)
	m.flushVmemmap(c)
	pg.flags &^= hugeOptimised
	return true
}

// takeVmemmap takes a frame for struct pages, trying hard.
func (m *Machine) takeVmemmap(c *Current, node int) (PFN, bool) {
	f := buddy.DirectReclaim | buddy.KswapdReclaim
	if node != AnyNode {
		f |= buddy.ThisNode
	}
	pfn, ok := m.alloc.Alloc(int(c.CPU), node, 0, buddy.Unmovable, f)
	m.physWork(c)
	if !ok {
		return 0, false
	}
	m.vmem.held++
	m.Counters.VM[NrMemmapPages]++
	m.Counters.VM[PgAlloc]++
	return PFN(pfn), true
}

// freeVmemmap gives a frame back; boot says that it was taken at boot.
func (m *Machine) freeVmemmap(c *Current, pfn PFN, boot bool) {
	m.vmem.held--
	if boot {
		m.Counters.VM[NrMemmapBootPages]--
	} else {
		m.Counters.VM[NrMemmapPages]--
	}
	m.Counters.VM[PgFree]++
	m.physFree(c, pfn, 0, buddy.Unmovable)
}

// flushVmemmap is a flush of kernel addresses on every processor. Since 6.7 one
// flush serves all pages of a batch for each of the two steps that need one
// (semantics 8.3; Rules.HVOBatched).
func (m *Machine) flushVmemmap(c *Current) {
	if m.vmem.batch {
		m.vmem.owed = true
		return
	}
	c.Work[PrimFlushKernel]++
}

// beginVmemmap and endVmemmap are around all that one write to a pool's size does.
func (m *Machine) beginVmemmap() { m.vmem.batch, m.vmem.owed = m.rules.HVOBatched, false }

func (m *Machine) endVmemmap(c *Current) {
	if m.vmem.owed {
		c.Work[PrimFlushKernel] += 2 // after the splits, and after the entries changed
	}
	m.vmem.batch, m.vmem.owed = false, false
}

// StructPagesSaved is how many pages of struct pages are given back now.
func (m *Machine) StructPagesSaved() Pages { return m.vmem.saved }
