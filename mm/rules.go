package mm

import (
	"fmt"
	"strconv"
	"strings"
)

// Rules is what a kernel does, as switches: RulesFor fills it by version, and
// probes of a live kernel may correct it, because distributions backport. No
// version comparison stands in a fault path.
type Rules struct {
	Version string // the version the switches were taken from, "6.18"

	MTHP             bool      // anonymous folios of orders 2 to below the PMD's exist (6.8)
	AlignTHP         AlignRule // placement of large anonymous maps (semantics 4.1, 4.2)
	HeapApart        bool      // brk merges the heap with nothing below its start (6.1)
	PTReclaim        bool      // MADV_DONTNEED of a whole table's span frees the table (6.14)
	ShrinkUnderused  bool      // underused THPs are split under pressure (6.12)
	ExceptAdvised    bool      // prctl THP-disable "except advised" (6.18)
	GuardRegions     bool      // MADV_GUARD_INSTALL (6.13)
	GuardFiles       bool      // and of files and shared memory (6.15)
	Shmem            bool      // shmem_enabled (4.8)
	ShmemMTHP        bool      // shared anonymous memory has folios of each size, and files to set them (6.11)
	Collapse         bool      // MADV_COLLAPSE (6.1)
	StackNoHuge      bool      // MAP_STACK sets VM_NOHUGEPAGE (6.8)
	CowSplitsPMD     bool      // write to a shared THP splits the PMD and copies 4 kB (5.8); before, 2 MB is copied
	UpgradeZeroPMD   bool      // write to the huge zero page makes a THP of it (6.13, and before 5.8); else it is split
	MMIDs            bool      // large folios track two mm identities (6.15); before, reuse needs refcount alone
	LargeReuse       bool      // a PTE-mapped large folio may be reused on a write fault (6.15, with MMIDs)
	ZeroOnSplit      bool      // splitting replaces zero-filled pages by the zero page (6.12)
	PerVMALock       bool      // faults under per-VMA locks (6.4)
	BatchedZap       bool      // consecutive PTEs of one folio are unmapped in one step (6.9)
	PMDChargeStats   bool      // per-size fallback_charge counters exist (6.10)
	FastDeferred     bool      // thp on the deferred list at fault as "maybe underused" (6.12)
	CopyLarge        bool      // unless LargeReuse, a PTE-mapped page of a large folio is always copied (6.10)
	MergeFaulted     bool      // a VMA with pages merges with a neighbour that never had any (6.16)
	MoveSeveral      bool      // one mremap moves several VMAs, and is refused before it unmaps (6.17)
	KeepUnlocksAll   bool      // MREMAP_DONTUNMAP unlocks all of the source's VMA, not the moved part (6.17)
	AroundWhole      bool      // fault-around maps large folios whole (6.18)
	CollapseReadOnly bool      // a range without a writable page is collapsed (6.18)
	ProtectAllows    bool      // mprotect to writable makes exclusive dirty PTEs writable at once (6.0)
	ProtectClean     bool      // and clean ones (6.2)
	ProtectPMD       bool      // and exclusive THPs (6.2)
	SplitDirty       bool      // splitting a huge entry leaves dirty PTEs (6.2); before, clean ones
	FreeWhole        bool      // MADV_FREE, MADV_COLD keep a PTE-mapped folio named as a whole (6.10)
	SizeStats        bool      // hugepages-<k>kB/stats exists (6.10)
	SizeSplitStats   bool      // its split, split_failed, split_deferred (6.11)
	SizeGauges       bool      // its nr_anon and nr_anon_partially_mapped (6.12)
	THPAnonBoot      bool      // boot parameter thp_anon= (6.12)
	KhugepagedShared bool      // khugepaged/max_ptes_shared (5.8)
	KhugepagedSwap   bool      // khugepaged/max_ptes_swap (4.8)
	Defer            bool      // defrag knows defer (4.6)
	MigrateTHP       bool      // a THP is moved whole, by a PMD migration entry (4.14)
	MigrateBatch     bool      // folios are moved in batches with one flush each (6.3)
	MigrateYoung     bool      // a moved page's entry keeps its accessed and dirty bits (6.1)
	DeferMadvise     bool      // defrag knows defer+madvise (4.11)
	HVO              bool      // struct pages of hugetlb pages can be given back (5.14)
	HVOKeepsOne      bool      // all but one page of them (5.18); before, all but two
	HVOBatched       bool      // one flush serves all pages of one write to a pool's size (6.7)
	GUPGroups        bool      // a huge entry's pages are taken by one addition, hugetlb too (5.12)
	UnpinGroups      bool      // pins of one folio are released by one subtraction (5.13)

	// NoZeroPage is found by a probe, never by version: reads get pages of
	// their own, as large as a write's, and the write after it is no fault.
	// Some paravirtualised kernels are booted so (pvm_no_zero_page=1); Linux
	// itself does it for address spaces whose pages must not be shared.
	// Linux: include/linux/mm.h:mm_forbids_zeropage (v6.18).
	NoZeroPage bool

	// Speculative is set by whoever asks for it: no release has it.
	Speculative SpecRule
}

