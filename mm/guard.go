package mm

// guardInstall makes [from, to) of v guard regions: every page there goes, and
// a marker that no access passes takes its place. Tables are made for it, so
// that the range can get no THP afterwards. Linux:
// mm/madvise.c:madvise_guard_install (v6.18).
func (m *Machine) guardInstall(c *Current, v *vma, from, to VA) Errno {
	if v.flags&(vmLocked|vmSpecial|vmHugetlb) != 0 {
		return EINVAL
	}
	m.prepareAnon(c, v)
	v.flags |= vmMaybeGuard
	if m.anyMapped(v.sp, from, to) {
		m.zapRange(c, v, from, to, zapGuard)
	}
	size := m.pmdSize()
	for a := from; a < to; {
		next := min(a&^(size-1)+size, to)
		pmd := m.makePMDTable(c, v.sp, a)
		if pmd == 0 {
			return ENOMEM
		}
		if m.pages.tables.at(pmd)[m.pmdIndex(a)] == 0 {
			t := m.newTable(c)
			if t == 0 {
				return ENOMEM
			}
			m.pages.tables.at(pmd)[m.pmdIndex(a)] = tableEntry(t)
		}
		slot, i := eSlot(m.pages.tables.at(pmd)[m.pmdIndex(a)]), m.pageIndex(a)
		t := m.pages.tables.at(slot)
		m.pages.tables.markRange(slot, i, int((next-a)>>m.pageShift))
		for last := i + int((next-a)>>m.pageShift); i < last; i++ {
			if t[i] == 0 {
				t[i] = eGuard
				c.Work[PrimPTESet]++
			}
		}
		a = next
	}
	return OK
}

// zapGuard empties a range for guard markers: no table goes.
const zapGuard zapHow = 0x80

// anyMapped says whether anything is mapped in [from, to).
func (m *Machine) anyMapped(sp *space, from, to VA) bool {
	found := false
	m.eachTable(sp, from, to, func(p *uint64, t []uint64, i, n int) {
		if t == nil {
			found = found || *p != 0
			return
		}
		for _, e := range t[i : i+n] {
			found = found || e&ePresent != 0
		}
	})
	return found
}

// guardRemove takes the markers of [from, to) away; pages there stay. Linux:
// mm/madvise.c:madvise_guard_remove (v6.18).
func (m *Machine) guardRemove(c *Current, v *vma, from, to VA) Errno {
	if v.flags&(vmSpecial|vmHugetlb) != 0 {
		return EINVAL
	}
	m.eachTable(v.sp, from, to, func(_ *uint64, t []uint64, i, n int) {
		if t == nil {
			return
		}
		for k := i; k < i+n; k++ {
			if t[k]&eGuard != 0 {
				t[k] = 0
				c.Work[PrimPTEZap]++
			}
		}
	})
	return OK
}

// eachTable calls f for every PMD entry of [from, to) that is not none: with a
// nil table for a huge entry, else with the table and the entries in range.
func (m *Machine) eachTable(sp *space, from, to VA, f func(p *uint64, t []uint64, i, n int)) {
	size := m.pmdSize()
	for a := from; a < to; {
		pmd, skip := m.nextPMD(sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		switch {
		case *p&eHuge != 0:
			f(p, nil, 0, 0)
		case *p&eTable != 0:
			f(p, m.pages.tables.at(eSlot(*p)), m.pageIndex(a), int((next-a)>>m.pageShift))
		}
		a = next
	}
}
