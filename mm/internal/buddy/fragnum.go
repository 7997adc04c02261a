package buddy

// Numbers of fragmentation, from free blocks by order. All are in integers, as
// the kernel computes them.

// sums are the free pages, the free blocks, and the blocks of order k that fit
// into the free ones.
func sums(counts []uint64, k uint8) (pages, blocks, fit uint64) {
	for o, n := range counts {
		pages += n << o
		blocks += n
		if o >= int(k) {
			fit += n << (o - int(k))
		}
	}
	return pages, blocks, fit
}

// UnusableIndex is the share of free memory, in thousandths, that an
// allocation of order k cannot use: 0 is perfect, 1000 is none usable.
//
// Linux: mm/vmstat.c:unusable_free_index (v6.18).
func UnusableIndex(counts []uint64, k uint8) int {
	pages, _, fit := sums(counts, k)
	if pages == 0 {
		return 1000
	}
	return int((pages - fit<<k) * 1000 / pages)
}

// FragmentationIndex says, in thousandths, why an allocation of order k fails:
// towards 0 for lack of memory, towards 1000 because of fragmentation. It is
// -1000 when the allocation would not fail.
//
// Linux: mm/vmstat.c:__fragmentation_index (v6.18).
func FragmentationIndex(counts []uint64, k uint8) int {
	pages, blocks, fit := sums(counts, k)
	switch {
	case blocks == 0:
		return 0
	case fit > 0:
		return -1000
	}
	return 1000 - int((1000+pages*1000>>k)/blocks)
}

// External is the external fragmentation for order k in percent, on which
// proactive compaction decides.
//
// Linux: mm/vmstat.c:extfrag_for_order (v6.18).
func External(counts []uint64, k uint8) int {
	pages, _, fit := sums(counts, k)
	if pages == 0 {
		return 0
	}
	return int((pages - fit<<k) * 100 / pages)
}
