package mm

// zapRange unmaps the pages of v in [from, to). Linux:
// mm/memory.c:unmap_page_range (v6.18).
func (m *Machine) zapRange(c *Current, v *vma, from, to VA, how zapHow) {
	if v.huge != nil {
		m.zapHuge(c, v, from, to)
		return
	}
	if v.shm != nil {
		m.zapShm(c, v, from, to, how)
		return
	}
	sp, size, any := v.sp, m.pmdSize(), false
	for a := from; a < to; {
		pmd, skip := m.nextPMD(sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		e := m.pages.tables.at(pmd)[m.pmdIndex(a)]
		switch {
		case e == 0:
			a = next
			continue
		case e&eHuge != 0 && next-a == size:
			m.zapPMD(c, v, pmd, a)
			any, a = true, next
			continue
		case e&eHuge != 0:
			m.splitPMD(c, sp, pmd, a)
			e = m.pages.tables.at(pmd)[m.pmdIndex(a)]
		}
		n := int((next - a) >> m.pageShift)
		cleared, skipped := m.zapPTEs(c, v, eSlot(e), m.pageIndex(a), n, how)
		any = any || cleared
		if how == zapDontNeed && m.rules.PTReclaim && next-a == size && !skipped {
			m.pages.tables.at(pmd)[m.pmdIndex(a)] = 0
			m.dropTable(c, eSlot(e))
		}
		a = next
	}
	if any {
		c.Work[PrimFlush]++
	}
}

// zapPMD unmaps one whole huge entry. Linux: mm/huge_memory.c:zap_huge_pmd.
func (m *Machine) zapPMD(c *Current, v *vma, pmd uint32, a VA) {
	p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	e := *p
	*p = 0
	c.Work[PrimPMDZap]++
	m.freeTableFrame(c, m.withdraw(pmd))
	if e&eZero != 0 {
		return
	}
	v.sp.rssAnon -= m.pmdOrder.Pages()
	m.folioOf(m.pages.frame(ePFN(e))).munlock(v)
	m.removePMD(c, v.sp, ePFN(e))
}

// zapPTEs clears n entries from i on. Consecutive entries that map consecutive
// pages of one folio go in one step, which decides whether the folio counts as
// partially mapped (semantics 3.2). Guard markers stay unless the mapping
// itself goes. Linux: mm/memory.c:zap_pte_range (v6.18).
func (m *Machine) zapPTEs(c *Current, v *vma, slot uint32, i, n int, how zapHow) (cleared, skipped bool) {
	t := m.pages.tables.at(slot)
	first := i
	for end := i + n; i < end; {
		e := t[i]
		switch {
		case e == 0:
			i++
		case e&eGuard != 0:
			if how == zapUnmap {
				t[i] = 0
			} else {
				skipped = true
			}
			i++
		case e&eZero != 0:
			t[i] = 0
			c.Work[PrimPTEZap]++
			cleared = true
			i++
		default:
			k := m.batch(t, i, end, m.rules.BatchedZap)
			clear(t[i : i+k])
			c.Work[PrimPTEZap] += uint32(k)
			v.sp.rssAnon -= Pages(k)
			m.removePTEs(c, v, ePFN(e), Pages(k))
			cleared = true
			i += k
		}
	}
	if !skipped {
		m.pages.tables.unmarkRange(slot, first, n)
	}
	return cleared, skipped
}

// batch is how many entries from i on, and below end, map consecutive pages of
// the folio that entry i maps. Linux: mm/internal.h:folio_pte_batch (v6.18).
func (m *Machine) batch(t []uint64, i, end int, batched bool) int {
	pfn := ePFN(t[i])
	o := m.pages.frame(pfn).order
	if o == 0 || !batched {
		return 1
	}
	left := int(1<<o - pfn&(1<<o-1)) // pages of the folio from this one on
	end = min(end, i+left)
	k := 1
	for i+k < end && t[i+k]&(ePresent|eZero) == ePresent && ePFN(t[i+k]) == pfn+PFN(k) {
		k++
	}
	return k
}
