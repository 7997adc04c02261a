package buddy

// none ends a list. No frame has this number.
const none = ^uint32(0)

// noZone marks a block that no zone holds.
const noZone = ^uint8(0)

// maxOrders is the length of tables indexed by order, for any base page.
const maxOrders = 14

// link joins a free block to its neighbours on a list, by frame number.
type link struct{ next, prev uint32 }

// block is what is known of a naturally aligned block of the largest order: 12
// bytes. While free is set the link is its place on a list; otherwise next is
// the number of its frame metadata, from 1, or 0 if it was never used.
type block struct {
	link
	mt   [2]MigrateType // type of each pageblock
	zone uint8
	free bool // on a list of the largest order
}

// slab is the number of the block's frame metadata; 0: whole, free or never used.
func (b *block) slab() uint32 {
	if b.free {
		return 0
	}
	return b.next
}

// chunk is the storage of several slabs. The frame at i heads a free block of
// order ord[i]-1, or does not when ord[i] is 0.
type chunk struct {
	links []link
	ord   []uint8
}

// slabMeta is what a slab knows besides its frames.
type slabMeta struct {
	movable [2]uint16 // pages in use as Movable, by pageblock
}

// list is a list of free blocks of one order and type.
type list struct{ head, tail, n uint32 }

// zoneKind orders zones as Linux numbers them.
type zoneKind uint8

const (
	zoneDMA zoneKind = iota
	zoneDMA32
	zoneNormal
	zoneMovable
	numKinds
)

var kindNames = [numKinds]string{"DMA", "DMA32", "Normal", "Movable"}

// zone is one zone at run time.
type zone struct {
	node    int
	kind    zoneKind
	id      uint8
	start   uint32
	managed uint64

	free uint64           // pages on the lists below (NR_FREE_PAGES)
	mask [NumTypes]uint16 // bit o: a block of order o and this type is free
	area [maxOrders][NumTypes]list

	belowHigh bool // ZONE_BELOW_HIGH: free memory was seen under the high watermark
	// Free pages that an order-0 allocation must exceed: of kernel memory, and of Movable.
	fast     [2]uint64
	wmark    [4]uint64        // min, low, high, promo
	reserve  [numKinds]uint64 // lowmem_reserve by class
	pcp      []pcp            // by CPU
	unmerged int              // pairs of free buddies that the host's layout forced
}

func (a *Allocator) blockOf(pfn uint32) *block { return &a.blocks[pfn>>a.maxOrder-a.blockBase] }

// NodeOf is the node of the zone that holds pfn, a page that was allocated.
func (a *Allocator) NodeOf(pfn uint64) int { return a.zones[a.blockOf(uint32(pfn)).zone].node }

// typeOf is the type of the pageblock that holds pfn.
func (a *Allocator) typeOf(pfn uint32) MigrateType {
	return a.blockOf(pfn).mt[pfn>>a.pbOrder&a.pbMask]
}

// setType changes the type of the pageblocks that a block touches.
func (a *Allocator) setType(pfn uint32, order uint8, t MigrateType) {
	b := a.blockOf(pfn)
	if order > a.pbOrder {
		b.mt = [2]MigrateType{t, t}
		return
	}
	b.mt[pfn>>a.pbOrder&a.pbMask] = t
}

// frames is the frame metadata of a block that has a slab.
func (a *Allocator) frames(b *block) ([]link, []uint8) {
	s := b.slab() - 1
	c := &a.chunks[s>>a.perLog]
	lo := (s & (1<<a.perLog - 1)) << a.maxOrder
	hi := lo + 1<<a.maxOrder
	return c.links[lo:hi], c.ord[lo:hi]
}

// giveSlab gives a block its frame metadata: none of its frames is free.
func (a *Allocator) giveSlab(b *block) {
	if n := len(a.spare); n > 0 {
		b.next, a.spare = a.spare[n-1], a.spare[:n-1]
		return
	}
	if a.slabs == uint32(len(a.chunks))<<a.perLog {
		n := 1 << a.perLog << a.maxOrder
		a.chunks = append(a.chunks, chunk{make([]link, n), make([]uint8, n)})
		a.meta = append(a.meta, make([]slabMeta, 1<<a.perLog)...)
	}
	a.slabs++
	b.next = a.slabs
}

