// Package buddy is the physical page allocator: zones, free areas by order and
// migrate type, per-CPU lists, watermarks and fallback between types, as
// semantics.md section 1 describes mm/page_alloc.c (v6.18).
//
// It knows frames and blocks only: no folio, no page table, no policy.
// Memory that was never allocated costs at most 16 bytes a 4 MB block.
package buddy

// MigrateType is what a pageblock is used for.
type MigrateType uint8

// The three ordinary types.
const (
	Unmovable MigrateType = iota
	Movable
	Reclaimable
)

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
	PCPHit   uint32 // allocations served from a per-CPU list
	Refill   uint32 // blocks moved to a per-CPU list
	Zone     uint32 // allocations served under the zone lock
	Fail     uint32 // allocations that found nothing
	Compact  uint32 // direct compactions tried (all fail in this model unless they can succeed)
	Expand   uint32 // halvings
	PCPFree  uint32
	ZoneFree uint32
	Merge    uint32
	Fallback uint32 // blocks taken from another migrate type (mm_page_alloc_extfrag)
}

// Zone describes one zone before the machine runs.
type Zone struct {
	Node  int
	Name  string // DMA, DMA32, Normal, Movable
	Start uint64 // first PFN
	Pages uint64
	Free  []uint64 // free blocks by order as a host has them; nil: all of it is free
}

// Config describes the machine's memory.
type Config struct {
	Zones     []Zone
	CPUs      int
	CPUNode   []int // node of each CPU
	PageShift uint  // 12, 14 or 16
	MaxOrder  uint8 // largest block: 10 with 4 kB pages
	PMDOrder  uint8 // 9, 11 or 13: pageblock order and the large per-CPU list
	THP       bool  // PMD-size THP is enabled in some way: raises min_free_kbytes (1.4.2)
}

// Allocator is the machine's physical memory.
type Allocator struct {
	Events Events
}

// New makes the memory of cfg.
func New(cfg Config) (*Allocator, error) { return &Allocator{}, nil }

// Alloc takes a naturally aligned block of 2^order pages for use on cpu,
// preferring node (negative: the CPU's own). It returns false when the
// watermarks or the lack of a block refuse it.
func (a *Allocator) Alloc(cpu, node int, order uint8, t MigrateType, f Flags) (pfn uint64, ok bool) {
	return 0, false
}

// Free gives a block back. Its pages were allocated together or are being
// freed one by one after a split.
func (a *Allocator) Free(cpu int, pfn uint64, order uint8, t MigrateType) {}

// FreePages is the number of pages on buddy lists (NR_FREE_PAGES).
func (a *Allocator) FreePages() uint64 { return 0 }

// Check verifies every list and count; nil when all add up.
func (a *Allocator) Check() error { return nil }
