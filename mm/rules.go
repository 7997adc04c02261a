package mm

// Rules is what a kernel does, as switches: RulesFor fills it by version, and
// probes of a live kernel may correct it, because distributions backport. No
// version comparison stands in a fault path.
type Rules struct {
	Version string // the version the switches were taken from, "6.18"

	MTHP            bool      // anonymous folios of orders 2 to below the PMD's exist (6.8)
	AlignTHP        AlignRule // placement of large anonymous maps (semantics 4.1, 4.2)
	PTReclaim       bool      // MADV_DONTNEED of a whole table's span frees the table (6.14)
	ShrinkUnderused bool      // underused THPs are split under pressure (6.12)
	ExceptAdvised   bool      // prctl THP-disable "except advised" (6.18)
	GuardRegions    bool      // MADV_GUARD_INSTALL (6.13)
	Collapse        bool      // MADV_COLLAPSE (6.1)
	StackNoHuge     bool      // MAP_STACK sets VM_NOHUGEPAGE (6.7)
	CowSplitsPMD    bool      // write to a shared THP splits the PMD and copies 4 kB (5.8); before, 2 MB is copied
	MMIDs           bool      // large folios track two mm identities (6.15); before, reuse needs refcount alone
	LargeReuse      bool      // a large folio may be reused on a write fault (6.8 or so)
	ZeroOnSplit     bool      // splitting replaces zero-filled pages by the zero page (6.12)
	PerVMALock      bool      // faults under per-VMA locks (6.4)
	BatchedZap      bool      // consecutive PTEs of one folio are unmapped in one step (6.9)
	PMDChargeStats  bool      // per-size fallback_charge counters exist
	FastDeferred    bool      // thp on the deferred list at fault as "maybe underused" (6.12)
	MlockSplitsNone bool      // reserved for probes
}

// AlignRule is how mmap aligns large anonymous maps to the PMD's size.
type AlignRule uint8

// Alignment rules (semantics 4.2).
const (
	AlignNone     AlignRule = iota // up to 6.6
	AlignLong                      // 6.7: any length of at least the PMD's size
	AlignMultiple                  // only lengths that are a multiple of the PMD's size
)
