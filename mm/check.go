package mm

import "fmt"

// Check proves that every frame has exactly one owner and that every counter
// adds up. It is slow; tests call it after every step.
func (m *Machine) Check() error {
	ck := &checker{m: m, maps: map[PFN]uint32{}, entire: map[PFN]uint32{}, tables: map[PFN]bool{},
		hugeMaps: map[uint32]uint32{}}
	for _, sp := range m.spaces {
		if sp == nil {
			continue
		}
		if err := ck.space(sp); err != nil {
			return fmt.Errorf("mm: space %d: %w", sp.id, err)
		}
	}
	for _, f := range []func() error{ck.frames, ck.checkShmem, ck.usage, ck.queue, m.physCheck, m.checkVMAs} {
		if err := f(); err != nil {
			return fmt.Errorf("mm: %w", err)
		}
	}
	return nil
}

// checker recounts from the page tables what the machine keeps as it goes.
type checker struct {
	m        *Machine
	maps     map[PFN]uint32 // PTEs that map a page
	entire   map[PFN]uint32 // PMD entries that map a folio, by its head
	tables   map[PFN]bool
	hugeMaps map[uint32]uint32 // entries that map a hugetlb page, by its slot
	spaces   map[PFN]map[uint32]int32

	anon, touched Pages
	order         [NumOrders]Pages
	nrAnon        [NumOrders]uint64
	partial       [NumOrders]uint64
	mapped, thps  uint64
	zeroUsers     uint32
	owned         uint64
	hugetlb       Pages // mapped by the space at hand
	rssShmem      Pages // likewise
	shmem         Pages // in caches of shared memory
	sharedFrames  Pages
	shmemTHPs     uint64
	shmemPMDs     uint64
	slots         uint64 // tables in use
}

// space walks one space's tables.
func (ck *checker) space(sp *space) error {
	if sp.zeroHuge {
		ck.zeroUsers++
	}
	if sp.root.top == 0 {
		if sp.rssAnon != 0 || sp.hugetlb != 0 || sp.rssShmem != 0 {
			return fmt.Errorf("rss is %d, %d shared and hugetlb %d with no tables", sp.rssAnon, sp.rssShmem, sp.hugetlb)
		}
		return nil
	}
	ck.hugetlb, ck.rssShmem = 0, 0
	rss, err := ck.level(sp, sp.root.top, ck.m.pages.top, 0)
	if err != nil {
		return err
	}
	if ck.hugetlb != sp.hugetlb {
		return fmt.Errorf("hugetlb is %d, its tables map %d", sp.hugetlb, ck.hugetlb)
	}
	if ck.rssShmem != sp.rssShmem {
		return fmt.Errorf("shared rss is %d, its tables map %d", sp.rssShmem, ck.rssShmem)
	}
	if rss != sp.rssAnon {
		return fmt.Errorf("rss is %d, its tables map %d", sp.rssAnon, rss)
	}
	return nil
}

func (ck *checker) table(pfn PFN) error {
	if ck.tables[pfn] {
		return fmt.Errorf("frame %d holds two tables", pfn)
	}
	if ck.m.pages.frame(pfn).flags != frameTable {
		return fmt.Errorf("frame %d of a table is marked %x", pfn, ck.m.pages.frame(pfn).flags)
	}
	ck.tables[pfn] = true
	return nil
}

// level checks the table at slot, whose entries lie from base on.
func (ck *checker) level(sp *space, slot uint32, level uint, base VA) (rss Pages, err error) {
	m := ck.m
	ck.slots++
	meta := m.pages.tables.meta[slot]
	if slot != sp.root.top {
		if err := ck.table(meta.pfn); err != nil {
			return 0, err
		}
	}
	var huge uint32
	for i, e := range m.pages.tables.at(slot) {
		if used, bit := m.pages.tables.usedWord(slot, i); level == 0 && e != 0 && *used&bit == 0 {
			return 0, fmt.Errorf("table %d: entry %d is %#x and not marked as used", slot, i, e)
		}
		a := base + VA(i)<<m.levelShift(level)
		var n Pages
		switch {
		case e == 0:
			continue
		case level == 0:
			n, err = ck.pte(sp, e, a)
		case e&eHugetlb != 0:
			err = ck.hugetlbEntry(sp, e, a)
		case e&eHuge != 0 && e&eZero == 0 && m.pages.frame(ePFN(e)).shared():
			err = ck.sharedPMD(sp, e, a)
		case e&eHuge != 0:
			huge++
			n, err = ck.huge(sp, e, a)
		case e&eTable != 0:
			n, err = ck.level(sp, eSlot(e), level-1, a)
		default:
			err = fmt.Errorf("entry %x at level %d", e, level)
		}
		if err != nil {
			return 0, err
		}
		rss += n
	}
	if huge != meta.count {
		return 0, fmt.Errorf("table %d: %d huge entries, %d deposits", slot, huge, meta.count)
	}
	pfn := meta.deposit
	for range meta.count {
		if err := ck.table(pfn); err != nil {
			return 0, err
		}
		pfn = PFN(m.pages.frame(pfn).index())
	}
	return rss, nil
}

