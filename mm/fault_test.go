package mm

import "testing"

const base VA = 1 << 40 // aligned to any block

// TestE1 is semantics 14, E1a to E1d: only 64K (or 16K, 64K, 256K) on.
func TestE1(t *testing.T) {
	for _, down := range []bool{false, true} {
		r := newRig(t, sizes(4))
		v := r.mmap(base+4096, 156*kB)
		n := int(v.end-v.start) >> 12
		for i := range n {
			if down {
				i = n - 1 - i
			}
			r.touch(v.start+VA(i)<<12, Write)
		}
		eq(t, "E1ab faults", r.m.Usage.Faults, 24)
		eq(t, "E1ab folios", r.m.Counters.Size[4].AnonFaultAlloc, 1)
		eq(t, "E1ab nr_anon", r.m.Counters.Size[4].NrAnon, 1)
		eq(t, "E1ab anon", r.m.Usage.Anon, 39)
		eq(t, "E1ab touched", r.m.Usage.Touched, 39)
	}
}

// TestE1c is the worked example of 2.5: an occupied page decides the order of
// what follows, and rejected orders move no counter.
func TestE1c(t *testing.T) {
	r := newRig(t, policyOff())
	v := r.mmap(base, 512*kB)
	r.touch(v.start+5<<12, Write)
	r.m.SetPolicy(sizes(2, 4, 6))
	for _, s := range []struct {
		page  VA
		order Order
	}{{0, 2}, {7, 0}, {20, 4}, {100, 6}, {40, 4}} {
		r.touch(v.start+s.page<<12, Write)
		eq(t, "order", r.orderAt(v.start+s.page<<12), s.order)
	}
	for o := range NumOrders {
		eq(t, "fallbacks", r.m.Counters.Size[o].AnonFaultFallback, 0)
	}
	eq(t, "64K", r.m.Counters.Size[4].AnonFaultAlloc, 2)
}

// TestE1d: a read maps the small zero page, which keeps its block from a folio.
func TestE1d(t *testing.T) {
	r := newRig(t, sizes(4))
	v := r.mmap(base, 256*kB)
	eq(t, "read", r.touch(v.start, Read), Done)
	eq(t, "zero page", r.m.PageInfo(r.sp.id, v.start).Zero, true)
	eq(t, "rss", r.sp.rssAnon, 0)
	eq(t, "again", r.touch(v.start, Read), Hit)
	eq(t, "write", r.touch(v.start, Write), Done)
	eq(t, "order", r.orderAt(v.start), 0)
	r.touch(v.start+4096, Write)
	eq(t, "neighbour", r.orderAt(v.start+4096), 0)
	r.touch(v.start+64<<10, Write)
	eq(t, "untouched block", r.orderAt(v.start+64<<10), 4)
	eq(t, "faults", r.m.Usage.Faults, 4)
	eq(t, "pgreuse", r.m.Counters.VM[PgReuse], 0)
}

// TestE1e is the table of 2.1: which setting allows an order.
func TestE1e(t *testing.T) {
	for _, s := range []struct {
		size, global Mode
		flags        vmFlags
		disable      THPDisable
		want         bool
	}{
		{Always, Never, 0, THPEnabled, true},
		{Always, Never, vmNoHuge, THPEnabled, false},
		{Always, Never, vmHuge, THPDisabled, false},
		{Always, Never, 0, THPExceptAdvised, false},
		{Always, Never, vmHuge, THPExceptAdvised, true},
		{Madvise, Always, 0, THPEnabled, false},
		{Madvise, Never, vmHuge, THPEnabled, true},
		{Inherit, Always, 0, THPEnabled, true},
		{Inherit, Madvise, 0, THPEnabled, false},
		{Inherit, Madvise, vmHuge, THPEnabled, true},
		{Inherit, Never, vmHuge, THPEnabled, false},
		{Never, Always, vmHuge, THPEnabled, false},
		{Always, Never, vmStackSetup, THPEnabled, false},
		{Always, Never, vmGrowsDown, THPEnabled, true},
	} {
		for _, o := range []Order{4, 9} {
			p := policyOff()
			p.Enabled, p.Size[o] = s.global, s.size
			r := newRig(t, p)
			r.sp.thpDisable = s.disable
			v := r.mmap(base, 2*mB, s.flags)
			r.touch(v.start, Write)
			if got := r.orderAt(v.start) == o; got != s.want {
				t.Errorf("%+v order %d: got %v", s, o, got)
			}
		}
	}
}

