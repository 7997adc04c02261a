package mm

import "fmt"

// Feature is one switch of Rules, for people.
type Feature struct {
	Name  string // the field of Rules
	Since string // the release that brought it, "6.8"
	What  string // what the kernel then does, to follow "the kernel"
	Has   bool
}

// feature is a switch, the release that brought it and the commit to look up.
type feature struct {
	name         string
	major, minor int
	commit       string // of Linux, the first 12 digits; "" where only the release is known
	what         string
	field        func(*Rules) *bool
}

// features are the switches that a version decides, oldest last.
var features = [...]feature{
	{"ExceptAdvised", 6, 18, "9dc21bbd62ed", "lets prctl disable huge pages except where advised",
		func(r *Rules) *bool { return &r.ExceptAdvised }},
	{"AroundWhole", 6, 18, "357b92761d94", "maps large folios of shared memory whole around a read",
		func(r *Rules) *bool { return &r.AroundWhole }},
	{"CollapseReadOnly", 6, 18, "", "collapses ranges without a writable page",
		func(r *Rules) *bool { return &r.CollapseReadOnly }},
	{"MoveSeveral", 6, 17, "", "moves several mappings by one mremap",
		func(r *Rules) *bool { return &r.MoveSeveral }},
	{"KeepUnlocksAll", 6, 17, "", "unlocks all of a mapping of which MREMAP_DONTUNMAP moves a part",
		func(r *Rules) *bool { return &r.KeepUnlocksAll }},
	{"MergeFaulted", 6, 16, "879bca0a2c4f", "merges a mapping in use with a neighbour never used",
		func(r *Rules) *bool { return &r.MergeFaulted }},
	{"MMIDs", 6, 15, "6af8cb80d3a9", "tracks which two processes map a large folio",
		func(r *Rules) *bool { return &r.MMIDs }},
	{"LargeReuse", 6, 15, "1da190f4d0a6", "reuses a large folio mapped by page on a write after fork",
		func(r *Rules) *bool { return &r.LargeReuse }},
	{"PTReclaim", 6, 14, "6375e95f381e", "frees page tables that MADV_DONTNEED empties",
		func(r *Rules) *bool { return &r.PTReclaim }},
	{"GuardFiles", 6, 15, "", "has MADV_GUARD_INSTALL of files and shared memory",
		func(r *Rules) *bool { return &r.GuardFiles }},
	{"GuardRegions", 6, 13, "662df3e5c376", "has MADV_GUARD_INSTALL",
		func(r *Rules) *bool { return &r.GuardRegions }},
	{"UpgradeZeroPMD", 6, 13, "", "makes a huge page of the huge zero page on a write",
		func(r *Rules) *bool { return &r.UpgradeZeroPMD }},
	{"ShrinkUnderused", 6, 12, "dafff3f4c850", "splits underused huge pages under memory pressure",
		func(r *Rules) *bool { return &r.ShrinkUnderused }},
	{"FastDeferred", 6, 12, "dafff3f4c850", "queues each new huge page to be tested for underuse",
		func(r *Rules) *bool { return &r.FastDeferred }},
	{"ZeroOnSplit", 6, 12, "b1f202060afe", "gives back zero-filled pages when it splits a huge page",
		func(r *Rules) *bool { return &r.ZeroOnSplit }},
	{"SizeGauges", 6, 12, "5d65c8d758f2", "counts the huge pages of each size in use",
		func(r *Rules) *bool { return &r.SizeGauges }},
	{"THPAnonBoot", 6, 12, "dd4d30d1cdbe", "takes sizes from the boot parameter thp_anon=",
		func(r *Rules) *bool { return &r.THPAnonBoot }},
	{"SizeSplitStats", 6, 11, "f216c845f3c7", "counts splits of each size",
		func(r *Rules) *bool { return &r.SizeSplitStats }},
	{"ShmemMTHP", 6, 11, "e7a2ab7b3bb5", "has huge pages smaller than the PMD's size for shared anonymous memory",
		func(r *Rules) *bool { return &r.ShmemMTHP }},
	{"CopyLarge", 6, 10, "", "copies even the last page of a large folio on a write after fork",
		func(r *Rules) *bool { return &r.CopyLarge }},
	{"SizeStats", 6, 10, "ec33687c6749", "counts faults of each size",
		func(r *Rules) *bool { return &r.SizeStats }},
	{"PMDChargeStats", 6, 10, "ec33687c6749", "counts failed memory charges of each size",
		func(r *Rules) *bool { return &r.PMDChargeStats }},
	{"FreeWhole", 6, 10, "dce7d10be4bb", "keeps a large folio mapped by page whole in MADV_FREE of all of it",
		func(r *Rules) *bool { return &r.FreeWhole }},
	{"BatchedZap", 6, 9, "10ebac4f95e7", "unmaps a large folio's pages in one step",
		func(r *Rules) *bool { return &r.BatchedZap }},
	{"MTHP", 6, 8, "19eaf44954df", "has huge pages smaller than the PMD's size",
		func(r *Rules) *bool { return &r.MTHP }},
	{"StackNoHuge", 6, 8, "c4608d1bf7c6", "keeps huge pages out of MAP_STACK mappings",
		func(r *Rules) *bool { return &r.StackNoHuge }},
	{"PerVMALock", 6, 4, "0bff0aaea03e", "handles faults under a lock of the mapping alone",
		func(r *Rules) *bool { return &r.PerVMALock }},
	{"MigrateBatch", 6, 3, "", "moves pages in batches with one flush each",
		func(r *Rules) *bool { return &r.MigrateBatch }},
	{"ProtectClean", 6, 2, "d84887739d5c", "lets mprotect make clean exclusive pages writable",
		func(r *Rules) *bool { return &r.ProtectClean }},
	{"ProtectPMD", 6, 2, "c27f479ef542", "lets mprotect make exclusive huge pages writable",
		func(r *Rules) *bool { return &r.ProtectPMD }},
	{"SplitDirty", 6, 2, "e833bc503405", "keeps pages dirty when it splits a huge entry",
		func(r *Rules) *bool { return &r.SplitDirty }},
	{"MigrateYoung", 6, 1, "", "keeps the accessed and dirty bits of pages that it moves",
		func(r *Rules) *bool { return &r.MigrateYoung }},
	{"HVOBatched", 6, 7, "", "flushes once for all hugetlb pages whose struct pages it gives back",
		func(r *Rules) *bool { return &r.HVOBatched }},
	{"HeapApart", 6, 1, "2e7ce7d354f2", "keeps the heap apart from the program's memory right below it",
		func(r *Rules) *bool { return &r.HeapApart }},
	{"Collapse", 6, 1, "7d8faaf15545", "has MADV_COLLAPSE",
		func(r *Rules) *bool { return &r.Collapse }},
	{"ProtectAllows", 6, 0, "64fe24a3e05e", "lets mprotect make exclusive pages writable",
		func(r *Rules) *bool { return &r.ProtectAllows }},
	{"HVOKeepsOne", 5, 18, "e7d324850bfc", "keeps one page of a hugetlb page's struct pages, not two",
		func(r *Rules) *bool { return &r.HVOKeepsOne }},
	{"HVO", 5, 14, "f41f2ed43ca5", "can give back the struct pages of hugetlb pages",
		func(r *Rules) *bool { return &r.HVO }},
	{"UnpinGroups", 5, 13, "", "releases the pins of one folio in one step",
		func(r *Rules) *bool { return &r.UnpinGroups }},
	{"GUPGroups", 5, 12, "0fa5bc4023c1", "takes the pages behind one huge entry in one step",
		func(r *Rules) *bool { return &r.GUPGroups }},
	{"CowSplitsPMD", 5, 8, "3917c80280c9", "copies 4 kB, not 2 MB, on a write to a shared huge page",
		func(r *Rules) *bool { return &r.CowSplitsPMD }},
	{"KhugepagedShared", 5, 8, "71a2c112a0f6", "has khugepaged/max_ptes_shared",
		func(r *Rules) *bool { return &r.KhugepagedShared }},
	{"MigrateTHP", 4, 14, "616b8371539a", "moves huge pages whole",
		func(r *Rules) *bool { return &r.MigrateTHP }},
	{"DeferMadvise", 4, 11, "21440d7eb904", "knows defrag=defer+madvise",
		func(r *Rules) *bool { return &r.DeferMadvise }},
	{"Shmem", 4, 8, "5a6e75f8110c", "has huge pages for shared memory",
		func(r *Rules) *bool { return &r.Shmem }},
	{"KhugepagedSwap", 4, 8, "", "has khugepaged/max_ptes_swap",
		func(r *Rules) *bool { return &r.KhugepagedSwap }},
	{"Defer", 4, 6, "444eb2a449ef", "knows defrag=defer",
		func(r *Rules) *bool { return &r.Defer }},
}

