package mm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// smallRig is a machine of one zone of 64 MB.
func smallRig(t testing.TB, p Policy, change ...func(*Config)) *rig {
	t.Helper()
	return newRig(t, p, append([]func(*Config){func(c *Config) { c.Nodes[0].Mem = 64 * mB }}, change...)...)
}

// shown is what PageInfo says of every page of a VMA, frames apart.
func (r *rig) shown(v *vma) (pages []PageInfo, frames []PFN) {
	for a := v.start; a < v.end; a += r.m.pageSize() {
		in := r.m.PageInfo(v.sp.id, a)
		frames = append(frames, in.PFN)
		in.PFN = 0
		pages = append(pages, in)
	}
	return pages, frames
}

// thin unmaps all but each n-th piece of a VMA.
func (r *rig) thin(v *vma, piece Bytes, n int) {
	i := 0
	for a := v.start; a < v.end; a += VA(piece) {
		if i++; i%n != 0 {
			r.m.zapRange(&r.c, v, a, a+VA(piece), zapDontNeed)
		}
	}
	r.check()
}

// bigBlocks drains the per-CPU lists, and counts what is free: pages, and
// blocks that a huge page fits into.
func (r *rig) bigBlocks() (free Pages, big uint64) {
	r.m.alloc.DrainAll()
	mem := r.m.Memory()
	for _, z := range mem.Zones {
		for o := int(r.m.pmdOrder); o < len(z.Blocks); o++ {
			big += z.Blocks[o] << (o - int(r.m.pmdOrder))
		}
	}
	return mem.Free, big
}

// compact calls CompactMemory and returns how many pages have another frame.
func (r *rig) compact(vmas ...*vma) (moved uint64) {
	r.t.Helper()
	var frames [][]PFN
	for _, v := range vmas {
		_, f := r.shown(v)
		frames = append(frames, f)
	}
	eq(r.t, "compact_memory", r.m.CompactMemory(&r.c, -1), OK)
	r.check()
	for i, v := range vmas {
		_, f := r.shown(v)
		for k := range f {
			if f[k] != frames[i][k] {
				moved++
			}
		}
	}
	return moved
}

// TestCompactMemory: what is left of memory in pieces ends up in few
// pageblocks; pages stay as they were, but for their frames. Where the scanners
// meet no targets are left: large folios are split there, and one page fails.
func TestCompactMemory(t *testing.T) {
	for _, tc := range []struct {
		name  string
		p     Policy
		piece Bytes
	}{{"small pages", policyOff(), 4 * kB}, {"16K", sizes(2), 16 * kB}, {"64K", sizes(4), 64 * kB}} {
		t.Run(tc.name, func(t *testing.T) {
			r := smallRig(t, tc.p)
			v := r.mmap(base, 40*mB)
			r.fill(v, v.start, 40*mB, Write)
			r.thin(v, tc.piece, 4)
			free, big := r.bigBlocks()
			was, _ := r.shown(v)
			vm := &r.m.Counters.VM
			n := r.compact(v)
			is, _ := r.shown(v)
			if !samePages(was, is) {
				t.Error("pages are not as they were")
			}
			pages, lost := 0, 0
			for i := range was {
				if was[i].Present {
					pages++
				}
				if was[i].Order != is[i].Order {
					lost++
				}
			}
			free2, big2 := r.bigBlocks()
			eq(t, "free pages", free2, free)
			if big2 < big+10 || n == 0 {
				t.Errorf("%d pages moved; room for %d huge pages, %d before", n, big2, big)
			}
			fail := vm[PgMigrateFail]
			eq(t, "counters", r.moved(), moved{success: n, fail: fail})
			if o := tc.p.Size; fail > 1 || lost > pages/10 || (o[2]|o[4]) == 0 && lost > 0 {
				t.Errorf("%d pages failed, %d of %d lost their order", fail, lost, pages)
			}
			if s := vm[CompactIsolated]; s < 2*n || vm[CompactMigrateScanned] < n || vm[CompactFreeScanned] < n {
				t.Errorf("%d isolated, %d and %d scanned, %d moved", s, vm[CompactMigrateScanned],
					vm[CompactFreeScanned], n)
			}
			eq(t, "tried at an allocation", vm[CompactStall], 0)
			sizes := &r.m.Counters.Size
			eq(t, "pages split", sizes[4].Split*16+sizes[2].Split*4, uint64(lost))
			eq(t, "split deferred", sizes[4].SplitDeferred+sizes[2].SplitDeferred, sizes[4].Split+sizes[2].Split)
			eq(t, "drained once", r.c.Work[PrimLRUDrain], 1)
			if n2 := r.compact(v); n2 > n/4 {
				t.Errorf("a second time moves %d pages, the first %d", n2, n)
			}
		})
	}
}

// TestCompactSplits: where only single pages are free, 64 kB folios are split
// and their pages move. Kernels before 6.9 leave them alone.
func TestCompactSplits(t *testing.T) {
	for _, large := range []bool{true, false} {
		r := smallRig(t, sizes(4), func(c *Config) { c.Rules.CompactLarge = large })
		v := r.mmap(base, 16*mB)
		r.fill(v, v.start, 16*mB, Write)
		r.m.SetPolicy(policyOff())
		w := r.mmap(base+1<<30, 40*mB)
		r.fill(w, w.start, 40*mB, Write)
		r.thin(w, 4*kB, 2)
		n := r.compact(v, w)
		st := &r.m.Counters.Size[4]
		eq(t, "counters", r.moved(), moved{success: n, fail: r.moved().fail})
		if f := r.moved().fail; f > 1 {
			t.Errorf("%d pages failed: want the one that stopped it, if any", f)
		}
		eq(t, "split and deferred", st.SplitDeferred, st.Split)
		lost := uint64(0)
		for a := v.start; a < v.end; a += 64 << 10 {
			if r.orderAt(a) == 0 {
				lost++
			}
		}
		eq(t, "lost their form", st.Split, lost)
		eq(t, "any split", lost > 0, large)
	}
}

