package buddy

import "math/bits"

// costlyOrder is the largest order that Linux considers cheap to find.
//
// Linux: include/linux/mmzone.h:PAGE_ALLOC_COSTLY_ORDER (v6.18).
const costlyOrder = 3

// fallbacks says which types a request tries when its own has nothing.
//
// Linux: mm/page_alloc.c:fallbacks (v6.18).
var fallbacks = [NumTypes][2]MigrateType{
	Unmovable:   {Reclaimable, Movable},
	Movable:     {Reclaimable, Unmovable},
	Reclaimable: {Unmovable, Movable},
}

// queueMode is how the last block of a bulk request was found. A request for
// several blocks begins where the one before it ended.
//
//	own -> claim -> steal     when each finds nothing
//	claim -> own              a claim refills the own lists
type queueMode uint8

const (
	modeOwn queueMode = iota
	modeClaim
	modeSteal
)

// rmqueue takes a block from the zone's lists.
//
// Linux: mm/page_alloc.c:__rmqueue (v6.18).
func (a *Allocator) rmqueue(z *zone, order uint8, t MigrateType, noFragment bool, mode *queueMode) uint32 {
	if *mode == modeOwn {
		if pfn := a.smallest(z, order, t); pfn != none {
			return pfn
		}
	}
	if *mode <= modeClaim {
		if pfn := a.claim(z, order, t, noFragment); pfn != none {
			*mode = modeOwn
			return pfn
		}
	}
	if !noFragment {
		if pfn := a.steal(z, order, t); pfn != none {
			*mode = modeSteal
			return pfn
		}
	}
	return none
}

// smallest takes the first block of the smallest order that is large enough.
//
// Linux: mm/page_alloc.c:__rmqueue_smallest (v6.18).
func (a *Allocator) smallest(z *zone, order uint8, t MigrateType) uint32 {
	m := z.mask[t] >> order
	if m == 0 {
		return none
	}
	from := order + uint8(bits.TrailingZeros16(m))
	pfn := z.area[from][t].head
	a.remove(z, pfn, from, t)
	a.expand(z, pfn, order, from, t)
	return pfn
}

// expand gives the upper halves of a block back until it has the order wanted.
//
// Linux: mm/page_alloc.c:expand (v6.18).
func (a *Allocator) expand(z *zone, pfn uint32, order, from uint8, t MigrateType) {
	a.Events.Expand += uint32(from - order)
	for from > order {
		from--
		a.addHead(z, pfn+1<<from, from, t)
	}
}

// foreign is the type whose block of this order a request of type t would take.
func (z *zone) foreign(order uint8, t MigrateType) (MigrateType, bool) {
	for _, f := range fallbacks[t] {
		if z.mask[f]>>order&1 != 0 {
			return f, true
		}
	}
	return 0, false
}

// claim takes a block of another type and makes its pageblock the request's,
// from the largest order down.
//
// Linux: mm/page_alloc.c:__rmqueue_claim, find_suitable_fallback (v6.18).
func (a *Allocator) claim(z *zone, order uint8, t MigrateType, noFragment bool) uint32 {
	least := order
	if noFragment && least < a.pbOrder {
		least = a.pbOrder
	}
	for o := int(a.maxOrder); o >= int(least); o-- {
		if uint8(o) < a.pbOrder/2 && t == Movable {
			break
		}
		from, ok := z.foreign(uint8(o), t)
		if !ok {
			continue
		}
		if pfn := a.claimBlock(z, uint8(o), order, t, from); pfn != none {
			a.Events.Fallback++
			return pfn
		}
	}
	return none
}

// claimBlock claims the first free block of order o and type from.
//
// Linux: mm/page_alloc.c:try_to_claim_block (v6.18).
func (a *Allocator) claimBlock(z *zone, o, order uint8, t, from MigrateType) uint32 {
	pfn := z.area[o][from].head
	if o >= a.pbOrder {
		a.remove(z, pfn, o, from)
		a.setType(pfn, o, t)
		a.expand(z, pfn, order, o, t)
		return pfn
	}
	size := uint32(1) << a.pbOrder
	start := pfn &^ (size - 1)
	if start < z.start || uint64(start-z.start)+uint64(size) > z.managed {
		return none
	}
	b := a.blockOf(pfn)
	free := a.freeIn(b, start)
	movable := uint32(a.meta[b.slab()-1].movable[start>>a.pbOrder&a.pbMask])
	alike := uint32(0)
	switch {
	case t == Movable:
		alike = movable
	case from == Movable:
		alike = size - free - movable
	}
	if free+alike < size/2 {
		return none
	}
	a.retype(z, start, from, t)
	return a.smallest(z, order, t)
}

// freeIn counts the free pages of a broken pageblock.
func (a *Allocator) freeIn(b *block, start uint32) (free uint32) {
	_, ord := a.frames(b)
	at := start & (1<<a.maxOrder - 1)
	for i := at; i < at+1<<a.pbOrder; {
		if o := ord[i]; o != 0 {
			free += 1 << (o - 1)
			i += 1 << (o - 1)
		} else {
			i++
		}
	}
	return free
}

// retype moves the free blocks of a pageblock to another type's lists.
//
// Linux: mm/page_alloc.c:__move_freepages_block (v6.18).
func (a *Allocator) retype(z *zone, start uint32, from, to MigrateType) {
	b := a.blockOf(start)
	_, ord := a.frames(b)
	at := start & (1<<a.maxOrder - 1)
	for i := uint32(0); i < 1<<a.pbOrder; {
		o := ord[at+i]
		if o == 0 {
			i++
			continue
		}
		// Linux moves a block to the tail of the new list.
		a.remove(z, start+i, o-1, from)
		a.addTail(z, start+i, o-1, to)
		i += 1 << (o - 1)
	}
	a.setType(start, a.pbOrder, to)
}

// steal takes the smallest block of another type and leaves its pageblock's
// type alone.
//
// Linux: mm/page_alloc.c:__rmqueue_steal (v6.18).
func (a *Allocator) steal(z *zone, order uint8, t MigrateType) uint32 {
	for o := order; o <= a.maxOrder; o++ {
		from, ok := z.foreign(o, t)
		if !ok {
			continue
		}
		pfn := z.area[o][from].head
		a.remove(z, pfn, o, from)
		a.expand(z, pfn, order, o, from)
		a.Events.Fallback++
		return pfn
	}
	return none
}
