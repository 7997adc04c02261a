package mm

// splitPMDAt splits the huge entry that straddles a; at its boundary nothing
// needs splitting. Linux: mm/huge_memory.c:split_huge_pmd_if_needed (v6.18).
func (m *Machine) splitPMDAt(c *Current, sp *space, a VA) {
	if a&(m.pmdSize()-1) == 0 {
		return
	}
	if pmd := m.pmdTable(sp, a); pmd != 0 && m.pages.tables.at(pmd)[m.pmdIndex(a)]&eHuge != 0 {
		m.splitPMD(c, sp, pmd, a)
	}
}

// splitPMD turns a huge entry into a table of small ones, using the deposited
// page. The folio stays whole and RSS the same. Linux:
// mm/huge_memory.c:__split_huge_pmd_locked (v6.18; v6.1 for clean PTEs).
func (m *Machine) splitPMD(c *Current, sp *space, pmd uint32, a VA) {
	keep := ePresent | eWrite | eYoung
	if m.rules.SplitDirty {
		keep |= eDirty
	}
	m.splitPMDKeeping(c, sp, pmd, a, keep)
}

// splitPMDKeeping is splitPMD with the bits that the new entries keep.
func (m *Machine) splitPMDKeeping(c *Current, sp *space, pmd uint32, a VA, keep uint64) {
	p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	e := *p
	m.Counters.VM[THPSplitPMD]++
	c.Work[PrimPMDSplit]++
	if e&eZero == 0 && m.pages.frame(ePFN(e)).shared() {
		m.dropShmPMD(c, sp, pmd, a) // its pages are faulted again
		return
	}
	slot := m.pages.tables.get()
	m.pages.tables.meta[slot] = tableMeta{pfn: m.withdraw(pmd)}
	t := m.pages.tables.at(slot)
	m.pages.tables.markRange(slot, 0, len(t))
	p = &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	c.Work[PrimPTESet] += uint32(len(t))
	*p = tableEntry(slot)
	if e&eZero != 0 {
		for i := range t {
			t[i] = ePresent | eZero
		}
		return
	}
	head := ePFN(e)
	excl := m.pages.frame(head).flags & frameExclusive
	flags := e & keep
	for i := range t {
		t[i] = leafEntry(head+PFN(i), flags)
		fr := m.pages.frame(head + PFN(i))
		fr.flags |= excl
	}
	fo := m.folioOf(m.pages.frame(head))
	m.addPTEs(fo, sp, head, m.pmdOrder.Pages())
	if fo.locks > 0 {
		fo.munlock(sp.at(a))
	}
	m.removePMD(c, sp, head)
}

// splitFolio makes a large folio small pages (semantics 3.3). It fails when
// something but mappings holds the folio. Sub-pages that nothing maps are
// freed; those that are all zeros become the shared zero page, except in
// locked memory. Linux: mm/huge_memory.c:__folio_split (v6.18).
func (m *Machine) splitFolio(c *Current, slot uint32) bool {
	fo := m.pages.folios.at(slot)
	o := fo.order
	st := &m.Counters.Size[o]
	if fo.pins > 0 {
		st.SplitFailed++
		if o == m.pmdOrder {
			m.Counters.VM[THPSplitPageFailed]++
		}
		return false
	}
	if m.partialInSplit(fo) {
		m.deferSplit(c, slot, true)
	}
	m.unmapPMDs(c, fo)
	st.Split++
	if o == m.pmdOrder {
		m.Counters.VM[THPSplitPage]++
	}
	c.Work[PrimFolioSplit]++
	st.NrAnon--
	m.dequeue(fo)
	old := *fo
	m.pages.folios.put(slot)
	n := o.Pages()
	m.Usage.ByOrder[o] -= n
	m.Usage.ByOrder[0] += n
	for i := range PFN(n) {
		fr := m.pages.frame(old.head + i)
		fr.order, fr.ref = 0, old.anon
		fr.setIndex(old.index + uint64(i))
	}
	if m.rules.ZeroOnSplit {
		m.zeroFilled(c, &old)
	}
	for i := range PFN(n) {
		if fr := m.pages.frame(old.head + i); fr.flags&frameAnon != 0 && fr.maps == 0 {
			m.freeSmall(c, old.head+i, fr)
		}
	}
	return true
}