// vmaFor is the VMA that must hold a mapped address.
func (ck *checker) vmaFor(sp *space, a, size VA) error {
	if v := sp.find(a); v == nil || v.start > a || v.end < a+size {
		return fmt.Errorf("entry at %#x lies in no mapping", a)
	}
	return nil
}

func (ck *checker) pte(sp *space, e uint64, a VA) (Pages, error) {
	if err := ck.vmaFor(sp, a, ck.m.pageSize()); err != nil {
		return 0, err
	}
	if e&(eGuard|eZero) != 0 {
		return 0, nil
	}
	pfn := ePFN(e)
	fr := ck.m.pages.frame(pfn)
	if fr.shared() {
		return 0, ck.sharedPTE(sp, e, a)
	}
	if fr.flags&frameAnon == 0 {
		return 0, fmt.Errorf("pte at %#x maps frame %d, which is marked %x", a, pfn, fr.flags)
	}
	if err := ck.hints(e, fr, a); err != nil {
		return 0, err
	}
	ck.maps[pfn]++
	ck.count(pfn, fr, sp)
	return 1, nil
}

// hints checks what an entry says about its page without a look at the frame.
func (ck *checker) hints(e uint64, fr *frame, a VA) error {
	switch {
	case e&eSeen != 0 && fr.flags&frameTouched == 0:
		return fmt.Errorf("pte at %#x says touched, its frame not", a)
	case e&eFull != 0 && fr.flags&frameFilled == 0:
		return fmt.Errorf("pte at %#x says filled, its frame not", a)
	case e&eWrite != 0 && fr.flags&frameExclusive == 0:
		return fmt.Errorf("pte at %#x is writable, its page not exclusive", a)
	}
	return nil
}

func (ck *checker) count(pfn PFN, fr *frame, sp *space) {
	if fr.order == 0 {
		return
	}
	if ck.spaces == nil {
		ck.spaces = map[PFN]map[uint32]int32{}
	}
	head := pfn &^ (1<<fr.order - 1)
	if ck.spaces[head] == nil {
		ck.spaces[head] = map[uint32]int32{}
	}
	ck.spaces[head][uint32(sp.id)]++
}

func (ck *checker) huge(sp *space, e uint64, a VA) (Pages, error) {
	m := ck.m
	if err := ck.vmaFor(sp, a, m.pmdSize()); err != nil {
		return 0, err
	}
	if e&eZero != 0 {
		if !sp.zeroHuge || !m.pages.zero.have {
			return 0, fmt.Errorf("huge zero page at %#x without a reference", a)
		}
		return 0, nil
	}
	pfn := ePFN(e)
	fr := m.pages.frame(pfn)
	if fr.flags&frameAnon == 0 || Order(fr.order) != m.pmdOrder || pfn&(1<<m.pmdOrder-1) != 0 {
		return 0, fmt.Errorf("huge entry at %#x maps frame %d: marked %x, order %d", a, pfn, fr.flags, fr.order)
	}
	if e&eWrite != 0 && fr.flags&frameExclusive == 0 {
		return 0, fmt.Errorf("huge entry at %#x is writable, its folio not exclusive", a)
	}
	ck.entire[pfn]++
	ck.count(pfn, fr, sp)
	return m.pmdOrder.Pages(), nil
}

// frames checks every frame in use against what the tables showed.
func (ck *checker) frames() error {
	return ck.m.pages.eachSlab(func(first PFN, slab *frameSlab) error {
		for i := range slab {
			pfn := first + PFN(i)
			if err := ck.frame(pfn, &slab[i]); err != nil {
				return fmt.Errorf("frame %d: %w", pfn, err)
			}
		}
		return nil
	})
}

