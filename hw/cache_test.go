package hw

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// newCache makes a cache of a shape that is known to be good.
func newCache(t testing.TB, g Geometry) *Cache {
	t.Helper()
	c, err := NewCache(g)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// use is a plain access: true where the line was there.
func use(c *Cache, line uint64) bool {
	if _, ok := c.Hit(line, 0); ok {
		return true
	}
	c.Put(line, 0)
	return false
}

// TestCacheLRU holds the simulator to lists of lines kept in order of use.
func TestCacheLRU(t *testing.T) {
	for _, ways := range []int{1, 4, 8, 12, 16, 20} {
		testLRU(t, ways)
	}
}

func testLRU(t *testing.T, ways int) {
	const sets = 8
	c := newCache(t, Geometry{Sets: sets, Ways: ways})
	var plain [sets][]uint64
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		line := r.Uint64N(uint64(sets * ways * 2))
		s := plain[line%sets]
		at := slices.Index(s, line)
		if i%7 == 0 { // take it out
			if _, ok := c.Drop(line); ok != (at >= 0) {
				t.Fatalf("%d ways, access %d, line %d: dropped %v, want %v", ways, i, line, ok, at >= 0)
			}
			if at >= 0 {
				plain[line%sets] = slices.Delete(s, at, at+1)
			}
			continue
		}
		if at >= 0 {
			s = slices.Delete(s, at, at+1)
		}
		s = slices.Insert(s, 0, line)
		plain[line%sets] = s[:min(len(s), ways)]
		if got := use(c, line); got != (at >= 0) {
			t.Fatalf("%d ways, access %d, line %d: found %v, want %v", ways, i, line, got, at >= 0)
		}
	}
}

// TestCacheAges walks the policy by hand: four ways, all lines in one set.
func TestCacheAges(t *testing.T) {
	c := newCache(t, Geometry{Sets: 1, Ways: 4, Policy: Ages})
	for _, tc := range []struct {
		line uint64
		hit  bool
		ages [4]uint8 // after it
	}{
		{10, false, [4]uint8{1, 3, 3, 3}}, // free ways have 3
		{11, false, [4]uint8{1, 1, 3, 3}},
		{12, false, [4]uint8{1, 1, 1, 3}},
		{13, false, [4]uint8{3, 3, 3, 3}}, // full: all grow until one is 3
		{11, true, [4]uint8{3, 1, 3, 3}},
		{14, false, [4]uint8{1, 1, 3, 3}}, // in the place of 10, the leftmost 3
		{11, true, [4]uint8{1, 0, 3, 3}},
		{15, false, [4]uint8{1, 0, 1, 3}}, // of 12
		{16, false, [4]uint8{3, 2, 3, 3}}, // of 13; then all grow by two
		{12, false, [4]uint8{1, 2, 3, 3}}, // of 14
		{11, true, [4]uint8{1, 1, 3, 3}},
	} {
		if got := use(c, tc.line); got != tc.hit {
			t.Fatalf("line %d: found %v, want %v", tc.line, got, tc.hit)
		}
		var ages [4]uint8
		for i := range ages {
			ages[i] = uint8(c.data[0] >> (2 * i) & 3)
		}
		if ages != tc.ages {
			t.Fatalf("after line %d: ages %v, want %v", tc.line, ages, tc.ages)
		}
	}
}

// TestCacheDuel: lines used in a ring a little larger than the cache miss
// always by age alone, and less by the duel, which finds that thin insertion
// keeps some of them.
func TestCacheDuel(t *testing.T) {
	rate := func(p Policy) float64 {
		c := newCache(t, Geometry{Sets: 2048, Ways: 16, Policy: p})
		hits, n := 0, 0
		for turn := range 30 {
			for line := range uint64(2048 * 20) {
				if use(c, line) && turn > 10 {
					hits++
				}
				if turn > 10 {
					n++
				}
			}
		}
		return float64(hits) / float64(n)
	}
	lru, ages, duel := rate(LRU), rate(Ages), rate(Duel)
	if lru != 0 || duel < 0.3 || duel <= ages {
		t.Errorf("hits of a ring: LRU %.2f, ages %.2f, duel %.2f", lru, ages, duel)
	}
}

func TestCacheNotes(t *testing.T) {
	c := newCache(t, Geometry{Sets: 1, Ways: 2})
	c.Put(1, 0)
	c.Put(2, 6)
	c.Hit(1, Dirty)
	if v, was, ok := c.Put(3, 0); v != 2 || was != 6 || !ok {
		t.Errorf("gave up %d %v %v, want 2 with its note", v, was, ok)
	}
	if was, ok := c.Drop(1); was != Dirty || !ok {
		t.Errorf("line 1: %v %v, want it changed", was, ok)
	}
	if _, _, ok := c.Put(4, 0); ok {
		t.Error("gave up a line though a way was free")
	}
	if c.Mark(1, Dirty) {
		t.Error("marked a line that is gone")
	}
}