// partialInSplit says whether the folio is partially mapped on the way of its
// split, which takes mappings away VMA by VMA: entries by PTE one by one, which
// counts once no PMD maps the folio and other pages are still mapped; an entry by
// PMD at once, which counts if it was the last one and pages of the folio are
// mapped by PTE, but not all. Linux: mm/rmap.c:try_to_migrate_one, __folio_remove_rmap (v6.18).
func (m *Machine) partialInSplit(fo *folio) bool {
	if fo.entire == 0 || fo.present == 0 {
		return fo.entire == 0 && fo.present > 1
	}
	entire, present, partial := fo.entire, Pages(fo.present), false
	n := fo.order.Pages()
	maps := make([]uint32, n)
	for i := range maps {
		maps[i] = m.pages.frame(fo.head + PFN(i)).maps
	}
	m.eachMapping(fo, func(v *vma, at VA, pmd uint32) {
		e := m.pages.tables.at(pmd)[m.pmdIndex(at)]
		if e&eTable == 0 {
			if e&eZero == 0 && ePFN(e) == fo.head {
				entire--
				partial = partial || entire == 0 && present > 0 && present < n
			}
			return
		}
		t := m.pages.tables.at(eSlot(e))
		end := min(v.end, at&^(m.pmdSize()-1)+m.pmdSize())
		for i := m.pageIndex(at); at < end; i, at = i+1, at+m.pageSize() {
			k := ePFN(t[i]) - fo.head
			if t[i]&ePresent == 0 || t[i]&eZero != 0 || k >= PFN(n) {
				continue
			}
			if maps[k]--; maps[k] == 0 {
				present--
				partial = partial || entire == 0 && present > 0
			}
		}
	})
	return partial
}

// unmapPMDs splits every huge entry that maps the folio. What stands there until
// the split is done are migration entries, which keep the dirty bit (since 6.1).
func (m *Machine) unmapPMDs(c *Current, fo *folio) {
	if fo.entire == 0 {
		return
	}
	head := fo.head
	m.eachMapping(fo, func(v *vma, at VA, pmd uint32) {
		if e := m.pages.tables.at(pmd)[m.pmdIndex(at)]; e&eHuge != 0 && e&eZero == 0 && ePFN(e) == head {
			m.splitPMDKeeping(c, v.sp, pmd, at, ePresent|eWrite|eYoung|eDirty)
		}
	})
}

// eachMapping calls f for every address that may map the folio, once for every
// PMD entry or table there; at is the first address below that entry.
func (m *Machine) eachMapping(fo *folio, f func(v *vma, at VA, pmd uint32)) {
	index, n := fo.index, fo.order.Pages()
	m.rmapVMAs(m.pages.anons[fo.anon], index, n, func(v *vma, _ VA) bool {
		first := max(index, v.pgoff)
		last := min(index+uint64(n), v.pgoff+uint64(v.end-v.start)>>m.pageShift)
		for i := first; i < last; {
			at := v.start + VA(i-v.pgoff)<<m.pageShift
			end := at&^(m.pmdSize()-1) + m.pmdSize()
			if pmd := m.pmdTable(v.sp, at); pmd != 0 && m.pages.tables.at(pmd)[m.pmdIndex(at)] != 0 {
				f(v, at, pmd)
			}
			i += uint64(end-at) >> m.pageShift
		}
		return true
	})
}

// zeroFilled replaces mapped pages of zeros of a folio that was just split.
// Linux: mm/migrate.c:try_to_map_unused_to_zeropage (v6.18).
func (m *Machine) zeroFilled(c *Current, fo *folio) {
	last := fo.head + PFN(fo.order.Pages())
	// The small pages are mapped again one VMA after the other. One that a locked
	// VMA has mapped is mlocked, and those that come later keep it.
	var locked [1 << MaxOrder / 64]uint64
	m.eachMapping(fo, func(v *vma, at VA, pmd uint32) {
		e := m.pages.tables.at(pmd)[m.pmdIndex(at)]
		if e&eTable == 0 {
			return
		}
		t := m.pages.tables.at(eSlot(e))
		end := min(v.end, at&^(m.pmdSize()-1)+m.pmdSize())
		for i := m.pageIndex(at); at < end; i, at = i+1, at+m.pageSize() {
			pe := t[i]
			if pe&ePresent == 0 || pe&eZero != 0 || ePFN(pe) < fo.head || ePFN(pe) >= last {
				continue
			}
			k := ePFN(pe) - fo.head
			if v.flags&vmLocked != 0 {
				locked[k/64] |= 1 << (k % 64)
			}
			if locked[k/64]>>(k%64)&1 != 0 || m.pages.frame(ePFN(pe)).flags&frameFilled != 0 {
				continue
			}
			t[i] = ePresent | eZero | pe&eYoung
			v.sp.rssAnon--
			m.removePTEs(c, v, ePFN(pe), 1)
			c.Work[PrimZeroMap]++
		}
	})
}

// SplitPages splits every large folio that pages of [at, at+n) are in, as
// writing a process and a range to debugfs's split_huge_pages does.
// Linux: mm/huge_memory.c:split_huge_pages_pid (v6.18).
func (m *Machine) SplitPages(c *Current, id Space, at VA, n Pages) {
	sp := m.spaceOf(id)
	if sp == nil {
		return
	}
	for end := at + m.bytes(n); at < end; at += m.pageSize() {
		in := m.PageInfo(id, at)
		if !in.Present || in.Zero || in.Order == 0 {
			continue
		}
		if fr := m.pages.frame(in.PFN); fr.shared() {
			m.splitShm(c, sp.at(at).shm, fr.ref)
		} else {
			m.splitFolio(c, fr.ref)
		}
	}
}