// TestE1f: parts of a 64K folio are unmapped and touched again.
func TestE1f(t *testing.T) {
	r := newRig(t, sizes(4))
	v := r.mmap(base, 64*kB)
	r.touch(v.start, Write)
	st := &r.m.Counters.Size[4]
	r.zap(v, v.start, 4*kB, zapDontNeed)
	eq(t, "split_deferred", st.SplitDeferred, 1)
	eq(t, "partially mapped", st.NrAnonPartiallyMapped, 1)
	eq(t, "anon stays", r.m.Usage.Anon, 16)
	eq(t, "rss", r.sp.rssAnon, 15)
	eq(t, "thp event", r.m.Counters.VM[THPDeferredSplitPage], 0)
	r.touch(v.start, Write)
	eq(t, "refault", r.orderAt(v.start), 0)
	r.zap(v, v.start, 32*kB, zapDontNeed)
	eq(t, "once only", st.SplitDeferred, 1)
	r.zap(v, v.start, 64*kB, zapDontNeed)
	eq(t, "nr_anon", st.NrAnon, 0)
	eq(t, "gauge", st.NrAnonPartiallyMapped, 0)
	eq(t, "anon", r.m.Usage.Anon, 0)
	r.touch(v.start, Write)
	eq(t, "refault of all", r.orderAt(v.start), 4)
	r.zap(v, v.start, 64*kB, zapDontNeed)
	eq(t, "whole in one batch", st.SplitDeferred, 1)
}

func (r *rig) zap(v *vma, at VA, n Bytes, how zapHow) {
	r.t.Helper()
	r.m.zapRange(&r.c, v, at, at+VA(n), how)
	r.check()
}

// munmap zaps a whole VMA and frees its tables.
func (r *rig) munmap(v *vma) {
	r.t.Helper()
	r.m.zapRange(&r.c, v, v.start, v.end, zapUnmap)
	var floor, ceiling VA
	if p := v.prev(); p != nil {
		floor = p.end
	}
	if n := v.next(); n != nil {
		ceiling = n.start
	}
	r.m.dropVMA(&r.c, v)
	r.m.freeTables(&r.c, v.sp, v.start, v.end, floor, ceiling)
	r.check()
}

// TestE2: read the huge zero page, write it into a THP, unmap parts.
func TestE2(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base, 4*mB)
	vm := &r.m.Counters.VM
	r.touch(v.start, Read)
	eq(t, "huge zero", r.m.PageInfo(r.sp.id, v.start+8192), PageInfo{
		Present: true, Zero: true, PMD: true, Order: 9, Index: 2, PFN: r.m.pages.zero.pfn + 2,
	})
	eq(t, "thp_zero_page_alloc", vm[THPZeroPageAlloc], 1)
	eq(t, "rss", r.sp.rssAnon, 0)
	eq(t, "tables", r.m.Usage.Tables, 3) // PUD, PMD, deposit
	r.touch(v.start+2<<20, Read)
	eq(t, "thp_zero_page_alloc once", vm[THPZeroPageAlloc], 1)
	eq(t, "thp_fault_alloc", vm[THPFaultAlloc], 0)
	r.touch(v.start+5<<12, Write)
	eq(t, "thp_fault_alloc", vm[THPFaultAlloc], 1)
	eq(t, "anon_fault_alloc", r.m.Counters.Size[9].AnonFaultAlloc, 1)
	eq(t, "rss", r.sp.rssAnon, 512)
	eq(t, "touched", r.m.Usage.Touched, 1)
	eq(t, "AnonHugePages", vm[NrAnonTHPs], 1)
	r.zap(v, v.start, 4*kB, zapDontNeed)
	eq(t, "thp_split_pmd", vm[THPSplitPMD], 1)
	eq(t, "thp_deferred_split_page", vm[THPDeferredSplitPage], 1)
	eq(t, "split_deferred", r.m.Counters.Size[9].SplitDeferred, 1)
	eq(t, "AnonHugePages", vm[NrAnonTHPs], 0)
	eq(t, "anon", r.m.Usage.Anon, 512)
	eq(t, "rss", r.sp.rssAnon, 511)
	r.zap(v, v.start+1<<20, 1*mB, zapUnmap)
	eq(t, "rss", r.sp.rssAnon, 255)
	eq(t, "once", vm[THPDeferredSplitPage], 1)
	eq(t, "thp_split_page", vm[THPSplitPage], 0)
	r.munmap(v)
	eq(t, "anon", r.m.Usage.Anon, 0)
	eq(t, "tables", r.m.Usage.Tables, 0)
}

