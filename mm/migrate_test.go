package mm

import (
	"math/rand/v2"
	"testing"
)

// twoNodes makes a rig with two nodes; its CPU is of the first.
func twoNodes(t testing.TB, p Policy, change ...func(*Config)) *rig {
	t.Helper()
	nodes := func(c *Config) {
		c.CPUs = 2
		c.Nodes = []Node{{Mem: 4 * gB, CPUs: []CPU{0}}, {Mem: 4 * gB, CPUs: []CPU{1}}}
	}
	return newRig(t, p, append([]func(*Config){nodes}, change...)...)
}

// movePages moves pages of the rig's space one by one address.
func (r *rig) movePages(from VA, n Pages, to NodeID, all bool) []int32 {
	r.t.Helper()
	pages, nodes, status := make([]VA, n), make([]NodeID, n), make([]int32, n)
	for i := range pages {
		pages[i], nodes[i] = from+VA(i)<<r.m.pageShift, to
	}
	eq(r.t, "move_pages", r.m.MovePages(&r.c, 1, pages, nodes, status, all), OK)
	r.check()
	return status
}

// moved is the five counters of semantics 9.3.
type moved struct{ success, fail, thpSuccess, thpFail, thpSplit uint64 }

func (r *rig) moved() moved {
	v := &r.m.Counters.VM
	return moved{v[PgMigrateSuccess], v[PgMigrateFail], v[THPMigrationSuccess], v[THPMigrationFail],
		v[THPMigrationSplit]}
}

// TestMigrateCounters is the table of semantics 9.3, a row a case.
func TestMigrateCounters(t *testing.T) {
	for _, tc := range []struct {
		name   string
		orders []Order
		rules  func(*Rules)
		before func(*rig, *vma)
		want   moved
		order  Order // of the first page afterwards
		status int32
	}{
		{"a small page", nil, nil, nil, moved{success: 1}, 0, 1},
		{"64K", []Order{4}, nil, nil, moved{success: 16}, 4, 1},
		{"THP", []Order{9}, nil, nil, moved{success: 512, thpSuccess: 1}, 9, 1},
		{"THP, before 4.14", []Order{9}, func(u *Rules) { u.MigrateTHP, u.MigrateBatch = false, false },
			nil, moved{success: 512, thpFail: 1, thpSplit: 1}, 0, 1},
		{"THP pinned", []Order{9}, nil, func(r *rig, v *vma) { r.folio(v.start).pins = 1 },
			moved{fail: 512, thpFail: 1}, 9, 0},
		{"THP mapped by pages", []Order{9}, nil, func(r *rig, v *vma) { r.m.splitPMDAt(&r.c, v.sp, v.start+4096) },
			moved{success: 512, thpSuccess: 1}, 9, 1},
		{"64K partially mapped", []Order{4}, nil,
			func(r *rig, v *vma) { r.zap(v, v.start+4096, 4*kB, zapDontNeed) }, moved{success: 15}, 0, 1},
		{"THP partially mapped", []Order{9}, nil,
			func(r *rig, v *vma) { r.zap(v, v.start+4096, 4*kB, zapDontNeed) },
			moved{success: 511, thpFail: 1, thpSplit: 1}, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := twoNodes(t, sizes(tc.orders...), func(c *Config) {
				c.Rules.ZeroOnSplit = false
				if tc.rules != nil {
					tc.rules(&c.Rules)
				}
			})
			v := r.mmap(base, 2*mB)
			r.write(v, 0)
			if tc.before != nil {
				tc.before(r, v)
				r.check()
			}
			st := r.movePages(v.start, 1, 1, false)
			eq(t, "counters", r.moved(), tc.want)
			eq(t, "order", r.orderAt(v.start), tc.order)
			eq(t, "status", st[0], tc.status)
			eq(t, "node", int32(r.m.nodeOf(r.m.PageInfo(1, v.start).PFN)), tc.status)
			for i := range tc.orders {
				if tc.name == "THP pinned" {
					r.folio(v.start).pins = uint32(i)
				}
			}
		})
	}
}

// folio is the large folio at a.
func (r *rig) folio(a VA) *folio { return r.m.folioOf(r.m.pages.frame(r.m.PageInfo(1, a).PFN)) }

