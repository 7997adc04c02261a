package mm

import (
	"github.com/hugelab/hugelab/mm/internal/buddy"
	"github.com/hugelab/hugelab/mm/internal/itree"
)

// This file holds the structures that the VMA side of the package (vma*.go,
// merge.go, place.go, the system calls) and the page side (folio.go, table.go,
// fault*.go, zap.go, cow.go, collapse.go) share, and the calls between them.

// Machine is one machine's memory and every address space on it. It is not
// safe for concurrent use: one goroutine owns it.
type Machine struct {
	cfg    Config
	rules  Rules
	policy Policy

	pageShift uint  // base page: 12, 14 or 16
	pmdOrder  Order // order of a block that one PMD entry maps: 9, 11 or 13

	// Derived from policy by setPolicy: bit o set when order o is enabled so.
	ordersAlways, ordersMadvise, ordersInherit uint16
	ordersSmall                                bool // any of them has an order below the PMD's

	spaces   []*space // indexed by Space; nil: never made or gone
	nextExec int      // how many OpExec were done, the argument of Config.Shift

	Counters Counters // everything counted since New
	Usage    Usage
	Paths    [NumPathEvents]uint64 // faults without mmap_lock, by how they ended
	vmasMade uint32

	alloc *buddy.Allocator
	pages pageState // owned by the page side
	khuge khugeState
	huge  hugeState
	shm   shmState
	vmem  vmemmap
	anons anonState // owned by the VMA side
	exec  execState // owned by the VMA side
}

// Usage is the memory that programs' anonymous pages hold now, and at most.
type Usage struct {
	Anon            Pages // pages held by anonymous folios, mapped or not (what a memory cgroup is charged)
	AnonPeak        Pages
	Touched         Pages   // of Anon: pages that the program is known to have accessed
	UntouchedAtPeak Pages   // Anon - Touched when Anon was at its peak
	Tables          Pages   // page-table pages
	Shmem           Pages   // pages of shared anonymous memory, mapped or not, which a cgroup is charged too
	Integral        float64 // sum over time of Anon pages x seconds, up to Last
	Last            Nanos
	ByOrder         [NumOrders]Pages // of Anon: pages in folios of each order
	Faults          uint64           // hardware page faults, as perf counts them
	SoftFaults      uint64           // faults without an exception (populate, mlock)
	FileFaults      uint64           // of Faults: on memory that no policy here changes
	Unknown         uint64           // of Faults: at addresses in no known mapping
	Fallbacks       uint64           // large allocations that failed, whatever their size
	OOM             uint64           // faults that found no memory, or no room under Limit
}

// space is one address space (struct mm_struct).
type space struct {
	id         Space
	vmas       vmaTree
	hit        *vma      // the VMA that find returned last, nil when it went away
	root       tableRoot // owned by the page side
	thpDisable THPDisable
	defFlags   vmFlags // flags that every new mapping gets: mlockall(MCL_FUTURE)
	khugeSlot  bool    // registered with khugepaged
	zeroHuge   bool    // holds a reference to the huge zero folio

	brkStart, brkEnd VA        // heap; brkEnd is page aligned
	mmapBase         VA        // top of the top-down area
	baseKnown        bool      // mmapBase was seen, not assumed
	stackLow         VA        // lowest address the main stack may grow to; 0: not known
	stackHigh        VA        // end of the main stack
	shift            Shift     // how far this space's areas lie from the recorded ones
	compat           bool      // a 32-bit program
	loose            bool      // holds VMAs that are alike and yet not merged, as Linux leaves them at times
	regions          regionMap // owned by the VMA side: Region -> base address

	rssAnon  Pages // mapped anonymous pages (zero pages excluded)
	rssShmem Pages // mapped pages of shared anonymous memory
	hugetlb  Pages // mapped hugetlb pages
	faults   uint64
	mark     uint32 // VMAs with this mark are being changed (paths.go)
}

// vmFlags are a VMA's flags (VM_*).
type vmFlags uint32

const (
	vmRead vmFlags = 1 << iota
	vmWrite
	vmExec
	vmShared
	vmGrowsDown
	vmLocked
	vmLockOnFault
	vmHuge     // VM_HUGEPAGE
	vmNoHuge   // VM_NOHUGEPAGE
	vmDontFork // VM_DONTCOPY
	vmWipeFork
	vmNoReserve
	vmFile // not anonymous memory: carried through (files, shared anonymous, hugetlb, special)
	vmHugetlb
	vmSpecial // VM_PFNMAP, VM_MIXEDMAP, VM_IO: never huge
	vmUffd    // userfaultfd armed
	vmDroppable
	vmStackSetup // the temporary stack during exec
	vmMaybeGuard // guard regions were installed
	vmDontDump
	vmMergeable
	vmAccount // VM_ACCOUNT: counted for overcommit, and so compared by the merge rules
)

