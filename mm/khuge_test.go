package mm

import "testing"

func khugePolicy() Policy {
	p := policyOff()
	p.Size[9] = Inherit
	p.Enabled = Madvise
	return p
}

// small fills a hinted VMA with small pages, then turns the policy on.
func smallThenOn(t *testing.T, n Bytes, p Policy) (*rig, *vma) {
	r := newRig(t, policyOff())
	v := r.mmap(base, n, vmHuge)
	r.fill(v, v.start, n, Write)
	r.m.SetPolicy(p)
	r.m.khugepagedEnter(r.sp, v)
	return r, v
}

// TestKhugepagedBudget: the first registration wakes the thread, which does 8
// ranges at once and then 8 every 10 s.
func TestKhugepagedBudget(t *testing.T) {
	r, _ := smallThenOn(t, 32*mB, khugePolicy())
	vm := &r.m.Counters.VM
	r.m.tick(1)
	r.check()
	eq(t, "first pass", vm[PagesCollapsed], 8)
	r.m.tick(9e9)
	eq(t, "asleep", vm[PagesCollapsed], 8)
	r.m.tick(11e9)
	r.check()
	eq(t, "second pass", vm[PagesCollapsed], 16)
	r.m.tick(21e9)
	eq(t, "third pass", vm[PagesCollapsed], 16)
	eq(t, "full scans", vm[FullScans], 1)
	eq(t, "thp_collapse_alloc", vm[THPCollapseAlloc], 16)
	eq(t, "thp_fault_alloc", vm[THPFaultAlloc], 0)
	eq(t, "nr_anon", r.m.Counters.Size[9].NrAnon, 16)
	eq(t, "background", r.m.pages.background[PrimCollapse], 16)
	eq(t, "not the program's", r.c.Work[PrimCollapse], 0)
}

// TestKhugepagedLimits: the first failing rule decides, each with its counter.
func TestKhugepagedLimits(t *testing.T) {
	for _, s := range []struct {
		name string
		set  func(r *rig, v *vma, p *Policy)
		want Counter
		done uint64
	}{
		{"all there", func(*rig, *vma, *Policy) {}, THPScanExceedNonePTE, 1},
		{"none over the limit", func(r *rig, v *vma, p *Policy) {
			p.Khugepaged.MaxPTEsNone = 10
			r.zap(v, v.start, 11*4*kB, zapDontNeed)
		}, THPScanExceedNonePTE, 0},
		{"none at the limit", func(r *rig, v *vma, p *Policy) {
			p.Khugepaged.MaxPTEsNone = 10
			r.zap(v, v.start, 10*4*kB, zapDontNeed)
		}, THPScanExceedNonePTE, 1},
		{"shared", func(r *rig, v *vma, p *Policy) { r.fork(v) }, THPScanExceedSharePTE, 0},
		{"guards", func(r *rig, v *vma, p *Policy) {
			r.m.guardInstall(&r.c, v, v.start, v.start+65*4096)
		}, THPScanExceedSwapPTE, 0},
	} {
		r := newRig(t, policyOff())
		v := r.mmap(base, 2*mB, vmHuge)
		r.fill(v, v.start, 2*mB, Write)
		p := khugePolicy()
		s.set(r, v, &p)
		r.m.SetPolicy(p)
		r.m.khugepagedEnter(r.sp, v)
		r.m.tick(1)
		r.check()
		eq(t, s.name+": collapsed", r.m.Counters.VM[PagesCollapsed], s.done)
		eq(t, s.name+": counter", r.m.Counters.VM[s.want], 1-s.done)
	}
}

// TestKhugepagedYoung: old entries alone are not worth a collapse.
func TestKhugepagedYoung(t *testing.T) {
	r, v := smallThenOn(t, 2*mB, khugePolicy())
	r.m.coldRange(&r.c, v, v.start, v.end, false)
	r.m.tick(1)
	eq(t, "old", r.m.Counters.VM[PagesCollapsed], 0)
	r.touch(v.start, Read)
	r.m.tick(10e9 + 1)
	eq(t, "one young", r.m.Counters.VM[PagesCollapsed], 1)
	r.check()
}

