package hw

import "github.com/hugelab/hugelab/mm"

// presetSource is the Source of every preset; no preset may claim more.
const presetSource = "preset, not measured on this machine"

// Presets are the machine profiles that come with the program, in the order in
// which help texts list them. The first is the default.
func Presets() []Profile { return []Profile{presetVM(), presetMetal()} }

// Preset finds a preset by name; false when there is none.
func Preset(name string) (Profile, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// presetVM is a virtual machine with two processors and nested paging, of the
// server generation of about 2021.
//
// Where the numbers come from, in the letters below. All are the lowest of
// fifteen runs over 32 MiB under Linux 6.18 in a VM of two EPYC processors:
//
//	m  MADV_POPULATE_WRITE of small pages: 584 ns a page, all in. It is divided
//	   among clearing (about 40 GB/s from cache), the allocator, the charge, the
//	   reverse map and the entry as perf profiles of this path usually divide it.
//	t  a first write to a 2 MB folio: 106 us to 141 us, of which all but about
//	   2 us is clearing: 210 ns a page.
//	z  munmap and MADV_DONTNEED of populated small pages: 107 ns a page; of a
//	   2 MB folio: 6 us to 8 us, which is the freeing and the flush.
//	p  mprotect of populated pages: 82 ns a page, of which more than half was
//	   found to be memory access of cold tables.
//	f  fork: 69 ns a copied entry in one of two runs, below noise in the other.
//	s  mprotect of one page of a PMD-mapped folio: 23 us with everything.
//	c  MADV_COLLAPSE of 512 small pages: 431 us: 512 copies and frees.
//	y  the cost of a call less an empty call: mmap+munmap 2.4 us, mprotect
//	   0.5 us, madvise 0.3 us.
//	k  not measured: known order of magnitude.
//
// A first touch from user mode took 10.5 us on that machine, because its
// hypervisor keeps shadow page tables; that is not typical and is left out:
// the preset has 250 ns for entry and exit (k). Calibration finds the real one.
func presetVM() Profile {
	p := Profile{Name: "vm", Source: presetSource}
	n := &p.Nanos
	n[mm.PrimFaultUser] = 250   // k: exception entry and exit with mitigations, VMA lookup
	n[mm.PrimFaultKernel] = 200 // k
	n[mm.PrimFaultFile] = 600   // k: a minor file fault with fault-around, all in
	n[mm.PrimFaultSpurious] = 50
	n[mm.PrimFaultSoft] = 60 // m
	n[mm.PrimStackGrow] = 150

	n[mm.PrimClearSmall] = 110  // m
	n[mm.PrimClearLarge] = 120  // between m and t: larger blocks leave the nearer caches
	n[mm.PrimClearBlock] = 180  // between m and t, too
	n[mm.PrimClearPMD] = 210    // t
	n[mm.PrimCopyCOW] = 280     // k: read and write of a page
	n[mm.PrimCopyCollapse] = 42 // c: warm pages; the rest of c is freeing, counted apart

	n[mm.PrimPTESet] = 12
	n[mm.PrimPTEZap] = 30   // z
	n[mm.PrimPTECopy] = 40  // f
	n[mm.PrimPTEMove] = 25  // k
	n[mm.PrimPTEProt] = 30  // p
	n[mm.PrimPTEAllow] = 40 // k: a little more, because the page is looked at too
	n[mm.PrimPTEReuse] = 80 // k: entry write, one flush on this processor
	n[mm.PrimZeroMap] = 40
	n[mm.PrimPMDSet] = 60
	n[mm.PrimPMDZap] = 200
	n[mm.PrimPMDCopy] = 120
	n[mm.PrimPMDMove] = 120
	n[mm.PrimPMDProt] = 120
	n[mm.PrimPMDReuse] = 120
	n[mm.PrimPMDSplit] = 9000 // s: 512 entries and reverse-map counts
	n[mm.PrimTableAlloc] = 250
	n[mm.PrimTableFree] = 150

	allocCosts(n)
	lifeCosts(n)
	callCosts(n)
	n[mm.PrimFlush] = 250 // k: more when other processors run the program
	n[mm.PrimFlushFull] = 400
	return p
}

// presetMetal is a two-socket server without a hypervisor: the same kernel
// paths at seven tenths of the time, because no second stage of page tables is
// walked (k), with clearing bound by memory (about 25 GB/s for one processor).
func presetMetal() Profile {
	p := presetVM()
	p.Name = "metal"
	for i := range p.Nanos {
		p.Nanos[i] *= 0.7
	}
	p.Nanos[mm.PrimClearSmall] = 90
	p.Nanos[mm.PrimClearLarge] = 105
	p.Nanos[mm.PrimClearBlock] = 140
	p.Nanos[mm.PrimClearPMD] = 160
	return p
}

// allocCosts are the page allocator's (k; their sum for one small page is what
// m leaves after clearing and the entry).
func allocCosts(n *[mm.NumPrims]float64) {
	n[mm.PrimAllocPCP] = 55
	n[mm.PrimAllocRefill] = 25
	n[mm.PrimAllocBuddy] = 250
	n[mm.PrimAllocFail] = 400
	n[mm.PrimCompact] = 150_000 // one look through a zone that finds nothing; can be a hundred times more
	n[mm.PrimExpand] = 15
	n[mm.PrimFreePCP] = 25
	n[mm.PrimFreeBuddy] = 150
	n[mm.PrimMerge] = 20
}

// lifeCosts are those of folios and of locks nobody else wants (k; m and c
// bound their sums).
func lifeCosts(n *[mm.NumPrims]float64) {
	n[mm.PrimCharge] = 60
	n[mm.PrimUncharge] = 15
	n[mm.PrimLRUAdd] = 40
	n[mm.PrimRmapAdd] = 25
	n[mm.PrimRmapRemove] = 20
	n[mm.PrimFolioSplit] = 6000 // s
	n[mm.PrimDeferred] = 60
	n[mm.PrimCollapse] = 60_000 // c: locks, flush, isolation of a block's pages
	n[mm.PrimScanPTE] = 8
	n[mm.PrimMmapRead] = 25
	n[mm.PrimMmapWrite] = 40
	n[mm.PrimVMALock] = 20
	n[mm.PrimPTELock] = 20
	n[mm.PrimZoneLock] = 30
}

// callCosts are those of the calls themselves, without the pages (y; fork, exec
// and exit k).
func callCosts(n *[mm.NumPrims]float64) {
	n[mm.PrimMmap] = 700
	n[mm.PrimMunmap] = 700
	n[mm.PrimMremap] = 900
	n[mm.PrimMprotect] = 500
	n[mm.PrimMadvise] = 300
	n[mm.PrimBrk] = 400
	n[mm.PrimMlock] = 500
	n[mm.PrimFork] = 40_000
	n[mm.PrimExec] = 150_000
	n[mm.PrimExit] = 30_000
	n[mm.PrimVMAAlloc] = 120
	n[mm.PrimVMAFree] = 80
	n[mm.PrimVMAMerge] = 80
	n[mm.PrimVMASplit] = 250
	migrateCosts(n)
}

// migrateCosts are those of moving pages to other frames (k: from the kernel's
// paths beside those that were measured; a host with one node cannot measure
// them).
func migrateCosts(n *[mm.NumPrims]float64) {
	n[mm.PrimMigrateCall] = 700
	n[mm.PrimLRUDrain] = 25_000 // work queued on every processor, and the wait for it
	n[mm.PrimIsolate] = 500     // the caller's arrays, lookup of the page, its reference, the LRU lock
	n[mm.PrimMigrateOut] = 650  // page and rmap locks, reverse-map walk, entry, counts
	n[mm.PrimMigrateOutPMD] = 900
	n[mm.PrimCopyMigrate] = 280 // as copy_cow
	n[mm.PrimMigrateMove] = 400 // state, memory cgroup, LRU list
	n[mm.PrimMigrateIn] = 450   // reverse-map walk, entry, counts
	n[mm.PrimGUPCall] = 150     // k
	n[mm.PrimGUPFill] = 0.9     // k: ten instructions
	n[mm.PrimGUPHead] = 4       // k: between a line that is near and one that streams from memory
	n[mm.PrimGUPAtomic] = 7     // k
	n[mm.PrimStructInit] = 6    // k: a line that streams from memory

	n[mm.PrimVmemmapMap] = 40 // k
	n[mm.PrimVmemmapCopy] = 500
	n[mm.PrimVmemmapSplit] = 5000
	n[mm.PrimFlushKernel] = 3000 // k: with one other processor to interrupt
	n[mm.PrimMigrateInPMD] = 650
}
