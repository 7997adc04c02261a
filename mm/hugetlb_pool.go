package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// AnyNode asks for all nodes.
const AnyNode = -1

// gigantic says whether the pool's pages are larger than the buddy allocator's
// largest block: they come from a range of free memory, and there are no
// surplus ones.
func (m *Machine) gigantic(p *hugePool) bool { return p.order > m.pmdOrder }

func (p *hugePool) persistent() uint64 { return p.nr - p.surplus }

// available is how many free pages nobody was promised.
func (p *hugePool) available() uint64 { return p.free - p.resv }

// enqueueHuge puts a page that nothing maps at the head of its node's free list.
// Linux: mm/hugetlb.c:enqueue_hugetlb_folio (v6.18).
func (m *Machine) enqueueHuge(slot uint32) {
	pg := &m.huge.pages[slot]
	p := &m.huge.pools[pg.pool]
	n := &p.node[pg.node]
	pg.flags, pg.next, n.head = pg.flags&hugeOptimised|hugeLive|hugeFree, n.head, slot
	p.free++
	n.free++
}

// dequeueHuge takes the first free page of the caller's node, else of the next that
// has one; 0: none. Linux: mm/hugetlb.c:dequeue_hugetlb_folio_nodemask (v6.18).
func (m *Machine) dequeueHuge(c *Current, p *hugePool) uint32 {
	first := m.huge.cpu[c.CPU]
	for i := range p.node {
		if n := (first + i) % len(p.node); p.node[n].head != 0 {
			return m.takeFree(p, n)
		}
	}
	return 0
}

// takeFree takes the first free page of a node that has one.
func (m *Machine) takeFree(p *hugePool, node int) uint32 {
	n := &p.node[node]
	slot := n.head
	pg := &m.huge.pages[slot]
	n.head, pg.next = pg.next, 0
	pg.flags &^= hugeFree
	p.free--
	n.free--
	return slot
}

// freshHuge takes a page from the machine's free memory, on the given node if it
// is not AnyNode. It is the pool's, and in use; 0: there is none. hard says
// how hard the allocator tries.
// Linux: mm/hugetlb.c:alloc_fresh_hugetlb_folio, account_new_hugetlb_folio (v6.18).
func (m *Machine) freshHuge(c *Current, p *hugePool, node int, hard bool) uint32 {
	pfn, ok := m.hugeBlock(c, p, node, hard)
	if !ok {
		return 0
	}
	c.Work[PrimStructInit] += uint32(p.order.Pages())
	slot := m.newHugePage(p, pfn)
	m.hvoEnter(c, &m.huge.pages[slot])
	return slot
}

// hugeBlock takes the memory of one page.
func (m *Machine) hugeBlock(c *Current, p *hugePool, node int, hard bool) (PFN, bool) {
	if m.gigantic(p) {
		pfn, ok := m.alloc.TakeRange(node, uint8(p.order))
		m.physWork(c)
		if ok {
			m.huge.ranged += uint64(p.order.Pages())
		}
		return PFN(pfn), ok
	}
	f := buddy.DirectReclaim | buddy.KswapdReclaim
	if !hard {
		f |= buddy.NoRetry
	}
	if node != AnyNode {
		f |= buddy.ThisNode
	}
	pfn, ok := m.alloc.Alloc(int(c.CPU), node, uint8(p.order), buddy.Movable, f)
	m.physWork(c)
	if !ok {
		m.Counters.VM[HtlbBuddyAllocFail]++
		return 0, false
	}
	m.Counters.VM[HtlbBuddyAllocSuccess]++
	m.Counters.VM[PgAlloc] += uint64(p.order.Pages())
	return PFN(pfn), true
}

// newHugePage makes a block a page of the pool.
func (m *Machine) newHugePage(p *hugePool, pfn PFN) uint32 {
	h := &m.huge
	var slot uint32
	if k := len(h.spare); k > 0 {
		slot, h.spare = h.spare[k-1], h.spare[:k-1]
	} else {
		slot = uint32(len(h.pages))
		h.pages = append(h.pages, hugePage{})
	}
	node := m.alloc.NodeOf(uint64(pfn))
	h.pages[slot] = hugePage{head: pfn, pool: uint8(m.poolIndex(p)), node: uint8(node), flags: hugeLive}
	// The head alone is marked: nothing asks the others.
	*m.pages.freshFrame(pfn) = frame{flags: frameHugetlb, order: uint8(p.order), ref: slot}
	p.nr++
	p.node[node].nr++
	return slot
}

func (m *Machine) poolIndex(p *hugePool) int {
	for i := range m.huge.pools {
		if p == &m.huge.pools[i] {
			return i
		}
	}
	return 0
}

// surplusHuge takes a page above the pool's size, where the overcommit limit
// allows. Linux: mm/hugetlb.c:alloc_surplus_hugetlb_folio (v6.18).
func (m *Machine) surplusHuge(c *Current, p *hugePool) uint32 {
	if m.gigantic(p) || p.surplus >= p.overcommit {
		return 0
	}
	slot := m.freshHuge(c, p, AnyNode, true)
	if slot != 0 {
		p.surplus++
		p.node[m.huge.pages[slot].node].surplus++
	}
	return slot
}

// dropHuge gives a page that is on no list back to the machine's free memory.
// Where that fails the page stays in the pool as a free surplus one. Linux:
// mm/hugetlb.c:remove_hugetlb_folio, __update_and_free_hugetlb_folio (v6.18).
func (m *Machine) dropHuge(c *Current, slot uint32, surplus bool) bool {
	pg := &m.huge.pages[slot]
	p := &m.huge.pools[pg.pool]
	n := &p.node[pg.node]
	if !m.hvoLeave(c, pg) {
		if !surplus {
			p.surplus++
			n.surplus++
		}
		m.enqueueHuge(slot)
		return false
	}
	if surplus {
		p.surplus--
		n.surplus--
	}
	p.nr--
	n.nr--
	m.giveHuge(c, p, pg.head)
	*pg = hugePage{}
	m.huge.spare = append(m.huge.spare, slot)
	return true
}

// giveHuge gives a page's memory back.
func (m *Machine) giveHuge(c *Current, p *hugePool, pfn PFN) {
	c.Work[PrimStructInit] += uint32(p.order.Pages())
	*m.pages.frame(pfn) = frame{}
	if m.gigantic(p) {
		m.alloc.GiveRange(uint64(pfn), uint8(p.order))
		m.physWork(c)
		m.Counters.VM[PgFree] += uint64(p.order.Pages())
		return
	}
	m.freeBlock(c, pfn, p.order)
}

// freeHuge frees a page that nothing maps or caches any more: to the pool, or
// to the machine where its node has surplus pages (semantics 6.3.7).
// Linux: mm/hugetlb.c:free_huge_folio (v6.18).
func (m *Machine) freeHuge(c *Current, slot uint32) {
	pg := &m.huge.pages[slot]
	p := &m.huge.pools[pg.pool]
	m.Counters.VM[NrHugetlb] -= uint64(p.order.Pages())
	if pg.flags&hugeRestore != 0 {
		p.resv++
	}
	pg.flags = pg.flags&hugeOptimised | hugeLive
	if p.node[pg.node].surplus > 0 {
		m.dropHuge(c, slot, true)
		return
	}
	m.enqueueHuge(slot)
}

// flushHuge frees what an unmapping gathered. Pages are freed when all of it is
// unmapped, as the mmu_gather does.
func (m *Machine) flushHuge(c *Current) {
	for _, slot := range m.huge.gather {
		m.freeHuge(c, slot)
	}
	m.huge.gather = m.huge.gather[:0]
}
