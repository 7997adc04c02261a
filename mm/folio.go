package mm

type folioFlags uint8

const (
	folioPartial folioFlags = 1 << iota // partially mapped, once and for all
	folioQueued                         // on the deferred-split queue
	folioShared                         // maybe mapped by several spaces (FOLIO_MM_IDS_SHARED)
	folioShmem                          // of shared anonymous memory, whatever its order: anon is the file
)

// folio is what a large folio has beside its frames. Small pages have none.
type folio struct {
	head    PFN
	index   uint64 // anonymous index of the head page
	anon    uint32 // anonVMA identity, 0: slot is free
	order   Order
	flags   folioFlags
	maps    uint32    // mappings in total: one a PTE, one a PMD
	entire  uint32    // mappings by a PMD
	present uint32    // pages mapped by at least one PTE
	pins    uint32    // references that are no mappings
	touched uint32    // pages of it with frameTouched
	locks   uint32    // mlocked so often (mlocked.go)
	mms     [2]uint32 // identities of two spaces that map it, 0: none
	mmMaps  [2]int32  // mappings by each of them
	next    uint32    // deferred-split queue, in order of arrival
	prev    uint32
}

const (
	folioChunkShift = 8
	folioChunkLen   = 1 << folioChunkShift
)

// folioPool holds the large folios by slot; slot 0 is never used.
type folioPool struct {
	chunks []*[folioChunkLen]folio
	free   []uint32
	n      uint32
}

func (p *folioPool) at(slot uint32) *folio {
	return &p.chunks[slot>>folioChunkShift][slot&(folioChunkLen-1)]
}

func (p *folioPool) get() (uint32, *folio) {
	if k := len(p.free); k > 0 {
		slot := p.free[k-1]
		p.free = p.free[:k-1]
		return slot, p.at(slot)
	}
	p.n++
	if int(p.n>>folioChunkShift) >= len(p.chunks) {
		p.chunks = append(p.chunks, new([folioChunkLen]folio))
	}
	return p.n, p.at(p.n)
}

func (p *folioPool) put(slot uint32) {
	*p.at(slot) = folio{}
	p.free = append(p.free, slot)
}

// folioOf is the large folio of a frame whose order is not 0.
func (m *Machine) folioOf(f *frame) *folio { return m.pages.folios.at(f.ref) }

// newFolio makes the frames of a fresh block one large anonymous folio.
func (m *Machine) newFolio(pfn PFN, o Order, v *vma, at VA) *folio {
	slot, fo := m.pages.folios.get()
	*fo = folio{head: pfn, order: o, anon: v.anon.id, index: v.anonIndex(at, m.pageShift),
		locks: lockedAtFault(v)}
	m.knowAnon(v.anon)
	fr := frame{flags: frameAnon, order: uint8(o), ref: slot}
	for i := PFN(0); i < PFN(o.Pages()); i++ {
		*m.pages.frame(pfn + i) = fr
	}
	m.Counters.Size[o].NrAnon++
	return fo
}

// newSmall makes a fresh page an anonymous folio of order 0, mapped once.
func (m *Machine) newSmall(pfn PFN, v *vma, at VA, flags frameFlags) {
	i := v.anonIndex(at, m.pageShift)
	*m.pages.frame(pfn) = frame{
		flags: flags | frameAnon | frameExclusive, maps: 1, ref: v.anon.id, low: uint32(i), high: uint16(i >> 32),
	}
	m.Counters.VM[NrAnonPages]++
}

// knowAnon keeps the way from an identity in a folio back to its anonVMA.
func (m *Machine) knowAnon(a *anonVMA) {
	t := m.pages.anons
	if int(a.id) < len(t) && t[a.id] == a {
		return
	}
	for int(a.id) >= len(t) {
		t = append(t, nil)
	}
	t[a.id] = a
	m.pages.anons = t
}

// addSpace and dropSpace keep which two spaces map a large folio; a third one
// makes it "maybe shared" until one of the two owns every mapping.
// Linux: include/linux/rmap.h:folio_add_return_large_mapcount (v6.18).
func (fo *folio) addSpace(id uint32, n int32) {
	fo.maps += uint32(n)
	switch {
	case fo.mms[0] == id:
		fo.mmMaps[0] += n
	case fo.mms[1] == id:
		fo.mmMaps[1] += n
	case fo.mms[0] == 0:
		fo.mms[0], fo.mmMaps[0] = id, n
		if fo.maps != uint32(n) {
			fo.flags |= folioShared
		}
	case fo.mms[1] == 0:
		fo.mms[1], fo.mmMaps[1] = id, n
		fo.flags |= folioShared
	}
}

func (fo *folio) dropSpace(id uint32, n int32) {
	fo.maps -= uint32(n)
	for i := range fo.mms {
		if fo.mms[i] != id {
			continue
		}
		if fo.mmMaps[i] -= n; fo.mmMaps[i] <= 0 {
			fo.mms[i], fo.mmMaps[i] = 0, 0
		}
		if fo.mmMaps[i] > 0 {
			return
		}
		break
	}
	if fo.mmMaps[0] == int32(fo.maps) || fo.mmMaps[1] == int32(fo.maps) {
		fo.flags &^= folioShared
	}
}