// in says whether a release has the feature, stable backports included.
func (f *feature) in(v Release) bool {
	if v.Since(f.major, f.minor) {
		return true
	}
	for _, b := range backports {
		if b.commit == f.commit && v.stable(b.major, b.minor, b.patch) {
			return true
		}
	}
	return false
}

// backports are features that came to a stable series later than its first
// release.
var backports = [...]struct {
	commit              string
	major, minor, patch int
}{
	{"c4608d1bf7c6", 6, 7, 6},
	{limitAlign, 6, 11, 7},
}

// limitAlign limits the alignment of anonymous maps to lengths that are a
// multiple of the PMD's size; it is in 6.12.
const limitAlign = "d4148aeab412"

// alignFor is the placement rule of a release. Alignment came with
// efa7df3e3bb5 in 6.7.
func alignFor(v Release) AlignRule {
	limit := feature{major: 6, minor: 12, commit: limitAlign}
	switch {
	case limit.in(v):
		return AlignMultiple
	case v.Since(6, 7):
		return AlignLong
	}
	return AlignNone
}

// Features lists the switches, newest first.
func (r Rules) Features() []Feature {
	var all []Feature
	for i := range features {
		f := &features[i]
		all = append(all, Feature{f.name, fmt.Sprintf("%d.%d", f.major, f.minor), f.what, *f.field(&r)})
	}
	return all
}