func (ck *checker) frame(pfn PFN, fr *frame) error {
	switch {
	case *fr == frame{}:
		if ck.maps[pfn] > 0 || ck.tables[pfn] {
			return fmt.Errorf("in use but marked free")
		}
	case fr.flags&frameTable != 0:
		ck.owned++
		if !ck.tables[pfn] {
			return fmt.Errorf("a table that no space has")
		}
	case fr.shared():
		ck.owned++
		ck.sharedFrames++
	case fr.flags&frameHugetlb != 0: // checkHuge looks at it
	case fr.flags&(frameHugeZero|framePoison) != 0:
		ck.owned++
	case fr.order == 0:
		return ck.small(pfn, fr)
	case pfn&(1<<fr.order-1) == 0:
		return ck.large(pfn, fr)
	}
	return nil
}

func (ck *checker) small(pfn PFN, fr *frame) error {
	ck.owned++
	ck.anon++
	ck.order[0]++
	ck.mapped++
	if fr.flags&frameTouched != 0 {
		ck.touched++
	}
	if fr.maps != ck.maps[pfn] || fr.maps == 0 {
		return fmt.Errorf("map count %d, tables map it %d times", fr.maps, ck.maps[pfn])
	}
	if fr.flags&frameExclusive != 0 && fr.maps > 1 {
		return fmt.Errorf("exclusive but mapped %d times", fr.maps)
	}
	return nil
}

func (ck *checker) large(pfn PFN, fr *frame) error {
	m := ck.m
	fo := m.folioOf(fr)
	o := Order(fr.order)
	if fo.head != pfn || fo.order != o {
		return fmt.Errorf("folio slot %d is of frame %d order %d", fr.ref, fo.head, fo.order)
	}
	var maps, present, touched uint32
	for i := range PFN(o.Pages()) {
		f := m.pages.frame(pfn + i)
		if f.flags&frameAnon == 0 || f.ref != fr.ref || f.order != fr.order {
			return fmt.Errorf("page %d is not of the folio", i)
		}
		if f.maps != ck.maps[pfn+i] {
			return fmt.Errorf("page %d: map count %d, tables map it %d times", i, f.maps, ck.maps[pfn+i])
		}
		if f.flags&frameExclusive != 0 && f.maps+fo.entire > 1 {
			return fmt.Errorf("page %d: exclusive but mapped %d times", i, f.maps+fo.entire)
		}
		maps += f.maps
		if f.maps > 0 {
			present++
		}
		if f.flags&frameTouched != 0 {
			touched++
		}
	}
	if fo.maps != maps+fo.entire || fo.present != present ||
		fo.entire != ck.entire[pfn] || fo.touched != touched {
		return fmt.Errorf("folio counts maps %d present %d entire %d touched %d; tables say %d, %d, %d, %d",
			fo.maps, fo.present, fo.entire, fo.touched, maps+ck.entire[pfn], present, ck.entire[pfn], touched)
	}
	if fo.maps == 0 && fo.pins == 0 {
		return fmt.Errorf("folio is held by nothing")
	}
	return ck.folio(pfn, fo, present, touched)
}

// folio adds a large folio to the sums and checks its space identities.
func (ck *checker) folio(pfn PFN, fo *folio, present, touched uint32) error {
	o := fo.order
	n := o.Pages()
	ck.owned += uint64(n)
	ck.anon += n
	ck.order[o] += n
	ck.nrAnon[o]++
	ck.touched += Pages(touched)
	if fo.entire > 0 {
		ck.mapped += uint64(n)
		ck.thps++
	} else {
		ck.mapped += uint64(present)
	}
	if fo.flags&folioPartial != 0 {
		ck.partial[o]++
	}
	by := ck.spaces[pfn]
	if len(by) > 1 && fo.flags&folioShared == 0 {
		return fmt.Errorf("%d spaces map the folio, but it is not marked shared", len(by))
	}
	if fo.flags&folioShared == 0 {
		for i, id := range fo.mms {
			if id != 0 && by[id] != fo.mmMaps[i] {
				return fmt.Errorf("space %d maps it %d times, it says %d", id, by[id], fo.mmMaps[i])
			}
		}
	}
	return nil
}

