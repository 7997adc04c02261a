package mm

// Taking references to the pages behind a range, as get_user_pages and
// pin_user_pages do, and giving them back (semantics 11).
//
// What such a call costs is in struct pages: each page's own is 64 bytes in the
// vmemmap, and a tail page's says where its head is. Work counts how many
// struct pages were looked at to find a head (PrimGUPHead), how many atomic
// additions were made (PrimGUPAtomic) and how many entries of the caller's
// array were filled (PrimGUPFill); steps say in which order, and whose.

// GUP says how pages are taken.
type GUP uint8

const (
	GUPPin      GUP = 1 << iota // FOLL_PIN: pin_user_pages; else FOLL_GET
	GUPWrite                    // FOLL_WRITE
	GUPFast                     // without mmap_lock, as far as that goes
	GUPLongterm                 // FOLL_LONGTERM: each page is looked at for whether it may stay
)

// GetPages takes a reference to each of the pages from a on, as many as out
// holds, and writes which they are to out. It stops where the range has no
// mapping or refuses the access; the result is how many it took. Missing
// pages are faulted in, and count as soft faults.
// Linux: mm/gup.c:__get_user_pages, gup_fast (v6.18).
func (m *Machine) GetPages(c *Current, s Space, a VA, how GUP, out []PFN) (int, Errno) {
	if int(s) >= len(m.spaces) || m.spaces[s] == nil {
		return 0, EFAULT
	}
	sp := m.spaces[s]
	c.Work[PrimGUPCall]++
	if how&GUPFast == 0 {
		c.Work[PrimMmapRead]++
	}
	n := 0
	for n < len(out) {
		l, ok := m.gupLeaf(sp, a, how&GUPWrite != 0)
		if !ok {
			v := sp.find(a)
			if v == nil || v.start > a {
				return m.gotPages(c, how, out[:n], EFAULT)
			}
			if err := m.populate(c, v, a, a+m.pageSize(), how&GUPWrite != 0); err != OK {
				return m.gotPages(c, how, out[:n], err)
			}
			if l, ok = m.gupLeaf(sp, a, how&GUPWrite != 0); !ok {
				return m.gotPages(c, how, out[:n], EFAULT)
			}
		}
		k := min(int(l.rest), len(out)-n)
		m.grab(c, l, k, how, out[n:n+k])
		n += k
		a += m.bytes(Pages(k))
	}
	return m.gotPages(c, how, out, OK)
}

// leaf is what one page-table entry maps from some page on.
type leaf struct {
	pfn  PFN
	rest Pages // to the end of what the entry maps
	huge bool  // the entry is a PMD's or a PUD's
}

// gupLeaf finds the entry that maps a; false where there is none, or where it
// does not allow writing and that is wanted.
func (m *Machine) gupLeaf(sp *space, a VA, write bool) (leaf, bool) {
	e, o, huge := uint64(0), Order(0), true
	if pmd := m.pmdTable(sp, a); pmd != 0 {
		e, o = m.pages.tables.at(pmd)[m.pmdIndex(a)], m.pmdOrder
		if e&eTable != 0 {
			e, o, huge = m.pages.tables.at(eSlot(e))[m.pageIndex(a)], 0, false
		}
	} else if len(m.huge.pools) > 1 {
		if p := m.hugeEntry(sp, a, m.huge.pools[1].order); p != nil {
			e, o = *p, m.huge.pools[1].order
		}
	}
	if e&ePresent == 0 || write && e&eWrite == 0 {
		return leaf{}, false
	}
	if e&eZero != 0 && !huge {
		return leaf{pfn: zeroPFN, rest: 1}, true
	}
	first := ePFN(e)
	if e&eZero != 0 {
		first = m.pages.zero.pfn
	}
	at := Pages(a>>m.pageShift) & (o.Pages() - 1)
	return leaf{pfn: first + PFN(at), rest: o.Pages() - at, huge: huge}, true
}

// zeroPFN stands for the small zero page, which no frame of the model is.
const zeroPFN PFN = 0

// grab takes k pages of a leaf. A huge leaf is taken by one addition to its
// head's count since 5.12; before, and behind entries of small pages always, it
// is one for each page, and each page's struct page is asked for its head.
// Linux: mm/gup.c:gup_fast_pmd_leaf, mm/hugetlb.c:follow_hugetlb_page (v5.12).
func (m *Machine) grab(c *Current, l leaf, k int, how GUP, out []PFN) {
	for i := range out {
		out[i] = l.pfn
		if l.pfn != zeroPFN {
			out[i] += PFN(i)
		}
	}
	c.Work[PrimGUPFill] += uint32(k)
	c.step(PrimGUPFill, 0, uint32(k), l.pfn)
	if l.pfn == zeroPFN {
		return
	}
	n, heads := 1, 1
	if !l.huge || !m.rules.GUPGroups {
		n, heads = k, k
	}
	if how&GUPPin != 0 && l.huge {
		n *= 2 // the count, and the count of pins
	}
	c.Work[PrimGUPHead] += uint32(heads)
	c.step(PrimGUPHead, 0, uint32(heads), l.pfn)
	c.Work[PrimGUPAtomic] += uint32(n)
	c.step(PrimGUPAtomic, 0, uint32(n), l.pfn)
}

