package mm

// zapShm is zapRange for shared memory: what is unmapped stays in the cache. A
// huge entry of which only a part goes is emptied: the rest is faulted again.
// Linux: mm/huge_memory.c:__split_huge_pmd_locked, zap_huge_pmd (v6.18).
func (m *Machine) zapShm(c *Current, v *vma, from, to VA, how zapHow) {
	size, any := m.pmdSize(), false
	for a := from; a < to; {
		pmd, skip := m.nextPMD(v.sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		switch e := m.pages.tables.at(pmd)[m.pmdIndex(a)]; {
		case e&eHuge != 0 && next-a == size:
			m.dropShmPMD(c, v.sp, pmd, a)
			any = true
		case e&eHuge != 0:
			m.splitPMD(c, v.sp, pmd, a)
			any = true
		case e&eTable != 0:
			n := int((next - a) >> m.pageShift)
			cleared, skipped := m.zapShmPTEs(c, v, eSlot(e), m.pageIndex(a), n, how)
			any = any || cleared
			if how == zapDontNeed && m.rules.PTReclaim && next-a == size && !skipped {
				m.pages.tables.at(pmd)[m.pmdIndex(a)] = 0
				m.dropTable(c, eSlot(e))
			}
		}
		a = next
	}
	if any {
		c.Work[PrimFlush]++
	}
}

// zapShmPTEs clears n entries from i on; guard markers stay unless the mapping
// itself goes.
func (m *Machine) zapShmPTEs(c *Current, v *vma, slot uint32, i, n int, how zapHow) (cleared, skipped bool) {
	t := m.pages.tables.at(slot)
	for k := i; k < i+n; k++ {
		switch e := t[k]; {
		case e&eGuard != 0 && how != zapUnmap:
			skipped = true
		case e&eGuard != 0:
			t[k] = 0
		case e != 0:
			t[k] = 0
			m.dropShmPTE(c, v.sp, ePFN(e))
			cleared = true
		}
	}
	if !skipped {
		m.pages.tables.unmarkRange(slot, i, n)
	}
	return cleared, skipped
}

// dropShmPTE takes one mapping of a page back; its entry is cleared.
func (m *Machine) dropShmPTE(c *Current, sp *space, pfn PFN) {
	fr := m.pages.frame(pfn)
	fo := m.folioOf(fr)
	if fr.maps--; fr.maps == 0 {
		fo.present--
	}
	fo.dropSpace(uint32(sp.id), 1)
	sp.rssShmem--
	c.Work[PrimPTEZap]++
	c.Work[PrimRmapRemove]++
}

// dropShmPMD clears a huge entry and takes its mapping back.
func (m *Machine) dropShmPMD(c *Current, sp *space, pmd uint32, a VA) {
	p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	fo := m.folioOf(m.pages.frame(ePFN(*p)))
	*p = 0
	if fo.entire--; fo.entire == 0 {
		m.Counters.VM[NrShmemPMDMapped]--
	}
	fo.dropSpace(uint32(sp.id), 1)
	sp.rssShmem -= fo.order.Pages()
	c.Work[PrimPMDZap]++
	c.Work[PrimRmapRemove]++
}

// copyShm copies the entries of a parent's mapping at fork, which only happens
// where guard regions gave it an anon_vma. Huge entries are left to be faulted.
// Linux: mm/memory.c:copy_present_ptes, mm/huge_memory.c:copy_huge_pmd (v6.18).
func (m *Machine) copyShm(c *Current, child, parent *vma) {
	size := m.pmdSize()
	for a := parent.start; a < parent.end; {
		src, skip := m.nextPMD(parent.sp, a)
		if src == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, parent.end)
		if e := m.pages.tables.at(src)[m.pmdIndex(a)]; e&eTable != 0 {
			f := Fault{Addr: a, sp: child.sp}
			if !m.makeTable(c, &f) {
				m.Usage.OOM++
				return
			}
			m.copyShmTable(c, child.sp, eSlot(m.pages.tables.at(f.pmd)[m.pmdIndex(a)]), eSlot(e), m.pageIndex(a),
				int((next-a)>>m.pageShift))
		}
		a = next
	}
}