// maybeShared guesses whether more than one space maps the folio, as well as
// the kernel can know it. Linux: folio_maybe_mapped_shared (v6.18); before the
// two identities, folio_likely_mapped_shared looked at the first page.
func (m *Machine) maybeShared(pfn PFN, fr *frame) bool {
	if fr.order == 0 {
		return fr.maps > 1
	}
	fo := m.folioOf(fr)
	if m.rules.MMIDs {
		return fo.flags&folioShared != 0
	}
	switch {
	case fo.maps <= 1:
		return false
	case fo.entire > 0 || fo.maps > uint32(fo.order.Pages()):
		return true
	}
	return m.pages.frame(fo.head).maps > 1
}

// addPTEs notes that sp maps pages [pfn, pfn+n) of a large folio by PTEs.
func (m *Machine) addPTEs(fo *folio, sp *space, pfn PFN, n Pages) {
	var fresh uint32
	for i := PFN(0); i < PFN(n); i++ {
		fr := m.pages.frame(pfn + i)
		if fr.maps == 0 {
			fresh++
		}
		fr.maps++
	}
	fo.present += fresh
	if fo.entire == 0 {
		m.Counters.VM[NrAnonPages] += uint64(fresh)
	}
	fo.addSpace(uint32(sp.id), int32(n))
}

// removePTEs takes the mappings back in one step. A large folio that keeps
// some pages and loses others becomes partially mapped. Linux:
// mm/rmap.c:__folio_remove_rmap (v6.18).
func (m *Machine) removePTEs(c *Current, v *vma, pfn PFN, n Pages) {
	fr := m.pages.frame(pfn)
	c.Work[PrimRmapRemove]++
	if fr.order == 0 {
		if fr.maps--; fr.maps == 0 {
			m.Counters.VM[NrAnonPages]--
			m.freeSmall(c, pfn, fr)
		}
		return
	}
	fo := m.folioOf(fr)
	var gone uint32
	for i := PFN(0); i < PFN(n); i++ {
		fr := m.pages.frame(pfn + i)
		if fr.maps--; fr.maps == 0 {
			gone++
		}
	}
	fo.present -= gone
	if fo.entire > 0 {
		gone = 0
	}
	m.Counters.VM[NrAnonPages] -= uint64(gone)
	fo.dropSpace(uint32(v.sp.id), int32(n))
	fo.munlock(v)
	if gone > 0 && fo.present > 0 {
		m.deferSplit(c, fr.ref, true)
	}
	m.maybeFree(c, fr.ref, fo)
}

// addPMD notes that sp maps the whole folio by a PMD.
func (m *Machine) addPMD(fo *folio, sp *space) {
	if fo.entire == 0 {
		m.Counters.VM[NrAnonPages] += uint64(fo.order.Pages()) - uint64(fo.present)
		m.Counters.VM[NrAnonTHPs]++
	}
	fo.entire++
	fo.addSpace(uint32(sp.id), 1)
}

// removePMD takes a PMD's mapping back.
func (m *Machine) removePMD(c *Current, sp *space, pfn PFN) {
	slot := m.pages.frame(pfn).ref
	fo := m.pages.folios.at(slot)
	c.Work[PrimRmapRemove]++
	fo.entire--
	fo.dropSpace(uint32(sp.id), 1)
	if fo.entire == 0 {
		gone := uint32(fo.order.Pages()) - fo.present
		m.Counters.VM[NrAnonPages] -= uint64(gone)
		m.Counters.VM[NrAnonTHPs]--
		if gone > 0 && fo.present > 0 {
			m.deferSplit(c, slot, true)
		}
	}
	m.maybeFree(c, slot, fo)
}

func (m *Machine) maybeFree(c *Current, slot uint32, fo *folio) {
	if fo.maps == 0 && fo.pins == 0 {
		m.freeFolio(c, slot, fo)
	}
}

// freeFolio gives a large folio's block back.
func (m *Machine) freeFolio(c *Current, slot uint32, fo *folio) {
	m.Counters.Size[fo.order].NrAnon--
	m.dequeue(fo)
	m.Usage.Touched -= Pages(fo.touched)
	pfn, o := fo.head, fo.order
	m.pages.folios.put(slot)
	m.uncharge(c, o)
	m.pages.clearFrames(pfn, o)
	m.freeBlock(c, pfn, o)
}

// freeSmall gives a page back that nothing maps.
func (m *Machine) freeSmall(c *Current, pfn PFN, fr *frame) {
	if fr.flags&frameTouched != 0 {
		m.Usage.Touched--
	}
	*fr = frame{}
	m.uncharge(c, 0)
	m.freeBlock(c, pfn, 0)
}

// access notes that the program accessed a page: it is touched, and filled
// after a write of more than zeros. It returns the PTE bits that say so.
func (m *Machine) access(v *vma, pfn PFN, acc Access) uint64 {
	if m.pages.untouched {
		return 0
	}
	fr := m.pages.frame(pfn)
	if fr.flags&frameTouched == 0 {
		fr.flags |= frameTouched
		m.Usage.Touched++
		if fr.order != 0 {
			m.folioOf(fr).touched++
		}
		if m.cfg.ByRegion {
			m.usageOf(v).Touched++
		}
	}
	if acc&(Write|ZeroData) == Write {
		fr.flags |= frameFilled
		return eSeen | eFull
	}
	return eSeen
}
