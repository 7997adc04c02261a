package mm

// Do does one operation for a caller with a context of its own, to which the
// operation's Work is added; WorkDone never sees it. It takes every kind but
// OpTouch, of which the caller does the faults, and OpRemap with an OpNote.
// c.Now does not move: Advance does that.
func (m *Machine) Do(c *Current, op *Op) (Result, error) {
	var res Result
	one := [1]Op{*op}
	err := m.other(c, one[:], 0, &res)
	m.endHuge(c)
	return res, err
}

// Addr is where a page of a region lies; false if the region is not mapped.
func (m *Machine) Addr(s Space, r Region, page uint64) (VA, bool) {
	sp := m.spaceOf(s)
	if sp == nil {
		return 0, false
	}
	base, ok := sp.regions.base(r)
	return base + m.bytes(Pages(page)), ok
}

// PageSize is the size of a base page, in bytes.
func (m *Machine) PageSize() Bytes { return 1 << m.pageShift }

// VMAAt tells the VMA that a fault at a would find by its number, which no
// other VMA ever has, 0 for none.
func (m *Machine) VMAAt(s Space, a VA) uint32 {
	if sp := m.spaceOf(s); sp != nil {
		if v := sp.at(a); v != nil {
			return v.serial
		}
	}
	return 0
}

// LockOf tells whose page-table lock the second half of f takes, a table of
// small pages or of huge ones: faults with the same number contend, 0 is none.
func (m *Machine) LockOf(f *Fault) uint32 {
	if f.pmd == 0 {
		return 0
	}
	if e := m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]; e&eTable != 0 {
		return eSlot(e)
	}
	return f.pmd
}

// Hits does up to n accesses from f's address on, stride bytes apart, as long
// as the page is there and allows it; f's address moves on. It stops before the
// first access that is a fault, and may stop before. Memory that is not
// anonymous is never hit.
func (m *Machine) Hits(f *Fault, stride VA, n Pages) (done Pages) {
	sp := m.spaceOf(f.Space)
	if sp == nil || n == 0 {
		return 0
	}
	v := sp.find(f.Addr)
	if v == nil || v.start > f.Addr || !v.anonymous() || !permits(v, f.Access) {
		return 0
	}
	pmd := m.pmdTable(sp, f.Addr)
	if pmd == 0 {
		return 0
	}
	e := *m.pages.tables.raw(pmd, m.pmdIndex(f.Addr))
	switch {
	case e&eHuge != 0 && (f.Access&Write == 0 || e&eWrite != 0):
		m.hitPMD(v, pmd, f.Addr, f.Access)
		if stride == m.pageSize() {
			i := m.pageIndex(f.Addr)
			done = min(n, m.pmdOrder.Pages()-Pages(i))
			if e&eZero == 0 {
				m.accessRun(v, ePFN(e)+PFN(i), done, f.Access)
			}
			f.Addr += stride * VA(done)
			return done
		}
		f.Addr += stride
		return 1
	case e&eTable == 0:
		return 0
	}
	p := m.pages.tables.entry(eSlot(e), m.pageIndex(f.Addr))
	if *p&ePresent == 0 || f.Access&Write != 0 && *p&eWrite == 0 {
		return 0
	}
	m.hit(v, p, f.Access)
	f.Addr += stride
	return 1
}

// accessRun is access of n pages of one large folio from pfn on.
func (m *Machine) accessRun(v *vma, pfn PFN, n Pages, acc Access) {
	mark := frameTouched
	if acc&(Write|ZeroData) == Write {
		mark |= frameFilled
	}
	fo := m.folioOf(m.pages.frame(pfn))
	for end := pfn + PFN(n); pfn < end; {
		to := min(end, pfn&^slabMask+slabLen)
		run := m.pages.slab(pfn)[pfn&slabMask : pfn&slabMask+(to-pfn)]
		var fresh Pages
		for i := range run {
			if run[i].flags&frameTouched == 0 {
				fresh++
			}
			run[i].flags |= mark
		}
		m.Usage.Touched += fresh
		fo.touched += uint32(fresh)
		if m.cfg.ByRegion {
			m.usageOf(v).Touched += fresh
		}
		pfn = to
	}
}