// Diff says in sentences how r differs from other: what r has and other lacks,
// and the reverse.
func (r Rules) Diff(other Rules) []string {
	var all []string
	theirs := other.Features()
	for i, f := range r.Features() {
		switch {
		case f.Has && !theirs[i].Has:
			all = append(all, fmt.Sprintf("%s %s (since %s), %s does not", r.Version, f.What, f.Since, other.Version))
		case !f.Has && theirs[i].Has:
			all = append(all, fmt.Sprintf("%s %s (since %s), %s does not", other.Version, f.What, f.Since, r.Version))
		}
	}
	if r.AlignTHP != other.AlignTHP {
		all = append(all, fmt.Sprintf("%s aligns %s, %s aligns %s", r.Version, r.AlignTHP, other.Version, other.AlignTHP))
	}
	return all
}

// String says what the rule aligns.
func (a AlignRule) String() string {
	switch a {
	case AlignNone:
		return "no anonymous mapping to the huge page size"
	case AlignLong:
		return "every anonymous mapping of at least the huge page size"
	case AlignMultiple:
		return "anonymous mappings whose length is a multiple of the huge page size"
	}
	return "invalid"
}

// Needs says in sentences what p asks of a kernel that r has not: where it is
// not empty the kernel cannot be set to p, only the model can. Advise is not
// counted: it is a program's doing, which every kernel knows.
func (p Policy) Needs(r Rules, s Sizes) []string {
	var all []string
	need := func(has bool, what, since string) {
		if !has {
			all = append(all, fmt.Sprintf("%s needs Linux %s or later; this is %s", what, since, r.Version))
		}
	}
	for _, o := range s.Orders() {
		if o != s.PMD && p.Size[o] != Never {
			need(r.MTHP, s.Name(o)+"="+p.Size[o].String(), "6.8")
		}
	}
	for _, o := range s.ShmemOrders() {
		if mode := p.ShmemSize[o]; !r.ShmemMTHP && mode != DefaultPolicy(s).ShmemSize[o] && mode != ShmemNever {
			need(false, "shmem_"+s.Name(o)+"="+mode.String(), "6.11")
		}
	}
	switch p.Defrag {
	case DefragDefer:
		need(r.Defer, "defrag=defer", "4.6")
	case DefragDeferMadvise:
		need(r.DeferMadvise, "defrag=defer+madvise", "4.11")
	}
	// Nothing is ever underused while max_ptes_none has its default.
	def, k := DefaultPolicy(s).Khugepaged, p.Khugepaged
	if p.ShrinkUnderused && k.MaxPTEsNone < def.MaxPTEsNone && p.AnyEnabled() {
		need(r.ShrinkUnderused, "shrink_underused=1", "6.12")
	}
	if k.MaxPTEsShared != def.MaxPTEsShared {
		need(r.KhugepagedShared, "max_ptes_shared="+num(k.MaxPTEsShared), "5.8")
	}
	if k.MaxPTEsSwap != def.MaxPTEsSwap {
		need(r.KhugepagedSwap, "max_ptes_swap="+num(k.MaxPTEsSwap), "4.8")
	}
	return all
}
