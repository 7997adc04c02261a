package mm

// beginHuge is the first half of an access to a hugetlb mapping (semantics 6.3).
// Linux: mm/hugetlb.c:hugetlb_fault (v6.18).
func (m *Machine) beginHuge(c *Current, f *Fault) Outcome {
	v, o := f.v, m.hugeVMAPool(f.v).order
	f.order, f.at = o, f.Addr&^(m.hugeLen(v)-1)
	p := m.hugeEntry(f.sp, f.Addr, o)
	if p != nil && *p&ePresent != 0 {
		if f.Access&Write == 0 || *p&eWrite != 0 {
			if *p |= eYoung; f.Access&Write != 0 {
				*p |= eDirty
			}
			return Hit
		}
		m.countFault(c, f, v)
		f.old, f.pmd = *p, m.pmdTable(f.sp, f.Addr)
		return m.beginHugeWrite(c, f)
	}
	m.countFault(c, f, v)
	if p == nil {
		if p = m.makeHugeEntry(c, f.sp, f.Addr, o); p == nil {
			return m.outOfMemory(f)
		}
	}
	f.old = 0
	f.pmd = m.pmdTable(f.sp, f.Addr) // whose lock Commit takes
	return m.beginHugeNone(c, f)
}

// beginHugeNone handles an access that found nothing: the file's page, or a new
// one. Linux: mm/hugetlb.c:hugetlb_no_page (v6.18).
func (m *Machine) beginHugeNone(c *Current, f *Fault) Outcome {
	v, i := f.v, m.hugeIndex(f.v, f.Addr)
	h := v.huge
	if h.unmapped || i >= h.file.n {
		return Bus
	}
	f.kind = faultHuge
	if h.file.cache != nil {
		if f.huge = h.file.cache[i]; f.huge != 0 {
			return Pending
		}
	} else {
		m.prepareAnon(c, v)
	}
	if f.huge = m.allocHuge(c, v, i, false); f.huge == 0 {
		f.kind = faultNone
		return Bus
	}
	pg := &m.huge.pages[f.huge]
	m.clearHuge(c, f, pg.head)
	if h.file.cache != nil {
		h.file.cache[i] = f.huge
		pg.flags = pg.flags&^hugeRestore | hugeCached
	}
	return Pending
}

// hugeHint is the sub-page that faulted, the hint of the clearing order.
func (m *Machine) hugeHint(f *Fault) uint32 { return uint32((f.Addr - f.at) >> m.pageShift) }

// clearHuge counts the zeroing of a page; the fault's exact address is the hint
// (semantics 7.2).
func (m *Machine) clearHuge(c *Current, f *Fault, pfn PFN) {
	c.Work[PrimClearPMD] += uint32(f.order.Pages())
	c.step(PrimClearPMD, f.order, m.hugeHint(f), pfn)
}

// allocHuge takes a page for page i of v: by its reservation, or one that nobody
// was promised, or a surplus one; 0: there is none. With fromOwner, a copy that
// the owner of a reservation makes, the reservation is left alone.
// Linux: mm/hugetlb.c:alloc_hugetlb_folio (v6.18).
func (m *Machine) allocHuge(c *Current, v *vma, i uint64, fromOwner bool) uint32 {
	p := m.hugeVMAPool(v)
	needs := fromOwner || m.needsHuge(v, i)
	var slot uint32
	if !needs || p.available() != 0 {
		slot = m.dequeueHuge(c, p)
	}
	if slot == 0 {
		if slot = m.surplusHuge(c, p); slot == 0 {
			return 0
		}
	}
	pg := &m.huge.pages[slot]
	if !needs {
		pg.flags |= hugeRestore
		p.resv--
	}
	if !fromOwner {
		m.useHuge(v, i)
	}
	m.Counters.VM[NrHugetlb] += uint64(p.order.Pages())
	return slot
}

// beginHugeWrite handles a write to a present read-only entry (semantics 6.4).
// Linux: mm/hugetlb.c:hugetlb_wp (v6.18).
func (m *Machine) beginHugeWrite(c *Current, f *Fault) Outcome {
	v := f.v
	pg, slot := m.hugeAt(f.old)
	f.kind, f.huge = faultHugeReuse, slot
	if v.flags&vmShared != 0 || pg.maps == 1 {
		return Pending
	}
	copied := m.allocHuge(c, v, m.hugeIndex(v, f.Addr), v.huge.owner)
	if copied == 0 {
		if v.huge.owner {
			m.stealHuge(c, f, slot)
		}
		if m.huge.pages[slot].maps == 1 {
			return Pending
		}
		f.kind = faultNone
		return Bus
	}
	f.kind, f.huge = faultHugeCopy, copied
	c.Work[PrimCopyCOW] += uint32(f.order.Pages())
	c.step(PrimCopyCOW, f.order, m.hugeHint(f), m.huge.pages[copied].head)
	return Pending
}

