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

// Hits does the access of f if the page is there and allows it, and is false
// otherwise; memory that is not anonymous never is.
func (m *Machine) Hits(f *Fault) bool {
	sp := m.spaceOf(f.Space)
	if sp == nil {
		return false
	}
	v := sp.find(f.Addr)
	if v == nil || v.start > f.Addr || !v.anonymous() || !permits(v, f.Access) {
		return false
	}
	pmd := m.pmdTable(sp, f.Addr)
	if pmd == 0 {
		return false
	}
	e := *m.pages.tables.raw(pmd, m.pmdIndex(f.Addr))
	if e&eHuge != 0 && (f.Access&Write == 0 || e&eWrite != 0) {
		m.hitPMD(v, pmd, f.Addr, f.Access)
		return true
	}
	if e&eTable == 0 {
		return false
	}
	p := m.pages.tables.entry(eSlot(e), m.pageIndex(f.Addr))
	if *p&ePresent == 0 || f.Access&Write != 0 && *p&eWrite == 0 {
		return false
	}
	m.hit(v, p, f.Access)
	return true
}
