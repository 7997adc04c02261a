package hw

import (
	"fmt"
	"math"
	"math/bits"
)

// Access is what a core does to a line.
type Access uint8

const (
	AccessRead  Access = iota
	AccessWrite        // changes a part of it: a missing line is read first
	AccessClaim        // writes all of it: a missing line is not read (rep stos)
)

// Level is where a line was found.
type Level uint8

const (
	InL1 Level = iota
	InL2
	InLLC
	InMemory
	Skipped // the line belongs to a set that is not simulated
)

// Found is what an access came to.
type Found struct {
	Level  Level
	Read   bool  // memory was read
	Writes uint8 // lines written back to memory to make room
}

// Counts are a package's events, of the simulated sets only.
type Counts struct {
	Accesses [InMemory + 1]uint64 // by where the line was found
	Reads    uint64               // lines read from memory
	Writes   uint64               // lines written back to it
}

// References is what perf's cache-references counts on Intel: requests of the
// cores that reached the last-level cache. Prefetches of the second level are
// not among them.
func (c *Counts) References() uint64 { return c.Accesses[InLLC] + c.Accesses[InMemory] }

// Misses is what perf's cache-misses counts: References that the last-level
// cache could not serve. A claimed line that was not there is one, though
// memory is not read.
func (c *Counts) Misses() uint64 { return c.Accesses[InMemory] }

// Notes of an inclusive last level: which core may hold the line too.
const (
	manyCores Note = 2 // more than the one of the note
	coreShift      = 2
	maxCores       = 1 << (noteBits - coreShift)
)

// Hierarchy is the caches of one package: two levels of each core's own and a
// last one for all.
//
//	core 0: L1 -> L2 \
//	core 1: L1 -> L2 -> LLC -> memory
//	core n: L1 -> L2 /
//
// Writes go back late: a changed line is marked, and its mark moves outward as
// the line leaves. An inclusive last level holds what the cores hold, and takes
// a line from them when it gives it up; another takes what the second levels
// evict, and hands it back whole. Prefetching is the business of who prices the
// misses: it changes when a line comes, not where from.
type Hierarchy struct {
	l1, l2    []*Cache
	llc       *Cache
	inclusive bool
	skip      uint64 // lines with one of these bits are not simulated
	counts    Counts
}

// NewHierarchy makes the caches of one package of a machine. Of every 1<<sample
// neighbouring lines one is simulated, in caches that are smaller by as much:
// sample may be up to 6, the bits that choose a set in the nearest cache.
func NewHierarchy(m *Machine, sample uint) (*Hierarchy, error) {
	line := m.Get("line")
	shape := func(level string) (Geometry, error) {
		g := Geometry{Ways: m.Int(level + ".ways"), Slices: 1, Sample: sample}
		lines := m.Get(level+".size") / line
		if level == "llc" {
			g.Slices, g.Policy = max(m.Int("llc.slices"), 1), Policy(m.Int("llc.policy"))
			if g.Policy > Duel {
				return g, fmt.Errorf("llc.policy: %d is none", g.Policy)
			}
		}
		if g.Ways < 1 || g.Slices > 1<<10 {
			return g, fmt.Errorf("%s: %d ways, %d slices: no cache is like that", level, g.Ways, g.Slices)
		}
		fit(&g, lines)
		return g, nil
	}
	h := &Hierarchy{inclusive: m.Int("llc.inclusive") != 0, skip: 1<<sample - 1}
	cores := m.Int("cpu.cores")
	if cores < 1 || cores > maxCores {
		return nil, fmt.Errorf("machine %s: cpu.cores: %d: want 1 to %d", m.Name, cores, maxCores)
	}
	for range cores {
		for _, l := range []struct {
			name string
			to   *[]*Cache
		}{{"l1", &h.l1}, {"l2", &h.l2}} {
			c, err := shaped(shape, l.name)
			if err != nil {
				return nil, fmt.Errorf("machine %s: %w", m.Name, err)
			}
			*l.to = append(*l.to, c)
		}
	}
	var err error
	if h.llc, err = shaped(shape, "llc"); err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return h, nil
}

