package mm

// PoolInfo is one pool of hugetlb pages.
type PoolInfo struct {
	Order      Order // of its pages
	Pages      uint64
	Free       uint64
	Reserved   int64 // promised and not allocated; below zero only where Linux's own count is
	Surplus    uint64
	Overcommit uint64
	Nodes      []PoolNode
}

// PoolNode is a node's part of a pool.
type PoolNode struct{ Pages, Free, Surplus uint64 }

// Pools tells of every pool, the PMD's size first. It allocates.
func (m *Machine) Pools() []PoolInfo {
	var all []PoolInfo
	for i := range m.huge.pools {
		p := &m.huge.pools[i]
		in := PoolInfo{Order: p.order, Pages: p.nr, Free: p.free, Reserved: int64(p.resv), Surplus: p.surplus,
			Overcommit: p.overcommit}
		for _, n := range p.node {
			in.Nodes = append(in.Nodes, PoolNode{n.nr, n.free, n.surplus})
		}
		all = append(all, in)
	}
	return all
}

// ResizePool is a write of n to nr_hugepages of the pool whose pages are of the
// given order, or of one node's nr_hugepages. A pool that grows less far than
// asked is no error. EINVAL: there is no such pool or node.
// Linux: mm/hugetlb.c:set_max_huge_pages (v6.18).
func (m *Machine) ResizePool(c *Current, size Order, node int, n uint64) Errno {
	p := m.poolOf(size)
	if p == nil || node != AnyNode && (node < 0 || node >= len(p.node)) {
		return EINVAL
	}
	m.beginVmemmap()
	m.resizePool(c, p, node, n)
	m.endVmemmap(c)
	return OK
}

// SetOvercommit is a write to nr_overcommit_hugepages. EINVAL: there is no such
// pool, or its pages are too large to be surplus ones.
// Linux: mm/hugetlb.c:nr_overcommit_hugepages_store (v6.18).
func (m *Machine) SetOvercommit(size Order, n uint64) Errno {
	p := m.poolOf(size)
	if p == nil || m.gigantic(p) {
		return EINVAL
	}
	p.overcommit = n
	return OK
}

func (m *Machine) resizePool(c *Current, p *hugePool, node int, n uint64) {
	if node != AnyNode { // the others keep what they have
		at := &p.node[node]
		if n += p.persistent() - (at.nr - at.surplus); n < p.persistent()-(at.nr-at.surplus) {
			n = ^uint64(0)
		}
	}
	for p.surplus > 0 && n > p.persistent() {
		if !m.adjustSurplus(p, node, -1) {
			break
		}
	}
	if !m.growPool(c, p, node, n) {
		return
	}
	m.shrinkPool(c, p, node, n)
	for n < p.persistent() {
		if !m.adjustSurplus(p, node, 1) {
			break
		}
	}
}

// growPool takes pages until the pool has n persistent ones, node by node; false
// if it got fewer. A node that failed once is no longer tried hard for.
// Linux: mm/hugetlb.c:alloc_pool_huge_folio, prep_and_add_allocated_folios (v6.18).
func (m *Machine) growPool(c *Current, p *hugePool, node int, n uint64) bool {
	soft := make([]bool, len(p.node))
	var got []uint32
	for n > p.persistent() {
		var slot uint32
		for range p.node {
			at := p.turn(&p.nextAlloc, node)
			if slot = m.freshHuge(c, p, at, !soft[at]); slot != 0 {
				soft[at] = false
				break
			}
			if soft[at] = true; node != AnyNode {
				break
			}
		}
		if slot == 0 {
			break
		}
		got = append(got, slot)
	}
	for i := len(got) - 1; i >= 0; i-- {
		m.enqueueHuge(got[i])
	}
	return n <= p.persistent()
}

