package mm

import "slices"

// mapHuge gives a fresh hugetlb mapping its file and its reservation; false
// means that the pool cannot promise so many pages (semantics 6.2).
// Linux: mm/hugetlb.c:hugetlb_reserve_pages (v6.18).
func (m *Machine) mapHuge(c *Current, v *vma, pool uint8) bool {
	p := &m.huge.pools[pool]
	n := uint64(m.span(v.start, v.end)) >> p.order
	f := &hugeFile{pool: pool, n: n}
	h := &hugeVMA{pool: pool, file: f}
	shared := v.flags&vmShared != 0
	if shared {
		f.cache, f.resv = make([]uint32, n), newHugeBits(n)
	}
	if v.flags&vmNoReserve == 0 {
		if !m.reserveHuge(c, p, n) {
			return false
		}
		if shared {
			for i := range n {
				f.resv.set(i)
			}
		} else {
			used := newHugeBits(n)
			h.owner, h.used = true, &used
		}
	}
	v.huge = h
	f.vmas = append(f.vmas, v)
	return true
}

// reserveHuge promises n pages, taking surplus ones for what the free ones do
// not cover: all or nothing.
// Linux: mm/hugetlb.c:gather_surplus_pages, hugetlb_acct_memory (v6.18).
func (m *Machine) reserveHuge(c *Current, p *hugePool, n uint64) bool {
	var got []uint32
	for int64(p.resv+n)-int64(p.free) > int64(len(got)) {
		slot := m.surplusHuge(c, p)
		if slot == 0 {
			for i := len(got) - 1; i >= 0; i-- {
				m.dropHuge(c, got[i], true)
			}
			return false
		}
		got = append(got, slot)
	}
	p.resv += n
	for i := len(got) - 1; i >= 0; i-- {
		m.enqueueHuge(got[i])
	}
	// Promises below zero cover for pages that are not there: the nodes must have
	// them. Linux: mm/hugetlb.c:allowed_mems_nr (v6.18).
	if n > p.free {
		m.unreserveHuge(c, p, n)
		return false
	}
	return true
}

// unreserveHuge takes n promises back, and gives as many free surplus pages
// back, node by node.
// Linux: mm/hugetlb.c:return_unused_surplus_pages (v6.18).
func (m *Machine) unreserveHuge(c *Current, p *hugePool, n uint64) {
	p.resv -= n
	for k := min(n, p.surplus); k > 0; k-- {
		slot := m.takeFromPool(p, AnyNode, true)
		if slot == 0 {
			return
		}
		m.dropHuge(c, slot, true)
	}
}

// takeFromPool takes a free page off the next node, in turn, that has one; with
// surplus, of those nodes that have surplus pages. 0: none.
// Linux: mm/hugetlb.c:remove_pool_hugetlb_folio (v6.18).
func (m *Machine) takeFromPool(p *hugePool, node int, surplus bool) uint32 {
	for range p.node {
		n := p.turn(&p.nextFree, node)
		if p.node[n].head != 0 && (!surplus || p.node[n].surplus > 0) {
			return m.takeFree(p, n)
		}
		if node != AnyNode {
			break
		}
	}
	return 0
}

// turn is the node whose turn it is, or the only one allowed.
func (p *hugePool) turn(next *int, node int) int {
	if node != AnyNode {
		return node
	}
	n := *next
	*next = (n + 1) % len(p.node)
	return n
}

// needsHuge says whether a page of v has no reservation that it could use.
// Linux: mm/hugetlb.c:vma_needs_reservation (v6.18).
func (m *Machine) needsHuge(v *vma, i uint64) bool {
	h := v.huge
	switch {
	case v.flags&vmShared != 0:
		return !h.file.resv.has(i)
	case h.used != nil:
		return h.used.has(i)
	}
	return true
}

// useHuge notes that page i of v was allocated, with a reservation or without.
// Linux: mm/hugetlb.c:vma_commit_reservation (v6.18).
func (m *Machine) useHuge(v *vma, i uint64) {
	switch h := v.huge; {
	case v.flags&vmShared != 0:
		h.file.resv.set(i)
	case h.used != nil:
		h.used.set(i)
	}
}

// openHuge makes n, a copy of a part of v, a mapping of its own: both keep to one
// reservation. Linux: mm/hugetlb.c:hugetlb_vm_op_open (v6.18).
func (m *Machine) openHuge(n, v *vma) {
	if v.huge == nil {
		return
	}
	h := *v.huge
	n.huge = &h
	h.file.vmas = append(h.file.vmas, n)
}

// forkHuge is openHuge for a child: a private mapping's reservation stays with
// the parent. Linux: mm/hugetlb.c:hugetlb_dup_vma_private (v6.18).
func (m *Machine) forkHuge(n, v *vma) {
	if v.huge == nil {
		return
	}
	m.openHuge(n, v)
	n.huge.owner, n.huge.used, n.huge.unmapped = false, nil, false
}

// closeHuge gives back what v reserved and did not use. The file goes with its
// last mapping, when the operation is over.
// Linux: mm/hugetlb.c:hugetlb_vm_op_close (v6.18).
func (m *Machine) closeHuge(c *Current, v *vma) {
	h := v.huge
	if h == nil {
		return
	}
	f := h.file
	i := slices.Index(f.vmas, v)
	f.vmas = slices.Delete(f.vmas, i, i+1)
	if h.owner {
		from, to := m.hugeIndex(v, v.start), m.hugeIndex(v, v.end)
		if n := to - from - h.used.count(from, to); n > 0 {
			m.unreserveHuge(c, m.hugeVMAPool(v), n)
		}
	}
	if len(f.vmas) == 0 && f.cache != nil {
		m.huge.dead = append(m.huge.dead, f)
	}
}

// endHuge ends an operation: unmapped pages and files without a mapping go.
func (m *Machine) endHuge(c *Current) {
	if len(m.huge.gather) > 0 {
		m.flushHuge(c)
	}
	if len(m.huge.dead) > 0 {
		m.evictHuge(c)
	}
}

// evictHuge ends the files that lost their last mapping.
// Linux: fs/hugetlbfs/inode.c:hugetlbfs_evict_inode (v6.18).
func (m *Machine) evictHuge(c *Current) {
	for _, f := range m.huge.dead {
		p := &m.huge.pools[f.pool]
		freed := uint64(0)
		for _, slot := range f.cache {
			if slot != 0 {
				m.freeHuge(c, slot)
				freed++
			}
		}
		if n := f.resv.count(0, f.n) - freed; n > 0 {
			m.unreserveHuge(c, p, n)
		}
	}
	m.huge.dead = m.huge.dead[:0]
}
