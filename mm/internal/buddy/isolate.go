package buddy

// FreeAt is the order of the free block whose first page is pfn, a page of some
// zone; false where none begins there. Pages on per-CPU lists are in use.
func (a *Allocator) FreeAt(pfn uint64) (order uint8, ok bool) {
	p := uint32(pfn)
	b := a.blockOf(p)
	at := p & (1<<a.maxOrder - 1)
	switch {
	case b.free:
		return a.maxOrder, at == 0
	case b.slab() == 0:
		return 0, false
	}
	_, ord := a.frames(b)
	return ord[at] - 1, ord[at] != 0
}

// TypeAt is the migrate type of the pageblock that holds pfn, a page of some
// zone.
func (a *Allocator) TypeAt(pfn uint64) MigrateType { return a.typeOf(uint32(pfn)) }

// TakeFree takes the free block whose first page is pfn out of its zone, all of
// it, for movable pages; Free gives it or parts of it back. It refuses, false,
// where no block begins there, and where the zone's free pages would not stay
// above the min watermark.
//
// Linux: mm/page_alloc.c:__isolate_free_page (v6.18).
func (a *Allocator) TakeFree(pfn uint64) (order uint8, ok bool) {
	order, ok = a.FreeAt(pfn)
	if !ok {
		return 0, false
	}
	p := uint32(pfn)
	z := &a.zones[a.blockOf(p).zone]
	if z.free <= z.wmark[wmarkMin]+1<<order {
		return 0, false
	}
	a.Events.Zone++
	a.remove(z, p, order, a.typeOf(p))
	a.addMovable(p, order, 1)
	return order, true
}