// gotPages ends a call: a longterm pin looks at each page's head, and what was
// pinned is counted.
// Linux: mm/gup.c:check_and_migrate_movable_pages (v5.12).
func (m *Machine) gotPages(c *Current, how GUP, out []PFN, err Errno) (int, Errno) {
	if how&GUPLongterm != 0 {
		m.heads(c, out)
	}
	if how&GUPPin != 0 {
		k := uint64(0)
		for _, p := range out {
			if p != zeroPFN {
				k++
				m.pin(p)
			}
		}
		m.Counters.VM[NrFollPinAcquired] += k
	}
	if len(out) > 0 {
		err = OK // as the system call has it: what was got counts
	}
	return len(out), err
}

// heads looks at the struct page of each page for its head.
func (m *Machine) heads(c *Current, pages []PFN) {
	for i := 0; i < len(pages); {
		k := run(pages[i:])
		c.Work[PrimGUPHead] += uint32(k)
		c.step(PrimGUPHead, 0, uint32(k), pages[i])
		i += k
	}
}

// run is how many pages follow one another from the first on.
func run(pages []PFN) int {
	k := 1
	for k < len(pages) && pages[k] == pages[0]+PFN(k) && pages[0] != zeroPFN {
		k++
	}
	return k
}

// PutPages gives back what GetPages took, with the same how. Pages of one
// folio that follow one another are released by one subtraction since 5.13
// (Rules.UnpinGroups); before, each page was released by itself. Each page's
// head is looked up in either case.
// Linux: mm/gup.c:unpin_user_pages (v5.12, v5.13).
func (m *Machine) PutPages(c *Current, how GUP, pages []PFN) {
	each := uint32(1)
	if how&GUPPin != 0 {
		each = 2
		for _, p := range pages {
			if p != zeroPFN {
				m.Counters.VM[NrFollPinReleased]++
			}
		}
		defer m.unpin(c, pages)
	}
	for i := 0; i < len(pages); {
		if pages[i] == zeroPFN {
			i++
			continue
		}
		k := m.sameFolio(pages[i:])
		c.Work[PrimGUPHead] += uint32(k)
		n := uint32(k)
		if how&GUPPin != 0 && m.rules.UnpinGroups {
			n = 1
		}
		if k == 1 {
			each = 1 // a small page keeps its pins in its count
		}
		c.Work[PrimGUPAtomic] += n * each
		c.step(PrimGUPHead, 0, uint32(k), pages[i])
		c.step(PrimGUPAtomic, 0, n*each, pages[i])
		i += k
	}
}

// sameFolio is how many pages from the first on follow one another in one folio.
func (m *Machine) sameFolio(pages []PFN) int {
	end := m.folioEnd(pages[0])
	k := run(pages)
	return min(k, int(end-pages[0]))
}

// folioEnd is the first frame behind the folio that p is a page of.
func (m *Machine) folioEnd(p PFN) PFN {
	for i := range m.huge.pools {
		o := m.huge.pools[i].order
		head := p &^ (PFN(o.Pages()) - 1)
		s := m.pages.slab(head)
		if s == nil {
			continue
		}
		if fr := &s[head&slabMask]; fr.flags == frameHugetlb && Order(fr.order) == o {
			return head + PFN(o.Pages())
		}
	}
	o := Order(m.pages.frame(p).order)
	return p&^(PFN(o.Pages())-1) + PFN(o.Pages())
}

// pin holds the large anonymous folio of a page that was pinned: it is neither
// split nor moved, and lives on when nothing maps it any more. Pins of small
// pages, and references that are no pins, are given back before that matters:
// they are not kept. Linux: mm/huge_memory.c:can_split_folio (v6.18).
func (m *Machine) pin(p PFN) {
	if fo := m.pinnable(p); fo != nil {
		fo.pins++
	}
}

// unpin takes the pins of pages back.
func (m *Machine) unpin(c *Current, pages []PFN) {
	for _, p := range pages {
		if p == zeroPFN {
			continue
		}
		if fo := m.pinnable(p); fo != nil && fo.pins > 0 {
			fo.pins--
			m.maybeFree(c, m.pages.frame(p).ref, fo)
		}
	}
}

// pinnable is the large anonymous folio of p, nil if it is in none.
func (m *Machine) pinnable(p PFN) *folio {
	if m.pages.slab(p) == nil {
		return nil
	}
	if fr := m.pages.frame(p); fr.flags&frameAnon != 0 && fr.order != 0 {
		return m.folioOf(fr)
	}
	return nil
}
