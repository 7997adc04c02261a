package mm

// moveFolio moves one anonymous folio from the frames at h to those at to: its
// entries, its metadata and what the queue knows of it. The old frames are
// free afterwards, or with poison out of use. Linux: mm/migrate.c:migrate_folio_move, remove_migration_ptes
// (v6.18).
func (m *Machine) moveFolio(c *Current, h, to PFN, poison bool) {
	fr := m.pages.frame(h)
	o := Order(fr.order)
	m.eachEntry(h, func(p *uint64) {
		e := *p
		if !m.rules.MigrateYoung {
			e &^= eYoung | eDirty
		}
		*p = leafEntry(ePFN(e)-h+to, e&eFlags)
	})
	if o > 0 {
		fo := m.folioOf(fr)
		m.unqueue(fo) // the new one is not queued again
		fo.head = to
	}
	for i := range PFN(o.Pages()) {
		*m.pages.frame(to + i) = *m.pages.frame(h + i)
	}
	m.pages.clearFrames(h, o)
	if poison {
		m.pages.frame(h).flags = framePoison
		return
	}
	m.freeBlock(c, h, o)
}

// countMove counts the work of moving a folio: of taking its entries out and
// putting them back, and if it moves of the copy and of its state.
func (m *Machine) countMove(c *Current, h, to PFN, moves bool) {
	o := m.folioOrder(h)
	var ptes, pmds uint32
	m.eachEntry(h, func(p *uint64) {
		if *p&eHuge != 0 {
			pmds++
		} else {
			ptes++
		}
	})
	m.countEntries(c, PrimMigrateOut, PrimMigrateOutPMD, ptes, pmds, o, h)
	c.Work[PrimRmapRemove] += ptes + pmds
	if moves {
		n := uint32(o.Pages())
		c.Work[PrimCopyMigrate] += n
		c.step(PrimCopyMigrate, o, n, to)
		c.Work[PrimMigrateMove]++
		c.step(PrimMigrateMove, o, 1, to)
	}
	m.countEntries(c, PrimMigrateIn, PrimMigrateInPMD, ptes, pmds, o, to)
	c.Work[PrimRmapAdd] += ptes + pmds
}

func (m *Machine) countEntries(c *Current, pte, pmd Prim, ptes, pmds uint32, o Order, pfn PFN) {
	if ptes > 0 {
		c.Work[pte] += ptes
		c.Work[PrimPTELock] += ptes
		c.step(pte, o, ptes, pfn)
	}
	if pmds > 0 {
		c.Work[pmd] += pmds
		c.Work[PrimPTELock] += pmds
		c.step(pmd, o, pmds, pfn)
	}
}

// eachEntry calls f for every entry that maps a page of the anonymous folio
// whose head is h. The caller has called indexAnons since VMAs last changed.
func (m *Machine) eachEntry(h PFN, f func(p *uint64)) {
	fr := m.pages.frame(h)
	o := Order(fr.order)
	var span folio
	if o > 0 {
		span = *m.folioOf(fr)
	} else {
		span = folio{head: h, index: fr.index(), anon: fr.ref}
	}
	end := h + PFN(o.Pages())
	m.eachMapping(&span, func(v *vma, at VA, pmd uint32) {
		p := &m.pages.tables.at(pmd)[m.pmdIndex(at)]
		switch {
		case *p&eHuge != 0:
			if *p&eZero == 0 && ePFN(*p) == h {
				f(p)
			}
		case *p&eTable != 0:
			t := m.pages.tables.at(eSlot(*p))
			index := v.anonIndex(at, m.pageShift)
			left := Pages(span.index + uint64(o.Pages()) - index)
			stop := min(v.end, at&^(m.pmdSize()-1)+m.pmdSize(), at+m.bytes(left))
			for i := m.pageIndex(at); at < stop; i, at = i+1, at+m.pageSize() {
				if e := t[i]; e&ePresent != 0 && e&eZero == 0 && ePFN(e) >= h && ePFN(e) < end {
					f(&t[i])
				}
			}
		}
	})
}

// indexAnons makes the way from the identity in a small page back to its
// anonVMA known. Faults leave it out, because only moving pages needs it.
func (m *Machine) indexAnons() {
	for _, sp := range m.spaces {
		if sp == nil {
			continue
		}
		for n := sp.vmas.First(); n != nil; n = n.Next() {
			for _, l := range n.Val.chain {
				m.knowAnon(l.anon)
			}
		}
	}
}
