package mm

import (
	"sort"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// The vmemmap is the array of all struct pages, 64 bytes for each frame of
// memory. It is mapped by 2 MB entries until something has a reason to split
// one. With Config.Vmemmap it lies in the machine's own memory, taken at boot,
// so that vmemmap optimisation (hvo.go) has pages to give back.
//
//	frames      0 .. 63 | 64 .. 127 | ...                  64 to a page
//	vmemmap      page 0 |  page 1   | ... page 511 | ...   512 pages to a 2 MB entry
//
// Linux: include/linux/mm_types.h:struct page, Documentation/mm/vmemmap_dedup.rst (v6.18).

// structPage is the length of a struct page.
const structPage = 64

type vmemmap struct {
	spans []vmemmapSpan
	moved map[uint64]PFN // frame behind a page of the vmemmap, where it is not the one of boot
	gone  hugeBits       // pages whose own frame was given back: they alias the one before
	saved Pages          // how many
	split map[uint64]PFN // frame of the table that took the place of a 2 MB entry

	boot  uint64 // frames taken at boot
	held  uint64 // frames of struct pages and of those tables
	batch bool   // flushes wait for the end of the batch
	owed  bool
}

// vmemmapSpan is a block taken at boot.
type vmemmapSpan struct {
	page  uint64 // number of its first page in the vmemmap
	pfn   PFN
	order Order
}

// newVmemmap takes the memory of all struct pages, each node's on the node.
func (m *Machine) newVmemmap(zones []buddy.Zone) {
	vm := &m.vmem
	vm.moved, vm.split = map[uint64]PFN{}, map[uint64]PFN{}
	if !m.cfg.Vmemmap {
		return
	}
	per := m.structsPerPage()
	vm.gone = newHugeBits(m.alloc.End()/per + 1)
	next := uint64(0)
	for _, z := range zones {
		from, to := max(z.Start/per, next), (z.Start+z.Pages+per-1)/per
		for o := BuddyMaxOrder; from < to; {
			for uint64(o.Pages()) > to-from {
				o--
			}
			pfn, ok := m.alloc.Alloc(0, z.Node, uint8(o), buddy.Unmovable, buddy.ThisNode)
			if !ok {
				if o == 0 {
					break
				}
				o-- // memory in smaller pieces
				continue
			}
			vm.spans = append(vm.spans, vmemmapSpan{from, PFN(pfn), o})
			vm.boot += uint64(o.Pages())
			from += uint64(o.Pages())
		}
		next = to
	}
	vm.held, m.Counters.VM[NrMemmapBootPages] = vm.boot, vm.boot
	m.alloc.Events = buddy.Events{}
}

// structsPerPage is how many struct pages a page holds.
func (m *Machine) structsPerPage() uint64 { return uint64(m.pageSize()) / structPage }

// vmemmapFrame is the frame that holds a page of the vmemmap; false where the
// machine keeps it outside its memory.
func (m *Machine) vmemmapFrame(page uint64) (PFN, bool) {
	vm := &m.vmem
	if pfn, ok := vm.moved[page]; ok {
		return pfn, true
	}
	i := sort.Search(len(vm.spans), func(i int) bool { return vm.spans[i].page > page }) - 1
	if i < 0 || page >= vm.spans[i].page+uint64(vm.spans[i].order.Pages()) {
		return 0, false
	}
	return vm.spans[i].pfn + PFN(page-vm.spans[i].page), true
}

// StructPage says where a frame's struct page is: its offset in the vmemmap,
// the physical address that it is read from, and how long the page is that the
// entry over it maps. Struct pages that were given back are read from the page of
// their hugetlb page that was kept.
func (m *Machine) StructPage(p PFN) (offset, physical uint64, mapped Bytes) {
	offset = uint64(p) * structPage
	size := uint64(m.pageSize())
	page := offset / size
	mapped = Bytes(m.pmdSize())
	if _, ok := m.vmem.split[page/uint64(m.pmdOrder.Pages())]; ok {
		mapped = Bytes(size)
	}
	for len(m.vmem.gone) > 0 && m.vmem.gone.has(page) {
		page--
	}
	pfn, ok := m.vmemmapFrame(page)
	if !ok {
		return offset, page*size + offset%size, mapped
	}
	return offset, uint64(pfn)*size + offset%size, mapped
}
