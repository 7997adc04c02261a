package buddy

import "math/bits"

// The lists of one CPU: orders 0 to 3 of each type, then two lists of the PMD's
// order, not movable and movable.
const (
	lowLists = (costlyOrder + 1) * NumTypes
	numLists = lowLists + 2
)

// batchScale bounds how far refills and trims grow beyond the batch.
//
// Linux: mm/Kconfig:PCP_BATCH_SCALE_MAX, default 5 (v6.18).
const batchScale = 5

// pcp is one CPU's lists of one zone.
//
// Linux: include/linux/mmzone.h:per_cpu_pages (v6.18).
type pcp struct {
	lists [numLists]ring

	count     int32 // pages on the lists
	high      int32 // count at which a free gives some back, between highMin and highMax
	highMin   int32
	highMax   int32
	batch     int32
	freeCount int32 // pages freed lately
	factor    uint8 // log2 of how many batches the next order-0 refill takes
	prevHigh  bool  // the last free was of order 1 to 3
}

// ring is a double-ended queue of frame numbers. Its length is a power of two.
type ring struct {
	buf  []uint32
	head uint32
	n    uint32
}

func (r *ring) pushHead(pfn uint32) {
	if int(r.n) == len(r.buf) {
		r.grow()
	}
	i := int(r.head-1) & (len(r.buf) - 1)
	r.buf[i] = pfn
	r.head = uint32(i)
	r.n++
}

func (r *ring) pushTail(pfn uint32) {
	if int(r.n) == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&uint32(len(r.buf)-1)] = pfn
	r.n++
}

func (r *ring) popHead() uint32 {
	pfn := r.buf[int(r.head)&(len(r.buf)-1)]
	r.head = (r.head + 1) & uint32(len(r.buf)-1)
	r.n--
	return pfn
}

func (r *ring) popTail() uint32 {
	r.n--
	return r.buf[(r.head+r.n)&uint32(len(r.buf)-1)]
}

// at is the i-th entry from the head.
func (r *ring) at(i uint32) uint32 { return r.buf[(r.head+i)&uint32(len(r.buf)-1)] }

func (r *ring) grow() {
	buf := make([]uint32, max(2*len(r.buf), 16))
	for i := range r.n {
		buf[i] = r.at(i)
	}
	r.buf, r.head = buf, 0
}

// onPCP says whether blocks of this order live on per-CPU lists.
//
// Linux: mm/page_alloc.c:pcp_allowed_order (v6.18).
func (a *Allocator) onPCP(order uint8) bool {
	return (order <= costlyOrder || order == a.pbOrder) && !a.noPCP
}

// listIndex is the per-CPU list of an order and a type.
//
// Linux: mm/page_alloc.c:order_to_pindex (v6.18).
func listIndex(order uint8, t MigrateType) int {
	if order > costlyOrder {
		if t == Movable {
			return lowLists + 1
		}
		return lowLists
	}
	return int(order)*NumTypes + int(t)
}

// listOrder reverses listIndex.
func (a *Allocator) listOrder(i int) uint8 {
	if i >= lowLists {
		return a.pbOrder
	}
	return uint8(i / NumTypes)
}

// fromPCP takes a block from a CPU's list, which it refills when it is empty.
//
// Linux: mm/page_alloc.c:rmqueue_pcplist, __rmqueue_pcplist (v6.18).
func (a *Allocator) fromPCP(z *zone, cpu int, order uint8, t MigrateType, noFragment bool) uint32 {
	p := &z.pcp[cpu]
	p.freeCount >>= 1
	r := &p.lists[listIndex(order, t)]
	if r.n == 0 {
		a.refill(z, p, r, order, t, noFragment)
		if r.n == 0 {
			return none
		}
	}
	p.count -= 1 << order
	return r.popHead()
}

// refill moves blocks from the zone to a list.
//
// Linux: mm/page_alloc.c:rmqueue_bulk (v6.18).
func (a *Allocator) refill(z *zone, p *pcp, r *ring, order uint8, t MigrateType, noFragment bool) {
	mode := modeOwn
	had := r.n
	for n := uint32(p.refillSize(order, z.belowHigh)); n > 0; {
		if mode == modeOwn && z.mask[t]>>order != 0 {
			n -= a.takeRun(z, r, order, t, n)
			continue
		}
		pfn := a.rmqueue(z, order, t, noFragment, &mode)
		if pfn == none {
			break
		}
		r.pushTail(pfn)
		n--
	}
	p.count += int32(r.n-had) << order
	a.Events.Refill += r.n - had
}

// takeRun moves up to n blocks out of the smallest block that holds one, as n
// calls of smallest would: what they leave of that block they take first, from
// the lowest address up, because every list between the two orders was empty.
// It returns how many there were.
func (a *Allocator) takeRun(z *zone, r *ring, order uint8, t MigrateType, n uint32) uint32 {
	from := order + uint8(bits.TrailingZeros16(z.mask[t]>>order))
	pfn := z.area[from][t].head
	n = min(n, 1<<(from-order))
	a.remove(z, pfn, from, t)
	for i := range n {
		r.pushTail(pfn + i<<order)
	}
	for o := order + 1; o <= from; o++ {
		a.Events.Expand += (n-1)>>(o-order) + 1
	}
	end := pfn + 1<<from
	for at := pfn + n<<order; at < end; {
		o := uint8(bits.TrailingZeros32(at - pfn))
		a.addHead(z, at, o, t)
		at += 1 << o
	}
	return n
}

