package mm

import "testing"

// TestPrivateFile: always a fault; a write leaves a small anonymous page, and
// after a fork it is copied.
func TestPrivateFile(t *testing.T) {
	r := newRig(t, sizes(4, 9))
	v := r.mmap(base, 4*mB, vmFile)
	eq(t, "read", r.touch(v.start, Read), Done)
	eq(t, "write", r.touch(v.start, Write), Done)
	eq(t, "again", r.touch(v.start, Write), Done)
	eq(t, "order", r.orderAt(v.start), 0)
	eq(t, "faults", r.m.Usage.Faults, 3)
	eq(t, "file faults", r.m.Usage.FileFaults, 3)
	eq(t, "anon", r.m.Usage.Anon, 1)
	child := r.fork(v)
	r.write(child, 0)
	eq(t, "copied", r.m.Usage.Anon, 2)
	r.write(v, 0)
	eq(t, "reused", r.m.Counters.VM[PgReuse], 1)
	eq(t, "populate", r.m.populate(&r.c, v, v.start, v.start+64<<10, true), OK)
	r.check()
	eq(t, "populate", r.m.Usage.SoftFaults, 15)
	eq(t, "populate", r.m.Usage.FileFaults, 5)
	s := r.mmap(base+1<<30, 1*mB, vmFile, vmShared)
	eq(t, "shared", r.touch(s.start, Write), Done)
	eq(t, "shared", r.m.Usage.FileFaults, 6)
	eq(t, "shared", r.m.PageInfo(1, s.start).Present, false)
}

// TestResident: what was there when a recording attached costs no fault.
func TestResident(t *testing.T) {
	r := newRig(t, policyOff())
	v := r.mmap(base, 8*mB)
	make := func(at VA, n Pages, o Order, acc Access) {
		t.Helper()
		r.m.makeResident(&r.c, r.sp, v, v.start+at, n, o, acc)
		r.check()
	}
	make(0, 512, 9, Write)
	make(2<<20, 40, 4, Write)
	make(4<<20, 3, 0, Read)
	make(0, 512, 0, Write) // there already
	eq(t, "faults", r.m.Usage.Faults+r.m.Usage.SoftFaults+r.m.Counters.VM[PgFault], 0)
	eq(t, "2M", r.m.PageInfo(1, v.start).PMD, true)
	eq(t, "64K", r.m.Counters.Size[4].NrAnon, 2)
	eq(t, "anon_fault_alloc", r.m.Counters.Size[4].AnonFaultAlloc+r.m.Counters.Size[9].AnonFaultAlloc, 0)
	eq(t, "anon", r.m.Usage.Anon, 512+40)
	eq(t, "peak", r.m.Usage.AnonPeak, 512+40)
	eq(t, "zero", r.m.PageInfo(1, v.start+4<<20).Zero, true)
	eq(t, "hit", r.touch(v.start+4096, Write), Hit)
}

// TestUsage: the peak, what of it was never touched, and the integral.
func TestUsage(t *testing.T) {
	r := newRig(t, sizes(9), func(c *Config) { c.ByRegion = true })
	v := r.mmap(base, 4*mB)
	r.m.tick(1e9)
	r.write(v, 0)
	r.write(v, 1)
	r.m.tick(3e9)
	r.write(v, 512)
	r.zap(v, v.start, 2*mB, zapDontNeed)
	r.m.tick(4e9)
	u := &r.m.Usage
	eq(t, "anon", u.Anon, 512)
	eq(t, "peak", u.AnonPeak, 1024)
	eq(t, "untouched at peak", u.UntouchedAtPeak, 1024-3)
	eq(t, "touched", u.Touched, 1)
	eq(t, "by order", u.ByOrder[9], 512)
	eq(t, "integral", u.Integral, 2*512+1*512)
	var reg RegionUsage
	r.m.Regions(func(_ Region, x RegionUsage) { reg = x })
	eq(t, "region allocated", reg.Allocated, 1024)
	eq(t, "region touched", reg.Touched, 3)
}

