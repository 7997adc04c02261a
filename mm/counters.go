package mm

// Counter is one event or gauge under the kernel's own name.
type Counter uint8

// Counters of /proc/vmstat that the model keeps (semantics 13.4).
const (
	PgFault Counter = iota
	PgMajFault
	PgReuse
	PgFree
	PgAlloc
	THPFaultAlloc
	THPFaultFallback
	THPFaultFallbackCharge
	THPCollapseAlloc
	THPCollapseAllocFailed
	THPZeroPageAlloc
	THPZeroPageAllocFailed
	THPSplitPage
	THPSplitPageFailed
	THPDeferredSplitPage
	THPUnderusedSplitPage
	THPSplitPMD
	THPScanExceedNonePTE
	THPScanExceedSwapPTE
	THPScanExceedSharePTE
	CompactStall
	CompactSuccess
	CompactFail
	AllocStall
	NrAnonPages      // gauge: anonymous pages mapped, each once
	NrAnonTHPs       // gauge: PMD-mapped THPs
	NrPageTablePages // gauge
	NrMlock          // gauge
	NrHugetlb        // gauge: base pages of hugetlb pages in use
	HtlbBuddyAllocSuccess
	HtlbBuddyAllocFail
	PagesCollapsed            // khugepaged/pages_collapsed
	FullScans                 // khugepaged/full_scans
	PgMigrateSuccess          // base pages
	PgMigrateFail             // base pages
	THPMigrationSuccess       // folios of the PMD's order moved whole
	THPMigrationFail          // and those that failed or had to be split
	THPMigrationSplit         // and those that were split
	NrFollPinAcquired         // pages pinned
	NrFollPinReleased         // and released
	NrMemmapPages             // gauge: struct pages in memory taken after boot
	NrMemmapBootPages         // gauge: and in memory taken at boot
	THPFileAlloc              // shared memory's huge pages of the PMD's order
	THPFileFallback           // those that could not be had
	THPFileFallbackCharge     // of them, those that no cgroup would be charged for
	THPFileMapped             // PMD entries made for them
	NrShmem                   // gauge: pages of shared memory
	NrShmemTHPs               // gauge: of them, folios of the PMD's order
	NrShmemPMDMapped          // gauge: and those that a PMD maps
	NumCounters           int = iota
)

var counterNames = [NumCounters]string{
	PgFault: "pgfault", PgMajFault: "pgmajfault", PgReuse: "pgreuse", PgFree: "pgfree", PgAlloc: "pgalloc",
	THPFaultAlloc: "thp_fault_alloc", THPFaultFallback: "thp_fault_fallback",
	THPFaultFallbackCharge: "thp_fault_fallback_charge", THPCollapseAlloc: "thp_collapse_alloc",
	THPCollapseAllocFailed: "thp_collapse_alloc_failed", THPZeroPageAlloc: "thp_zero_page_alloc",
	THPZeroPageAllocFailed: "thp_zero_page_alloc_failed", THPSplitPage: "thp_split_page",
	THPSplitPageFailed: "thp_split_page_failed", THPDeferredSplitPage: "thp_deferred_split_page",
	THPUnderusedSplitPage: "thp_underused_split_page", THPSplitPMD: "thp_split_pmd",
	THPScanExceedNonePTE: "thp_scan_exceed_none_pte", THPScanExceedSwapPTE: "thp_scan_exceed_swap_pte",
	THPScanExceedSharePTE: "thp_scan_exceed_share_pte", CompactStall: "compact_stall",
	CompactSuccess: "compact_success", CompactFail: "compact_fail", AllocStall: "allocstall",
	PgMigrateSuccess: "pgmigrate_success", PgMigrateFail: "pgmigrate_fail",
	THPMigrationSuccess: "thp_migration_success", THPMigrationFail: "thp_migration_fail",
	THPMigrationSplit: "thp_migration_split",
	NrFollPinAcquired: "nr_foll_pin_acquired", NrFollPinReleased: "nr_foll_pin_released",
	NrMemmapPages: "nr_memmap_pages", NrMemmapBootPages: "nr_memmap_boot_pages",
	NrAnonPages: "nr_anon_pages", NrAnonTHPs: "nr_anon_transparent_hugepages",
	NrPageTablePages: "nr_page_table_pages", NrMlock: "nr_mlock",
	NrHugetlb: "nr_hugetlb", HtlbBuddyAllocSuccess: "htlb_buddy_alloc_success",
	HtlbBuddyAllocFail: "htlb_buddy_alloc_fail",
	PagesCollapsed:     "pages_collapsed", FullScans: "full_scans",
	THPFileAlloc: "thp_file_alloc", THPFileFallback: "thp_file_fallback",
	THPFileFallbackCharge: "thp_file_fallback_charge", THPFileMapped: "thp_file_mapped",
	NrShmem: "nr_shmem", NrShmemTHPs: "nr_shmem_hugepages", NrShmemPMDMapped: "nr_shmem_pmdmapped",
}

// String is the kernel's name of the counter.
func (c Counter) String() string { return counterNames[c] }

// SizeStats are the files of hugepages-<k>kB/stats (semantics 13.2). NrAnon
// and NrAnonPartiallyMapped are gauges, the rest only grow.
type SizeStats struct {
	AnonFaultAlloc          uint64 // anon_fault_alloc
	AnonFaultFallback       uint64 // anon_fault_fallback
	AnonFaultFallbackCharge uint64 // anon_fault_fallback_charge
	Split                   uint64 // split
	SplitFailed             uint64 // split_failed
	SplitDeferred           uint64 // split_deferred
	NrAnon                  uint64 // nr_anon
	NrAnonPartiallyMapped   uint64 // nr_anon_partially_mapped
	ShmemAlloc              uint64 // shmem_alloc
	ShmemFallback           uint64 // shmem_fallback
	ShmemFallbackCharge     uint64 // shmem_fallback_charge
}

// Counters is a snapshot of everything the model counts.
type Counters struct {
	VM   [NumCounters]uint64
	Size [NumOrders]SizeStats
}

// Get returns a vmstat counter.
func (c *Counters) Get(n Counter) uint64 { return c.VM[n] }
