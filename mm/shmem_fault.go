package mm

import (
	"math/bits"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// beginShm is the first half of an access to shared anonymous memory. Entries
// always have the write permission of the mapping: one that is there is a hit.
// Linux: mm/memory.c:do_fault, do_read_fault, do_shared_fault (v6.18).
func (m *Machine) beginShm(c *Current, f *Fault) Outcome {
	v := f.v
	f.order, f.at, f.old = 0, f.Addr&^(m.pageSize()-1), 0
	if f.pmd = m.pmdTable(f.sp, f.Addr); f.pmd != 0 {
		p := &m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
		if *p&eTable != 0 {
			p = m.pages.tables.entry(eSlot(*p), m.pageIndex(f.Addr))
		}
		if *p&ePresent != 0 {
			if *p |= eYoung; f.Access&Write != 0 {
				*p |= eDirty
			}
			return Hit
		}
		f.old = *p
	}
	m.countFault(c, f, v)
	if f.old&eGuard != 0 {
		return Segv
	}
	if f.pmd == 0 {
		if f.pmd = m.makePMDTable(c, f.sp, f.Addr); f.pmd == 0 {
			return m.outOfMemory(f)
		}
	}
	if f.Access&Write == 0 && v.flags&vmUffd == 0 {
		switch m.faultAround(c, f) {
		case Done:
			return Done
		case OOM:
			return m.outOfMemory(f)
		}
	}
	i := m.shmIndex(v, f.Addr)
	if i >= v.shm.n {
		return Bus
	}
	if f.huge = v.shm.at(i); f.huge == 0 {
		if f.huge = m.allocShm(c, f, i); f.huge == 0 {
			return m.outOfMemory(f)
		}
	}
	f.order = m.pages.folios.at(f.huge).order
	if !m.canMapPMD(f, m.pages.folios.at(f.huge)) && !m.makeTable(c, f) {
		return m.outOfMemory(f)
	}
	f.kind = faultShm
	return Pending
}

// aroundBytes is fault_around_bytes, which only debugfs changes.
const aroundBytes = 65536

// faultAround maps what the cache has around a read, the page itself or not:
// within an aligned window of 64 kB, the mapping and the table; since 6.18 folios
// that lie in it by a part are mapped whole if they can be. Done: the page
// was there; Retry: it must be got; OOM: there is no memory for a table.
// Linux: mm/memory.c:do_fault_around, mm/filemap.c:filemap_map_pages (v6.18).
func (m *Machine) faultAround(c *Current, f *Fault) Outcome {
	v, n := f.v, aroundBytes>>m.pageShift
	if n <= 1 {
		return Retry
	}
	off, before := m.pageIndex(f.Addr), int(min(m.span(v.start, f.at), m.pmdOrder.Pages()))
	after := int(min(m.span(f.at, v.end), m.pmdOrder.Pages()))
	from := max(off&^(n-1), off-min(off, before))
	to := min(from+n, 1<<m.pmdOrder, off+after)
	i := m.shmIndex(v, f.Addr)
	at, last := i-uint64(off-from), min(i+uint64(to-off), v.shm.n)
	for at < last && v.shm.at(at) == 0 {
		at++
	}
	if at >= last {
		return Retry
	}
	if fo := m.pages.folios.at(v.shm.at(at)); m.canMapPMD(f, fo) {
		m.mapShmPMD(c, f, fo)
		return Done
	}
	if !m.makeTable(c, f) {
		return OOM
	}
	table := eSlot(m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)])
	for at < last {
		s := v.shm.at(at)
		if s == 0 {
			at++
			continue
		}
		fo := m.pages.folios.at(s)
		first, end := at, min(fo.index+uint64(fo.order.Pages()), last)
		if m.rules.AroundWhole && m.inTable(f, fo) {
			first, end = fo.index, fo.index+uint64(fo.order.Pages())
		}
		for at = first; at < end; at++ {
			if k := off + int(int64(at-i)); *m.pages.tables.entry(table, k) == 0 {
				m.mapShmPTEs(c, f, table, k, fo, at, 1)
			}
		}
	}
	if *m.pages.tables.entry(table, off) != 0 {
		return Done
	}
	return Retry
}

// inTable says whether the mapping and the table at the fault hold all of a folio.
func (m *Machine) inTable(f *Fault, fo *folio) bool {
	v, i, n := f.v, m.shmIndex(f.v, f.Addr), uint64(fo.order.Pages())
	k := int64(m.pageIndex(f.Addr)) + int64(fo.index-i)
	return fo.index >= v.pgoff && fo.index+n <= v.pgoff+uint64(m.span(v.start, v.end)) && k >= 0 &&
		k+int64(n) <= 1<<m.pmdOrder
}

// canMapPMD says whether a PMD entry may map the folio at the fault: it is as
// large, the entry is none, and the mapping's place fits.
// Linux: mm/memory.c:do_set_pmd (v6.18).
func (m *Machine) canMapPMD(f *Fault, fo *folio) bool {
	v := f.v
	return fo.order == m.pmdOrder && m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] == 0 &&
		v.flags&vmNoHuge == 0 && v.sp.thpDisable != THPDisabled && m.suitableShm(v, f.Addr, m.pmdBit()) != 0
}

// shmFlags are the bits of a new entry.
func shmFlags(f *Fault) uint64 {
	e := ePresent | eYoung
	if f.v.flags&vmWrite != 0 {
		e |= eWrite
	}
	if f.Access&Write != 0 {
		e |= eDirty
	}
	return e
}