// hugetlbEntry checks an entry that maps a hugetlb page.
func (ck *checker) hugetlbEntry(sp *space, e uint64, a VA) error {
	m := ck.m
	v := sp.at(a)
	if v == nil || v.huge == nil || e&eHuge == 0 {
		return fmt.Errorf("hugetlb entry at %#x lies in no hugetlb mapping", a)
	}
	if fr := m.pages.frame(ePFN(e)); fr.flags != frameHugetlb || Order(fr.order) != m.hugeVMAPool(v).order {
		return fmt.Errorf("hugetlb entry at %#x maps frame %d: marked %x, order %d", a, ePFN(e), fr.flags, fr.order)
	}
	_, slot := m.hugeAt(e)
	ck.hugeMaps[slot]++
	ck.hugetlb += m.hugeVMAPool(v).order.Pages()
	if e&eWrite != 0 && v.flags&vmShared == 0 && m.huge.pages[slot].maps > 1 {
		return fmt.Errorf("hugetlb entry at %#x is writable, its page mapped %d times", a, m.huge.pages[slot].maps)
	}
	return nil
}

// usage compares the sums with what the machine kept.
func (ck *checker) usage() error {
	m := ck.m
	pools, err := m.checkHuge(ck.hugeMaps)
	if err != nil {
		return err
	}
	ck.owned += pools + m.vmem.held
	u, vm := &m.Usage, &m.Counters.VM
	for _, x := range []struct {
		name      string
		kept, has uint64
	}{
		{"Usage.Anon", uint64(u.Anon), uint64(ck.anon)},
		{"Usage.Touched", uint64(u.Touched), uint64(ck.touched)},
		{"Usage.Shmem", uint64(u.Shmem), uint64(ck.shmem)},
		{"frames of shared memory", uint64(ck.sharedFrames), uint64(ck.shmem)},
		{"nr_shmem", vm[NrShmem], uint64(ck.shmem)},
		{"nr_shmem_hugepages", vm[NrShmemTHPs], ck.shmemTHPs},
		{"nr_shmem_pmdmapped", vm[NrShmemPMDMapped], ck.shmemPMDs},
		{"Usage.Tables", uint64(u.Tables), uint64(len(ck.tables))},
		{"table slots", uint64(max(len(m.pages.tables.meta), 1) - 1 - len(m.pages.tables.free)), ck.slots},
		{"nr_page_table_pages", vm[NrPageTablePages], uint64(len(ck.tables))},
		{"nr_anon_pages", vm[NrAnonPages], ck.mapped},
		{"nr_anon_transparent_hugepages", vm[NrAnonTHPs], ck.thps},
		{"users of the huge zero page", uint64(m.pages.zero.users), uint64(ck.zeroUsers)},
		{"pages out of the allocator", m.physUsed(), ck.owned},
		{"pgalloc - pgfree", vm[PgAlloc] - vm[PgFree], ck.owned - m.huge.ranged - m.vmem.boot},
	} {
		if x.kept != x.has {
			return fmt.Errorf("%s is %d, the tables say %d", x.name, x.kept, x.has)
		}
	}
	if u.AnonPeak < u.Anon {
		return fmt.Errorf("peak %d is below %d", u.AnonPeak, u.Anon)
	}
	for o := range ck.order {
		s := &m.Counters.Size[o]
		if u.ByOrder[o] != ck.order[o] || s.NrAnon != ck.nrAnon[o] || s.NrAnonPartiallyMapped != ck.partial[o] {
			return fmt.Errorf("order %d: ByOrder %d nr_anon %d partially mapped %d; the tables say %d, %d, %d",
				o, u.ByOrder[o], s.NrAnon, s.NrAnonPartiallyMapped, ck.order[o], ck.nrAnon[o], ck.partial[o])
		}
	}
	return nil
}

// queue checks the deferred-split queue's links and members.
func (ck *checker) queue() error {
	q := &ck.m.pages.queue
	var prev uint32
	n := uint64(0)
	for slot := q.first; slot != 0; n++ {
		fo := ck.m.pages.folios.at(slot)
		if fo.flags&folioQueued == 0 || fo.prev != prev || fo.maps+fo.pins == 0 {
			return fmt.Errorf("deferred-split queue: folio %d does not belong there", slot)
		}
		prev, slot = slot, fo.next
	}
	if n != q.n || prev != q.last {
		return fmt.Errorf("deferred-split queue: %d members, counted %d", n, q.n)
	}
	return nil
}
