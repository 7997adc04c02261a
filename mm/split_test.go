package mm

import "testing"

// TestU is the deferred shrinker: underused THPs (max_ptes_none 409) and
// partially mapped folios of 2M and 64K (semantics 3.4).
func TestU(t *testing.T) {
	p := sizes(9)
	p.Khugepaged.MaxPTEsNone = 409
	r := newRig(t, p)
	v := r.mmap(base, 4*mB)
	r.write(v, 0)
	for i := range VA(103) { // 103 filled pages are well used: 512-409
		r.write(v, 512+i)
	}
	r.m.Shrink(&r.c)
	r.check()
	vm := &r.m.Counters.VM
	eq(t, "thp_underused_split_page", vm[THPUnderusedSplitPage], 1)
	eq(t, "thp_split_page", vm[THPSplitPage], 1)
	eq(t, "thp_split_pmd", vm[THPSplitPMD], 1)
	eq(t, "split", r.m.Counters.Size[9].Split, 1)
	eq(t, "rss", v.sp.rssAnon, 1+512)
	eq(t, "zero pages", r.m.PageInfo(v.sp.id, v.start+4096).Zero, true)
	eq(t, "queue", r.m.pages.queue.n, 0)
	r.m.Shrink(&r.c)
	eq(t, "left for good", vm[THPSplitPage], 1)

	// With the default 511 nothing is ever underused.
	r = newRig(t, sizes(9))
	v = r.mmap(base, 2*mB)
	r.touch(v.start, Write|ZeroData) // all of it is zeros
	r.m.Shrink(&r.c)
	eq(t, "511", r.m.Counters.VM[THPSplitPage], 0)

	for _, o := range []Order{4, 9} {
		r := newRig(t, sizes(o))
		v := r.mmap(base, 2*mB)
		for i := range VA(1) << o {
			r.m.touch(&r.c, r.sp, v.start+i<<12, Write)
		}
		r.zap(v, v.start, 4*kB, zapDontNeed)
		st := &r.m.Counters.Size[o]
		eq(t, "partially mapped", st.NrAnonPartiallyMapped, 1)
		r.m.Shrink(&r.c)
		r.check()
		eq(t, "split", st.Split, 1)
		eq(t, "gauge", st.NrAnonPartiallyMapped, 0)
		eq(t, "nr_anon", st.NrAnon, 0)
		eq(t, "anon", r.m.Usage.Anon, o.Pages()-1)
		eq(t, "underused", r.m.Counters.VM[THPUnderusedSplitPage], 0)
	}
}

// TestUShared: a partially mapped folio that two spaces map is split in both.
func TestUShared(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	for i := range VA(512) {
		r.m.touch(&r.c, r.sp, v.start+i<<12, Write)
	}
	child := r.fork(v)
	r.zap(child, v.start, 4*kB, zapDontNeed)
	eq(t, "one is left whole", r.m.Counters.Size[9].SplitDeferred, 0)
	r.zap(v, v.start, 8*kB, zapDontNeed)
	eq(t, "page 0 is gone", r.m.Counters.Size[9].SplitDeferred, 1)
	r.m.Shrink(&r.c)
	r.check()
	eq(t, "split", r.m.Counters.VM[THPSplitPage], 1)
	eq(t, "anon", r.m.Usage.Anon, 511)
	eq(t, "child", r.m.PageInfo(child.sp.id, v.start+4096).Order, 0)
	eq(t, "parent rss", v.sp.rssAnon, 510)
	eq(t, "child rss", child.sp.rssAnon, 511)
}

// TestE7c: MADV_FREE of 64 KiB of a THP with one byte written leaves one page
// and 511 zero-page PTEs; whole, it does nothing.
func TestE7c(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 4*mB)
	r.write(v, 0)
	r.write(v, 512)
	r.m.freeRange(&r.c, v, v.start+2<<20, v.end)
	r.check()
	vm := &r.m.Counters.VM
	eq(t, "whole", vm[THPSplitPage], 0)
	r.m.freeRange(&r.c, v, v.start, v.start+64<<10)
	r.check()
	eq(t, "thp_split_page", vm[THPSplitPage], 1)
	eq(t, "thp_split_pmd", vm[THPSplitPMD], 1)
	eq(t, "split", r.m.Counters.Size[9].Split, 1)
	eq(t, "rss", v.sp.rssAnon, 513)
	eq(t, "anon", r.m.Usage.Anon, 513)
	eq(t, "deferred", vm[THPDeferredSplitPage], 0)
	eq(t, "read of a zero page", r.touch(v.start+4096, Read), Hit)
	eq(t, "write to it", r.write(v, 1), Done)
	// A 64K folio is split the same way, and shared ones are left alone.
	r = newRig(t, sizes(4))
	v = r.mmap(base, 128*kB)
	r.write(v, 0)
	r.write(v, 16)
	child := r.fork(v)
	r.m.coldRange(&r.c, v, v.start, v.start+4096, false)
	eq(t, "shared", r.m.Counters.Size[4].Split, 0)
	r.exit(child)
	r.m.coldRange(&r.c, v, v.start, v.start+4096, false)
	r.check()
	eq(t, "split", r.m.Counters.Size[4].Split, 1)
	eq(t, "rss", v.sp.rssAnon, 17)
}

// TestZeroOnSplitLocked: locked memory keeps its zero-filled pages.
func TestZeroOnSplitLocked(t *testing.T) {
	for _, s := range []struct {
		flags vmFlags
		zero  bool
		rss   Pages
	}{{0, true, 1}, {vmLocked, true, 512}, {0, false, 512}} {
		r := newRig(t, sizes(9), func(c *Config) { c.Rules.ZeroOnSplit = s.zero })
		v := r.mmap(base, 2*mB, s.flags)
		r.write(v, 0)
		r.m.freeRange(&r.c, v, v.start, v.start+4096)
		r.check()
		eq(t, "rss", v.sp.rssAnon, s.rss)
		eq(t, "anon", r.m.Usage.Anon, s.rss)
	}
}