// takeSlab takes the metadata of a block that is wholly free.
func (a *Allocator) takeSlab(b *block) {
	a.meta[b.next-1] = slabMeta{}
	a.spare = append(a.spare, b.next)
	b.next = 0
}

// linkOf is where the links of the free block at pfn are kept.
func (a *Allocator) linkOf(pfn uint32, order uint8) *link {
	b := a.blockOf(pfn)
	if order == a.maxOrder {
		return &b.link
	}
	s := b.slab() - 1
	return &a.chunks[s>>a.perLog].links[(s&(1<<a.perLog-1))<<a.maxOrder|pfn&(1<<a.maxOrder-1)]
}

// mark says that pfn heads a free block of this order, and returns its link.
func (a *Allocator) mark(pfn uint32, order uint8) *link {
	b := a.blockOf(pfn)
	if order == a.maxOrder {
		if b.slab() != 0 {
			a.takeSlab(b)
		}
		b.free = true
		return &b.link
	}
	if b.slab() == 0 {
		a.giveSlab(b)
	}
	links, ord := a.frames(b)
	i := pfn & (1<<a.maxOrder - 1)
	ord[i] = order + 1
	return &links[i]
}

// unmark says that pfn heads no free block any more. A block of the largest
// order gets its frame metadata here, before any part of it is used.
func (a *Allocator) unmark(pfn uint32, order uint8) {
	b := a.blockOf(pfn)
	if order == a.maxOrder {
		b.free = false
		a.giveSlab(b)
		return
	}
	_, ord := a.frames(b)
	ord[pfn&(1<<a.maxOrder-1)] = 0
}

// isFree says whether pfn heads a free block of exactly this order.
func (a *Allocator) isFree(pfn uint32, order uint8) bool {
	b := a.blockOf(pfn)
	if order == a.maxOrder {
		return b.free
	}
	if b.slab() == 0 {
		return false
	}
	s := b.slab() - 1
	return a.chunks[s>>a.perLog].ord[(s&(1<<a.perLog-1))<<a.maxOrder|pfn&(1<<a.maxOrder-1)] == order+1
}

// addHead puts a block at the head of its list.
func (a *Allocator) addHead(z *zone, pfn uint32, order uint8, t MigrateType) {
	k := a.mark(pfn, order)
	l := &z.area[order][t]
	k.next, k.prev = l.head, none
	if l.head == none {
		l.tail = pfn
		z.mask[t] |= 1 << order
	} else {
		a.linkOf(l.head, order).prev = pfn
	}
	l.head = pfn
	l.n++
	z.free += 1 << order
}

// addTail puts a block at the tail of its list.
func (a *Allocator) addTail(z *zone, pfn uint32, order uint8, t MigrateType) {
	k := a.mark(pfn, order)
	l := &z.area[order][t]
	k.next, k.prev = none, l.tail
	if l.tail == none {
		l.head = pfn
		z.mask[t] |= 1 << order
	} else {
		a.linkOf(l.tail, order).next = pfn
	}
	l.tail = pfn
	l.n++
	z.free += 1 << order
}

// remove takes a block off its list.
func (a *Allocator) remove(z *zone, pfn uint32, order uint8, t MigrateType) {
	l := &z.area[order][t]
	k := *a.linkOf(pfn, order)
	if k.prev == none {
		l.head = k.next
	} else {
		a.linkOf(k.prev, order).next = k.next
	}
	if k.next == none {
		l.tail = k.prev
	} else {
		a.linkOf(k.next, order).prev = k.prev
	}
	if l.n--; l.n == 0 {
		z.mask[t] &^= 1 << order
	}
	z.free -= 1 << order
	a.unmark(pfn, order)
}
