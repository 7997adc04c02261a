package mm

// ClearOrder is the order in which a kernel clears or copies the base pages of
// a folio (semantics 7).
type ClearOrder uint8

const (
	// ClearTowards works from both ends towards the target, which is last. In
	// force from 4.14 on, for copying from 4.19.
	// Linux: mm/memory.c:process_huge_page (v6.18).
	ClearTowards ClearOrder = iota
	// ClearAscending is from the first page to the last. In force before 4.14,
	// and for folios of more than maxOrdered pages always.
	ClearAscending
	// ClearNear is three ascending runs: right of the target's neighbours, left
	// of them, and they. In force for clearing after 6.19.
	// Linux: mm/memory.c:folio_zero_user (commit of 2025).
	ClearNear
)

// maxOrdered is the most pages of a folio that are not just taken ascending.
const maxOrdered = 1024

// nearTarget is how many pages on each side of the target ClearNear keeps for
// the end.
const nearTarget = 2

// AppendOrder adds the numbers of a folio's pages to dst in the order in which
// they are cleared or copied; target is the page that the program wants, below
// pages.
func (o ClearOrder) AppendOrder(dst []uint32, pages, target uint32) []uint32 {
	if target >= pages {
		target = 0
	}
	switch {
	case o == ClearAscending || pages > maxOrdered:
		return ascend(dst, 0, pages)
	case o == ClearNear:
		left := target - min(target, nearTarget)
		right := min(target+nearTarget+1, pages)
		return ascend(ascend(ascend(dst, right, pages), 0, left), left, right)
	}
	// What is far from the target on its longer side comes first; then pairs
	// around it, from outside inwards.
	base, pairs := uint32(0), target
	if 2*target <= pages {
		for i := pages; i > 2*target; i-- {
			dst = append(dst, i-1)
		}
	} else {
		base, pairs = 2*target-pages, pages-target
		dst = ascend(dst, 0, base)
	}
	for i := range pairs {
		dst = append(dst, base+i, base+2*pairs-1-i)
	}
	return dst
}

// ascend adds from to just below to.
func ascend(dst []uint32, from, to uint32) []uint32 {
	for i := from; i < to; i++ {
		dst = append(dst, i)
	}
	return dst
}