// TestE2b: an unaligned 4 MiB VMA takes 513 faults; E2c: use_zero_page off
// gives a THP on read; E2d: small zero pages keep THPs away.
func TestE2bcd(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base+1<<20, 4*mB)
	r.fill(v, v.start, 4*mB, Write)
	eq(t, "E2b faults", r.m.Usage.Faults, 513)
	eq(t, "E2b thps", r.m.Counters.VM[THPFaultAlloc], 1)
	eq(t, "E2b fallbacks", r.m.Counters.VM[THPFaultFallback], 0)

	p := sizes(9)
	p.UseZeroPage = false
	r = newRig(t, p)
	v = r.mmap(base, 2*mB)
	r.touch(v.start, Read)
	eq(t, "E2c order", r.orderAt(v.start), 9)
	eq(t, "E2c thp_fault_alloc", r.m.Counters.VM[THPFaultAlloc], 1)

	r = newRig(t, policyOff())
	v = r.mmap(base, 2*mB)
	r.touch(v.start, Read)
	r.m.SetPolicy(sizes(9))
	r.touch(v.start+4096, Write)
	eq(t, "E2d order", r.orderAt(v.start+4096), 0)
}

// TestR: when a table goes away after MADV_DONTNEED, the next write gets a THP.
func TestR(t *testing.T) {
	for _, s := range []struct {
		name  string
		zap   func(r *rig, v *vma)
		order Order
		rules bool
	}{
		{"whole", func(r *rig, v *vma) { r.zap(v, v.start, 2*mB, zapDontNeed) }, 9, true},
		{"whole, old kernel", func(r *rig, v *vma) { r.zap(v, v.start, 2*mB, zapDontNeed) }, 0, false},
		{"halves", func(r *rig, v *vma) {
			r.zap(v, v.start, 1*mB, zapDontNeed)
			r.zap(v, v.start+1<<20, 1*mB, zapDontNeed)
		}, 0, true},
		{"less a page", func(r *rig, v *vma) { r.zap(v, v.start, 2*mB-4*kB, zapDontNeed) }, 0, true},
		{"one page", func(r *rig, v *vma) { r.zap(v, v.start, 4*kB, zapDontNeed) }, 0, true},
		{"unmap", func(r *rig, v *vma) { r.munmap(v); r.m.addVMA(&r.c, v) }, 9, true},
	} {
		r := newRig(t, policyOff(), func(c *Config) { c.Rules.PTReclaim = s.rules })
		v := r.mmap(base, 2*mB)
		r.touch(v.start, Write)
		r.m.SetPolicy(sizes(9))
		s.zap(r, v)
		r.touch(v.start, Write)
		eq(t, "R "+s.name, r.orderAt(v.start), s.order)
	}
	// A range that held a THP goes straight back to none.
	r := newRig(t, sizes(9), func(c *Config) { c.Rules.PTReclaim = false })
	v := r.mmap(base, 2*mB)
	r.touch(v.start, Write)
	r.zap(v, v.start, 2*mB, zapDontNeed)
	r.touch(v.start, Write)
	eq(t, "R THP", r.orderAt(v.start), 9)
	eq(t, "R no event", r.m.Counters.VM[THPDeferredSplitPage]+r.m.Counters.VM[THPSplitPMD], 0)
}

// TestF: a cgroup limit of 8 MiB filled page by page: one fallback and charge
// failure at each size, then out of memory. CG: a limit of 9 MiB, one page
// touched per 2 MiB: 4 THPs, then 6 times THP fallback and a 64K folio.
func TestFandCG(t *testing.T) {
	r := newRig(t, sizes(4, 9), func(c *Config) { c.Limit = 2048 })
	v := r.mmap(base, 16*mB)
	a := v.start
	for ; r.m.touch(&r.c, r.sp, a, Write) != OOM; a += 4096 {
	}
	r.check()
	vm := &r.m.Counters.VM
	eq(t, "F pages", int(a-v.start)>>12, 2048)
	eq(t, "F thp_fault_fallback", vm[THPFaultFallback], 1)
	eq(t, "F thp_fault_fallback_charge", vm[THPFaultFallbackCharge], 1)
	for _, o := range []Order{4, 9} {
		eq(t, "F fallback", r.m.Counters.Size[o].AnonFaultFallback, 1)
		eq(t, "F charge", r.m.Counters.Size[o].AnonFaultFallbackCharge, 1)
	}
	eq(t, "F oom", r.m.Usage.OOM, 1)

	r = newRig(t, sizes(4, 9), func(c *Config) { c.Limit = 9 * 256 })
	v = r.mmap(base, 20*mB)
	for i := range VA(10) {
		eq(t, "CG touch", r.touch(v.start+i<<21, Write), Done)
	}
	vm = &r.m.Counters.VM
	eq(t, "CG thps", vm[THPFaultAlloc], 4)
	eq(t, "CG fallbacks", vm[THPFaultFallback], 6)
	eq(t, "CG charge", vm[THPFaultFallbackCharge], 6)
	eq(t, "CG 64K", r.m.Counters.Size[4].AnonFaultAlloc, 6)
	eq(t, "CG 64K fallbacks", r.m.Counters.Size[4].AnonFaultFallback, 0)
	eq(t, "CG oom", r.m.Usage.OOM, 0)
}