// mapShmPMD maps a whole folio by the fault's PMD entry. No table is deposited:
// splitting the entry will just empty it.
func (m *Machine) mapShmPMD(c *Current, f *Fault, fo *folio) {
	m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] = leafEntry(fo.head, shmFlags(f)|eHuge)
	if fo.entire == 0 {
		m.Counters.VM[NrShmemPMDMapped]++
	}
	fo.entire++
	fo.addSpace(uint32(f.sp.id), 1)
	f.sp.rssShmem += fo.order.Pages()
	m.Counters.VM[THPFileMapped]++
	c.Work[PrimPMDSet]++
	c.Work[PrimRmapAdd]++
}

// mapShmPTEs maps n pages of a folio, from page i of the file on, by the entries
// of a table from k on, which are none.
func (m *Machine) mapShmPTEs(c *Current, f *Fault, table uint32, k int, fo *folio, i uint64, n int) {
	m.pages.tables.markRange(table, k, n)
	t, pfn, flags := m.pages.tables.at(table), fo.head+PFN(i-fo.index), shmFlags(f)
	for j := range n {
		t[k+j] = leafEntry(pfn+PFN(j), flags)
		fr := m.pages.frame(pfn + PFN(j))
		if fr.maps == 0 {
			fo.present++
		}
		fr.maps++
	}
	fo.addSpace(uint32(f.sp.id), int32(n))
	f.sp.rssShmem += Pages(n)
	c.Work[PrimPTESet] += uint32(n)
	c.Work[PrimRmapAdd]++
}

// allocShm gets a folio for page i and puts it into the cache; 0: no memory.
// Linux: mm/shmem.c:shmem_get_folio_gfp, shmem_alloc_and_add_folio,
// shmem_suitable_orders (v6.18).
func (m *Machine) allocShm(c *Current, f *Fault, i uint64) uint32 {
	file := f.v.shm
	mask := m.allowableShm(f.v, i)
	if m.rules.ShmemMTHP {
		mask = m.suitableShm(f.v, f.Addr, mask)
	}
	for gfp := m.gfp(f.v); mask != 0; {
		o := Order(bits.Len16(mask) - 1)
		first := i >> o << o
		mask &^= 1 << o
		if !file.empty(first, 1<<o) {
			continue
		}
		pfn, ok := m.allocBlock(c, o, gfp)
		if !ok {
			m.countShmFallback(o, false)
			f.tries++
			continue
		}
		if !m.chargeShm(c, o) {
			m.freeBlock(c, pfn, o)
			m.countShmFallback(o, true)
			f.tries++
			break // a small page is next
		}
		m.clearPages(c, pfn, o, 0)
		if o == m.pmdOrder {
			m.Counters.VM[THPFileAlloc]++
		}
		m.Counters.Size[o].ShmemAlloc++
		c.Work[PrimLRUAdd]++
		return m.newShm(file, pfn, o, first)
	}
	pfn, ok := m.allocSmallShm(c)
	if !ok && m.pages.queue.n > 0 {
		m.Shrink(c)
		pfn, ok = m.allocSmallShm(c)
	}
	if !ok {
		return 0
	}
	m.clearPages(c, pfn, 0, 0)
	c.Work[PrimLRUAdd]++
	return m.newShm(file, pfn, 0, i)
}

func (m *Machine) allocSmallShm(c *Current) (PFN, bool) {
	const gfp = buddy.DirectReclaim | buddy.KswapdReclaim
	pfn, ok := m.allocBlock(c, 0, gfp)
	if ok && !m.chargeShm(c, 0) {
		m.freeBlock(c, pfn, 0)
		return 0, false
	}
	return pfn, ok
}

// countShmFallback counts a large allocation that failed at its order.
func (m *Machine) countShmFallback(o Order, charge bool) {
	m.Usage.Fallbacks++
	m.Counters.Size[o].ShmemFallback++
	if o == m.pmdOrder {
		m.Counters.VM[THPFileFallback]++
	}
	if !charge {
		return
	}
	m.Counters.Size[o].ShmemFallbackCharge++
	if o == m.pmdOrder {
		m.Counters.VM[THPFileFallbackCharge]++
	}
}

// unchangedShm is Commit's recheck: the page is still in the cache, and the
// entry still none.
func (m *Machine) unchangedShm(f *Fault) bool {
	if f.v.shm == nil || m.pmdTable(f.sp, f.Addr) != f.pmd ||
		f.v.shm.at(m.shmIndex(f.v, f.Addr)) != f.huge {
		return false
	}
	e := m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
	if e&eTable != 0 {
		return *m.pages.tables.entry(eSlot(e), m.pageIndex(f.Addr)) == 0
	}
	return m.canMapPMD(f, m.pages.folios.at(f.huge))
}

// commitShm maps what beginShm found or got: by the PMD if it can, else the whole
// folio where the mapping and the table hold all of it and nothing of it is
// mapped there yet, else the one page.
// Linux: mm/memory.c:finish_fault (v6.18).
func (m *Machine) commitShm(c *Current, f *Fault) {
	v, fo := f.v, m.pages.folios.at(f.huge)
	if m.canMapPMD(f, fo) {
		m.mapShmPMD(c, f, fo)
		return
	}
	table := eSlot(m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)])
	i, k := m.shmIndex(v, f.Addr), m.pageIndex(f.Addr)
	idx := int(i - fo.index)
	if m.rules.ShmemMTHP && fo.order > 0 && v.flags&vmUffd == 0 && m.inTable(f, fo) &&
		m.pages.tables.none(table, k-idx, fo.order) {
		m.mapShmPTEs(c, f, table, k-idx, fo, fo.index, int(fo.order.Pages()))
		return
	}
	m.mapShmPTEs(c, f, table, k, fo, i, 1)
}