// TestMigrateNoTarget: without a 2 MB page on the other node a THP is split
// and its pages move; without any page the call stops.
func TestMigrateNoTarget(t *testing.T) {
	r := twoNodes(t, sizes(9), func(c *Config) {
		c.Rules.ZeroOnSplit = false
		c.Free = &FreeState{Zones: []FreeZone{
			{Node: 0, Name: "Normal", Blocks: []uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000}, Managed: 1 << 20},
			{Node: 1, Name: "Normal", Blocks: []uint64{100_000}, Managed: 1 << 20},
		}}
	})
	v := r.mmap(base, 4*mB)
	r.touch(v.start, Write)
	r.touch(v.start+2<<20, Write)
	pages := []VA{v.start, v.start + 2<<20}
	st := make([]int32, 2)
	eq(t, "move_pages", r.m.MovePages(&r.c, 1, pages, []NodeID{1, 1}, st, false), OK)
	got := r.moved()
	if got.thpFail != 2 || got.thpSplit != 2 || got.thpSuccess != 0 || got.success == 0 {
		t.Errorf("%+v: want both THPs split and their pages moved", got)
	}
	eq(t, "order", r.orderAt(v.start), 0)
	eq(t, "status", st[0], 1)
}

// TestMovePagesStatus: what move_pages says of pages that it cannot move.
func TestMovePagesStatus(t *testing.T) {
	r := twoNodes(t, sizes(9))
	v := r.mmap(base, 4*mB)
	small := r.mmap(base+1<<30, 64*kB, vmNoHuge)
	r.write(v, 0)
	r.write(small, 0)
	r.touch(small.start+4096, Read) // the zero page
	r.write(small, 2)
	r.fork(small)
	pages := []VA{v.start + 5<<12, v.start + 6<<12, v.start + 7<<12, v.start + 2<<20, base + 1<<35,
		small.start + 4096, small.start}
	st := make([]int32, len(pages))
	nodes := []NodeID{1, 1, 1, 1, 1, 1, 1}
	eq(t, "errno", r.m.MovePages(&r.c, 1, pages, nodes, st, false), OK)
	r.check()
	want := []int32{1, -int32(EBUSY), 1, -int32(ENOENT), -int32(EFAULT), -int32(EFAULT), -int32(EACCES)}
	for i := range want {
		eq(t, "status", st[i], want[i])
	}
	eq(t, "counters", r.moved(), moved{success: 512, thpSuccess: 1})
	eq(t, "asked", r.m.MovePages(&r.c, 1, pages[:1], nil, st, false), OK)
	eq(t, "where", st[0], 1)
	eq(t, "no such node", r.m.MovePages(&r.c, 1, pages[:1], []NodeID{2}, st, false), ENODEV)
	eq(t, "no such space", r.m.MovePages(&r.c, 99, pages[:1], nodes, st, false), ESRCH)
	// With all, the page that a child maps too goes along, and in the child.
	eq(t, "all", r.m.MovePages(&r.c, 1, pages[6:], nodes, st, true), OK)
	r.check()
	eq(t, "status", st[0], 1)
	eq(t, "one page", r.m.PageInfo(1, small.start).PFN, r.m.PageInfo(2, small.start).PFN)
}

// TestMigrateBatches: from 6.3 on one flush serves up to 512 pages; before,
// every page has its own. The lists of all CPUs are drained once a call.
func TestMigrateBatches(t *testing.T) {
	for _, tc := range []struct {
		batch   bool
		orders  []Order
		n       Pages
		flushes uint32
	}{
		{true, nil, 512, 1},
		{true, nil, 513, 2},
		{false, nil, 512, 512},
		{true, []Order{9}, 1, 1},
		{false, []Order{9}, 1, 1},
	} {
		r := twoNodes(t, sizes(tc.orders...), func(c *Config) { c.Rules.MigrateBatch = tc.batch })
		v := r.mmap(base, 4*mB)
		r.fill(v, v.start, 4*mB, Write)
		r.c.Work = Work{}
		r.movePages(v.start, tc.n, 1, false)
		eq(t, "flushes", r.c.Work[PrimFlush], tc.flushes)
		eq(t, "drained", r.c.Work[PrimLRUDrain], 1)
		if tc.orders != nil {
			eq(t, "pmd entries", r.c.Work[PrimMigrateOutPMD]+r.c.Work[PrimMigrateInPMD], 2)
			eq(t, "copied", r.c.Work[PrimCopyMigrate], 512)
			eq(t, "folios", r.c.Work[PrimMigrateMove], 1)
		} else {
			eq(t, "copied", r.c.Work[PrimCopyMigrate], uint32(tc.n))
			eq(t, "entries", r.c.Work[PrimMigrateOut], uint32(tc.n))
		}
	}
}

