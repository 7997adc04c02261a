package mm

import "slices"

// This file holds the object behind a shared anonymous mapping: a nameless file
// of tmpfs, whose page cache lives as long as any mapping of it, in whatever
// process. Linux: mm/shmem.c:shmem_zero_setup (v6.18).
//
//	          fault                     fault, fault-around
//	no page ----------> in the cache <------------------------> mapped
//	   ^                     |         unmap, MADV_DONTNEED
//	   |   last mapping gone |
//	   +---------------------+
//
// Its pages have folios whatever their order, and frames without a kind: flags
// are none and ref is the folio. They are no anonymous memory: Usage.Anon,
// AnonPages and RssAnon do not know them.

// shmFile is one such object.
type shmFile struct {
	id    uint32
	n     uint64   // length in pages (i_size): that of the mapping which made it
	cache []uint32 // slot of the folio that holds each page, 0 for none; may pass n
	vmas  []*vma
}

// shmState is what a machine knows of shared anonymous memory.
type shmState struct {
	files []*shmFile // by identity less one; nil: gone
	spare []uint32   // identities not in use

	// Derived from policy by SetPolicy: bit o set when order o is set so.
	always, within, advise, inherit uint16
}

// shared says whether a frame in use holds a page of shared anonymous memory.
func (f *frame) shared() bool {
	const kinds = frameAnon | frameTable | frameHugeZero | frameHugetlb | framePoison
	return f.flags&kinds == 0 && f.ref != 0
}

// isShmem says whether an OpMap is of shared anonymous memory that the machine has.
func (o *Op) isShmem() bool { return o.Flags&(MapShmem|MapHugetlb|MapFile) == MapShmem }

// mapShm gives a fresh shared anonymous mapping its file.
func (m *Machine) mapShm(v *vma) {
	f := &shmFile{n: uint64(m.span(v.start, v.end))}
	if k := len(m.shm.spare); k > 0 {
		f.id = m.shm.spare[k-1]
		m.shm.spare = m.shm.spare[:k-1]
		m.shm.files[f.id-1] = f
	} else {
		m.shm.files = append(m.shm.files, f)
		f.id = uint32(len(m.shm.files))
	}
	v.shm = f
	f.vmas = append(f.vmas, v)
}

// openShm notes a mapping that is a copy of another: a part of it that was cut
// off, a child's, or the destination of a move.
func (v *vma) openShm() {
	if v.shm != nil {
		v.shm.vmas = append(v.shm.vmas, v)
	}
}

// closeShm takes a mapping, whose pages are unmapped, off its file; with the
// last one the file goes. Linux: mm/shmem.c:shmem_evict_inode (v6.18).
func (m *Machine) closeShm(c *Current, v *vma) {
	f := v.shm
	if f == nil {
		return
	}
	i := slices.Index(f.vmas, v)
	f.vmas = slices.Delete(f.vmas, i, i+1)
	if len(f.vmas) > 0 {
		return
	}
	m.truncateShm(c, f, 0)
	m.shm.files[f.id-1] = nil
	m.shm.spare = append(m.shm.spare, f.id)
}

// truncateShm frees the pages from index i on, which is a folio's first.
func (m *Machine) truncateShm(c *Current, f *shmFile, i uint64) {
	for i < uint64(len(f.cache)) {
		slot := f.cache[i]
		if slot == 0 {
			i++
			continue
		}
		i += uint64(m.pages.folios.at(slot).order.Pages())
		m.freeShm(c, f, slot)
	}
}

// shmIndex is the page of v's file at a.
func (m *Machine) shmIndex(v *vma, a VA) uint64 { return v.anonIndex(a, m.pageShift) }

// at is the slot of the folio that holds page i, 0 for none.
func (f *shmFile) at(i uint64) uint32 {
	if i < uint64(len(f.cache)) {
		return f.cache[i]
	}
	return 0
}

// empty says whether no page of [i, i+n) is in the cache.
func (f *shmFile) empty(i, n uint64) bool {
	for end := min(i+n, uint64(len(f.cache))); i < end; i++ {
		if f.cache[i] != 0 {
			return false
		}
	}
	return true
}

// newShm makes a fresh block the folio of pages i on of a file.
// Linux: mm/shmem.c:shmem_add_to_page_cache (v6.18).
func (m *Machine) newShm(f *shmFile, pfn PFN, o Order, i uint64) uint32 {
	n := uint64(o.Pages())
	if end := i + n; end > uint64(len(f.cache)) {
		f.cache = append(f.cache, make([]uint32, max(end, f.n)-uint64(len(f.cache)))...)
	}
	slot, fo := m.pages.folios.get()
	*fo = folio{head: pfn, order: o, anon: f.id, index: i, flags: folioShmem}
	for k := range PFN(n) {
		*m.pages.frame(pfn + k) = frame{order: uint8(o), ref: slot}
		f.cache[i+uint64(k)] = slot
	}
	m.Counters.VM[NrShmem] += n
	if o == m.pmdOrder {
		m.Counters.VM[NrShmemTHPs]++
	}
	return slot
}

// freeShm takes a folio that nothing maps out of the cache and frees it.
func (m *Machine) freeShm(c *Current, f *shmFile, slot uint32) {
	fo := m.pages.folios.at(slot)
	pfn, o := fo.head, fo.order
	clear(f.cache[fo.index : fo.index+uint64(o.Pages())])
	m.pages.folios.put(slot)
	m.Counters.VM[NrShmem] -= uint64(o.Pages())
	if o == m.pmdOrder {
		m.Counters.VM[NrShmemTHPs]--
	}
	m.unchargeShm(c, o)
	m.pages.clearFrames(pfn, o)
	m.freeBlock(c, pfn, o)
}

// chargeShm is charge for shared memory: the cgroup of who touches a page first
// is charged. Linux: mm/shmem.c:shmem_alloc_and_add_folio (v6.18).
func (m *Machine) chargeShm(c *Current, o Order) bool {
	n := o.Pages()
	if m.cfg.Limit != 0 && m.Usage.Anon+m.Usage.Shmem+n > m.cfg.Limit {
		return false
	}
	c.Work[PrimCharge]++
	m.Usage.Shmem += n
	return true
}

func (m *Machine) unchargeShm(c *Current, o Order) {
	c.Work[PrimUncharge]++
	m.Usage.Shmem -= o.Pages()
}
