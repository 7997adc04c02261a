package mm

/*
A large folio is mlocked (PG_mlocked) by calls and faults, not by the VMAs that
map it: a part of it that a locked VMA maps leaves it as it was.

	fault or collapse in a locked VMA                       1
	mlock of a PMD, or of all its pages in one table       +1
	munlock of a PMD, or of a run of its pages             -1, and not below 0
	a mapping of it in a locked VMA goes, or is split      -1, and not below 0

Linux: mm/mlock.c:mlock_pte_range, allow_mlock_munlock, __munlock_folio;
mm/internal.h:munlock_vma_folio (v6.18).
*/

// lockedAtFault is the count that a new large folio of v has.
func lockedAtFault(v *vma) uint32 {
	if v.flags&(vmLocked|vmSpecials) == vmLocked {
		return 1
	}
	return 0
}

// munlock notes that one mapping of the folio by a locked VMA goes.
func (fo *folio) munlock(v *vma) {
	if v != nil && v.flags&vmLocked != 0 && fo.locks > 0 {
		fo.locks--
	}
}

// lockPages counts what mlock and munlock of [from, to) of v do to large
// folios. Linux: mm/mlock.c:mlock_vma_pages_range (v6.18).
func (m *Machine) lockPages(v *vma, from, to VA) {
	if v.huge != nil {
		return
	}
	size := m.pmdSize()
	for a := from; a < to; {
		pmd, skip := m.nextPMD(v.sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		switch e := m.pages.tables.at(pmd)[m.pmdIndex(a)]; {
		case e&(eHuge|eZero) == eHuge:
			m.folioOf(m.pages.frame(ePFN(e))).relock(v)
		case e&eTable != 0:
			i := m.pageIndex(a)
			m.lockTable(v, m.pages.tables.at(eSlot(e))[i:i+int((next-a)>>m.pageShift)])
		}
		a = next
	}
}

func (m *Machine) lockTable(v *vma, t []uint64) {
	for i := 0; i < len(t); {
		if t[i]&ePresent == 0 || t[i]&eZero != 0 {
			i++
			continue
		}
		k := m.batch(t, i, len(t), true)
		fr := m.pages.frame(ePFN(t[i]))
		if fr.order != 0 && (v.flags&vmLocked == 0 || Pages(k) == Order(fr.order).Pages()) {
			m.folioOf(fr).relock(v)
		}
		i += k
	}
}

func (fo *folio) relock(v *vma) {
	switch {
	case v.flags&vmLocked != 0:
		fo.locks++
	case fo.locks > 0:
		fo.locks--
	}
}