// refillSize is how many blocks a refill takes. For single pages it doubles
// from refill to refill, until a free halves it or the list's bound is near.
//
// Linux: mm/page_alloc.c:nr_pcp_alloc (v6.18).
func (p *pcp) refillSize(order uint8, belowHigh bool) int32 {
	if p.batch <= 1 {
		return 1
	}
	p.high = min(max(p.high, p.highMin), p.highMax)
	n := p.batch
	if order == 0 {
		n <<= p.factor
	}
	if p.highMin != p.highMax && !belowHigh {
		p.high = min(p.high+n, p.highMax)
	}
	if order == 0 {
		most := max(p.high-p.count-p.batch, p.batch)
		if n <= most && p.factor < batchScale {
			p.factor++
		}
		n = min(n, most)
	}
	if n > 1 {
		n = max(n>>order, 2)
	}
	return n
}

// toPCP puts a block at the head of a CPU's list and, when the lists hold too
// much, gives some back to the zone.
//
// Linux: mm/page_alloc.c:free_frozen_page_commit (v6.18).
func (a *Allocator) toPCP(z *zone, p *pcp, i int, pfn uint32, order uint8) {
	p.factor >>= 1
	p.lists[i].pushHead(pfn)
	p.count += 1 << order
	a.Events.PCPFree++

	burst := false
	if order > 0 && order <= costlyOrder {
		burst = p.prevHigh && p.freeCount >= p.batch+p.highMin/2 && p.count >= p.batch
		p.prevHigh = true
	} else {
		p.prevHigh = false
	}
	if p.freeCount < p.batch<<batchScale {
		p.freeCount += 1 << order
	}
	if !burst && p.count < p.high && !z.belowHigh {
		return
	}
	high := p.bound(burst, z.belowHigh)
	if p.count < high {
		return
	}
	a.trim(z, p, p.trimSize(high, burst), i)
	if z.belowHigh && z.free > z.wmark[wmarkHigh]+z.reserve[zoneMovable] {
		z.setBelowHigh(false)
	}
}

// bound is the count at which the lists are too long. It grows with bursts of
// frees and shrinks while memory is short.
//
// Linux: mm/page_alloc.c:nr_pcp_high (v6.18).
func (p *pcp) bound(burst, belowHigh bool) int32 {
	p.high = min(max(p.high, p.highMin), p.highMax)
	high := p.high
	switch {
	case high == 0:
		return 0
	case burst:
		p.high = max(high-p.batch<<batchScale, p.highMin)
		return 0
	case p.highMin == p.highMax:
		return high
	case belowHigh:
		p.high = max(high-max(p.freeCount, p.batch), p.highMin)
		return max(p.count, p.highMin)
	case p.count >= high:
		if need := p.freeCount + p.batch; p.high < need {
			p.high = min(max(need, p.highMin), p.highMax)
		}
	}
	return high
}

// trimSize is how many pages go back to the zone.
//
// Linux: mm/page_alloc.c:nr_pcp_free (v6.18).
func (p *pcp) trimSize(high int32, burst bool) int32 {
	if burst {
		return min(p.count, p.batch<<batchScale)
	}
	if high < p.batch {
		return 1
	}
	return max(min(p.freeCount, high-p.batch), p.batch)
}

// trim gives at least n pages back to the zone, oldest first, beginning with
// list i and going round.
//
// Linux: mm/page_alloc.c:free_pcppages_bulk (v6.18).
func (a *Allocator) trim(z *zone, p *pcp, n int32, i int) {
	for n = min(n, p.count); n > 0; i++ {
		if i == numLists {
			i = 0
		}
		r, order := &p.lists[i], a.listOrder(i)
		for n > 0 && r.n > 0 {
			a.release(z, r.popTail(), order)
			p.count -= 1 << order
			n -= 1 << order
		}
	}
}

// Drain empties the lists of one CPU.
//
// Linux: mm/page_alloc.c:drain_pages (v6.18).
func (a *Allocator) Drain(cpu int) {
	for i := range a.zones {
		z := &a.zones[i]
		a.trim(z, &z.pcp[cpu], z.pcp[cpu].count, 0)
	}
}

// DrainAll empties every CPU's lists.
//
// Linux: mm/page_alloc.c:drain_all_pages (v6.18).
func (a *Allocator) DrainAll() {
	for cpu := range a.cpuNode {
		a.Drain(cpu)
	}
}

// Decay does for one CPU what the kernel does about once a second: bounds that
// grew come down by an eighth, and what lies above them goes back.
//
// Linux: mm/page_alloc.c:decay_pcp_high (v6.18).
func (a *Allocator) Decay(cpu int) {
	for i := range a.zones {
		z := &a.zones[i]
		p := &z.pcp[cpu]
		if p.high > p.highMin {
			p.high = max(p.count-p.batch<<batchScale, p.high-p.high>>3, p.highMin)
		}
		if over := p.count - p.high; over > 0 {
			a.trim(z, p, over, 0)
		}
	}
}
