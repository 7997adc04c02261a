package buddy

// nodeLists is the order in which an allocation for a node visits zones: own
// holds the node's zones from the highest down, all goes on to the other nodes.
//
// Linux: mm/page_alloc.c:build_zonelists (v6.18). Distances between nodes are
// taken to be equal: nodes follow in order, beginning after the preferred one.
type nodeLists struct {
	own, all []*zone
	first    *zone // of own; nil where a node has no memory
}

// class is the highest zone that a request may use.
func class(t MigrateType) zoneKind {
	if t == Movable {
		return zoneMovable
	}
	return zoneNormal
}

// Alloc takes a naturally aligned block of 2^order pages for use on cpu,
// preferring node (negative: the CPU's own). It returns false when the
// watermarks or the lack of a block refuse it.
//
// The first attempt keeps the low watermark and, in zone Normal, takes no part
// of another type's pageblock; the second keeps the min watermark. With
// DirectReclaim a third follows direct compaction (Events.Compact; order 1 and
// above) and the draining of the per-CPU lists.
//
// Linux: mm/page_alloc.c:__alloc_pages_noprof, __alloc_pages_slowpath (v6.18).
func (a *Allocator) Alloc(cpu, node int, order uint8, t MigrateType, f Flags) (pfn uint64, ok bool) {
	if node < 0 {
		node = a.cpuNode[cpu]
	}
	if order == 0 {
		if pfn, ok := a.quick(cpu, node, t); ok {
			a.Events.PCPHit++
			return pfn, true
		}
	}
	return a.allocSlow(cpu, node, order, t, f)
}

// Quick is Alloc of one page on cpu's own node where the CPU's list holds one
// and the watermarks are no question; otherwise it does nothing. The caller
// counts the Events.PCPHit that it leaves out.
func (a *Allocator) Quick(cpu int, t MigrateType) (pfn uint64, ok bool) {
	return a.quick(cpu, a.cpuNode[cpu], t)
}

func (a *Allocator) quick(cpu, node int, t MigrateType) (uint64, bool) {
	z := a.nodes[node].first
	if z == nil {
		return 0, false
	}
	p := &z.pcp[cpu]
	r := &p.lists[t]
	if r.n == 0 || z.free <= z.fast[t&1] { // t&1 is 1 for Movable only
		return 0, false
	}
	p.freeCount >>= 1
	p.count--
	pfn := r.popHead()
	if t == Movable {
		a.meta[a.blocks[pfn>>a.maxOrder-a.blockBase].slab()-1].movable[pfn>>a.pbOrder&a.pbMask]++
	}
	return uint64(pfn), true
}

func (a *Allocator) allocSlow(cpu, node int, order uint8, t MigrateType, f Flags) (uint64, bool) {
	if order <= a.maxOrder {
		zones := a.nodes[node].all
		if f&ThisNode != 0 {
			zones = a.nodes[node].own
		}
		pfn := a.firstPass(zones, cpu, order, t)
		if pfn == none {
			pfn = a.pass(zones, cpu, order, t, wmarkMin, false)
		}
		if pfn == none && f&DirectReclaim != 0 {
			pfn = a.directReclaim(zones, cpu, order, t)
		}
		if pfn != none {
			return a.used(pfn, order, t), true
		}
	}
	a.Events.Fail++
	return 0, false
}

// used counts a block as in use.
func (a *Allocator) used(pfn uint32, order uint8, t MigrateType) uint64 {
	if t == Movable {
		a.addMovable(pfn, order, 1)
	}
	return uint64(pfn)
}

// addMovable changes the count of movable pages in use: claiming a pageblock
// asks for it.
func (a *Allocator) addMovable(pfn uint32, order uint8, sign int) {
	m := &a.meta[a.blockOf(pfn).slab()-1].movable
	n := uint16(sign) << order
	if order > a.pbOrder {
		n = uint16(sign) << a.pbOrder
		m[0] += n
		m[1] += n
		return
	}
	m[pfn>>a.pbOrder&a.pbMask] += n
}

// firstPass tries every zone at the low watermark. Where it may, it first asks
// for blocks of the request's own type only.
//
// Linux: mm/page_alloc.c:alloc_flags_nofragment, get_page_from_freelist (v6.18).
func (a *Allocator) firstPass(zones []*zone, cpu int, order uint8, t MigrateType) uint32 {
	if a.noFragment(zones, class(t)) {
		if pfn := a.pass(zones, cpu, order, t, wmarkLow, true); pfn != none {
			return pfn
		}
	}
	return a.pass(zones, cpu, order, t, wmarkLow, false)
}