// vma is one mapping (struct vm_area_struct). start and end are page aligned.
type vma struct {
	start, end VA
	flags      vmFlags
	pgoff      uint64   // page offset; for anonymous memory start>>pageShift at creation
	file       uint64   // identity of the backing file for the merge rules, 0 for anonymous
	node       uint32   // mempolicy identity, 0 for the default
	anon       *anonVMA // nil until the first anonymous fault
	sp         *space
	huge       *hugeVMA // of a hugetlb mapping whose pages come from a pool, nil of others
	shm        *shmFile // of shared anonymous memory whose pages the machine has, nil of others
	region     Region   // the region that made it, for reports by mapping
	seq        uint32   // raised by every writer; speculation and Commit compare it
	mark       uint32   // the space's mark when a writer changed it last (paths.go)
	holders    uint32   // faults that hold its lock
	serial     uint32   // its number among all ever made

	place *itree.Node[*vma] // its place in sp.vmas
	chain []*anonLink       // every anonVMA whose pages it may map (anon_vma_chain)
}

func (v *vma) anonymous() bool { return v.flags&vmFile == 0 }

// anonIndex is the page index of a under which rmap knows the page.
func (v *vma) anonIndex(a VA, shift uint) uint64 { return v.pgoff + uint64(a-v.start)>>shift }

/*
Calls from the VMA side into the page side. All ranges are page aligned.

	zapRange(c, v, from, to, how)   unmap the pages of v in [from, to) (mm/memory.c:unmap_page_range)
	freeTables(c, sp, from, to, floor, ceiling)
	                                free tables of [from, to) whose whole span is free of VMAs
	                                (mm/memory.c:free_pgtables)
	splitPMDAt(c, sp, a)            a VMA boundary will stand at a: split a huge PMD that straddles it
	                                (mm/huge_memory.c:vma_adjust_trans_huge)
	protectRange(c, v, from, to)    v.flags have changed: make the entries agree (mm/mprotect.c)
	movePages(c, from *vma, to *vma, old, new VA, n)
	                                move entries (mm/mremap.c:move_page_tables)
	copyRange(c, child *vma, parent *vma)
	                                fork (mm/memory.c:copy_page_range)
	populate(c, v, from, to, write) soft faults (mm/gup.c:populate_vma_page_range)
	freeRange / coldRange / pageoutRange / guardInstall / guardRemove / collapse
	                                the page-level part of madvise
	khugepagedEnter(sp, v)          mm/khugepaged.c:khugepaged_enter_vma
	khugepagedFork(child, parent)   mm/khugepaged.h:khugepaged_fork
	spaceGone(c, sp)                the space's tables are empty; drop what it still holds
	touch(c, sp, a, acc)            one access: Touch by the space itself
	touchPrivateFile(c, sp, v, a, acc)
	                                one fault on a private file mapping, counted there; a write
	                                leaves an anonymous page
	makeResident(c, sp, v, a, n, order, acc)
	                                pages present when a recording began; no fault is counted
	tick(now)                       time moves: khugepaged, Usage.Integral
	region(r)                       the RegionUsage of r, to add to

Calls from the page side into the VMA side.

	sp.find(a)                      first vma with end > a, nil if none (may start above a)
	expandStack(c, sp, a)           grow a stack VMA down to a, or nil (mm/vma.c:expand_stack)
	anonPrepare(c, v)               give v an anon_vma (mm/rmap.c:__anon_vma_prepare), reusing a
	                                neighbour's where Linux does
	checkVMAs()                     the VMA side's part of Check
	programWork()                   the program's part of WorkDone
	rmapVMAs(anon, index, n, f)     every vma that may map pages [index, index+n) of anon
*/

// zapHow says why a range is unmapped; page tables go away differently.
type zapHow uint8

const (
	zapUnmap    zapHow = iota // munmap, exit, MAP_FIXED: free_pgtables follows
	zapDontNeed               // MADV_DONTNEED: PT_RECLAIM may free a table whose whole span is zapped
)