// TestMigrateCallers: each caller takes what it should where it should.
func TestMigrateCallers(t *testing.T) {
	node := func(r *rig, a VA) NodeID { return r.m.nodeOf(r.m.PageInfo(1, a).PFN) }
	r := twoNodes(t, sizes(9))
	v := r.mmap(base, 8*mB)
	r.fill(v, v.start, 8*mB, Write)
	stayed, e := r.m.MigratePages(&r.c, 1, []NodeID{0}, []NodeID{1}, false)
	r.check()
	eq(t, "migrate_pages", e, OK)
	eq(t, "stayed", stayed, 0)
	eq(t, "counters", r.moved(), moved{success: 2048, thpSuccess: 4})
	stayed, _ = r.m.MbindMove(&r.c, 1, v.start, 2048, MemPolicy{Nodes: []NodeID{0}})
	r.check()
	eq(t, "mbind", stayed, 0)
	eq(t, "bound", node(r, v.start), 0)
	r.m.MbindMove(&r.c, 1, v.start, 2048, MemPolicy{Nodes: []NodeID{1}})
	eq(t, "counters", r.moved().thpSuccess, 12)
	stayed, e = r.m.CpusetMove(&r.c, 1, []NodeID{1}, []NodeID{0})
	r.check()
	eq(t, "cpuset", stayed == 0 && e == OK, true)
	eq(t, "back", node(r, v.start+6<<20), 0)

	pfn := r.m.PageInfo(1, v.start).PFN
	eq(t, "offlined", r.m.OfflineRange(&r.c, pfn, 512), 0)
	r.check()
	eq(t, "elsewhere", node(r, v.start), 1)
	eq(t, "whole", r.orderAt(v.start), 9)

	before := r.moved()
	pfn = r.m.PageInfo(1, v.start+5<<12).PFN
	eq(t, "soft offline", r.m.SoftOffline(&r.c, pfn), OK)
	r.check()
	eq(t, "split first", r.orderAt(v.start), 0)
	after := r.moved()
	eq(t, "one page", after.success, before.success+1)
	eq(t, "no THP", after.thpSplit, before.thpSplit)
	eq(t, "thp_split_page", r.m.Counters.VM[THPSplitPage], 1)
	if got := r.m.PageInfo(1, v.start+5<<12).PFN; got == pfn {
		t.Error("the page still stands on the frame that went out of use")
	}
	eq(t, "again", r.m.SoftOffline(&r.c, pfn), EBUSY)
}

// TestMbindInterleave counts in units of the folio's order.
func TestMbindInterleave(t *testing.T) {
	r := twoNodes(t, sizes(9), func(c *Config) { c.Nodes = append(c.Nodes, Node{Mem: 4 * gB, CPUs: []CPU{}}) })
	v := r.mmap(base, 8*mB)
	r.fill(v, v.start, 8*mB, Write)
	r.m.MbindMove(&r.c, 1, v.start, 2048, MemPolicy{Interleave: true, Nodes: []NodeID{1, 2}})
	r.check()
	for i := range VA(4) {
		got := r.m.nodeOf(r.m.PageInfo(1, v.start+i<<21).PFN)
		eq(t, "node", got, NodeID(1+(uint64(base>>21)+uint64(i))%2))
	}
}