// noFragment says whether the first pass avoids mixing pageblocks: the
// preferred zone is Normal, and there is a DMA32 below it where several nodes
// exist.
func (a *Allocator) noFragment(zones []*zone, c zoneKind) bool {
	for i, z := range zones {
		if z.kind > c {
			continue
		}
		if z.kind != zoneNormal {
			return false
		}
		if len(a.nodes) == 1 {
			return true
		}
		return i+1 < len(zones) && zones[i+1].node == z.node && zones[i+1].kind == zoneDMA32
	}
	return false
}

// pass goes through the zones once. With noFragment it stops where the
// preferred node ends.
func (a *Allocator) pass(
	zones []*zone, cpu int, order uint8, t MigrateType, mark int, noFragment bool,
) uint32 {
	c := class(t)
	for _, z := range zones {
		if z.kind > c {
			continue
		}
		if noFragment && z.node != zones[0].node {
			return none
		}
		if !z.belowHigh && !z.ok(order, z.wmark[wmarkHigh], c) {
			z.setBelowHigh(true)
		}
		if z.belowHigh && !z.ok(order, z.wmark[mark], c) {
			continue
		}
		if pfn := a.fromZone(z, cpu, order, t, noFragment); pfn != none {
			return pfn
		}
	}
	return none
}

// fromZone takes a block from a zone that its watermarks allow.
//
// Linux: mm/page_alloc.c:rmqueue (v6.18).
func (a *Allocator) fromZone(z *zone, cpu int, order uint8, t MigrateType, noFragment bool) uint32 {
	if a.onPCP(order) {
		if pfn := a.fromPCP(z, cpu, order, t, noFragment); pfn != none {
			a.Events.PCPHit++
			return pfn
		}
	}
	a.Events.Lock++
	mode := modeOwn
	pfn := a.rmqueue(z, order, t, noFragment, &mode)
	if pfn != none {
		a.Events.Zone++
	}
	return pfn
}

// directReclaim is what the model keeps of direct compaction and reclaim: the
// per-CPU lists are drained.
func (a *Allocator) directReclaim(zones []*zone, cpu int, order uint8, t MigrateType) uint32 {
	if order > 0 {
		if !a.compactionSuitable(zones, order, class(t)) {
			return none
		}
		a.Events.Compact++
	}
	a.DrainAll()
	return a.pass(zones, cpu, order, t, wmarkMin, false)
}

// compactionSuitable says whether some zone has enough free memory for
// compaction to be worth trying, and so to be counted.
//
// Linux: mm/compaction.c:compaction_suit_allocation_order, compaction_suitable,
// include/linux/compaction.h:compact_gap (v6.18).
func (a *Allocator) compactionSuitable(zones []*zone, order uint8, c zoneKind) bool {
	for _, z := range zones {
		if z.kind > c {
			continue
		}
		mark := z.wmark[wmarkMin]
		if order > costlyOrder {
			mark = z.wmark[wmarkLow]
		}
		if !z.ok(0, mark+2<<order, c) {
			continue
		}
		if order > costlyOrder {
			n := z.counts(a.maxOrder)
			if i := FragmentationIndex(n[:a.maxOrder+1], order); i >= 0 && i <= extfragThreshold {
				continue
			}
		}
		return true
	}
	return false
}

// extfragThreshold is vm.extfrag_threshold's default, in thousandths.
const extfragThreshold = 500

// Free gives a block back. Its pages were allocated together or are being
// freed one by one after a split. t is the type they were allocated as; the
// list they go to is decided by their pageblock's type, as in Linux.
//
// Linux: mm/page_alloc.c:__free_frozen_pages (v6.18).
func (a *Allocator) Free(cpu int, pfn uint64, order uint8, t MigrateType) {
	p := uint32(pfn)
	b := &a.blocks[p>>a.maxOrder-a.blockBase]
	z := &a.zones[b.zone]
	pb := p >> a.pbOrder & a.pbMask
	if order == 0 && !a.noPCP {
		if t == Movable {
			a.meta[b.slab()-1].movable[pb]--
		}
		a.toPCP(z, &z.pcp[cpu], int(b.mt[pb]), p, 0)
		return
	}
	if t == Movable {
		a.addMovable(p, order, -1)
	}
	if a.onPCP(order) {
		a.toPCP(z, &z.pcp[cpu], listIndex(order, b.mt[pb]), p, order)
		return
	}
	a.Events.Lock++
	a.release(z, p, order)
}
