package buddy

import "testing"

// full is a machine of one zone without per-CPU lists, all of it in use as t.
func full(t *testing.T, mib uint64, mt MigrateType) *Allocator {
	t.Helper()
	a := machine(t, mib, 1)
	a.noPCP = true
	a.SetMinFree(0)
	for range mib / 4 {
		if _, ok := a.Alloc(0, 0, 10, mt, 0); !ok {
			t.Fatal("the zone is not wholly free at boot")
		}
	}
	for p := uint64(0); p < mib<<8; p += 512 {
		a.setType(uint32(p), 9, mt)
	}
	a.Events = Events{}
	return a
}

// free gives back n pages from p on, one by one.
func free(a *Allocator, p, n uint64, mt MigrateType) {
	for i := range n {
		a.Free(0, p+i, 0, mt)
	}
}

// TestMergeLikelyBelowLargest: a block two orders below the largest goes to the
// tail when the block next to its parent is free.
func TestMergeLikelyBelowLargest(t *testing.T) {
	for _, likely := range []bool{false, true} {
		a := full(t, 8, Movable)
		a.Free(0, 1024, 8, Movable)
		if likely {
			a.Free(0, 512, 9, Movable)
		}
		a.Free(0, 0, 8, Movable)
		if got := headsOf(a, 8, Movable); (got[0] == 1024) != likely {
			t.Errorf("likely %v: list %v", likely, got)
		}
		check(t, a)
	}
}

// TestClaimRules: which requests take over a whole pageblock of another type.
func TestClaimRules(t *testing.T) {
	for _, tc := range []struct {
		desc     string
		from, to MigrateType // of the pageblock, of the request
		used     MigrateType // what its pages in use were allocated as
		run      uint64      // free pages of each 2*run
		total    uint64      // free pages in all
		claim    bool
	}{
		{"half free in large blocks", Unmovable, Movable, Unmovable, 16, 256, true},
		{"movable never claims by blocks below order 4", Unmovable, Movable, Unmovable, 8, 256, false},
		{"others do", Movable, Unmovable, Movable, 8, 256, true},
		{"a quarter free, the rest movable, for movable", Unmovable, Movable, Movable, 128, 128, true},
		{"a quarter free, the rest unmovable, for movable", Unmovable, Movable, Unmovable, 128, 128, false},
		{"a quarter free, the rest movable, for unmovable", Movable, Unmovable, Movable, 128, 128, false},
		{"a quarter free, the rest not movable, for unmovable", Movable, Unmovable, Reclaimable, 128, 128, true},
		{"no alikeness between the other two", Reclaimable, Unmovable, Unmovable, 128, 128, false},
	} {
		a := full(t, 8, tc.used)
		a.setType(0, 9, tc.from)
		for p := uint64(0); p < 2*tc.total && p+tc.run <= 512; p += 2 * tc.run {
			free(a, p, tc.run, tc.used)
		}
		if a.FreePages() != tc.total {
			t.Fatalf("%s: %d pages free", tc.desc, a.FreePages())
		}
		a.Events = Events{}
		pfn, ok := a.Alloc(0, 0, 0, tc.to, 0)
		if !ok || pfn >= 512 || a.Events.Fallback != 1 {
			t.Errorf("%s: Alloc = %d, %v, events %+v", tc.desc, pfn, ok, a.Events)
		}
		if got := a.typeOf(0) == tc.to; got != tc.claim {
			t.Errorf("%s: claimed %v", tc.desc, got)
		}
		check(t, a)
	}
}

// TestClaimLargestFirst and stealing the smallest.
func TestClaimLargestFirst(t *testing.T) {
	a := full(t, 8, Movable)
	a.Free(0, 0, 4, Movable)
	a.Free(0, 1024, 8, Movable)
	if pfn, _ := a.Alloc(0, 0, 0, Unmovable, 0); pfn != 1024 {
		t.Errorf("claimed from %d, not from the largest block", pfn)
	}
	a = full(t, 8, Movable)
	a.Free(0, 0, 7, Movable)
	a.Free(0, 1024, 4, Movable)
	if pfn, _ := a.Alloc(0, 0, 0, Unmovable, 0); pfn != 1024 {
		t.Errorf("stole from %d, not from the smallest block", pfn)
	}
}

