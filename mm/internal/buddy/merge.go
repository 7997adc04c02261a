package buddy

// release gives a block back to its zone and merges it with its free buddies.
//
// Linux: mm/page_alloc.c:__free_one_page (v6.18).
func (a *Allocator) release(z *zone, pfn uint32, order uint8) {
	t := a.typeOf(pfn)
	a.Events.ZoneFree++
	for order < a.maxOrder {
		buddy := pfn ^ 1<<order
		if !a.isFree(buddy, order) {
			break
		}
		bt := t
		if order >= a.pbOrder {
			bt = a.typeOf(buddy)
		}
		a.remove(z, buddy, order, bt)
		if bt != t {
			a.setType(buddy, order, t)
		}
		pfn &= buddy
		order++
		a.Events.Merge++
	}
	if a.mergeLikely(pfn, order) {
		a.addTail(z, pfn, order, t)
	} else {
		a.addHead(z, pfn, order, t)
	}
}

// mergeLikely says whether the block above this one would merge too, if this
// one's buddy became free: then it is kept at the tail, to be taken last.
//
// Linux: mm/page_alloc.c:buddy_merge_likely (v6.18).
func (a *Allocator) mergeLikely(pfn uint32, order uint8) bool {
	if order+1 >= a.maxOrder {
		return false
	}
	above := pfn &^ (1 << order)
	return a.isFree(above^1<<(order+1), order+1)
}