// TestWorstFaults: the costliest fault of each order, as work.
func TestWorstFaults(t *testing.T) {
	r := newRig(t, sizes(4, 9))
	v := r.mmap(base+2<<20-64<<10, 64*kB+2*mB)
	r.write(v, 0)
	r.write(v, 16)
	r.m.SetPolicy(policyOff())
	r.zap(v, v.start, 64*kB, zapDontNeed)
	r.write(v, 0)
	w := r.m.WorstFaults()
	eq(t, "64K cleared", w[4][PrimClearLarge], 16)
	eq(t, "64K tables", w[4][PrimTableAlloc], 3)
	eq(t, "2M cleared", w[9][PrimClearPMD], 512)
	eq(t, "2M other", w[9][PrimClearLarge], 0)
	eq(t, "small", w[0][PrimClearSmall], 1)
	eq(t, "one fault each", w[0][PrimFaultUser]+w[4][PrimFaultUser]+w[9][PrimFaultUser], 3)
}

// TestSteps: clears and copies carry the page that faulted, the hint of the
// clearing order.
func TestSteps(t *testing.T) {
	r := newRig(t, sizes(9))
	r.c.WantSteps = true
	v := r.mmap(base, 2*mB)
	r.write(v, 77)
	child := r.fork(v)
	r.write(child, 5)
	pfn := r.m.PageInfo(1, v.start).PFN
	eq(t, "steps", len(r.c.Steps), 2)
	eq(t, "clear", r.c.Steps[0], Step{Prim: PrimClearPMD, Order: 9, N: 77, PFN: pfn})
	eq(t, "copy", r.c.Steps[1], Step{Prim: PrimCopyCOW, PFN: r.m.PageInfo(child.sp.id, v.start+5<<12).PFN})
}

// TestPressure: before memory runs out the shrinker splits what is partially
// mapped, and what nothing maps of it comes back.
func TestPressure(t *testing.T) {
	r := newRig(t, sizes(9), func(c *Config) { c.Limit = 512 })
	v := r.mmap(base, 4*mB)
	for i := range VA(512) {
		r.m.touch(&r.c, r.sp, v.start+i<<12, Write)
	}
	r.zap(v, v.start, 1*mB, zapDontNeed)
	eq(t, "full", r.m.Usage.Anon, 512)
	eq(t, "small page", r.write(v, 512), Done)
	eq(t, "split", r.m.Counters.VM[THPSplitPage], 1)
	eq(t, "anon", r.m.Usage.Anon, 257)
	eq(t, "oom", r.m.Usage.OOM, 0)
}

// TestDefrag is the table of 2.6.
func TestDefrag(t *testing.T) {
	for _, s := range []struct {
		d             Defrag
		hinted, plain string
	}{
		{DefragAlways, "D", "D NR"},
		{DefragDefer, "K", "K"},
		{DefragDeferMadvise, "D", "K"},
		{DefragMadvise, "D", ""},
		{DefragNever, "", ""},
	} {
		p := policyOff()
		p.Defrag = s.d
		r := newRig(t, p)
		names := map[int]string{0: "", 1: "D", 2: "K", 5: "D NR"}
		eq(t, "hinted", names[int(r.m.gfp(&vma{flags: vmHuge}))], s.hinted)
		eq(t, "plain", names[int(r.m.gfp(&vma{}))], s.plain)
	}
}

// TestConfig: what New refuses.
func TestConfig(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Nodes: []Node{{Mem: 1 * gB}}, BasePage: 8192},
		{Nodes: []Node{{Mem: 1 * gB, CPUs: []CPU{3}}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%+v) did not fail", cfg)
		}
	}
}

// TestBasePages: with 16 kB and 64 kB pages the PMD maps 32 MB and 512 MB.
func TestBasePages(t *testing.T) {
	for _, s := range []struct {
		page  Bytes
		order Order
	}{{16384, 11}, {65536, 13}} {
		r := newRig(t, sizes(s.order), func(c *Config) { c.BasePage = s.page; c.Nodes[0].Mem = 8 * gB })
		v := r.mmap(base, s.page<<s.order)
		r.write(v, 3)
		eq(t, "order", r.orderAt(v.start), s.order)
		r.zap(v, v.start, s.page, zapDontNeed)
		eq(t, "split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
		r.m.SetPolicy(sizes(2))
		r.munmap(v)
		r.m.addVMA(&r.c, v)
		r.write(v, 5)
		eq(t, "order", r.orderAt(v.start+VA(s.page)*4), 2)
	}
}