// TestMigrateKeepsBits: a moved page is as it was, but for what old kernels
// lose.
func TestMigrateKeepsBits(t *testing.T) {
	for _, young := range []bool{true, false} {
		r := twoNodes(t, policyOff(), func(c *Config) { c.Rules.MigrateYoung = young })
		v := r.mmap(base, 64*kB)
		r.write(v, 3)
		was := r.m.PageInfo(1, v.start+3<<12)
		r.movePages(v.start+3<<12, 1, 1, false)
		is := r.m.PageInfo(1, v.start+3<<12)
		eq(t, "content", [4]bool{is.Touched, is.Filled, is.Writable, is.Exclusive},
			[4]bool{was.Touched, was.Filled, was.Writable, was.Exclusive})
		e := m0(r, v.start+3<<12)
		eq(t, "young", e&(eYoung|eDirty) != 0, young)
	}
}

// m0 is the PTE at a.
func m0(r *rig, a VA) uint64 {
	pmd := r.m.pmdTable(r.sp, a)
	return r.m.pages.tables.at(eSlot(r.m.pages.tables.at(pmd)[r.m.pmdIndex(a)]))[r.m.pageIndex(a)]
}

// TestMigrateRandom moves pages of a few spaces at random, with everything
// that may have happened to them before.
func TestMigrateRandom(t *testing.T) {
	for seed := range uint64(40) {
		x := rand.New(rand.NewPCG(seed, 2))
		r := twoNodes(t, randomPolicy(x), func(c *Config) {
			c.Rules.MigrateBatch = x.IntN(2) == 0
			c.Rules.MigrateTHP = x.IntN(4) > 0
			c.Rules.ZeroOnSplit = x.IntN(2) == 0
		})
		vmas := []*vma{r.mmap(base+5<<12, 3*mB), r.mmap(base+8<<20, 3*mB, vmHuge)}
		for step := range 60 {
			migrateStep(r, x, &vmas)
			if err := r.m.Check(); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
		}
		for _, sp := range r.m.spaces[1:] {
			r.m.endSpace(&r.c, sp)
		}
		r.m.Shrink(&r.c)
		r.check()
		v := &r.m.Counters.VM
		if v[THPMigrationFail] < v[THPMigrationSplit] || v[PgMigrateSuccess] < 512*v[THPMigrationSuccess] {
			t.Errorf("seed %d: %+v do not add up", seed, r.moved())
		}
	}
}

func migrateStep(r *rig, x *rand.Rand, vmas *[]*vma) {
	v := (*vmas)[x.IntN(len(*vmas))]
	a := v.start + VA(x.Uint64N(uint64(v.end-v.start)))&^4095
	b := min(v.end, a+VA(4096)<<x.IntN(11))
	seen := []uint64{}
	look := func() (out []uint64) {
		for p := v.start; p < v.end; p += 4096 {
			in := r.m.PageInfo(v.sp.id, p)
			bits := uint64(in.Maps)
			for i, on := range []bool{in.Present, in.Zero, in.Touched, in.Filled, in.Writable} {
				if on {
					bits |= 1 << (32 + i)
				}
			}
			out = append(out, bits)
		}
		return out
	}
	switch k := x.IntN(10); {
	case k < 4:
		for ; a < b; a += 4096 * 3 {
			r.m.touch(&r.c, v.sp, a, []Access{Read, Write}[x.IntN(2)])
		}
	case k == 4:
		r.m.zapRange(&r.c, v, a, b, zapDontNeed)
	case k == 5 && len(*vmas) < 6:
		*vmas = append(*vmas, r.fork(v))
	case k == 6:
		r.m.collapse(&r.c, v, v.start, v.end)
	case k == 7:
		if pfn := r.m.PageInfo(v.sp.id, a).PFN; pfn != 0 {
			r.m.OfflineRange(&r.c, pfn, 700)
		}
	default:
		if !r.m.rules.ZeroOnSplit {
			seen = look()
		}
		to := NodeID(x.IntN(2))
		r.m.MigratePages(&r.c, v.sp.id, []NodeID{1 - to}, []NodeID{to}, x.IntN(2) == 0)
	}
	if len(seen) > 0 {
		for i, s := range look() {
			if s != seen[i] {
				r.t.Fatalf("page %d was %x, is %x after it moved", i, seen[i], s)
			}
		}
	}
}
