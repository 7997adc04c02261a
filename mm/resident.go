package mm

// fileFault handles an access to memory that is not anonymous.
func (m *Machine) fileFault(c *Current, f *Fault) Outcome {
	if f.v.flags&vmShared == 0 {
		return m.privateFile(c, f)
	}
	m.countFileFault(c, f)
	return Done
}

func (m *Machine) countFileFault(c *Current, f *Fault) {
	m.countFault(c, f, f.v)
	if f.soft {
		return
	}
	m.Usage.FileFaults++
	c.Work[PrimFaultFile]++
}

// touchPrivateFile is a recorded fault on a private file mapping: always one
// fault, because the page cache is not modelled. A write leaves an anonymous
// page of order 0, which is copied again when it is shared after a fork.
func (m *Machine) touchPrivateFile(c *Current, sp *space, v *vma, a VA, acc Access) Outcome {
	f := &m.pages.scratch
	f.Addr, f.Access, f.sp, f.v, f.soft = a, acc, sp, v, false
	return m.privateFile(c, f)
}

// privateFile is one fault on a private file mapping. Linux:
// mm/memory.c:do_cow_fault, do_wp_page (v6.18).
func (m *Machine) privateFile(c *Current, f *Fault) Outcome {
	v, a, acc := f.v, f.Addr, f.Access
	f.kind, f.order, f.tries = faultNone, 0, 0
	m.countFileFault(c, f)
	if acc&Write == 0 || !permits(v, acc) {
		return Done
	}
	if !m.makeTable(c, f) {
		return m.outOfMemory(f)
	}
	p := m.ptep(f)
	f.old, f.at = *p, a&^(m.pageSize()-1)
	switch {
	case *p&eGuard != 0:
		return Segv
	case *p&eWrite != 0:
		m.hit(v, p, acc)
		return Done
	case *p&ePresent != 0:
		if out := m.beginReadOnly(c, f); out != Pending {
			return out
		}
		return m.commit(c, f)
	}
	m.prepareAnon(c, v)
	pfn, ok := m.allocSmall(c)
	if !ok {
		return m.outOfMemory(f)
	}
	f.kind, f.pfn = faultPTE, pfn
	c.Work[PrimCopyCOW]++
	c.step(PrimCopyCOW, 0, 0, pfn)
	out := m.commit(c, f)
	m.pages.frame(pfn).flags |= frameFilled
	return out
}

// makeTable makes the page table over f.Addr if there is none.
func (m *Machine) makeTable(c *Current, f *Fault) bool {
	if f.pmd = m.makePMDTable(c, f.sp, f.Addr); f.pmd == 0 {
		return false
	}
	if m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] != 0 {
		return true
	}
	t := m.newTable(c)
	if t == 0 {
		return false
	}
	m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] = tableEntry(t)
	return true
}

// makeResident makes n pages from a on present without a fault, as they were
// when a recording attached: folios of the order where it fits, small pages
// around; only read ones as the zero page.
func (m *Machine) makeResident(c *Current, sp *space, v *vma, a VA, n Pages, order Order, acc Access) {
	if !v.anonymous() && acc&Write == 0 {
		return
	}
	end := min(a+VA(n)<<m.pageShift, v.end)
	if order > m.pmdOrder || order == 1 || !v.anonymous() {
		order = 0
	}
	for a < end {
		size := m.pageSize() << order
		fits := order > 0 && acc&Write != 0 && a&(size-1) == 0 && a+size <= end
		if fits && m.residentLarge(c, sp, v, a, order, acc) {
			a += size
			continue
		}
		if !m.residentSmall(c, sp, v, a, acc) {
			m.Usage.OOM++
			break
		}
		a += m.pageSize()
	}
	m.notePeak()
}

// residentLarge maps one folio of the order at a; false if anything is there.
func (m *Machine) residentLarge(c *Current, sp *space, v *vma, a VA, o Order, acc Access) bool {
	f := &m.pages.scratch
	f.sp, f.v, f.Addr, f.at, f.order, f.Access = sp, v, a, a, o, acc
	if f.pmd = m.makePMDTable(c, sp, a); f.pmd == 0 {
		return false
	}
	p := &m.pages.tables.at(f.pmd)[m.pmdIndex(a)]
	if o == m.pmdOrder {
		if *p != 0 || !m.depositFor(c, f) {
			return false
		}
	} else {
		if *p == 0 {
			t := m.newTable(c)
			if t == 0 {
				return false
			}
			*p = tableEntry(t)
		}
		if *p&eHuge != 0 || !m.pages.tables.none(eSlot(*p), m.pageIndex(a), o) {
			return false
		}
	}
	pfn, res := m.allocAnon(c, o, m.gfp(v))
	if res != allocOK {
		if o == m.pmdOrder {
			m.freeTableFrame(c, f.table)
		}
		return false
	}
	m.prepareAnon(c, v)
	fo := m.newFolio(pfn, o, v, a)
	if o == m.pmdOrder {
		m.deposit(f.pmd, f.table)
		m.setTHP(c, f.pmd, sp, v, fo, a)
	} else {
		flags := ePresent | eYoung | eDirty
		if v.flags&vmWrite != 0 {
			flags |= eWrite
		}
		m.mapFolio(f.pmd, sp, fo, a, flags)
	}
	sp.rssAnon += o.Pages()
	if acc&ZeroData == 0 {
		for i := range PFN(o.Pages()) {
			m.pages.frame(pfn + i).flags |= frameFilled
		}
	}
	if m.cfg.ByRegion {
		m.usageOf(v).Allocated += o.Pages()
	}
	return true
}

// residentSmall maps a small page, or the zero page, at a if nothing is there.
func (m *Machine) residentSmall(c *Current, sp *space, v *vma, a VA, acc Access) bool {
	f := &m.pages.scratch
	f.sp, f.v, f.Addr, f.at, f.order, f.Access = sp, v, a, a, 0, acc
	if !m.makeTable(c, f) {
		return false
	}
	if m.pages.tables.at(f.pmd)[m.pmdIndex(a)]&eHuge != 0 {
		return true
	}
	e := m.ptep(f)
	switch {
	case *e != 0:
		return true
	case acc&Write == 0:
		*m.newPTE(f) = ePresent | eZero | eYoung | eSeen
		return true
	}
	pfn, res := m.allocAnon(c, 0, smallGFP)
	if res != allocOK {
		return false
	}
	m.prepareAnon(c, v)
	f.pfn = pfn
	m.commitPTE(c, f)
	return true
}
