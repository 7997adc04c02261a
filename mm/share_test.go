package mm

import "testing"

// fork makes a second space with a copy of v, by hand.
func (r *rig) fork(v *vma) *vma {
	r.t.Helper()
	child := r.newSpace()
	r.m.khugepagedFork(child, v.sp)
	r.m.forkVMA(&r.c, child, v)
	r.check()
	return child.find(v.start)
}

func (r *rig) write(v *vma, page VA) Outcome {
	r.t.Helper()
	out := r.m.touch(&r.c, v.sp, v.start+page<<r.m.pageShift, Write)
	r.check()
	return out
}

// exit ends a VMA's space.
func (r *rig) exit(v *vma) {
	r.t.Helper()
	r.m.endSpace(&r.c, v.sp)
	r.check()
}

// TestE6 is the timeline of 3.7 for a THP.
func TestE6(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	vm := &r.m.Counters.VM
	r.write(v, 0)
	child := r.fork(v)
	eq(t, "child rss", child.sp.rssAnon, 512)
	eq(t, "anon", r.m.Usage.Anon, 512)
	eq(t, "split_pmd", vm[THPSplitPMD], 0)
	eq(t, "AnonHugePages", vm[NrAnonTHPs], 1)
	r.write(v, 7)
	eq(t, "split_pmd", vm[THPSplitPMD], 1)
	eq(t, "anon", r.m.Usage.Anon, 513)
	eq(t, "order of the copy", r.m.PageInfo(v.sp.id, v.start+7<<12).Order, 0)
	eq(t, "not partially mapped yet", vm[THPDeferredSplitPage], 0)
	r.exit(child)
	eq(t, "partially mapped", vm[THPDeferredSplitPage], 1)
	for p := range VA(512) {
		if p != 7 {
			eq(t, "reuse", r.write(v, p), Done)
		}
	}
	eq(t, "pgreuse", vm[PgReuse], 511)
	eq(t, "anon", r.m.Usage.Anon, 513)
	eq(t, "faults", r.m.Usage.Faults, 1+1+511)
}

// TestE6Exit: when the child goes first, one fault makes the whole THP
// writable again.
func TestE6Exit(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	r.write(v, 0)
	child := r.fork(v)
	r.write(child, 3)
	r.exit(child)
	eq(t, "write", r.write(v, 100), Done)
	eq(t, "hit", r.write(v, 101), Hit)
	vm := &r.m.Counters.VM
	eq(t, "split_pmd of the child", vm[THPSplitPMD], 1)
	eq(t, "deferred", vm[THPDeferredSplitPage], 0)
	eq(t, "thps", vm[NrAnonTHPs], 1)
	eq(t, "pgreuse", vm[PgReuse], 0)
}

// TestE6b: a 64K folio; the child writes every page, then the parent.
func TestE6b(t *testing.T) {
	r := newRig(t, sizes(4))
	v := r.mmap(base, 64*kB)
	r.write(v, 0)
	child := r.fork(v)
	for p := range VA(16) {
		eq(t, "child", r.write(child, p), Done)
		eq(t, "copy", r.m.PageInfo(child.sp.id, v.start+p<<12).Order, 0)
	}
	eq(t, "anon", r.m.Usage.Anon, 32)
	for p := range VA(16) {
		eq(t, "parent", r.write(v, p), Done)
	}
	eq(t, "pgreuse", r.m.Counters.VM[PgReuse], 16)
	eq(t, "faults", r.m.Usage.Faults, 33)
	eq(t, "deferred", r.m.Counters.Size[4].SplitDeferred, 0)
}

// TestThirdSpace: a large folio knows two spaces; once a third had mapped it,
// it stays maybe shared (3.5.3). Before 6.15 reuse needed a reference count of 1.
func TestThirdSpace(t *testing.T) {
	for _, s := range []struct {
		spaces int
		ids    bool
		reuse  uint64
	}{{2, true, 10}, {3, true, 0}, {2, false, 0}} {
		r := newRig(t, sizes(4), func(c *Config) { c.Rules.MMIDs = s.ids })
		v := r.mmap(base, 64*kB)
		r.write(v, 0)
		all := []*vma{v}
		for len(all) < s.spaces {
			all = append(all, r.fork(v))
		}
		last := all[len(all)-1]
		for _, x := range all[:len(all)-1] {
			r.exit(x)
		}
		for p := range VA(10) {
			eq(t, "write", r.write(last, p), Done)
		}
		eq(t, "pgreuse", r.m.Counters.VM[PgReuse], s.reuse)
	}
}

// TestLastPageCopied: a large folio of which one page is left is copied.
func TestLastPageCopied(t *testing.T) {
	r := newRig(t, sizes(4))
	v := r.mmap(base, 64*kB)
	r.write(v, 0)
	child := r.fork(v)
	r.exit(child)
	r.zap(v, v.start+4096, 60*kB, zapDontNeed)
	r.write(v, 0)
	eq(t, "pgreuse", r.m.Counters.VM[PgReuse], 0)
	eq(t, "folio freed", r.m.Counters.Size[4].NrAnon, 0)
	eq(t, "anon", r.m.Usage.Anon, 1)
}

// TestOldCOW: before 5.8 a write to a shared THP copied 2 MB.
func TestOldCOW(t *testing.T) {
	r := newRig(t, sizes(9), func(c *Config) { c.Rules.CowSplitsPMD = false })
	v := r.mmap(base, 2*mB)
	r.write(v, 0)
	child := r.fork(v)
	r.write(child, 9)
	eq(t, "order", r.m.PageInfo(child.sp.id, v.start).Order, 9)
	eq(t, "split_pmd", r.m.Counters.VM[THPSplitPMD], 0)
	eq(t, "thp_fault_alloc", r.m.Counters.VM[THPFaultAlloc], 2)
	eq(t, "copied", r.c.Work[PrimCopyCOW], 512)
}

// TestForkHugeZero: the huge zero page is shared, and the child holds a
// reference of its own.
func TestForkHugeZero(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	r.touch(v.start, Read)
	child := r.fork(v)
	eq(t, "users", r.m.pages.zero.users, 2)
	r.write(child, 1)
	eq(t, "thps", r.m.Counters.VM[THPFaultAlloc], 1)
	r.exit(v)
	r.exit(child)
	r.m.Shrink(&r.c)
	r.check()
	eq(t, "freed", r.m.pages.zero.have, false)
	eq(t, "nothing left", r.m.physUsed(), 0)
}

// TestUpgradeFails: no block for the huge zero page's write: it is split and
// one small page allocated.
func TestUpgradeFails(t *testing.T) {
	r := newRig(t, sizes(9), func(c *Config) { c.Limit = 100 })
	v := r.mmap(base, 2*mB)
	r.touch(v.start, Read)
	r.write(v, 5)
	vm := &r.m.Counters.VM
	eq(t, "thp_split_pmd", vm[THPSplitPMD], 1)
	eq(t, "thp_fault_fallback", vm[THPFaultFallback], 1)
	eq(t, "rss", v.sp.rssAnon, 1)
	eq(t, "faults", r.m.Usage.Faults, 2)
	eq(t, "neighbour", r.m.PageInfo(v.sp.id, v.start).Zero, true)
}