func TestNewCacheRefuses(t *testing.T) {
	for _, g := range []Geometry{
		{Sets: 3, Ways: 1}, {Sets: 0, Ways: 1}, {Sets: 1}, {Sets: 4, Ways: 1, Sample: 3},
		{Sets: 1, Ways: 33, Policy: Ages},
	} {
		if _, err := NewCache(g); err == nil {
			t.Errorf("%+v was taken", g)
		}
	}
}

// TestSampling: the sets that are simulated do what they do when all are.
func TestSampling(t *testing.T) {
	m, err := LoadMachine("xeon-e5-2640v4")
	if err != nil {
		t.Fatal(err)
	}
	counts := func(sample uint) Counts {
		h, err := NewHierarchy(m, sample)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		for range 3_000_000 {
			h.Access(r.IntN(10), r.Uint64N(1<<20), Access(r.IntN(3)))
		}
		return h.Counts()
	}
	all, some := counts(0), counts(4)
	for _, x := range []struct {
		name string
		a, b uint64
	}{
		{"references", all.References(), some.References()}, {"misses", all.Misses(), some.Misses()},
		{"reads", all.Reads, some.Reads}, {"writes", all.Writes, some.Writes},
	} {
		if r := float64(x.b) * 16 / float64(x.a); r < 0.98 || r > 1.02 {
			t.Errorf("%s: %d of all, %d of one in 16: ratio %.3f", x.name, x.a, x.b, r)
		}
	}
}

// TestHierarchyConserves: every line that memory has lost comes back to it
// changed or is still in a cache, whichever kind of last level there is.
func TestHierarchyConserves(t *testing.T) {
	for _, inclusive := range []string{"0", "1"} {
		m, err := LoadMachine("xeon-e5-2640v4")
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"llc.inclusive": inclusive, "llc.size": "1m", "cpu.cores": "3", "llc.slices": "2",
		} {
			if m, err = m.With(k, v); err != nil {
				t.Fatal(err)
			}
		}
		h, err := NewHierarchy(m, 0)
		if err != nil {
			t.Fatal(err)
		}
		const lines = 60_000
		for line := range uint64(lines) { // each once, by one core
			h.Access(int(line%3), line, AccessClaim)
		}
		held := map[uint64]bool{}
		for _, cs := range [][]*Cache{h.l1, h.l2, {h.llc}} {
			for _, c := range cs {
				for _, e := range entries(c) {
					if Note(e)&Dirty != 0 {
						held[e>>noteBits-1] = true
					}
				}
			}
		}
		if got := h.Counts(); got.Writes+uint64(len(held)) != lines || got.Reads != 0 {
			t.Errorf("inclusive %s: %d written, %d held, %d read; want %d in all, none read",
				inclusive, got.Writes, len(held), got.Reads, lines)
		}
		for core := range 3 {
			for _, c := range []*Cache{h.l1[core], h.l2[core]} {
				for _, e := range entries(c) {
					if e != 0 && inclusive == "1" && !h.llc.Mark(e>>noteBits-1, 0) {
						t.Fatalf("core %d holds line %d, the last level does not", core, e>>noteBits-1)
					}
				}
			}
		}
	}
}

// entries are a cache's entries of all sets.
func entries(c *Cache) (all []uint64) {
	for i := 0; i < len(c.data); i += c.size {
		all = append(all, c.data[i+c.first:i+c.size]...)
	}
	return all
}

// TestHierarchyLevels: rep stos reads nothing, a store reads, and both write back.
func TestHierarchyLevels(t *testing.T) {
	m, err := LoadMachine("xeon-e5-2640v4")
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHierarchy(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		core int
		line uint64
		a    Access
		want Found
	}{
		{0, 1, AccessWrite, Found{Level: InMemory, Read: true}},
		{0, 1, AccessRead, Found{Level: InL1}},
		{1, 1, AccessRead, Found{Level: InLLC}},
		{0, 2, AccessClaim, Found{Level: InMemory}},
	} {
		if got := h.Access(tc.core, tc.line, tc.a); got != tc.want {
			t.Errorf("core %d, line %d: %+v, want %+v", tc.core, tc.line, got, tc.want)
		}
	}
	for line := uint64(64); line < 64*20; line += 64 { // as many lines of its set as push it out
		h.Access(0, line+1, AccessRead)
	}
	if got := h.Access(0, 1, AccessRead); got.Level != InL2 && got.Level != InLLC {
		t.Errorf("a line pushed out: %+v", got)
	}
}