func (m *Machine) copyShmTable(c *Current, sp *space, dst, src uint32, i, n int) {
	m.pages.tables.markRange(dst, i, n)
	to, from := m.pages.tables.at(dst), m.pages.tables.at(src)
	for k := i; k < i+n; k++ {
		e := from[k]
		if e == 0 {
			continue
		}
		to[k] = e &^ (eYoung | eDirty)
		c.Work[PrimPTECopy]++
		if e&ePresent == 0 {
			continue
		}
		fr := m.pages.frame(ePFN(e))
		fo := m.folioOf(fr)
		fr.maps++
		fo.addSpace(uint32(sp.id), 1)
		sp.rssShmem++
	}
}

// splitShm makes a large folio small ones. Its mappings go: they are faulted
// again. What lies past the end of the file is freed.
// Linux: mm/huge_memory.c:unmap_folio, __folio_split (v6.18).
func (m *Machine) splitShm(c *Current, f *shmFile, slot uint32) {
	old := *m.pages.folios.at(slot)
	m.unmapShm(c, f, &old)
	m.Counters.Size[old.order].Split++
	if old.order == m.pmdOrder {
		m.Counters.VM[THPSplitPage]++
		m.Counters.VM[NrShmemTHPs]--
	}
	c.Work[PrimFolioSplit]++
	m.pages.folios.put(slot)
	for k := range PFN(old.order.Pages()) {
		s, fo := m.pages.folios.get()
		i := old.index + uint64(k)
		*fo = folio{head: old.head + k, anon: f.id, index: i, flags: folioShmem}
		*m.pages.frame(old.head + k) = frame{ref: s}
		f.cache[i] = s
	}
	for i := max(f.n, old.index); i < old.index+uint64(old.order.Pages()); i++ {
		m.freeShm(c, f, f.cache[i])
	}
}

// unmapShm takes all mappings of a folio away.
// Linux: mm/rmap.c:try_to_unmap_one (v6.18).
func (m *Machine) unmapShm(c *Current, f *shmFile, fo *folio) {
	size, end := m.pmdSize(), fo.index+uint64(fo.order.Pages())
	for _, v := range f.vmas {
		first, last := max(fo.index, v.pgoff), min(end, v.pgoff+uint64(m.span(v.start, v.end)))
		for i := first; i < last; {
			a := v.start + m.bytes(Pages(i-v.pgoff))
			next := min(a&^(size-1)+size, a+m.bytes(Pages(last-i)))
			i += uint64(m.span(a, next))
			pmd := m.pmdTable(v.sp, a)
			if pmd == 0 {
				continue
			}
			switch e := m.pages.tables.at(pmd)[m.pmdIndex(a)]; {
			case e&eHuge != 0:
				m.splitPMD(c, v.sp, pmd, a)
			case e&eTable != 0:
				t := m.pages.tables.at(eSlot(e))
				for k := m.pageIndex(a); a < next; k, a = k+1, a+m.pageSize() {
					if t[k]&ePresent != 0 {
						m.dropShmPTE(c, v.sp, ePFN(t[k]))
						t[k] = 0
					}
				}
			}
		}
	}
}

// coldShm is MADV_COLD: folios that [from, to) names a part of are split, unless
// others map them too.
// Linux: mm/madvise.c:madvise_cold_or_pageout_pte_range (v6.18).
func (m *Machine) coldShm(c *Current, v *vma, from, to VA) {
	size := m.pmdSize()
	for a := from; a < to; {
		pmd, skip := m.nextPMD(v.sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		switch e := m.pages.tables.at(pmd)[m.pmdIndex(a)]; {
		case e&eHuge != 0 && next-a < size:
			if fr := m.pages.frame(ePFN(e)); !m.maybeShared(ePFN(e), fr) {
				m.splitShm(c, v.shm, fr.ref)
			}
		case e&eTable != 0:
			i := m.pageIndex(a)
			m.coldShmTable(c, v, m.pages.tables.at(eSlot(e)), i, i+int((next-a)>>m.pageShift))
		}
		a = next
	}
}

func (m *Machine) coldShmTable(c *Current, v *vma, t []uint64, i, end int) {
	for i < end {
		if t[i]&ePresent == 0 {
			i++
			continue
		}
		fr := m.pages.frame(ePFN(t[i]))
		k := m.batch(t, i, end, true)
		switch {
		case k == 1<<fr.order:
			for j := i; j < i+k; j++ {
				t[j] &^= eYoung
			}
		case !m.maybeShared(ePFN(t[i]), fr):
			m.splitShm(c, v.shm, fr.ref)
		}
		i += k
	}
}
