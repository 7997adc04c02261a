package mm

// Prim is one primitive of memory-management work: something a kernel does
// that has a cost of its own. Calibration fits one cost to each.
type Prim uint8

// The primitives. "page" is a base page. Each is counted where Linux does it.
const (
	// Entering and leaving the kernel.
	PrimFaultUser     Prim = iota // hardware faults from user mode: entry, VMA lookup, exit
	PrimFaultKernel               // hardware faults taken in kernel mode on user addresses
	PrimFaultFile                 // faults on file-backed or shared memory, which no policy changes
	PrimFaultSpurious             // faults that found nothing to do
	PrimFaultSoft                 // faults without an exception: populate, mlock, get_user_pages
	PrimStackGrow                 // stack expansions

	// Content.
	PrimClearSmall   // pages cleared as order-0 folios
	PrimClearLarge   // pages cleared in folios of orders 1 to mostClearLarge
	PrimClearBlock   // pages cleared in larger folios below the PMD's order
	PrimClearPMD     // pages cleared in folios of the PMD's order
	PrimCopyCOW      // pages copied by copy-on-write
	PrimCopyCollapse // pages copied by khugepaged or MADV_COLLAPSE

	// Page-table entries.
	PrimPTESet   // PTEs written by a fault, a populate or a split
	PrimPTEZap   // PTEs cleared by unmapping
	PrimPTECopy  // PTEs copied by fork
	PrimPTEMove  // PTEs moved by mremap
	PrimPTEProt  // PTEs whose protection changed, but for those of the next
	PrimPTEAllow // PTEs that mprotect made writable, each looked at for whether it may be
	PrimPTEReuse // write faults that made a present PTE writable again
	PrimZeroMap  // zero-page PTEs written
	PrimPMDSet   // PMD leaves written
	PrimPMDZap
	PrimPMDCopy
	PrimPMDMove
	PrimPMDProt
	PrimPMDReuse
	PrimPMDSplit   // PMD leaves turned into tables
	PrimTableAlloc // page tables allocated (PTE, PMD and PUD level)
	PrimTableFree

	// The allocator.
	PrimAllocPCP    // allocations served from a per-CPU list
	PrimAllocRefill // blocks moved from the buddy lists to a per-CPU list
	PrimAllocBuddy  // allocations served under the zone lock
	PrimAllocFail   // attempts that found no block
	PrimCompact     // direct compaction attempts
	PrimExpand      // halvings of a buddy block
	PrimFreePCP     // frees to a per-CPU list
	PrimFreeBuddy   // blocks given back under the zone lock
	PrimMerge       // buddy merges

	// The folio's life.
	PrimCharge // memory cgroup charges
	PrimUncharge
	PrimLRUAdd
	PrimRmapAdd    // reverse-map additions, one a batch
	PrimRmapRemove // reverse-map removals, one a batch
	PrimFolioSplit
	PrimDeferred // folios put on the deferred-split queue
	PrimCollapse // blocks collapsed
	PrimScanPTE  // PTEs examined by khugepaged

	// Locks and flushes.
	PrimMmapRead
	PrimMmapWrite
	PrimVMALock
	PrimPTELock
	PrimZoneLock
	PrimFlush     // TLB flushes of a range
	PrimFlushFull // TLB flushes of an address space

	// System calls and VMAs.
	PrimMmap
	PrimMunmap
	PrimMremap
	PrimMprotect
	PrimMadvise
	PrimBrk
	PrimMlock
	PrimFork
	PrimExec
	PrimExit
	PrimVMAAlloc
	PrimVMAFree
	PrimVMAMerge
	PrimVMASplit

	// Moving pages to other frames.
	PrimMigrateCall // calls of move_pages, migrate_pages, mbind and the like
	PrimLRUDrain    // drainings of every CPU's batches of pages on their way to the LRU lists
	PrimIsolate     // folios looked up and taken off their LRU list
	PrimMigrateOut  // PTEs replaced by migration entries
	PrimMigrateOutPMD
	PrimCopyMigrate // pages copied
	PrimMigrateMove // folios whose state went to the new frames: locks, flags, charge, LRU
	PrimMigrateIn   // migration entries replaced by PTEs
	PrimMigrateInPMD

	// Taking references to pages (gup.go).
	PrimGUPCall   // calls of get_user_pages and the like
	PrimGUPFill   // entries of a caller's array filled
	PrimGUPHead   // struct pages looked at for their head
	PrimGUPAtomic // atomic changes of a folio's counts

	// Struct pages of hugetlb pages (vmemmap.go, hvo.go).
	PrimStructInit   // struct pages made tail pages, or ordinary ones again
	PrimVmemmapMap   // entries of the vmemmap pointed elsewhere
	PrimVmemmapCopy  // pages of struct pages copied
	PrimVmemmapSplit // 2 MB entries of the vmemmap turned into tables
	PrimFlushKernel  // flushes of kernel addresses on every processor

	NumPrims int = iota
)

// Work counts primitives. It is added to in place and priced by one dot
// product with a machine profile.
type Work [NumPrims]uint32

// Add adds n of a primitive.
func (w *Work) Add(p Prim, n uint32) { w[p] += n }

// WorkSum is Work summed over any length of time without overflow.
type WorkSum [NumPrims]uint64

// Take adds w to the sum and clears w.
func (s *WorkSum) Take(w *Work) {
	for i, n := range w {
		s[i] += uint64(n)
	}
	*w = Work{}
}

// Step is Work with an order: only sim and the cache models ask for it.
type Step struct {
	Prim  Prim
	Order Order
	Lock  uint16
	N     uint32
	PFN   PFN
}

// Current is the caller's context, one per virtual CPU, reused. mm writes to
// it and never keeps it.
type Current struct {
	CPU       CPU
	Now       Nanos
	Work      Work
	Steps     []Step
	WantSteps bool
}

func (c *Current) step(p Prim, o Order, n uint32, pfn PFN) {
	if c.WantSteps {
		c.Steps = append(c.Steps, Step{Prim: p, Order: o, N: n, PFN: pfn})
	}
}