// TestKhugepagedAlloc: the first failure sleeps alloc_sleep and goes on, the
// second ends the pass.
func TestKhugepagedAlloc(t *testing.T) {
	r := newRig(t, policyOff(), func(c *Config) {
		c.Free = &FreeState{Zones: []FreeZone{{
			Name: "Normal", Blocks: []uint64{8: 400}, Managed: 400 * 512,
		}}}
	})
	v := r.mmap(base, 8*mB, vmHuge)
	r.fill(v, v.start, 8*mB, Write)
	r.m.SetPolicy(khugePolicy())
	r.m.khugepagedEnter(r.sp, v)
	vm := &r.m.Counters.VM
	r.m.tick(1)
	eq(t, "first failure", vm[THPCollapseAllocFailed], 1)
	r.m.tick(60e9 - 1)
	eq(t, "asleep", vm[THPCollapseAllocFailed], 1)
	r.m.tick(60e9 + 1)
	eq(t, "second failure ends it", vm[THPCollapseAllocFailed], 2)
	r.m.tick(70e9 + 1)
	eq(t, "next pass", vm[THPCollapseAllocFailed], 3)
	r.check()
}

// TestKhugepagedExit: a space that ends takes its place in the list along.
func TestKhugepagedExit(t *testing.T) {
	r, v := smallThenOn(t, 2*mB, khugePolicy())
	child := r.fork(v)
	eq(t, "registered at fork", child.sp.khugeSlot, true)
	r.exit(v)
	r.m.tick(1)
	eq(t, "a child's entries start old", r.m.Counters.VM[PagesCollapsed], 0)
	r.m.touch(&r.c, child.sp, child.start, Read)
	r.m.tick(10e9 + 1)
	r.check()
	eq(t, "child", r.m.Counters.VM[PagesCollapsed], 1)
	r.exit(child)
	eq(t, "list", len(r.m.khuge.list), 0)
	r.m.tick(100e9)
	eq(t, "all freed", r.m.Usage.Anon, 0)
}

// TestE8 is MADV_COLLAPSE (semantics 5.4).
func TestE8(t *testing.T) {
	r := newRig(t, policyOff())
	v := r.mmap(base, 6*mB)
	eq(t, "nothing faulted", r.m.collapse(&r.c, v, v.start, v.end), EINVAL)
	r.m.SetPolicy(sizes(4))
	r.fill(v, v.start, 1*mB, Write)
	r.m.SetPolicy(policyOff())
	eq(t, "works at never", r.m.collapse(&r.c, v, v.start, v.start+2<<20), OK)
	r.check()
	eq(t, "64K folios", r.m.Counters.Size[4].NrAnon, 0)
	eq(t, "their events", r.m.Counters.Size[4].SplitDeferred, 0)
	eq(t, "nr_anon", r.m.Counters.Size[9].NrAnon, 1)
	eq(t, "anon_fault_alloc", r.m.Counters.Size[9].AnonFaultAlloc, 0)
	eq(t, "rss", r.sp.rssAnon, 512)
	eq(t, "touched", r.m.Usage.Touched, 256)
	eq(t, "thp_collapse_alloc", r.m.Counters.VM[THPCollapseAlloc], 1)
	eq(t, "pages_collapsed", r.m.Counters.VM[PagesCollapsed], 0)
	eq(t, "again", r.m.collapse(&r.c, v, v.start, v.start+2<<20), OK)
	eq(t, "empty", r.m.collapse(&r.c, v, v.start, v.end), EINVAL)
	eq(t, "nothing whole", r.m.collapse(&r.c, v, v.start+4096, v.start+2<<20), OK)
	v.flags |= vmNoHuge
	eq(t, "refused", r.m.collapse(&r.c, v, v.start, v.end), EINVAL)
	v.flags &^= vmNoHuge
	r.sp.thpDisable = THPExceptAdvised
	eq(t, "except advised", r.m.collapse(&r.c, v, v.start, v.start+2<<20), OK)
	r.sp.thpDisable = THPDisabled
	eq(t, "disabled", r.m.collapse(&r.c, v, v.start, v.end), EINVAL)
}

