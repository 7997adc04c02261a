package buddy

import (
	"slices"
	"testing"
)

// tiny is a machine of one zone of 8 pages whose largest block is the zone.
func tiny(t testing.TB, pcps bool) *Allocator {
	t.Helper()
	a, err := New(Config{Zones: []Zone{{Name: "Normal", Pages: 8}}, CPUs: 1, PageShift: 12, MaxOrder: 3, PMDOrder: 2})
	if err != nil {
		t.Fatal(err)
	}
	a.noPCP = !pcps
	a.SetMinFree(0)
	return a
}

// machine is one zone Normal of the given MiB, with 4 kB pages.
func machine(t testing.TB, mib uint64, cpus int) *Allocator {
	t.Helper()
	a, err := New(Config{Zones: []Zone{{Name: "Normal", Pages: mib << 8}}, CPUs: cpus, PageShift: 12, MaxOrder: 10,
		PMDOrder: 9})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func check(t testing.TB, a *Allocator) {
	t.Helper()
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

func headsOf(a *Allocator, o uint8, mt MigrateType) (heads []uint32) {
	for p := a.zones[0].area[o][mt].head; p != none; p = a.linkOf(p, o).next {
		heads = append(heads, p)
	}
	return heads
}

// TestSplitAndMerge walks blocks through one zone: each step, and where it
// leaves the free lists.
func TestSplitAndMerge(t *testing.T) {
	type step struct {
		free  bool
		pfn   uint64 // what is freed, or what Alloc must return
		order uint8
	}
	type lists [4][]uint32
	for _, tc := range []struct {
		desc  string
		steps []step
		want  lists
	}{
		{"a fresh zone is one block", nil, lists{3: {0}}},
		{"the lower half is kept", []step{{pfn: 0, order: 0}}, lists{0: {1}, 1: {2}, 2: {4}}},
		{"the smallest fit comes first", []step{{pfn: 0, order: 0}, {pfn: 2, order: 1}, {pfn: 1, order: 0}},
			lists{2: {4}}},
		{"a freed block merges all the way", []step{{pfn: 0, order: 0}, {true, 0, 0}}, lists{3: {0}}},
		{"a buddy in use stops the merge", []step{{pfn: 0, order: 0}, {pfn: 1, order: 0}, {true, 0, 0}},
			lists{0: {0}, 1: {2}, 2: {4}}},
		{"a free buddy of a smaller order stops it too",
			[]step{{pfn: 0, order: 2}, {pfn: 4, order: 0}, {true, 0, 2}}, lists{0: {5}, 1: {6}, 2: {0}}},
		{"a block whose upper merge is likely goes to the tail",
			[]step{{pfn: 0, order: 2}, {pfn: 4, order: 2}, {true, 4, 1}, {true, 2, 0}, {true, 6, 0}},
			lists{0: {2, 6}, 1: {4}}},
		{"a block whose upper merge is unlikely goes to the head",
			[]step{{pfn: 0, order: 3}, {true, 1, 0}, {true, 4, 0}}, lists{0: {4, 1}}},
	} {
		t.Run(tc.desc, func(t *testing.T) {
			a := tiny(t, false)
			for i, s := range tc.steps {
				if s.free {
					a.Free(0, s.pfn, s.order, Movable)
				} else if got, ok := a.Alloc(0, 0, s.order, Movable, 0); !ok || got != s.pfn {
					t.Fatalf("step %d: Alloc(order %d) = %d, %v, want %d", i, s.order, got, ok, s.pfn)
				}
				check(t, a)
			}
			for o := range tc.want {
				got := headsOf(a, uint8(o), Movable)
				if len(got) != len(tc.want[o]) {
					t.Fatalf("order %d: free blocks %v, want %v", o, got, tc.want[o])
				}
				for i := range got {
					if got[i] != tc.want[o][i] {
						t.Fatalf("order %d: free blocks %v, want %v", o, got, tc.want[o])
					}
				}
			}
		})
	}
}

// TestBootOrder: a fresh zone is handed out in ascending order of address.
func TestBootOrder(t *testing.T) {
	a := machine(t, 64, 1)
	a.SetMinFree(0)
	for want := uint64(0); want < 16; want++ {
		if got, ok := a.Alloc(0, 0, 10, Movable, 0); !ok || got != want<<10 {
			t.Fatalf("block %d: Alloc = %d, %v", want, got, ok)
		}
	}
	if _, ok := a.Alloc(0, 0, 10, Movable, 0); ok {
		t.Fatal("a seventeenth block of 4 MB in 64 MB")
	}
	if a.Events.Fail != 1 || a.Events.Compact != 0 {
		t.Fatalf("events %+v", a.Events)
	}
	check(t, a)
}

// TestSequentialPages: single pages come in ascending order through refills.
func TestSequentialPages(t *testing.T) {
	a := machine(t, 256, 1)
	for want := range uint64(20000) {
		if got, ok := a.Alloc(0, 0, 0, Movable, 0); !ok || got != want {
			t.Fatalf("page %d: Alloc = %d, %v", want, got, ok)
		}
	}
	check(t, a)
}

// TestClaim: a request of another type takes over the largest block it finds.
func TestClaim(t *testing.T) {
	a := machine(t, 64, 1)
	if pfn, ok := a.Alloc(0, 0, 4, Unmovable, 0); !ok || pfn != 0 {
		t.Fatalf("Alloc = %d, %v", pfn, ok)
	}
	if a.Events.Fallback != 1 || a.typeOf(0) != Unmovable || a.typeOf(512) != Unmovable || a.typeOf(1024) != Movable {
		t.Fatalf("events %+v, types %v %v %v", a.Events, a.typeOf(0), a.typeOf(512), a.typeOf(1024))
	}
	// What is left of the block serves the type from now on.
	if pfn, _ := a.Alloc(0, 0, 4, Unmovable, 0); pfn != 16 || a.Events.Fallback != 1 {
		t.Fatalf("second Alloc = %d, events %+v", pfn, a.Events)
	}
	check(t, a)
	a.Free(0, 0, 4, Unmovable)
	a.Free(0, 16, 4, Unmovable)
	if got := headsOf(a, 10, Unmovable); len(got) != 1 || got[0] != 0 {
		t.Fatalf("the merged block is not on its new type's list: %v", got)
	}
	check(t, a)
}

// TestSteal: when nothing large is left, a small block of another type is
// taken and the pageblock keeps its type.
func TestSteal(t *testing.T) {
	a := tiny(t, false)
	for range 8 {
		a.Alloc(0, 0, 0, Movable, 0)
	}
	// One page of four is free and three hold movable pages, which are not
	// alike for an unmovable request: no claim.
	a.Free(0, 5, 0, Movable)
	a.Events = Events{}
	if pfn, ok := a.Alloc(0, 0, 0, Unmovable, 0); !ok || pfn != 5 {
		t.Fatalf("Alloc = %d, %v", pfn, ok)
	}
	if a.Events.Fallback != 1 || a.typeOf(5) != Movable {
		t.Fatalf("events %+v, type %v", a.Events, a.typeOf(5))
	}
	check(t, a)
}

// TestClaimPageblock: below the pageblock's order half of it must be free or
// alike, and then the rest of its free blocks go along.
func TestClaimPageblock(t *testing.T) {
	for _, tc := range []struct {
		desc  string
		freed int // pages of the first pageblock given back before the request
		claim bool
	}{
		{"half the pageblock free", 256, true},
		{"less than half free", 128, false},
	} {
		t.Run(tc.desc, func(t *testing.T) {
			a := machine(t, 8, 1)
			a.noPCP = true
			a.SetMinFree(0)
			for range 2 {
				a.Alloc(0, 0, 10, Movable, 0)
			}
			for p := range tc.freed {
				a.Free(0, uint64(p), 0, Movable)
			}
			a.Events = Events{}
			pfn, ok := a.Alloc(0, 0, 0, Unmovable, 0)
			if !ok || pfn >= 512 || a.Events.Fallback != 1 {
				t.Fatalf("Alloc = %d, %v, events %+v", pfn, ok, a.Events)
			}
			if got := a.typeOf(0) == Unmovable; got != tc.claim {
				t.Fatalf("pageblock type %v", a.typeOf(0))
			}
			check(t, a)
		})
	}
}

// TestPMDList: a miss of the PMD's order takes two blocks; a freed one is the
// next given out, is not free meanwhile, and Drain returns it.
func TestPMDList(t *testing.T) {
	a := machine(t, 1024, 1)
	total := a.FreePages()
	first, _ := a.Alloc(0, 0, 9, Movable, 0)
	if a.Events.Refill != 2 || a.Events.PCPHit != 1 || a.PCPPages() != 512 || a.FreePages() != total-1024 {
		t.Fatalf("events %+v, %d on the list", a.Events, a.PCPPages())
	}
	a.Free(0, first, 9, Movable)
	if a.FreePages() != total-1024 {
		t.Fatal("a block on a per-CPU list counts as free")
	}
	if again, _ := a.Alloc(0, 0, 9, Movable, 0); again != first {
		t.Fatalf("not last in, first out: %d then %d", first, again)
	}
	a.Free(0, first, 9, Movable)
	a.Drain(0)
	check(t, a)
	if a.FreePages() != total || a.PCPPages() != 0 {
		t.Fatalf("after Drain %d free of %d", a.FreePages(), total)
	}
	if n := a.zones[0].area[10][Movable].n; n != 256 {
		t.Fatalf("drained blocks did not merge: %d of order 10", n)
	}
}

// TestRefillDoubles: order-0 refills take 63, 126, 252, ... pages.
func TestRefillDoubles(t *testing.T) {
	a := machine(t, 4096, 1)
	var sizes []uint32
	for range 2000 {
		before := a.Events.Refill
		a.Alloc(0, 0, 0, Movable, 0)
		if n := a.Events.Refill - before; n > 0 {
			sizes = append(sizes, n)
		}
	}
	want := []uint32{63, 126, 252, 504, 1008, 2016}
	for i, n := range sizes {
		if n != want[i] {
			t.Fatalf("refills %v, want %v", sizes, want)
		}
	}
	if len(sizes) < 5 {
		t.Fatalf("refills %v", sizes)
	}
}

// TestRunEqualsSingles: a refill leaves what as many single requests leave.
func TestRunEqualsSingles(t *testing.T) {
	cfg := Config{Zones: []Zone{{Name: "Normal", Pages: 1 << 20, Free: []uint64{30, 20, 9, 7, 5, 4, 3, 3, 2, 1, 90}}},
		CPUs: 1, PageShift: 12, MaxOrder: 10, PMDOrder: 9}
	for _, order := range []uint8{0, 1, 3, 9} {
		a, _ := New(cfg)
		b, _ := New(cfg)
		p := &a.zones[0].pcp[0]
		for range 12 {
			r := ring{}
			a.refill(&a.zones[0], p, &r, order, Movable, true)
			mode := modeOwn
			for i := range r.n {
				if want := b.rmqueue(&b.zones[0], order, Movable, true, &mode); r.at(i) != want {
					t.Fatalf("order %d: block %d is %d, want %d", order, i, r.at(i), want)
				}
			}
			p.count = 0
		}
		if a.Events.Expand != b.Events.Expand {
			t.Errorf("order %d: %d halvings, want %d", order, a.Events.Expand, b.Events.Expand)
		}
		for o := range uint8(11) {
			if x, y := headsOf(a, o, Movable), headsOf(b, o, Movable); !slices.Equal(x, y) {
				t.Errorf("order %d: free blocks of order %d are %v, want %v", order, o, x, y)
			}
		}
		check(t, a)
	}
}

// TestMiddleOrders: orders 4 to 8 and 10 pass the per-CPU lists by.
func TestMiddleOrders(t *testing.T) {
	for o := uint8(0); o <= 10; o++ {
		a := machine(t, 1024, 1)
		pfn, _ := a.Alloc(0, 0, o, Movable, 0)
		a.Free(0, pfn, o, Movable)
		pcp := o <= 3 || o == 9
		if got := a.Events.PCPHit == 1 && a.Events.PCPFree == 1; got != pcp {
			t.Errorf("order %d: events %+v", o, a.Events)
		}
		check(t, a)
	}
}

// TestNodes: a full node falls over to the next, unless only it is asked for.
func TestNodes(t *testing.T) {
	a, err := New(Config{Zones: []Zone{{Node: 0, Name: "Normal", Pages: 16 << 8}, {Node: 1, Name: "Normal",
		Start: 16 << 8, Pages: 16 << 8}}, CPUs: 2, CPUNode: []int{0, 1}, PageShift: 12, MaxOrder: 10, PMDOrder: 9})
	if err != nil {
		t.Fatal(err)
	}
	a.SetMinFree(0)
	for {
		pfn, ok := a.Alloc(1, -1, 6, Movable, ThisNode)
		if !ok {
			break
		}
		if pfn < 16<<8 {
			t.Fatalf("block %d is not on node 1", pfn)
		}
	}
	if pfn, ok := a.Alloc(1, -1, 6, Movable, 0); !ok || pfn >= 16<<8 {
		t.Fatalf("Alloc = %d, %v", pfn, ok)
	}
	check(t, a)
}

// TestDirectReclaim: pages stuck on another CPU's list come back when an
// allocation may wait for them.
func TestDirectReclaim(t *testing.T) {
	a := machine(t, 16, 2)
	a.SetMinFree(0)
	var held []uint64
	for {
		pfn, ok := a.Alloc(0, 0, 0, Movable, 0)
		if !ok {
			break
		}
		held = append(held, pfn)
	}
	for _, pfn := range held[:3] {
		a.Free(1, pfn, 0, Movable)
	}
	if a.PCPPages() != 3 {
		t.Fatalf("%d pages on lists", a.PCPPages())
	}
	if _, ok := a.Alloc(0, 0, 0, Movable, 0); ok {
		t.Fatal("a page from another CPU's list")
	}
	if _, ok := a.Alloc(0, 0, 2, Movable, 0); ok {
		t.Fatal("order 2 from nowhere")
	}
	a.Events = Events{}
	if _, ok := a.Alloc(0, 0, 2, Movable, DirectReclaim); ok || a.Events.Compact != 0 {
		t.Fatalf("compaction with less free than it needs: %+v", a.Events)
	}
	if _, ok := a.Alloc(0, 0, 0, Movable, DirectReclaim); !ok {
		t.Fatal("order 0 fails with 3 pages on another CPU's list")
	}
	check(t, a)
}

func TestNewRefuses(t *testing.T) {
	good := Config{Zones: []Zone{{Name: "Normal", Pages: 4096}}, CPUs: 1, PageShift: 12, MaxOrder: 10, PMDOrder: 9}
	for _, tc := range []struct {
		desc string
		edit func(c *Config)
	}{
		{"no zone", func(c *Config) { c.Zones = nil }},
		{"no CPU", func(c *Config) { c.CPUs = 0 }},
		{"CPU on a node without memory", func(c *Config) { c.CPUNode = []int{3} }},
		{"nodes for too few CPUs", func(c *Config) { c.CPUNode = []int{} }},
		{"unknown zone", func(c *Config) { c.Zones = []Zone{{Name: "High", Pages: 4096}} }},
		{"empty zone", func(c *Config) { c.Zones = []Zone{{Name: "Normal"}} }},
		{"frames beyond 32 bits", func(c *Config) { c.Zones = []Zone{{Name: "Normal", Start: 1 << 32, Pages: 1}} }},
		{"overflow", func(c *Config) { c.Zones = []Zone{{Name: "Normal", Start: 1, Pages: ^uint64(0)}} }},
		{"largest order far above the PMD's", func(c *Config) { c.MaxOrder = 12 }},
		{"two zones in one block", func(c *Config) {
			c.Zones = []Zone{{Name: "DMA", Pages: 100}, {Name: "Normal", Start: 100, Pages: 4096}}
		}},
		{"more free than there is", func(c *Config) { c.Zones[0].Free = []uint64{10: 5} }},
		{"free blocks that do not fit", func(c *Config) { c.Zones[0].Free = []uint64{0: 1, 10: 4} }},
		{"free blocks past counting", func(c *Config) { c.Zones[0].Free = []uint64{^uint64(0)} }},
		{"free block above the largest order", func(c *Config) { c.Zones[0].Free = []uint64{11: 1} }},
	} {
		c := good
		c.Zones = append([]Zone(nil), good.Zones...)
		tc.edit(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", tc.desc)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
