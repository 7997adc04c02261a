package difftest

import "github.com/hugelab/hugelab/mm"

// This file draws lengths, offsets and areas.

func (g *generator) pages(most int) mm.Bytes { return mm.Bytes(1+g.x.IntN(most)) * pageSize }

// length prefers round lengths and those next to them. Few are large: every page
// is compared after every step.
func (g *generator) length() mm.Bytes {
	n := pick[mm.Bytes](g.x, 16<<10, 64<<10, 128<<10, 512<<10, 1<<20, 2<<20, 2<<20, 4<<20, 4<<20, 4<<20, 6<<20)
	switch g.x.IntN(6) {
	case 0:
		n += g.pages(16)
	case 1:
		n -= g.pages(3)
	case 2:
		n = g.pages(300)
	}
	if g.chance(150) {
		n = 64 << 20
	}
	return n
}

// offset is where in 2 MB a mapping begins.
func (g *generator) offset() mm.Bytes {
	switch g.x.IntN(6) {
	case 0:
		return g.pages(16)
	case 1:
		return 64 << 10 * mm.Bytes(g.x.IntN(32))
	case 2:
		return mm.Bytes(g.x.IntN(512)) * pageSize
	}
	return 0
}

func (g *generator) within(size mm.Bytes) mm.Bytes {
	n := int(size / pageSize)
	at := g.x.IntN(n)
	switch g.x.IntN(3) {
	case 0:
		at &^= 15
	case 1:
		at &^= 511
	}
	return mm.Bytes(at) * pageSize
}

// large is where areas are parts only.
const large = 16 << 20

// area picks a part of a region: all, a page, an aligned block, any range.
func (g *generator) area() Area {
	r := pick(g.x, g.regions...)
	switch {
	case g.heap > 0 && g.chance(8):
		r = genRegion{heapName, g.heap}
	case g.stack && g.chance(12):
		return g.stackArea()
	}
	kind := g.x.IntN(5)
	if kind == 0 && r.size > large {
		kind = 2
	}
	switch kind {
	case 0:
		return Area{Region: r.name, Whole: true}
	case 1:
		from := g.within(r.size)
		return Area{Region: r.name, From: from, To: from + pageSize, Single: true}
	case 2:
		n := mm.Bytes(pageSize) << (1 + g.x.IntN(9))
		from := g.within(r.size) &^ (n - 1)
		return Area{Region: r.name, From: from, To: from + n}
	}
	from := g.within(r.size)
	to := from + g.pages(int(min(r.size-from, large)/pageSize))
	if g.chance(10) {
		to += g.pages(8) // past the end
	}
	return Area{Region: r.name, From: from, To: to}
}