// TestCompactLeaves: THPs and pinned folios stay, and count nowhere.
func TestCompactLeaves(t *testing.T) {
	r := smallRig(t, sizes(4, 9))
	v := r.mmap(base, 40*mB)
	r.fill(v, v.start, 40*mB, Write)
	r.thin(v, 2*mB, 2)
	w := r.mmap(base+1<<30, 64*kB*3)
	r.fill(w, w.start, 64*kB*3, Write)
	large := []VA{}
	for a := w.start; a < w.end; a += 4096 {
		if in := r.m.PageInfo(1, a); in.Order == 4 && in.Index == 0 {
			r.folio(a).pins = 1
			large = append(large, a)
		}
	}
	if len(large) == 0 {
		t.Fatal("no 64 kB folio")
	}
	eq(t, "THPs moved", r.compact(v), 0)
	eq(t, "nothing tried", r.moved(), moved{})
	eq(t, "nor isolated", r.m.Counters.VM[CompactIsolated], 0)
	for _, a := range large {
		eq(t, "order", r.orderAt(a), 4)
		r.folio(a).pins = 0
	}
	eq(t, "no such node", r.m.CompactMemory(&r.c, 1), ENOENT)
}

// TestCompactScanned counts by hand. Of 16 blocks of order 10 the first holds
// the page tables, the second the only page; 14 are free. The migrate scanner
// looks at three pageblocks. The free scanner skips the half at which a free
// block begins, and looks at the other in steps of 1, 2, 4, 8, 16 and then 32
// pages. No block of less than a pageblock is free there: the page stays.
func TestCompactScanned(t *testing.T) {
	r := smallRig(t, policyOff())
	v := r.mmap(base, 4*kB)
	r.write(v, 0)
	eq(t, "pageblock", r.m.PageInfo(1, v.start).PFN/512, 4096/512+2)
	eq(t, "moved", r.compact(v), 0)
	vm := &r.m.Counters.VM
	eq(t, "counters", r.moved(), moved{fail: 1})
	eq(t, "isolated", vm[CompactIsolated], 1)
	eq(t, "migrate_scanned", vm[CompactMigrateScanned], 3*512)
	eq(t, "free_scanned", vm[CompactFreeScanned], 512+256+128+64+32+9*16)
}

// TestCompactOneNode: a node's file compacts no other node.
func TestCompactOneNode(t *testing.T) {
	r := twoNodes(t, policyOff(), func(c *Config) { c.Nodes[0].Mem, c.Nodes[1].Mem = 64*mB, 64*mB })
	v := r.mmap(base, 40*mB)
	r.fill(v, v.start, 40*mB, Write)
	r.thin(v, 4*kB, 4)
	eq(t, "other node", r.m.CompactMemory(&r.c, 1), OK)
	eq(t, "moved", r.moved(), moved{})
	eq(t, "its own", r.m.CompactMemory(&r.c, 0), OK)
	r.check()
	if r.moved().success == 0 {
		t.Error("nothing moved")
	}
}

// TestCompactRandom compacts among random programs: pages stay what they are
// where nothing of zeros is split, and the machine adds up.
func TestCompactRandom(t *testing.T) {
	total := uint64(0)
	for seed := range uint64(25) {
		x := rand.New(rand.NewPCG(seed, 3))
		r := twoNodes(t, randomPolicy(x), func(c *Config) {
			c.Nodes[0].Mem, c.Nodes[1].Mem = 32*mB, 32*mB
			c.Rules.CompactLarge = x.IntN(4) > 0
			c.Rules.MigrateBatch = x.IntN(2) == 0
			c.Rules.ZeroOnSplit = x.IntN(2) == 0
		})
		vmas := []*vma{r.mmap(base+5<<12, 3*mB), r.mmap(base+8<<20, 3*mB, vmHuge)}
		r.shared(base+64<<20, 1*mB)
		for step := range 50 {
			if x.IntN(3) > 0 {
				migrateStep(r, x, &vmas)
			} else {
				was, _ := r.shown(vmas[0])
				eq(t, "errno", r.m.CompactMemory(&r.c, x.IntN(3)-1), OK)
				if is, _ := r.shown(vmas[0]); !r.m.rules.ZeroOnSplit && !samePages(was, is) {
					t.Fatalf("seed %d step %d: pages are not as they were", seed, step)
				}
			}
			if err := r.m.Check(); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
		}
		total += r.m.Counters.VM[CompactIsolated]
		for _, sp := range r.m.spaces[1:] {
			r.m.endSpace(&r.c, sp)
		}
		r.m.Shrink(&r.c)
		r.check()
		eq(t, "left", r.m.physUsed(), 0)
	}
	if total == 0 {
		t.Error("nothing was ever isolated")
	}
}

// samePages compares what does not depend on a folio's order.
func samePages(a, b []PageInfo) bool {
	return slices.EqualFunc(a, b, func(p, q PageInfo) bool {
		p.Order, q.Order, p.Index, q.Index = 0, 0, 0, 0
		return p == q
	})
}