// TestE8Charge: no room under the limit is EBUSY.
func TestE8Charge(t *testing.T) {
	r := newRig(t, policyOff(), func(c *Config) { c.Limit = 600 })
	v := r.mmap(base, 2*mB)
	r.fill(v, v.start, 1*mB, Write)
	eq(t, "charge", r.m.collapse(&r.c, v, v.start, v.end), EBUSY)
	r.check()
	eq(t, "rss", r.sp.rssAnon, 256)
}

// TestE is MADV_POPULATE and mlock on anonymous memory (semantics 2.7).
func TestE(t *testing.T) {
	r := newRig(t, sizes(4))
	v := r.mmap(base, 512*kB)
	eq(t, "write", r.m.populate(&r.c, v, v.start, v.start+256<<10, true), OK)
	r.check()
	eq(t, "faults of the write", r.m.Usage.SoftFaults, 4)
	eq(t, "no exceptions", r.m.Usage.Faults, 0)
	eq(t, "pgfault", r.m.Counters.VM[PgFault], 4)
	eq(t, "untouched", r.m.Usage.Touched, 0)
	eq(t, "read", r.m.populate(&r.c, v, v.start+256<<10, v.end, false), OK)
	r.check()
	eq(t, "faults of the read", r.m.Usage.SoftFaults, 4+64)
	eq(t, "mlock", r.m.populate(&r.c, v, v.start+256<<10, v.end, true), OK)
	r.check()
	eq(t, "faults of mlock", r.m.Usage.SoftFaults, 4+64+64)
	eq(t, "small pages", r.orderAt(v.start+256<<10), 0)
	eq(t, "hit", r.touch(v.start, Write), Hit)
	eq(t, "touched", r.m.Usage.Touched, 1)
	r = newRig(t, sizes(9))
	v = r.mmap(base, 4*mB)
	r.m.populate(&r.c, v, v.start, v.end, true)
	r.check()
	eq(t, "THPs", r.m.Usage.SoftFaults, 2)
	r.m.guardInstall(&r.c, v, v.start, v.start+4096)
	eq(t, "guard", r.m.populate(&r.c, v, v.start, v.end, true), EFAULT)
}

// TestGuard: one guard page turns a one-fault THP range into 256 small faults
// for the 1 MiB touched (13.6), and DONTNEED does not remove it.
func TestGuard(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 2*mB)
	eq(t, "install", r.m.guardInstall(&r.c, v, v.end-4096, v.end), OK)
	r.check()
	r.fill(v, v.start, 1*mB, Write)
	eq(t, "faults", r.m.Usage.Faults, 256)
	eq(t, "guard", r.touch(v.end-4096, Read), Segv)
	r.zap(v, v.start, 2*mB, zapDontNeed)
	eq(t, "kept", r.touch(v.end-1, Write), Segv)
	eq(t, "table kept", r.m.Usage.Tables, 3)
	eq(t, "info", r.m.PageInfo(1, v.end-4096).Guard, true)
	eq(t, "remove", r.m.guardRemove(&r.c, v, v.start, v.end), OK)
	eq(t, "gone", r.touch(v.end-4096, Write), Done)
	// On mapped memory the pages go.
	r.write(v, 0)
	eq(t, "over pages", r.m.guardInstall(&r.c, v, v.start, v.start+8192), OK)
	r.check()
	eq(t, "rss", r.sp.rssAnon, 1)
	eq(t, "inherited", r.m.PageInfo(r.fork(v).sp.id, v.start).Guard, true)
	v.flags |= vmLocked
	eq(t, "locked", r.m.guardInstall(&r.c, v, v.start, v.end), EINVAL)
	v.flags &^= vmLocked
	r.munmap(v)
}

// TestKhugepagedStill: held still it never does a pass, however long.
func TestKhugepagedStill(t *testing.T) {
	r := newRig(t, policyOff(), func(c *Config) { c.Still = true })
	v := r.mmap(base, 8*mB, vmHuge)
	r.fill(v, v.start, 8*mB, Write)
	r.m.SetPolicy(khugePolicy())
	r.m.khugepagedEnter(r.sp, v)
	r.m.tick(100e9)
	eq(t, "collapsed", r.m.Counters.VM[PagesCollapsed], 0)
}