// TestE10 is the heap of 2.8: 2046 pages of an 8 MiB heap are 3 THPs and 510
// small pages; grown page by page it never gets a folio.
func TestE10(t *testing.T) {
	r := newRig(t, sizes(9))
	v := r.mmap(base+8192, 8*mB)
	r.fill(v, v.start, 2046*4*kB, Write)
	eq(t, "heap faults", r.m.Usage.Faults, 513)
	eq(t, "heap thps", r.m.Counters.VM[THPFaultAlloc], 3)

	r = newRig(t, sizes(4))
	v = r.mmap(base, 0)
	for range 64 {
		v.setRange(v.start, v.end+4096, v.pgoff)
		r.touch(v.end-4096, Write)
	}
	eq(t, "steps", r.m.Usage.Faults, 64)
	eq(t, "folios", r.m.Counters.Size[4].AnonFaultAlloc, 0)

	r = newRig(t, sizes(4))
	v = r.mmap(base+4096, 1*mB)
	r.fill(v, v.start, 1*mB, Write)
	eq(t, "1 MiB at once", r.m.Counters.Size[4].AnonFaultAlloc, 15)
}

// TestRefused covers the accesses that end in a signal.
func TestRefused(t *testing.T) {
	r := newRig(t, policyOff())
	v := r.mmap(base, 64*kB)
	v.flags &^= vmWrite
	eq(t, "read-only", r.touch(v.start, Write), Segv)
	eq(t, "no exec", r.touch(v.start, Exec), Segv)
	eq(t, "below", r.touch(v.start-4096, Read), Segv)
	v.flags &^= vmRead
	eq(t, "no access", r.touch(v.start, Read), Segv)
	eq(t, "faults", r.m.Usage.Faults, 4)
}

// TestRaced: what happens between Begin and Commit decides; nothing but the
// work remains of a race lost.
func TestRaced(t *testing.T) {
	for _, s := range []struct {
		name   string
		orders []Order
		acc    Access
		meddle func(r *rig, v *vma)
		want   Outcome
	}{
		{"nothing", []Order{9}, Write, func(*rig, *vma) {}, Done},
		{"vma changed", []Order{9}, Write, func(_ *rig, v *vma) { v.seq++ }, Raced},
		{"same page", []Order{4}, Write,
			func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start, Write) }, Raced},
		{"in the folio", []Order{4}, Write,
			func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start+4096, Read) }, Raced},
		{"elsewhere", []Order{4}, Write,
			func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start+64<<10, Write) }, Done},
		{"same pmd", []Order{9}, Write, func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start+8192, Write) }, Raced},
		{"huge zero", []Order{9}, Read, func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start+8192, Read) }, Raced},
		{"zero page", nil, Read, func(r *rig, v *vma) { r.m.touch(&r.c, r.sp, v.start, Write) }, Raced},
	} {
		r := newRig(t, sizes(s.orders...))
		v := r.mmap(base, 4*mB)
		f := Fault{Space: r.sp.id, Addr: v.start, Access: s.acc}
		eq(t, s.name, r.m.Begin(&r.c, &f), Pending)
		s.meddle(r, v)
		allocs := r.m.Counters.Size
		eq(t, s.name, r.m.Commit(&r.c, &f), s.want)
		if s.want == Raced {
			eq(t, s.name+": counters", r.m.Counters.Size, allocs)
		}
		r.check()
		eq(t, s.name+": spent", r.m.Commit(&r.c, &f), Retry)
	}
}