func shaped(shape func(string) (Geometry, error), name string) (*Cache, error) {
	g, err := shape(name)
	if err != nil {
		return nil, err
	}
	c, err := NewCache(g)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// fit gives a cache of that many lines a power of two of sets near what its
// ways ask for, and ways to fill its size: a cache that was made larger by a factor keeps
// its shape as far as it can.
func fit(g *Geometry, lines float64) {
	sets := lines / float64(g.Ways*g.Slices)
	if !(sets >= 1) || sets > 1<<30 {
		return
	}
	g.Sets = 1 << (bits.Len(uint(sets+0.5)) - 1)
	if sets/float64(g.Sets) > 1.5 {
		g.Sets *= 2
	}
	g.Ways = max(int(math.Round(lines/float64(g.Sets*g.Slices))), 1)
}

// Counts are the events so far.
func (h *Hierarchy) Counts() Counts { return h.counts }

// Reset forgets the events, not the lines.
func (h *Hierarchy) Reset() { h.counts = Counts{} }

// Access does one access of a core; core counts from 0 in the package.
func (h *Hierarchy) Access(core int, line uint64, a Access) Found {
	if line&h.skip != 0 {
		return Found{Level: Skipped}
	}
	return h.access(core, line, a)
}

// access is Access for a line whose sets are simulated; apart, so that the
// look at the line is inlined.
func (h *Hierarchy) access(core int, line uint64, a Access) Found {
	changed := Dirty
	if a == AccessRead {
		changed = 0
	}
	if _, ok := h.l1[core].Hit(line, changed); ok {
		h.counts.Accesses[InL1]++
		return Found{Level: InL1}
	}
	f := Found{Level: InL2}
	if _, ok := h.l2[core].Hit(line, 0); !ok {
		f = h.shared(core, line, a)
	}
	if v, was, ok := h.l1[core].Put(line, changed); ok && was&Dirty != 0 {
		f.Writes += h.toL2(core, v)
	}
	h.counts.Accesses[f.Level]++
	h.counts.Writes += uint64(f.Writes)
	if f.Read {
		h.counts.Reads++
	}
	return f
}

// shared serves what both caches of a core missed, and brings it to the second.
func (h *Hierarchy) shared(core int, line uint64, a Access) Found {
	f := Found{Level: InLLC}
	var carried Note
	if h.inclusive {
		who := Note(core) << coreShift
		was, ok := h.llc.Hit(line, 0)
		switch {
		case !ok:
			f.Level = InMemory
			f.Writes += h.putLLC(line, who)
		case was>>coreShift != who>>coreShift:
			h.llc.Mark(line, manyCores)
		}
	} else if was, ok := h.llc.Drop(line); ok {
		carried = was & Dirty
	} else {
		f.Level = InMemory
	}
	f.Read = f.Level == InMemory && a != AccessClaim
	if v, was, ok := h.l2[core].Put(line, carried); ok {
		f.Writes += h.fromL2(core, v, was)
	}
	return f
}

// toL2 writes a line that left the first cache back to the second.
func (h *Hierarchy) toL2(core int, line uint64) (writes uint8) {
	if h.l2[core].Mark(line, Dirty) {
		return 0
	}
	v, was, ok := h.l2[core].Put(line, Dirty)
	if !ok {
		return 0
	}
	return h.fromL2(core, v, was)
}

// fromL2 takes a line that left a second cache. The first may still hold it:
// neither is kept to the other.
func (h *Hierarchy) fromL2(core int, line uint64, was Note) (writes uint8) {
	if h.inclusive && was&Dirty == 0 || h.llc.Mark(line, was&Dirty) {
		return 0
	}
	if h.inclusive {
		was |= Note(core) << coreShift
	}
	return h.putLLC(line, was)
}

// putLLC brings a line into the last level and says how many lines went to
// memory for it.
func (h *Hierarchy) putLLC(line uint64, note Note) (writes uint8) {
	v, was, ok := h.llc.Put(line, note)
	if !ok {
		return 0
	}
	if h.inclusive {
		was |= h.recall(v, was)
	}
	return uint8(was & Dirty)
}

// recall takes a line from the cores that may hold it.
func (h *Hierarchy) recall(line uint64, note Note) (dirty Note) {
	first, last := int(note>>coreShift), int(note>>coreShift)
	if note&manyCores != 0 {
		first, last = 0, len(h.l1)-1
	}
	for core := first; core <= last; core++ {
		for _, c := range [...]*Cache{h.l1[core], h.l2[core]} {
			was, _ := c.Drop(line)
			dirty |= was & Dirty
		}
	}
	return dirty
}
