package buddy

import (
	"fmt"
	"slices"
)

// bootFragmented lays out the free blocks of a host (/proc/buddyinfo) over a
// zone; everything else is in use for ever. The layout is one of the many that
// a host with these counts may have: from the largest order down, blocks are
// spread evenly over what is left, and of two buddies one is free, so that
// nothing merges. Only where memory is too tight for that are both free; then
// they stay apart until one of them is used and freed.
//
// The host's own layout is unknown, so the frames of an allocation are not the
// host's; whether an allocation finds a block is.
func (a *Allocator) bootFragmented(z *zone, c *Zone) error {
	var want [maxOrders]uint64
	copy(want[:], c.Free)
	left := uint64(0) // blocks still to be placed
	for _, n := range want {
		if n > c.Pages {
			return fmt.Errorf("buddy: node %d zone %s: %d free blocks in %d pages", c.Node, c.Name, n, c.Pages)
		}
		left += n
	}
	var single [maxOrders][]uint32 // blocks whose buddy is outside the zone or its largest block
	a.pieces(z, func(pfn uint32, order uint8) { single[order] = append(single[order], pfn) })

	var pairs []uint32 // blocks of the next higher order, wholly unused so far
	for o := int(a.maxOrder); o >= 0; o-- {
		free, rest, both, ok := choose(pairs, single[o], uint8(o), want[o])
		if !ok {
			return fmt.Errorf("buddy: node %d zone %s: %d free blocks of order %d do not fit into %d pages", c.Node,
				c.Name, want[o], o, c.Pages)
		}
		z.unmerged += both
		slices.Sort(free)
		for _, pfn := range free {
			a.addTail(z, pfn, uint8(o), Movable)
		}
		left -= want[o]
		pairs = thin(rest, left)
	}
	return nil
}

// choose takes n blocks of an order out of pairs (blocks of the order above)
// and singles, spread evenly. It returns them, the blocks of this order that
// stay unused, and how many pairs it had to take whole.
func choose(pairs, singles []uint32, order uint8, n uint64) (free, rest []uint32, both int, ok bool) {
	units := uint64(len(pairs) + len(singles))
	if n > units {
		if n-units > uint64(len(pairs)) {
			return nil, nil, 0, false
		}
		both = int(n - units)
		n = units
	}
	half := uint32(1) << order
	for i := range units {
		take := (i+1)*n/units > i*n/units
		if i >= uint64(len(pairs)) {
			if pfn := singles[i-uint64(len(pairs))]; take {
				free = append(free, pfn)
			} else {
				rest = append(rest, pfn)
			}
			continue
		}
		lo, hi := pairs[i], pairs[i]+half
		switch {
		case int(i) < both:
			free = append(free, lo, hi)
		case !take:
			rest = append(rest, lo, hi)
		case len(free)&1 == 0: // neither half is the rule on a host
			free, rest = append(free, lo), append(rest, hi)
		default:
			free, rest = append(free, hi), append(rest, lo)
		}
	}
	return free, rest, both, true
}

// thin keeps at most n of the blocks, spread evenly: more than there are
// blocks to place are of no use.
func thin(blocks []uint32, n uint64) []uint32 {
	have := uint64(len(blocks))
	if have <= n {
		return blocks
	}
	kept := blocks[:0]
	for i := range have {
		if (i+1)*n/have > i*n/have {
			kept = append(kept, blocks[i])
		}
	}
	return kept
}
