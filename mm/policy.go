package mm

// Mode is a three- or four-valued huge-page setting.
type Mode uint8

// Modes. Inherit applies to a single size only.
const (
	Never Mode = iota
	Madvise
	Always
	Inherit
)

// Defrag is the transparent_hugepage/defrag setting.
type Defrag uint8

// The five values of defrag (semantics 2.6).
const (
	DefragNever Defrag = iota
	DefragMadvise
	DefragDeferMadvise
	DefragDefer
	DefragAlways
)

// Policy is what an administrator sets: the files below
// /sys/kernel/mm/transparent_hugepage. Orders are of base pages; which sizes
// exist depends on the base page (Config.BasePage).
type Policy struct {
	Enabled         Mode            // enabled: always, madvise or never
	Size            [NumOrders]Mode // hugepages-<k>kB/enabled, by order
	Defrag          Defrag
	UseZeroPage     bool
	ShrinkUnderused bool
	Khugepaged      Khugepaged

	// Advise is hypothetical: mappings that behave as if the program had
	// called madvise(MADV_HUGEPAGE) on them. No kernel has this setting.
	Advise AdviseRule
}

// Khugepaged holds the files below transparent_hugepage/khugepaged.
type Khugepaged struct {
	Defrag        bool
	PagesToScan   uint32
	ScanSleep     Nanos // scan_sleep_millisecs
	AllocSleep    Nanos // alloc_sleep_millisecs
	MaxPTEsNone   uint32
	MaxPTEsSwap   uint32
	MaxPTEsShared uint32
}

// AdviseRule says which private anonymous mappings a hypothetical program
// would advise. The zero value advises none.
type AdviseRule struct {
	All     bool
	Heap    bool  // the brk heap
	AtLeast Bytes // mappings at least this long, 0 for none by length
}
