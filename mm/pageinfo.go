package mm

// PageInfo is what the model knows of one virtual page: what pagemap and
// kpageflags would show.
type PageInfo struct {
	Present   bool
	Zero      bool // the shared zero page, small or huge
	Exclusive bool // mapped once
	PMD       bool // mapped by a PMD entry, or by one above
	Hugetlb   bool // of a hugetlb pool
	Guard     bool // a guard region
	Order     Order
	Index     uint32 // place in the folio, in pages
	PFN       PFN
	Touched   bool   // the program is known to have accessed it
	Filled    bool   // holds more than zeros
	Writable  bool   // the entry permits writing
	Maps      uint32 // how often the page is mapped (/proc/kpagecount), 0 for the zero page
}

// PageInfo tells what maps the page at a.
func (m *Machine) PageInfo(s Space, a VA) PageInfo {
	if int(s) >= len(m.spaces) || m.spaces[s] == nil {
		return PageInfo{}
	}
	pmd := m.pmdTable(m.spaces[s], a)
	if pmd == 0 {
		if len(m.huge.pools) > 1 {
			if p := m.hugeEntry(m.spaces[s], a, m.huge.pools[1].order); p != nil && *p&eHugetlb != 0 {
				return m.hugeInfo(PageInfo{}, *p, a)
			}
		}
		return PageInfo{}
	}
	var in PageInfo
	e := m.pages.tables.at(pmd)[m.pmdIndex(a)]
	if e&eHugetlb != 0 {
		return m.hugeInfo(in, e, a)
	}
	if e&eHuge != 0 {
		in.PMD = true
	} else if e&eTable != 0 {
		e = m.pages.tables.at(eSlot(e))[m.pageIndex(a)]
	}
	in.Present, in.Zero, in.Guard = e&ePresent != 0, e&eZero != 0, e&eGuard != 0
	in.Writable = e&eWrite != 0
	switch {
	case !in.Present:
		return in
	case in.Zero && in.PMD:
		in.Order, in.Index = m.pmdOrder, uint32(m.pageIndex(a))
		in.PFN = m.pages.zero.pfn + PFN(in.Index)
		return in
	case in.Zero:
		return in
	}
	in.PFN = ePFN(e)
	if in.PMD {
		in.PFN += PFN(m.pageIndex(a))
	}
	fr := m.pages.frame(in.PFN)
	in.Order = Order(fr.order)
	in.Index = uint32(in.PFN) & (1<<fr.order - 1)
	in.Touched, in.Filled = fr.flags&frameTouched != 0, fr.flags&frameFilled != 0
	n := fr.maps
	if fr.order != 0 {
		n += m.folioOf(fr).entire
	}
	in.Maps, in.Exclusive = n, n == 1
	return in
}