// TestPinned: a folio that is held cannot be split, and fork splits its PMD.
func TestPinned(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	r.write(v, 0)
	fo := r.m.folioOf(r.m.pages.frame(r.m.PageInfo(1, v.start).PFN))
	fo.pins = 1
	r.m.freeRange(&r.c, v, v.start, v.start+4096)
	r.check()
	eq(t, "split_failed", r.m.Counters.Size[9].SplitFailed, 1)
	eq(t, "thp_split_page_failed", r.m.Counters.VM[THPSplitPageFailed], 1)
	child := r.fork(v)
	eq(t, "split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
	eq(t, "copied at once", child.sp.rssAnon, 512)
	eq(t, "anon", r.m.Usage.Anon, 1024)
	fo.pins = 0
	r.check()
}

// moveVMA makes a VMA at new and moves n pages of v into it.
func (r *rig) moveVMA(v *vma, old, new VA, n Pages) *vma {
	to := &vma{
		start: new, end: new + VA(n)<<r.m.pageShift, flags: v.flags, sp: v.sp, region: v.region,
		pgoff: v.anonIndex(old, r.m.pageShift), anon: v.anon,
	}
	r.m.anonClone(to, v)
	r.m.addVMA(&r.c, to)
	r.m.movePages(&r.c, v, to, old, new, n)
	return to
}

// TestE5: a THP moved whole, moved by 64 KiB, and by half (semantics 3.8).
func TestE5(t *testing.T) {
	const far = base + 1<<30
	move := func(r *rig, v *vma, old, new VA, n Pages) *vma {
		to := r.moveVMA(v, old, new, n)
		r.m.zapRange(&r.c, v, old, old+VA(n)<<12, zapUnmap)
		v.setRange(v.start, old, v.pgoff)
		r.check()
		return to
	}
	setup := func() (*rig, *vma) {
		r := newRig(t, sizes(9))
		v := r.mmap(base, 4*mB)
		r.write(v, 512)
		return r, v
	}
	r, v := setup()
	to := move(r, v, v.start+2<<20, far, 512)
	eq(t, "whole: split_pmd", r.m.Counters.VM[THPSplitPMD], 0)
	eq(t, "whole: faults", r.write(to, 511), Hit)
	eq(t, "whole: pmd", r.m.PageInfo(1, far).PMD, true)

	r, v = setup()
	to = move(r, v, v.start+2<<20, far+64<<10, 512)
	eq(t, "+64K: split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
	eq(t, "+64K: whole folio", r.orderAt(far+64<<10), 9)
	eq(t, "+64K: no event yet", r.m.Counters.VM[THPDeferredSplitPage], 0)
	r.munmap(to)
	eq(t, "+64K: event at munmap", r.m.Counters.VM[THPDeferredSplitPage], 1)
	eq(t, "+64K: freed", r.m.Usage.Anon, 0)

	r, v = setup()
	move(r, v, v.start+3<<20, far, 256)
	eq(t, "half: split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
	eq(t, "half: rss", r.sp.rssAnon, 512)
	eq(t, "half: deferred", r.m.Counters.VM[THPDeferredSplitPage], 0)

	// The split reaches pages that moved.
	r, v = setup()
	to = move(r, v, v.start+2<<20, far+64<<10, 512)
	r.zap(to, to.start, 4*kB, zapDontNeed)
	r.m.Shrink(&r.c)
	r.check()
	eq(t, "moved and split", r.m.Counters.VM[THPSplitPage], 1)
}

// TestRealign: a move whose start is not aligned takes the whole table along
// when nothing else lies in it.
func TestRealign(t *testing.T) {
	const far = base + 1<<30
	r := newRig(t, policyOff())
	v := r.mmap(base+1<<20, 3*mB)
	r.fill(v, v.start, 3*mB, Write)
	moves := r.c.Work[PrimPTEMove]
	to := r.moveVMA(v, v.start, far+1<<20, 768)
	eq(t, "pte moves", r.c.Work[PrimPTEMove], moves)
	eq(t, "pmd moves", r.c.Work[PrimPMDMove], 2)
	r.munmap(v)
	r.munmap(to)
	eq(t, "tables", r.m.Usage.Tables, 0)
}

// TestProtect: read-only and back makes exclusive pages writable at once.
func TestProtect(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 4*mB)
	r.write(v, 0)
	r.touch(v.start+2<<20, Read)
	v.flags &^= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	r.check()
	eq(t, "whole: split_pmd", r.m.Counters.VM[THPSplitPMD], 0)
	eq(t, "refused", r.write(v, 0), Segv)
	v.flags |= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	eq(t, "upgraded", r.write(v, 0), Hit)
	eq(t, "huge zero is not", r.write(v, 512), Done)
	// Part of a THP: the boundary splits the PMD.
	r.m.splitPMDAt(&r.c, r.sp, v.start+4096)
	eq(t, "part: split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
	r.m.splitPMDAt(&r.c, r.sp, v.start+2<<20)
	eq(t, "boundary", r.m.Counters.VM[THPSplitPMD], 1)
	// A page shared with a child is not upgraded.
	child := r.fork(v)
	v.flags &^= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	v.flags |= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	r.check()
	eq(t, "shared", r.write(v, 3), Done)
	eq(t, "copied", r.m.PageInfo(1, v.start+3<<12).Order, 0)
	_ = child
}
