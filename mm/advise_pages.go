package mm

// freeRange is MADV_FREE: a THP or folio of which only a part is named is
// split at once, unless others map it too; whole ones stay until reclaim,
// which this model does not do. Linux: mm/madvise.c:madvise_free_pte_range
// (v6.18).
func (m *Machine) freeRange(c *Current, v *vma, from, to VA) Errno {
	m.splitParts(c, v, from, to, eYoung|eDirty, false)
	return OK
}

// coldRange is MADV_COLD and MADV_PAGEOUT: parts are split in the same way.
// With no swap device MADV_PAGEOUT reclaims nothing, but splits whole folios
// too: reclaim finds no room for one and goes on with its pages. Linux:
// mm/madvise.c:madvise_cold_or_pageout_pte_range, mm/vmscan.c:shrink_folio_list (v6.18).
func (m *Machine) coldRange(c *Current, v *vma, from, to VA, pageout bool) Errno {
	age := eYoung
	if pageout {
		age = 0
	}
	m.splitParts(c, v, from, to, age, pageout)
	return OK
}

// splitParts splits the folios that [from, to) names a part of, and with whole
// the others too, and takes the given bits from the entries.
func (m *Machine) splitParts(c *Current, v *vma, from, to VA, age uint64, whole bool) {
	size := m.pmdSize()
	for a := from; a < to; {
		pmd, skip := m.nextPMD(v.sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		if e := *p; e&eHuge != 0 && e&eZero == 0 && !m.maybeShared(ePFN(e), m.pages.frame(ePFN(e))) {
			slot := m.pages.frame(ePFN(e)).ref
			if next-a == size {
				*p &^= age
			}
			if next-a < size || whole && !m.folioLocked(m.pages.folios.at(slot)) {
				m.splitFolio(c, slot)
			}
		}
		if e := m.pages.tables.at(pmd)[m.pmdIndex(a)]; e&eTable != 0 {
			t := m.pages.tables.at(eSlot(e))
			m.splitTableParts(c, t, m.pageIndex(a), int((next-a)>>m.pageShift), age, whole)
		}
		a = next
	}
}

func (m *Machine) splitTableParts(c *Current, t []uint64, i, n int, age uint64, whole bool) {
	for end := i + n; i < end; {
		e := t[i]
		if e&ePresent == 0 || e&eZero != 0 {
			i++
			continue
		}
		fr := m.pages.frame(ePFN(e))
		if fr.order == 0 {
			t[i] &^= age
			i++
			continue
		}
		k := m.batch(t, i, end, true)
		if !m.rules.FreeWhole {
			// Any large folio is split, and one that cannot be ends the walk of
			// this table. Linux: mm/madvise.c:madvise_free_pte_range (v6.1).
			if fr.maps+m.folioOf(fr).entire > 1 || !m.splitFolio(c, fr.ref) {
				return
			}
			continue
		}
		if k < 1<<fr.order {
			if m.maybeShared(ePFN(e), fr) || !m.splitFolio(c, fr.ref) {
				i++
			}
			continue // look at the same entry again: it maps a small page now
		}
		for j := i; j < i+k; j++ {
			t[j] &^= age
		}
		if fo := m.folioOf(fr); whole && fo.maps == uint32(k) && !m.folioLocked(fo) {
			m.splitFolio(c, fr.ref)
		}
		i += k
	}
}
