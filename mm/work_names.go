package mm

import "fmt"

// primNames names every primitive as machine profiles and reports spell it.
var primNames = [NumPrims]string{
	PrimFaultUser: "fault_user", PrimFaultKernel: "fault_kernel", PrimFaultFile: "fault_file",
	PrimFaultSpurious: "fault_spurious", PrimFaultSoft: "fault_soft", PrimStackGrow: "stack_grow",

	PrimClearSmall: "clear_small", PrimClearLarge: "clear_large",
	PrimClearBlock: "clear_block", PrimClearPMD: "clear_pmd",
	PrimCopyCOW: "copy_cow", PrimCopyCollapse: "copy_collapse",

	PrimPTESet: "pte_set", PrimPTEZap: "pte_zap", PrimPTECopy: "pte_copy", PrimPTEMove: "pte_move",
	PrimPTEProt: "pte_prot", PrimPTEAllow: "pte_allow", PrimPTEReuse: "pte_reuse", PrimZeroMap: "zero_map",
	PrimPMDSet: "pmd_set", PrimPMDZap: "pmd_zap", PrimPMDCopy: "pmd_copy", PrimPMDMove: "pmd_move",
	PrimPMDProt: "pmd_prot", PrimPMDReuse: "pmd_reuse", PrimPMDSplit: "pmd_split",
	PrimTableAlloc: "table_alloc", PrimTableFree: "table_free",

	PrimAllocPCP: "alloc_pcp", PrimAllocRefill: "alloc_refill", PrimAllocBuddy: "alloc_buddy",
	PrimAllocFail: "alloc_fail", PrimCompact: "compact", PrimExpand: "expand",
	PrimFreePCP: "free_pcp", PrimFreeBuddy: "free_buddy", PrimMerge: "merge",

	PrimCharge: "charge", PrimUncharge: "uncharge", PrimLRUAdd: "lru_add", PrimRmapAdd: "rmap_add",
	PrimRmapRemove: "rmap_remove", PrimFolioSplit: "folio_split", PrimDeferred: "deferred",
	PrimCollapse: "collapse", PrimScanPTE: "scan_pte",

	PrimMmapRead: "mmap_read", PrimMmapWrite: "mmap_write", PrimVMALock: "vma_lock",
	PrimPTELock: "pte_lock", PrimZoneLock: "zone_lock", PrimFlush: "flush", PrimFlushFull: "flush_full",

	PrimMmap: "mmap", PrimMunmap: "munmap", PrimMremap: "mremap", PrimMprotect: "mprotect",
	PrimMadvise: "madvise", PrimBrk: "brk", PrimMlock: "mlock", PrimFork: "fork", PrimExec: "exec",
	PrimExit: "exit", PrimVMAAlloc: "vma_alloc", PrimVMAFree: "vma_free", PrimVMAMerge: "vma_merge",
	PrimVMASplit: "vma_split",

	PrimGUPCall: "gup_call", PrimGUPFill: "gup_fill", PrimGUPHead: "gup_head", PrimGUPAtomic: "gup_atomic",
	PrimStructInit: "struct_init", PrimVmemmapMap: "vmemmap_map", PrimVmemmapCopy: "vmemmap_copy",
	PrimVmemmapSplit: "vmemmap_split", PrimFlushKernel: "flush_kernel",

	PrimMigrateCall: "migrate_call", PrimLRUDrain: "lru_drain", PrimIsolate: "isolate",
	PrimMigrateOut: "migrate_out", PrimMigrateOutPMD: "migrate_out_pmd", PrimCopyMigrate: "copy_migrate",
	PrimMigrateMove: "migrate_move", PrimMigrateIn: "migrate_in", PrimMigrateInPMD: "migrate_in_pmd",
}

// String is the primitive's name in machine profiles, such as "clear_pmd".
func (p Prim) String() string {
	if int(p) < NumPrims {
		return primNames[p]
	}
	return fmt.Sprintf("prim %d", uint8(p))
}

// ParsePrim finds a primitive by its name; false when there is none.
func ParsePrim(name string) (Prim, bool) {
	for i, n := range primNames {
		if n == name {
			return Prim(i), true
		}
	}
	return 0, false
}
