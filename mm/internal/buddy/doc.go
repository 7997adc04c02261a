// Package buddy is the physical page allocator: zones, free areas by order and
// migrate type, per-CPU lists, watermarks and fallback between types, as
// semantics.md section 1 describes mm/page_alloc.c (v6.18).
//
// It knows frames and blocks only: no folio, no page table, no policy. Times,
// reclaim and the movement of pages are outside it, so three things are simpler
// than in Linux:
//
//   - Nothing is reclaimed and nothing moves. Direct compaction, where Linux
//     would try it, counts Events.Compact; of its effects the model has one, that
//     per-CPU lists are drained. If that frees a block the allocation succeeds.
//   - Kswapd is taken to undo a watermark boost at once: there is none.
//   - HIGHATOMIC, CMA and isolated pageblocks do not exist.
//
// # Life of a block
//
//	             expand                  refill                 pop
//	free list ----------> free list ----------------> pcp list -----> in use
//	    ^   <---------- (two halves)                     |  ^           |
//	    |      merge                       drain, trim   |  |   push    |
//	    +------------------------------------------------+  +-----------+
//	    |          orders 4 to 8 and above the PMD's go straight        |
//	    +---------------------------------------------------------------+
//
// A block on a per-CPU list is not free: it neither merges nor counts.
//
// # Memory
//
// Every block of the largest order has 12 bytes; they hold its list links while
// it is whole and free. Frame metadata (9 bytes a frame) lives in a slab that is
// made when the block is first broken and given back when it is whole again.
// Lists are linked by frame number, so nothing of it is visible to the
// garbage collector.
package buddy

// MigrateType is what a pageblock is used for.
type MigrateType uint8

// The three ordinary types.
const (
	Unmovable MigrateType = iota
	Movable
	Reclaimable

	NumTypes = 3
)

var typeNames = [NumTypes]string{"Unmovable", "Movable", "Reclaimable"}

// String is the type's name as /proc/pagetypeinfo has it.
func (t MigrateType) String() string { return typeNames[t] }

// Flags say how hard an allocation may try.
type Flags uint8

// Allocation flags.
const (
	DirectReclaim Flags = 1 << iota // may compact and reclaim
	KswapdReclaim                   // may wake kswapd
	NoRetry                         // gives up after one round
	ThisNode                        // only the preferred node
)

// Events counts what the allocator did since the caller last cleared it. The
// caller owns the moment: mm moves it into Work after each call.
type Events struct {
	PCPHit   uint32 // allocations served from a per-CPU list, after a refill or without one
	Refill   uint32 // blocks moved to a per-CPU list
	Zone     uint32 // allocations served under the zone lock
	Fail     uint32 // allocations that found nothing
	Compact  uint32 // direct compactions tried (compact_stall): a success when Alloc returned true
	Expand   uint32 // halvings
	PCPFree  uint32 // frees to a per-CPU list
	ZoneFree uint32 // blocks given back under the zone lock, one by one or from a per-CPU list
	Merge    uint32 // merges of two buddies
	Lock     uint32 // times that a zone lock was taken
	Fallback uint32 // blocks taken from another migrate type (mm_page_alloc_extfrag)
}

// Zone describes one zone before the machine runs. Where Start is aligned to
// the largest order, any free blocks fit whose sum is at most Pages.
type Zone struct {
	Node  int
	Name  string   // DMA, DMA32, Normal, Movable
	Start uint64   // first PFN
	Pages uint64   // managed pages; the zone has no holes
	Free  []uint64 // free blocks by order as a host has them; nil: all of it is free
}

// Config describes the machine's memory.
type Config struct {
	Zones     []Zone
	CPUs      int
	CPUNode   []int // node of each CPU; nil: all on node 0
	PageShift uint  // 12, 14 or 16
	MaxOrder  uint8 // largest block: 10 with 4 kB pages, 11 with 16 kB, 13 with 64 kB
	PMDOrder  uint8 // 9, 11 or 13: pageblock order and the large per-CPU list
	THP       bool  // PMD-size THP is enabled in some way: raises min_free_kbytes (1.4.2)
}

// Allocator is the machine's physical memory. It is not safe for concurrent
// use.
type Allocator struct {
	Events Events

	cfg       Config
	maxOrder  uint8
	pbOrder   uint8  // pageblock order, the PMD's
	pbMask    uint32 // pageblocks in a block of the largest order, less one
	blockBase uint32 // number of the first block of the largest order

	blocks []block
	chunks []chunk
	meta   []slabMeta
	spare  []uint32 // slabs that no block uses
	perLog uint8    // log2 of slabs in a chunk
	slabs  uint32   // slabs ever made

	zones   []zone
	cpuNode []int
	nodes   []nodeLists
	minFree uint64 // min_free_kbytes
	boot    uint64 // pages free at boot
	noPCP   bool   // tests: every block goes straight to the zone
}
