package mm

// beginReadOnly handles a write to a present read-only PTE (semantics 3.5).
// Linux: mm/memory.c:do_wp_page (v6.18).
func (m *Machine) beginReadOnly(c *Current, f *Fault) Outcome {
	f.order, f.at = 0, f.Addr&^(m.pageSize()-1)
	if f.old&eZero == 0 && m.canReuse(ePFN(f.old)) {
		f.kind = faultReuse
		return Pending
	}
	m.prepareAnon(c, f.v)
	pfn, ok := m.allocSmall(c)
	if !ok {
		return m.outOfMemory(f)
	}
	f.kind, f.pfn = faultCopy, pfn
	if f.old&eZero != 0 {
		m.clearPages(c, pfn, 0, 0)
	} else {
		c.Work[PrimCopyCOW]++
		c.step(PrimCopyCOW, 0, 0, pfn)
	}
	return Pending
}

// canReuse says whether a page may be written in place: it is exclusive, or
// its folio is found to be mapped by this space alone. Linux:
// mm/memory.c:wp_can_reuse_anon_folio (v6.18).
func (m *Machine) canReuse(pfn PFN) bool {
	fr := m.pages.frame(pfn)
	switch {
	case fr.flags&frameAnon == 0:
		return false
	case fr.flags&frameExclusive != 0:
		return true
	case fr.order == 0:
		return fr.maps == 1
	}
	fo := m.folioOf(fr)
	if !m.rules.MMIDs || !m.rules.LargeReuse {
		return !m.rules.CopyLarge && fo.maps+fo.pins == 1
	}
	// One page of a large folio alone is copied, so that the block can be freed.
	return fo.maps > 1 && fo.flags&folioShared == 0 && fo.pins == 0
}

// commitReuse makes the PTE writable again.
func (m *Machine) commitReuse(c *Current, f *Fault) {
	p := m.ptep(f)
	pfn := ePFN(*p)
	m.pages.frame(pfn).flags |= frameExclusive
	*p |= eWrite | eDirty | eYoung | m.access(f.v, pfn, f.Access)
	m.Counters.VM[PgReuse]++
	c.Work[PrimPTEReuse]++
	c.Work[PrimFlush]++
}

// commitCopy replaces a shared page, or the zero page, by the copy.
func (m *Machine) commitCopy(c *Current, f *Fault) {
	v, p := f.v, m.ptep(f)
	old := *p
	var had frameFlags
	if old&eZero == 0 {
		had = m.pages.frame(ePFN(old)).flags & frameFilled
	} else {
		f.sp.rssAnon++
	}
	m.newSmall(f.pfn, v, f.at, had)
	flags := ePresent | eYoung | eDirty
	if v.flags&vmWrite != 0 {
		flags |= eWrite
	}
	*p = leafEntry(f.pfn, flags) | m.access(v, f.pfn, f.Access)
	if m.cfg.ByRegion {
		m.usageOf(v).Allocated++
	}
	c.Work[PrimPTESet]++
	c.Work[PrimRmapAdd]++
	c.Work[PrimLRUAdd]++
	c.Work[PrimFlush]++
	if old&eZero == 0 {
		m.removePTEs(c, v, ePFN(old), 1)
	}
}

// beginReadOnlyPMD handles a write to a read-only huge entry (semantics 3.6).
// Linux: mm/huge_memory.c:do_huge_pmd_wp_page (v6.18).
func (m *Machine) beginReadOnlyPMD(c *Current, f *Fault) Outcome {
	v := f.v
	f.order = 0
	if f.old&eZero != 0 {
		m.prepareAnon(c, v)
		if m.rules.UpgradeZeroPMD && v.flags&vmUffd == 0 && m.beginTHP(c, f) {
			f.kind = faultUpgradePMD
			return Pending
		}
	} else {
		head := ePFN(f.old)
		fr := m.pages.frame(head)
		fo := m.folioOf(fr)
		if fr.flags&frameExclusive != 0 || fo.maps+fo.pins == 1 {
			f.kind = faultReusePMD
			return Pending
		}
		if !m.rules.CowSplitsPMD {
			m.prepareAnon(c, v)
			if m.beginCopyTHP(c, f) {
				return Pending
			}
		}
	}
	m.splitPMD(c, f.sp, f.pmd, f.Addr)
	f.old = *m.ptep(f)
	if f.old&eWrite != 0 {
		m.hit(v, m.ptep(f), f.Access)
		return Done
	}
	return m.beginReadOnly(c, f)
}

// beginCopyTHP takes a block for a whole copy of a shared THP, as kernels
// before 5.8 did.
func (m *Machine) beginCopyTHP(c *Current, f *Fault) bool {
	pfn, res := m.allocAnon(c, m.pmdOrder, m.gfp(f.v))
	if res != allocOK {
		m.countFallback(m.pmdOrder, res)
		f.tries++
		return false
	}
	f.kind, f.pfn, f.order = faultCopyPMD, pfn, m.pmdOrder
	f.at = f.Addr &^ (m.pmdSize() - 1)
	c.Work[PrimCopyCOW] += uint32(m.pmdOrder.Pages())
	c.step(PrimCopyCOW, m.pmdOrder, uint32(m.pageIndex(f.Addr)), pfn)
	return true
}

// commitReusePMD makes the whole THP writable again; pgreuse does not count it.
func (m *Machine) commitReusePMD(c *Current, f *Fault) {
	p := &m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
	m.pages.frame(ePFN(*p)).flags |= frameExclusive
	*p |= eWrite | eDirty | eYoung
	m.access(f.v, ePFN(*p)+PFN(m.pageIndex(f.Addr)), f.Access)
	c.Work[PrimPMDReuse]++
	c.Work[PrimFlush]++
}

// commitUpgradePMD replaces the huge zero page by a THP; the deposit stays.
func (m *Machine) commitUpgradePMD(c *Current, f *Fault) {
	f.sp.rssAnon += f.order.Pages()
	m.mapTHP(c, f)
	c.Work[PrimFlush]++
}

// commitCopyPMD replaces a shared THP by its copy.
func (m *Machine) commitCopyPMD(c *Current, f *Fault) {
	old := ePFN(m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)])
	m.mapTHP(c, f)
	for i := range PFN(f.order.Pages()) {
		m.pages.frame(f.pfn + i).flags |= m.pages.frame(old+i).flags & frameFilled
	}
	m.folioOf(m.pages.frame(old)).munlock(f.v)
	m.removePMD(c, f.sp, old)
	c.Work[PrimFlush]++
}