// stealHuge takes the page at the fault away from all who have no reservation:
// the owner of one must not fail for want of memory. Those who lose it get
// SIGBUS for whatever of the mapping they have not mapped.
// Linux: mm/hugetlb.c:unmap_ref_private (v6.18).
func (m *Machine) stealHuge(c *Current, f *Fault, slot uint32) {
	i := m.hugeIndex(f.v, f.Addr)
	for _, v := range f.v.huge.file.vmas {
		if v == f.v || v.huge.owner || m.hugeIndex(v, v.start) > i || m.hugeIndex(v, v.end) <= i {
			continue
		}
		// The address is the owner's, also where the other moved its mapping.
		p := m.hugeEntry(v.sp, f.at, f.order)
		if p == nil || *p&ePresent == 0 || *p&eHugetlb == 0 {
			continue
		}
		if _, s := m.hugeAt(*p); s != slot {
			continue
		}
		v.huge.unmapped = true
		m.unmapHuge(c, v, p, f.at)
		c.Work[PrimFlush]++
	}
	m.flushHuge(c)
}

// unchangedHuge is Commit's recheck.
func (m *Machine) unchangedHuge(f *Fault) bool {
	if f.v.huge == nil {
		return false
	}
	p := m.hugeEntry(f.sp, f.Addr, f.order)
	if p == nil || *p != f.old {
		return false
	}
	return f.kind != faultHugeReuse || f.v.flags&vmShared != 0 || m.huge.pages[f.huge].maps == 1
}

// racedHuge gives back what beginHuge took; a page in the cache stays there.
// Linux: mm/hugetlb.c:restore_reserve_on_error (v6.18).
func (m *Machine) racedHuge(c *Current, f *Fault) {
	pg := &m.huge.pages[f.huge]
	if f.kind == faultHugeReuse || pg.flags&hugeCached != 0 {
		return
	}
	// The reservation is there again, unless another fault has taken a page for
	// it: in Linux a mutex keeps a second fault at the same page out.
	if h := f.v.huge; h == nil || h.used == nil || m.hugePresent(f) {
		pg.flags &^= hugeRestore
	} else if pg.flags&hugeRestore != 0 {
		h.used.unset(m.hugeIndex(f.v, f.Addr))
	}
	m.freeHuge(c, f.huge)
}

func (m *Machine) hugePresent(f *Fault) bool {
	p := m.hugeEntry(f.sp, f.Addr, f.order)
	return p != nil && *p&ePresent != 0
}

// commitHuge maps what beginHuge prepared. A private page is mapped read-only
// first; a write makes it writable within the same fault, because nobody else
// maps it (semantics 6.3.5).
func (m *Machine) commitHuge(c *Current, f *Fault) {
	v := f.v
	p := m.hugeEntry(f.sp, f.Addr, f.order)
	writes := f.Access&Write != 0
	switch f.kind {
	case faultHugeReuse:
		*p |= eWrite | eDirty | eYoung
		c.Work[PrimPMDReuse]++
		c.Work[PrimFlush]++
		return
	case faultHugeCopy:
		_, old := m.hugeAt(*p)
		*p = 0
		f.sp.hugetlb -= f.order.Pages()
		m.putHuge(c, old)
		c.Work[PrimFlush]++
		m.flushHuge(c)
	}
	pg := &m.huge.pages[f.huge]
	e := leafEntry(pg.head, ePresent|eHuge|eHugetlb|eYoung)
	if v.flags&vmWrite != 0 && (writes || v.flags&vmShared != 0) {
		e |= eWrite | eDirty
	}
	if pg.flags&hugeCached == 0 {
		pg.flags = pg.flags&^hugeRestore | hugeAnon
	}
	*p = e
	pg.maps++
	f.sp.hugetlb += f.order.Pages()
	c.Work[PrimPMDSet]++
	c.Work[PrimRmapAdd]++
}
