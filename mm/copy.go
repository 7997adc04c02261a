package mm

// copyRange copies the entries of a parent's VMA to the child's at fork. A VMA
// that never had an anonymous page is faulted afresh instead. Linux:
// mm/memory.c:copy_page_range (v6.18).
func (m *Machine) copyRange(c *Current, child, parent *vma) {
	if parent.anon == nil {
		return
	}
	if parent.huge != nil {
		m.copyHuge(c, child, parent)
		return
	}
	if parent.shm != nil {
		m.copyShm(c, child, parent)
		return
	}
	size := m.pmdSize()
	for a := parent.start; a < parent.end; {
		src, skip := m.nextPMD(parent.sp, a)
		if src == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, parent.end)
		e := m.pages.tables.at(src)[m.pmdIndex(a)]
		if e == 0 {
			a = next
			continue
		}
		dst := m.makePMDTable(c, child.sp, a)
		if dst == 0 {
			m.Usage.OOM++
			return
		}
		if e&eHuge != 0 && m.copyPMD(c, child, parent, dst, src, a) {
			a = next
			continue
		}
		if !m.copyTable(c, child, parent, dst, src, a, next) {
			m.Usage.OOM++
			return
		}
		a = next
	}
}

// copyPMD shares a THP, or the huge zero page, by a second huge entry. It
// returns false when the folio may be pinned: the parent's entry is then split
// and its pages go one by one. Linux: mm/huge_memory.c:copy_huge_pmd (v6.18).
func (m *Machine) copyPMD(c *Current, child, parent *vma, dst, src uint32, a VA) bool {
	p := &m.pages.tables.at(src)[m.pmdIndex(a)]
	e := *p
	if e&eZero == 0 {
		if m.folioOf(m.pages.frame(ePFN(e))).pins > 0 {
			m.splitPMD(c, parent.sp, src, a)
			return false
		}
	}
	pfn, ok := m.tableFrame(c)
	if !ok {
		m.Usage.OOM++
		return true
	}
	m.deposit(dst, pfn)
	c.Work[PrimPMDCopy]++
	if e&eZero != 0 {
		m.getHugeZero(c, child.sp)
		m.pages.tables.at(dst)[m.pmdIndex(a)] = e &^ (eWrite | eYoung | eDirty)
		return true
	}
	fr := m.pages.frame(ePFN(e))
	fr.flags &^= frameExclusive
	*p = e &^ eWrite
	m.addPMD(m.folioOf(fr), child.sp)
	m.pages.tables.at(dst)[m.pmdIndex(a)] = e &^ (eWrite | eYoung)
	child.sp.rssAnon += m.pmdOrder.Pages()
	c.Work[PrimRmapAdd]++
	return true
}

// copyTable copies the PTEs of [a, end), which one table maps; false means no
// memory. Linux: mm/memory.c:copy_pte_range (v6.18).
func (m *Machine) copyTable(c *Current, child, parent *vma, dst, src uint32, a, end VA) bool {
	d := &m.pages.tables.at(dst)[m.pmdIndex(a)]
	if *d == 0 {
		t := m.newTable(c)
		if t == 0 {
			return false
		}
		d = &m.pages.tables.at(dst)[m.pmdIndex(a)]
		*d = tableEntry(t)
	}
	slot := eSlot(*d)
	to := m.pages.tables.at(slot)
	from := m.pages.tables.at(eSlot(m.pages.tables.at(src)[m.pmdIndex(a)]))
	i := m.pageIndex(a)
	for last := i + int((end-a)>>m.pageShift); i < last; {
		e := from[i]
		switch {
		case e == 0:
			i++
		case e&(eGuard|eZero) != 0:
			m.pages.tables.mark(slot, i)
			to[i] = e &^ (eYoung | eDirty)
			c.Work[PrimPTECopy]++
			i++
		default:
			k := m.batch(from, i, last, true)
			m.pages.tables.markRange(slot, i, k)
			if !m.copyBatch(c, child, parent, to, from, i, k) {
				return false
			}
			i += k
		}
	}
	return true
}

// copyBatch shares k pages of one folio read-only and not exclusive; pages of
// a folio that may be pinned are copied at once.
func (m *Machine) copyBatch(c *Current, child, parent *vma, to, from []uint64, i, k int) bool {
	pfn := ePFN(from[i])
	fr := m.pages.frame(pfn)
	if fr.order != 0 && m.folioOf(fr).pins > 0 && fr.flags&frameExclusive != 0 {
		for j := i; j < i+k; j++ {
			if !m.copyPinned(c, child, to, j, ePFN(from[j])) {
				return false
			}
		}
		return true
	}
	for j := i; j < i+k; j++ {
		m.pages.frame(ePFN(from[j])).flags &^= frameExclusive
		from[j] &^= eWrite
		to[j] = from[j] &^ eYoung
	}
	if fr.order == 0 {
		fr.maps++
	} else {
		m.addPTEs(m.folioOf(fr), child.sp, pfn, Pages(k))
	}
	child.sp.rssAnon += Pages(k)
	c.Work[PrimPTECopy] += uint32(k)
	c.Work[PrimRmapAdd]++
	return true
}

// copyPinned gives the child its own copy of a page that the parent has pinned.
func (m *Machine) copyPinned(c *Current, child *vma, to []uint64, j int, old PFN) bool {
	pfn, res := m.allocAnon(c, 0, smallGFP)
	if res != allocOK {
		return false
	}
	m.prepareAnon(c, child)
	src := m.pages.frame(old)
	m.newSmall(pfn, child, child.start, src.flags&frameFilled)
	m.pages.frame(pfn).setIndex(m.folioOf(src).index + uint64(old-m.folioOf(src).head))
	flags := ePresent | eDirty
	if child.flags&vmWrite != 0 {
		flags |= eWrite
	}
	to[j] = leafEntry(pfn, flags)
	child.sp.rssAnon++
	m.notePeak()
	c.Work[PrimCopyCOW]++
	c.Work[PrimPTECopy]++
	c.step(PrimCopyCOW, 0, 0, pfn)
	return true
}
