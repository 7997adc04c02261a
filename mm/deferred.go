package mm

// The deferred-split queue holds folios in order of arrival: those that became
// partially mapped, and every new THP as maybe underused. The shrinker takes
// them in that order. Linux: mm/huge_memory.c:deferred_split_folio (v6.18).
type splitQueue struct {
	first, last uint32
	n           uint64
}

// deferSplit queues a folio. The first time that it is partially mapped is
// counted, once in its life.
func (m *Machine) deferSplit(c *Current, slot uint32, partial bool) {
	fo := m.pages.folios.at(slot)
	if fo.order <= 1 || !partial && (!m.rules.ShrinkUnderused || !m.policy.ShrinkUnderused) {
		return
	}
	if partial && fo.flags&folioPartial == 0 {
		fo.flags |= folioPartial
		m.Counters.Size[fo.order].SplitDeferred++
		m.Counters.Size[fo.order].NrAnonPartiallyMapped++
		if fo.order == m.pmdOrder {
			m.Counters.VM[THPDeferredSplitPage]++
		}
	}
	if fo.flags&folioQueued != 0 {
		return
	}
	c.Work[PrimDeferred]++
	m.enqueue(slot, fo)
}

func (m *Machine) enqueue(slot uint32, fo *folio) {
	q := &m.pages.queue
	fo.flags |= folioQueued
	fo.prev, fo.next = q.last, 0
	if q.last != 0 {
		m.pages.folios.at(q.last).next = slot
	} else {
		q.first = slot
	}
	q.last = slot
	q.n++
}

// dequeue takes a folio that ends off the queue, and out of the gauge.
func (m *Machine) dequeue(fo *folio) {
	if fo.flags&folioPartial != 0 {
		m.Counters.Size[fo.order].NrAnonPartiallyMapped--
		fo.flags &^= folioPartial
	}
	m.unqueue(fo)
}

func (m *Machine) unqueue(fo *folio) {
	if fo.flags&folioQueued == 0 {
		return
	}
	q := &m.pages.queue
	if fo.prev != 0 {
		m.pages.folios.at(fo.prev).next = fo.next
	} else {
		q.first = fo.next
	}
	if fo.next != 0 {
		m.pages.folios.at(fo.next).prev = fo.prev
	} else {
		q.last = fo.prev
	}
	fo.flags &^= folioQueued
	fo.prev, fo.next = 0, 0
	q.n--
}

// Shrink does what writing 2 to vm/drop_caches does to huge pages: every
// queued folio that is partially mapped or underused is split, and an unused
// huge zero page freed (semantics 3.4). Linux:
// mm/huge_memory.c:deferred_split_scan (v6.18).
func (m *Machine) Shrink(c *Current) {
	for n := m.pages.queue.n; n > 0; n-- {
		slot := m.pages.queue.first
		fo := m.pages.folios.at(slot)
		m.unqueue(fo)
		partial := fo.flags&folioPartial != 0
		if !partial && (fo.locks > 0 || !m.underused(fo)) {
			continue // leaves the queue for good
		}
		if m.splitFolio(c, slot) {
			if !partial {
				m.Counters.VM[THPUnderusedSplitPage]++
			}
			continue
		}
		if partial {
			m.enqueue(slot, fo)
		}
	}
	m.shrinkHugeZero(c)
}

// underused says whether more than max_ptes_none pages are all zeros. Linux:
// mm/huge_memory.c:thp_underused (v6.18).
func (m *Machine) underused(fo *folio) bool {
	n := uint64(fo.order.Pages())
	limit := uint64(m.policy.Khugepaged.MaxPTEsNone)
	if limit == n-1 {
		return false
	}
	var zero, filled uint64
	for i := range PFN(n) {
		if m.pages.frame(fo.head+i).flags&frameFilled == 0 {
			if zero++; zero > limit {
				return true
			}
		} else if filled++; filled >= n-limit {
			return false
		}
	}
	return false
}

// folioLocked says whether a locked VMA maps the folio. One that only could,
// such as where MREMAP_DONTUNMAP moved earlier pages to, does not count.
func (m *Machine) folioLocked(fo *folio) bool {
	locked := false
	m.eachMapping(fo, func(v *vma, at VA, pmd uint32) {
		if !locked && v.flags&vmLocked != 0 {
			locked = m.mapsFolio(fo, v, at, pmd)
		}
	})
	return locked
}

// mapsFolio says whether the PMD entry of at, or its table from there to the
// end of v, maps a page of fo.
func (m *Machine) mapsFolio(fo *folio, v *vma, at VA, pmd uint32) bool {
	e := m.pages.tables.at(pmd)[m.pmdIndex(at)]
	if e&eTable == 0 {
		return e&eZero == 0 && ePFN(e) == fo.head
	}
	i := m.pageIndex(at)
	n := int(m.span(at, min(v.end, at&^(m.pmdSize()-1)+m.pmdSize())))
	for _, e := range m.pages.tables.at(eSlot(e))[i : i+n] {
		if e&ePresent != 0 && e&eZero == 0 && ePFN(e)-fo.head < PFN(fo.order.Pages()) {
			return true
		}
	}
	return false
}