// TestFallbackOrder: each type asks the others in its own order.
func TestFallbackOrder(t *testing.T) {
	for to, want := range [NumTypes]MigrateType{Reclaimable, Reclaimable, Unmovable} {
		a := full(t, 16, Movable)
		for i, from := range []MigrateType{Unmovable, Movable, Reclaimable} {
			if from == MigrateType(to) {
				continue
			}
			a.setType(uint32(i)<<10, 10, from)
			a.Free(0, uint64(i)<<10, 10, Movable)
		}
		pfn, ok := a.Alloc(0, 0, 10, MigrateType(to), 0)
		if !ok || pfn != uint64(want)<<10 {
			t.Errorf("%v takes %d first, want the block of %v", MigrateType(to), pfn, want)
		}
	}
}

// TestNoFragment: before a pageblock of Normal is mixed, DMA32 is asked.
func TestNoFragment(t *testing.T) {
	a, err := New(Config{Zones: []Zone{{Name: "DMA32", Pages: 2048}, {Name: "Normal", Start: 4096, Pages: 2048}},
		CPUs: 1, PageShift: 12, MaxOrder: 10, PMDOrder: 9})
	if err != nil {
		t.Fatal(err)
	}
	a.noPCP = true
	a.SetMinFree(0)
	for i := range a.zones {
		a.zones[i].wmark = [4]uint64{}
		a.zones[i].setBelowHigh(false)
	}
	for range 2 {
		a.Alloc(0, 0, 10, Unmovable, 0)
	}
	a.Free(0, 4096, 4, Unmovable)
	if pfn, ok := a.Alloc(0, 0, 0, Movable, 0); !ok || pfn >= 2048 {
		t.Errorf("Alloc = %d, %v: DMA32 has movable memory", pfn, ok)
	}
	for {
		pfn, ok := a.Alloc(0, 0, 0, Movable, 0)
		if !ok {
			t.Fatal("the free block of Normal was never used")
		}
		if pfn >= 4096 {
			break
		}
	}
	check(t, a)
}

// TestRefillShrinks: frees halve the next refill.
func TestRefillShrinks(t *testing.T) {
	a := machine(t, 4096, 1)
	var held []uint64
	for range 63 + 126 + 252 {
		pfn, _ := a.Alloc(0, 0, 0, Movable, 0)
		held = append(held, pfn)
	}
	for _, pfn := range held[:2] {
		a.Free(0, pfn, 0, Movable)
	}
	a.Events = Events{}
	for range 3 {
		a.Alloc(0, 0, 0, Movable, 0)
	}
	if a.Events.Refill != 63 {
		t.Errorf("refill of %d", a.Events.Refill)
	}
}

// TestTrimOldestFirst: a list that is too long gives back what was freed
// longest ago.
func TestTrimOldestFirst(t *testing.T) {
	a := machine(t, 16, 1)
	a.SetMinFree(0)
	for range 64 {
		a.Alloc(0, 0, 0, Movable, 0)
	}
	a.Drain(0)
	a.zones[0].pcp[0].high = 4
	for p := uint64(0); p < 32; p += 2 {
		a.Free(0, p, 0, Movable)
	}
	if !a.isFree(0, 0) || a.isFree(30, 0) {
		t.Errorf("first freed is back: %v; last freed: %v", a.isFree(0, 0), a.isFree(30, 0))
	}
	check(t, a)
}

// TestCompactionTried: direct compaction is counted where Linux would try it.
func TestCompactionTried(t *testing.T) {
	for _, tc := range []struct {
		desc  string
		order uint8  // of the free blocks, of which every other one is free
		n     uint64 // how many
		want  uint32
	}{
		{"much free in single pages", 0, 4000, 1},
		{"too little free above the mark", 0, 1030, 0},
		{"large blocks: short of memory more than fragmented", 8, 16, 0},
	} {
		a := full(t, 64, Movable)
		for i := range tc.n {
			a.Free(0, i<<(tc.order+1), tc.order, Movable)
		}
		if _, ok := a.Alloc(0, 0, 9, Movable, 0); ok || a.Events.Compact != 0 {
			t.Errorf("%s: without leave: %+v", tc.desc, a.Events)
		}
		if _, ok := a.Alloc(0, 0, 9, Movable, DirectReclaim|NoRetry); ok || a.Events.Compact != tc.want {
			t.Errorf("%s: %v, events %+v", tc.desc, ok, a.Events)
		}
	}
}