// shrinkPool gives free pages back, as long as what is promised or in use is
// covered. Linux: mm/hugetlb.c:set_max_huge_pages (v6.18).
func (m *Machine) shrinkPool(c *Current, p *hugePool, node int, n uint64) {
	least := max(n, p.resv+p.nr-p.free)
	var gone []uint32
	for k := p.persistent(); least < k; k-- {
		slot := m.takeFromPool(p, node, false)
		if slot == 0 {
			break
		}
		gone = append(gone, slot)
	}
	for i := len(gone) - 1; i >= 0; i-- {
		m.dropHuge(c, gone[i], false)
	}
}

// adjustSurplus makes one page surplus (by 1) or persistent (by -1), on the next
// node that has one; false if none has.
// Linux: mm/hugetlb.c:adjust_pool_surplus (v6.18).
func (m *Machine) adjustSurplus(p *hugePool, node, by int) bool {
	next := &p.nextFree
	if by < 0 {
		next = &p.nextAlloc
	}
	for range p.node {
		at := &p.node[p.turn(next, node)]
		if by < 0 && at.surplus > 0 || by > 0 && at.surplus < at.nr {
			p.surplus += uint64(by)
			at.surplus += uint64(by)
			return true
		}
		if node != AnyNode {
			break
		}
	}
	return false
}

// Demote is a write of n to demote of the pool of gigantic pages: up to n free
// pages that nobody was promised become pages of the PMD's size. It returns how
// many did. EINVAL: no smaller size. Linux: mm/hugetlb.c:demote_store (v6.18).
func (m *Machine) Demote(c *Current, size Order, node int, n uint64) (uint64, Errno) {
	p := m.poolOf(size)
	if p == nil || !m.gigantic(p) || node != AnyNode && (node < 0 || node >= len(p.node)) {
		return 0, EINVAL
	}
	to := &m.huge.pools[0]
	done := uint64(0)
	for ; done < n; done++ {
		free := p.free
		if node != AnyNode {
			free = p.node[node].free
		}
		if free <= p.resv {
			break
		}
		slot := m.takeFromPool(p, node, false)
		if slot == 0 {
			break
		}
		m.demote(c, p, to, slot)
	}
	return done, OK
}

// demote cuts one page into pages of the smaller pool.
// Linux: mm/hugetlb.c:demote_free_hugetlb_folios (v6.18).
func (m *Machine) demote(c *Current, p, to *hugePool, slot uint32) {
	pg := m.huge.pages[slot]
	if !m.hvoLeave(c, &m.huge.pages[slot]) {
		m.enqueueHuge(slot)
		return
	}
	p.nr--
	p.node[pg.node].nr--
	*m.pages.frame(pg.head) = frame{}
	m.huge.pages[slot] = hugePage{}
	m.huge.spare = append(m.huge.spare, slot)
	for i := p.order.Pages(); i > 0; i -= to.order.Pages() {
		pfn := pg.head + PFN(i-to.order.Pages())
		s := m.newHugePage(to, pfn)
		m.hvoEnter(c, &m.huge.pages[s])
		m.enqueueHuge(s)
	}
}

// hugeInfo completes what PageInfo tells of a page that a hugetlb entry maps.
func (m *Machine) hugeInfo(in PageInfo, e uint64, a VA) PageInfo {
	pg, _ := m.hugeAt(e)
	o := m.huge.pools[pg.pool].order
	in.Present, in.PMD, in.Hugetlb, in.Writable = true, true, true, e&eWrite != 0
	in.Order, in.Index = o, uint32(a>>m.pageShift)&(1<<o-1)
	in.PFN = pg.head + PFN(in.Index)
	in.Maps, in.Exclusive = pg.maps, pg.maps == 1
	return in
}

// Hugetlb is the pages of hugetlb memory that a space maps (HugetlbPages of
// /proc/PID/status); they are no part of its RSS.
func (m *Machine) Hugetlb(s Space) Pages {
	if sp := m.spaceOf(s); sp != nil {
		return sp.hugetlb
	}
	return 0
}
