package buddy

import "fmt"

// checker recounts the allocator from its lists alone.
type checker struct {
	a     *Allocator
	seen  []uint64 // a bit for each frame on some list, from blockBase on
	z     *zone
	heads uint64 // free blocks found on lists
}

// Check verifies every list and count; nil when all add up: no frame lies on
// two lists, every block is in its zone and on the list of its pageblock's
// type, links agree in both directions, no two free buddies of a kind are
// apart, counts and masks are what a recount gives.
func (a *Allocator) Check() error {
	c := &checker{a: a, seen: make([]uint64, (len(a.blocks)<<a.maxOrder+63)/64)}
	for i := range a.zones {
		c.z = &a.zones[i]
		if err := c.zone(); err != nil {
			return fmt.Errorf("buddy: node %d zone %s: %w", c.z.node, kindNames[c.z.kind], err)
		}
	}
	return c.marks()
}

func (c *checker) zone() error {
	free, unmerged := uint64(0), 0
	for o := range maxOrders {
		for t := range NumTypes {
			n, pairs, err := c.list(uint8(o), MigrateType(t))
			if err != nil {
				return fmt.Errorf("order %d type %v: %w", o, MigrateType(t), err)
			}
			if has := c.z.mask[t]>>o&1 != 0; has != (n > 0) {
				return fmt.Errorf("order %d type %v: mask says %v for %d blocks", o, MigrateType(t), has, n)
			}
			free += n << o
			unmerged += pairs
		}
	}
	if free != c.z.free {
		return fmt.Errorf("%d pages on lists, counted %d", free, c.z.free)
	}
	if unmerged > c.z.unmerged {
		return fmt.Errorf("%d pairs of free buddies are not merged, %d at boot", unmerged, c.z.unmerged)
	}
	for cpu := range c.z.pcp {
		if err := c.perCPU(&c.z.pcp[cpu]); err != nil {
			return fmt.Errorf("cpu %d: %w", cpu, err)
		}
	}
	return nil
}

// list walks one free list.
func (c *checker) list(o uint8, t MigrateType) (n uint64, pairs int, err error) {
	a, l := c.a, &c.z.area[o][t]
	prev := none
	for pfn := l.head; pfn != none; pfn = a.linkOf(pfn, o).next {
		if err := c.claim(pfn, o); err != nil {
			return n, pairs, err
		}
		if !a.isFree(pfn, o) {
			return n, pairs, fmt.Errorf("block %d is on the list but not marked free", pfn)
		}
		if k := a.linkOf(pfn, o); k.prev != prev {
			return n, pairs, fmt.Errorf("block %d links back to %d, not %d", pfn, k.prev, prev)
		}
		if got := a.typeOf(pfn); got != t {
			return n, pairs, fmt.Errorf("block %d lies in a pageblock of type %v", pfn, got)
		}
		if buddy := pfn ^ 1<<o; o < a.maxOrder && pfn < buddy && a.isFree(buddy, o) {
			pairs++
		}
		prev = pfn
		n++
	}
	c.heads += n
	if l.tail != prev || uint64(l.n) != n {
		return n, pairs, fmt.Errorf("%d blocks to tail %d, counted %d to %d", n, prev, l.n, l.tail)
	}
	return n, pairs, nil
}

func (c *checker) perCPU(p *pcp) error {
	count := int32(0)
	for i := range p.lists {
		r, o := &p.lists[i], c.a.listOrder(i)
		for j := range r.n {
			if err := c.claim(r.at(j), o); err != nil {
				return fmt.Errorf("list %d: %w", i, err)
			}
			if c.a.isFree(r.at(j), o) {
				return fmt.Errorf("list %d: block %d is marked free", i, r.at(j))
			}
		}
		count += int32(r.n) << o
	}
	if count != p.count {
		return fmt.Errorf("%d pages on lists, counted %d", count, p.count)
	}
	return nil
}

// claim notes the frames of a block and refuses those already seen.
func (c *checker) claim(pfn uint32, o uint8) error {
	z := c.z
	if pfn&(1<<o-1) != 0 || pfn < z.start || uint64(pfn)+1<<o > uint64(z.start)+z.managed {
		return fmt.Errorf("block %d is not aligned or not in the zone", pfn)
	}
	at := uint64(pfn) - uint64(c.a.blockBase)<<c.a.maxOrder
	if o >= 6 {
		for i := at / 64; i < (at+1<<o)/64; i++ {
			if c.seen[i] != 0 {
				return fmt.Errorf("block %d overlaps another", pfn)
			}
			c.seen[i] = ^uint64(0)
		}
		return nil
	}
	m := (uint64(1)<<(1<<o) - 1) << (at % 64)
	if c.seen[at/64]&m != 0 {
		return fmt.Errorf("block %d overlaps another", pfn)
	}
	c.seen[at/64] |= m
	return nil
}

// marks verifies that exactly the heads of listed blocks are marked free, and
// that counts of movable pages fit what is in use.
func (c *checker) marks() error {
	a, heads := c.a, uint64(0)
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.free {
			heads++
		}
		if b.slab() == 0 {
			continue
		}
		_, ord := a.frames(b)
		for _, o := range ord {
			if o != 0 {
				heads++
			}
		}
		for j, n := range a.meta[b.slab()-1].movable {
			if uint32(n) > c.unlisted(uint64(i)<<a.maxOrder+uint64(j)<<a.pbOrder) {
				return fmt.Errorf("buddy: block %d: %d movable pages in use, more than are in use at all", i, n)
			}
		}
	}
	if heads != c.heads {
		return fmt.Errorf("buddy: %d blocks marked free, %d on lists", heads, c.heads)
	}
	return nil
}

// unlisted counts the frames of a pageblock on no list.
func (c *checker) unlisted(at uint64) (n uint32) {
	for i := at; i < min(at+1<<c.a.pbOrder, uint64(len(c.seen))*64); i++ {
		if c.seen[i/64]>>(i%64)&1 == 0 {
			n++
		}
	}
	return n
}
