package buddy

// TakeRange takes 2^order free pages, aligned to their length, that may be more
// than the largest block: the lowest such range of a node's highest zone that has
// one. Nothing moves, so that every page of it must be free. order is at least
// that of the largest block.
//
// Linux: mm/page_alloc.c:alloc_contig_pages_noprof (v6.18).
func (a *Allocator) TakeRange(node int, order uint8) (pfn uint64, ok bool) {
	a.DrainAll()
	n := uint64(1) << order
	for _, z := range a.nodes[max(node, 0)].own {
		end := uint64(z.start) + z.managed
		for at := (uint64(z.start) + n - 1) &^ (n - 1); at+n <= end; at += n {
			if a.wholeFree(uint32(at), uint32(n)) {
				a.takeBlocks(z, uint32(at), uint32(n))
				return at, true
			}
		}
	}
	a.Events.Fail++
	return 0, false
}

// wholeFree says whether n pages from pfn on lie in free blocks of the largest
// order.
func (a *Allocator) wholeFree(pfn, n uint32) bool {
	for i := uint32(0); i < n; i += 1 << a.maxOrder {
		if !a.isFree(pfn+i, a.maxOrder) {
			return false
		}
	}
	return true
}

func (a *Allocator) takeBlocks(z *zone, pfn, n uint32) {
	a.Events.Lock++
	a.Events.Zone++
	for i := uint32(0); i < n; i += 1 << a.maxOrder {
		t := a.typeOf(pfn + i)
		a.remove(z, pfn+i, a.maxOrder, t)
		a.addMovable(pfn+i, a.maxOrder, 1)
	}
}

// GiveRange gives back what TakeRange took. Parts of it may have been freed by
// Free in blocks of any order instead.
//
// Linux: mm/page_alloc.c:free_contig_range (v6.18).
func (a *Allocator) GiveRange(pfn uint64, order uint8) {
	a.Events.Lock++
	for i := uint64(0); i < 1<<order; i += 1 << a.maxOrder {
		at := uint32(pfn + i)
		a.addMovable(at, a.maxOrder, -1)
		a.release(&a.zones[a.blockOf(at).zone], at, a.maxOrder)
	}
}
