package mm

// populate faults in the pages of v in [from, to) without an exception, as
// MAP_POPULATE, mlock and MADV_POPULATE_* do: pages that are there and allow
// the access cost no fault (semantics 2.7). Linux:
// mm/gup.c:populate_vma_page_range, faultin_page_range (v6.18).
func (m *Machine) populate(c *Current, v *vma, from, to VA, write bool) Errno {
	acc := Read
	if write {
		acc = Write
	}
	if v.huge != nil {
		return m.populateHuge(c, v, from, to, write)
	}
	if !v.anonymous() && v.shm == nil && (!write || v.flags&(vmShared|vmHugetlb|vmSpecial) != 0) {
		return OK // no anonymous page comes of it
	}
	f := &m.pages.softly
	for a := from; a < to; {
		step := m.pageSize()
		if m.populated(v.sp, a, write, &step) {
			a += step
			continue
		}
		f.Addr, f.Access, f.soft = a, acc|ZeroData|NoFault, true
		switch m.softFault(c, v.sp, f) {
		case Segv, Bus:
			m.Usage.SoftFaults-- // only completed ones count (mm/memory.c:mm_account_fault)
			return EFAULT
		case OOM:
			return ENOMEM
		}
		a += m.pageSize()
	}
	return OK
}

// softFault is a fault that the program did not take: it leaves no page
// touched.
func (m *Machine) softFault(c *Current, sp *space, f *Fault) Outcome {
	m.pages.untouched = true
	out := m.fault(c, sp, f)
	m.pages.untouched = false
	return out
}

// populated says whether nothing is left to do at a; step becomes the distance
// that get_user_pages may skip.
func (m *Machine) populated(sp *space, a VA, write bool, step *VA) bool {
	pmd := m.pmdTable(sp, a)
	if pmd == 0 {
		return false
	}
	e := m.pages.tables.at(pmd)[m.pmdIndex(a)]
	if e&eHuge != 0 {
		*step = a&^(m.pmdSize()-1) + m.pmdSize() - a
	} else if e&eTable != 0 {
		e = m.pages.tables.at(eSlot(e))[m.pageIndex(a)]
	}
	return e&ePresent != 0 && (!write || e&eWrite != 0)
}
