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

var modeNames = [...]string{"never", "madvise", "always", "inherit"}

// String is the kernel's word for the mode.
func (m Mode) String() string { return word(modeNames[:], int(m)) }

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

var defragNames = [...]string{"never", "madvise", "defer+madvise", "defer", "always"}

// String is the kernel's word for the setting.
func (d Defrag) String() string { return word(defragNames[:], int(d)) }

func word(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "invalid"
}

// Policy is what an administrator sets: the files below
// /sys/kernel/mm/transparent_hugepage. Orders are of base pages; which sizes
// exist depends on the base page (Config.BasePage).
type Policy struct {
	Enabled         Mode                 // enabled: always, madvise or never
	Size            [NumOrders]Mode      // hugepages-<k>kB/enabled, by order
	Shmem           ShmemMode            // shmem_enabled: shared anonymous memory, and files of tmpfs
	ShmemSize       [NumOrders]ShmemMode // hugepages-<k>kB/shmem_enabled, from order 1
	Defrag          Defrag
	UseZeroPage     bool
	ShrinkUnderused bool
	Khugepaged      Khugepaged
	Pools           [hugeSizes]HugePool // hugetlb: the PMD's size, then 1 GB where the base page is 4 kB
	HVO             bool                // vm.hugetlb_optimize_vmemmap: pages that enter a pool give struct pages back

	// Advise is hypothetical: mappings that behave as if the program had
	// called madvise(MADV_HUGEPAGE) on them. No kernel has this setting.
	Advise AdviseRule
}

// Khugepaged holds the files below transparent_hugepage/khugepaged.
type Khugepaged struct {
	Defrag        bool
	PagesToScan   uint32 // 1 or more
	ScanSleep     Nanos  // scan_sleep_millisecs, whole milliseconds
	AllocSleep    Nanos  // alloc_sleep_millisecs, whole milliseconds
	MaxPTEsNone   uint32 // 0 to the pages of a PMD less one, as the next two
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

// DefaultPolicy is what a kernel has that nobody configured: enabled=always
// (the default choice of mm/Kconfig; many distributions choose madvise), the
// PMD's size inherits it, smaller sizes are never used.
// Linux: mm/huge_memory.c:hugepage_init, mm/khugepaged.c:khugepaged_init (v6.18).
func DefaultPolicy(s Sizes) Policy {
	pmd := uint32(s.PMD.Pages())
	p := Policy{
		Enabled:         Always,
		Defrag:          DefragMadvise,
		UseZeroPage:     true,
		ShrinkUnderused: true,
		Khugepaged: Khugepaged{
			Defrag:        true,
			PagesToScan:   pmd * 8,
			ScanSleep:     10_000 * millisecond,
			AllocSleep:    60_000 * millisecond,
			MaxPTEsNone:   pmd - 1,
			MaxPTEsSwap:   pmd / 8,
			MaxPTEsShared: pmd / 2,
		},
	}
	p.Size[s.PMD] = Inherit
	p.ShmemSize[s.PMD] = ShmemInherit
	return p
}

// millisecond is the unit of khugepaged's sleeps.
const millisecond Nanos = 1_000_000

// NeverPolicy is DefaultPolicy with every size, and enabled, at never.
func NeverPolicy(s Sizes) Policy { return DefaultPolicy(s).allNever() }

// allNever is p with no huge page of any size; everything else stays.
func (p Policy) allNever() Policy {
	p.Enabled, p.Size = Never, [NumOrders]Mode{}
	return p
}

// Effective is the mode that faults of order o see for anonymous memory:
// Inherit resolved. A hint does not help where Enabled is never.
func (p Policy) Effective(o Order) Mode {
	if m := p.Size[o]; m != Inherit {
		return m
	}
	return p.Enabled
}

// AnyEnabled says whether p lets any anonymous huge page exist, hinted or not.
func (p Policy) AnyEnabled() bool {
	for o := range p.Size {
		if p.Effective(Order(o)) != Never {
			return true
		}
	}
	return false
}
