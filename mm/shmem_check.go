package mm

import "fmt"

// sharedPTE counts an entry that maps a page of shared memory.
func (ck *checker) sharedPTE(sp *space, e uint64, a VA) error {
	pfn := ePFN(e)
	ck.maps[pfn]++
	ck.rssShmem++
	return ck.sharedEntry(sp, e, pfn, a)
}

// sharedPMD counts a huge entry that maps a folio of shared memory.
func (ck *checker) sharedPMD(sp *space, e uint64, a VA) error {
	m := ck.m
	if err := ck.vmaFor(sp, a, m.pmdSize()); err != nil {
		return err
	}
	if o := Order(m.pages.frame(ePFN(e)).order); o != m.pmdOrder {
		return fmt.Errorf("huge entry at %#x maps shared memory of order %d", a, o)
	}
	ck.entire[ePFN(e)]++
	ck.rssShmem += m.pmdOrder.Pages()
	return ck.sharedEntry(sp, e, ePFN(e), a)
}

// sharedEntry holds an entry to the file: it maps the page that the cache has
// there, and permits what the mapping does.
func (ck *checker) sharedEntry(sp *space, e uint64, pfn PFN, a VA) error {
	m, v := ck.m, sp.at(a)
	if v == nil || v.shm == nil {
		return fmt.Errorf("entry at %#x maps shared memory, its mapping is none", a)
	}
	i := m.shmIndex(v, a)
	slot := v.shm.at(i)
	if slot == 0 {
		return fmt.Errorf("entry at %#x maps page %d, which the cache does not have", a, i)
	}
	fo := m.pages.folios.at(slot)
	switch {
	case fo.head+PFN(i-fo.index) != pfn:
		return fmt.Errorf("entry at %#x maps frame %d, the cache has %d", a, pfn, fo.head+PFN(i-fo.index))
	case (e&eWrite != 0) != (v.flags&vmWrite != 0):
		return fmt.Errorf("entry at %#x is writable: %t, its mapping not", a, e&eWrite != 0)
	}
	if ck.spaces == nil {
		ck.spaces = map[PFN]map[uint32]int32{}
	}
	if ck.spaces[fo.head] == nil {
		ck.spaces[fo.head] = map[uint32]int32{}
	}
	ck.spaces[fo.head][uint32(sp.id)]++
	return nil
}

// checkShmem holds every file's cache to its folios, their frames and their
// mappings.
func (ck *checker) checkShmem() error {
	m := ck.m
	for _, f := range m.shm.files {
		if f == nil {
			continue
		}
		if len(f.vmas) == 0 {
			return fmt.Errorf("file %d: without a mapping", f.id)
		}
		for _, v := range f.vmas {
			if v.shm != f || v.place == nil {
				return fmt.Errorf("file %d: %#x is no mapping of it", f.id, v.start)
			}
		}
		for i := uint64(0); i < uint64(len(f.cache)); {
			slot := f.cache[i]
			if slot == 0 {
				i++
				continue
			}
			n, err := ck.sharedFolio(f, slot, i)
			if err != nil {
				return fmt.Errorf("file %d page %d: %w", f.id, i, err)
			}
			i += n
		}
	}
	return nil
}

func (ck *checker) sharedFolio(f *shmFile, slot uint32, i uint64) (uint64, error) {
	m, fo := ck.m, ck.m.pages.folios.at(slot)
	n := uint64(fo.order.Pages())
	if fo.index != i || fo.anon != f.id || fo.flags&folioShmem == 0 || i&(n-1) != 0 || fo.head&PFN(n-1) != 0 {
		return n, fmt.Errorf("folio %+v does not belong there", *fo)
	}
	var maps, present uint32
	for k := range n {
		fr := m.pages.frame(fo.head + PFN(k))
		if !fr.shared() || fr.ref != slot || Order(fr.order) != fo.order || f.cache[i+k] != slot {
			return n, fmt.Errorf("frame %d is not of the folio", fo.head+PFN(k))
		}
		if fr.maps != ck.maps[fo.head+PFN(k)] {
			return n, fmt.Errorf("frame %d: map count %d, tables map it %d times", fo.head+PFN(k), fr.maps,
				ck.maps[fo.head+PFN(k)])
		}
		if maps += fr.maps; fr.maps > 0 {
			present++
		}
	}
	if fo.maps != maps+fo.entire || fo.present != present || fo.entire != ck.entire[fo.head] {
		return n, fmt.Errorf("folio counts maps %d present %d entire %d; tables say %d, %d, %d", fo.maps, fo.present,
			fo.entire, maps+ck.entire[fo.head], present, ck.entire[fo.head])
	}
	ck.shmem += Pages(n)
	if fo.order == m.pmdOrder {
		if ck.shmemTHPs++; fo.entire > 0 {
			ck.shmemPMDs++
		}
	}
	return n, ck.mms(fo)
}

// mms checks a folio's space identities.
func (ck *checker) mms(fo *folio) error {
	by := ck.spaces[fo.head]
	if fo.flags&folioShared != 0 {
		return nil
	}
	if len(by) > 1 {
		return fmt.Errorf("%d spaces map the folio, but it is not marked shared", len(by))
	}
	for i, id := range fo.mms {
		if id != 0 && by[id] != fo.mmMaps[i] {
			return fmt.Errorf("space %d maps it %d times, it says %d", id, by[id], fo.mmMaps[i])
		}
	}
	return nil
}