// AlignRule is how mmap aligns large anonymous maps to the PMD's size.
type AlignRule uint8

// Alignment rules (semantics 4.2).
const (
	AlignNone     AlignRule = iota // up to 6.6
	AlignLong                      // 6.7: any length of at least the PMD's size
	AlignMultiple                  // 6.12: only lengths that are a multiple of the PMD's size
)

// Release is a kernel's version: 6.18.3 is {6, 18, 3}.
type Release struct{ Major, Minor, Patch int }

// ParseRelease reads the leading numbers of a version as uname -r prints it:
// "6.18", "v6.8.0-45-generic", "5.14.0-427.el9.x86_64".
func ParseRelease(version string) (Release, error) {
	rest := strings.TrimPrefix(strings.TrimSpace(version), "v")
	var n [3]int
	for i := range n {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		v, err := strconv.Atoi(rest[:digits])
		if err != nil || v > 9999 {
			return Release{}, fmt.Errorf("kernel version: %q: want numbers such as 6.18 or 6.6.30-generic", version)
		}
		n[i], rest = v, rest[digits:]
		next, ok := strings.CutPrefix(rest, ".")
		if i >= 1 && (!ok || next == "" || next[0] < '0' || next[0] > '9') {
			break
		}
		if !ok {
			return Release{}, fmt.Errorf("kernel version: %q: want at least two numbers such as 6.18", version)
		}
		rest = next
	}
	return Release{n[0], n[1], n[2]}, nil
}

// Since says whether v is major.minor or later.
func (v Release) Since(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// stable says whether v is at least patch of the stable series major.minor.
func (v Release) stable(major, minor, patch int) bool {
	return v.Major == major && v.Minor == minor && v.Patch >= patch
}

// String is "6.18" or "6.18.3".
func (v Release) String() string {
	if v.Patch == 0 {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// RulesFor fills the switches for a version as uname -r prints it, from 4.0
// on. What follows the numbers is not read: a distribution's kernel may have
// more than its version says, and Diff shows what a probe found otherwise.
func RulesFor(version string) (Rules, error) {
	v, err := ParseRelease(version)
	if err != nil {
		return Rules{}, err
	}
	if v.Major < 4 {
		return Rules{}, fmt.Errorf("kernel version: %q: the rules are known from 4.0 on", version)
	}
	r := Rules{Version: v.String(), AlignTHP: alignFor(v)}
	for i := range features {
		f := &features[i]
		*f.field(&r) = f.in(v)
	}
	// 5.8 took the copying of whole huge pages away, the huge zero page's too;
	// 6.13 gave that one back.
	if !r.CowSplitsPMD {
		r.UpgradeZeroPMD = true
	}
	return r, nil
}
