package mm

import "testing"

// thpAlways has huge pages on in every version: before 6.8 the size's own file
// does not exist.
func thpAlways() Policy {
	p := sizes(9)
	p.Enabled = Always
	return p
}

// protectTwice takes write permission away from all of v and gives it back.
func (r *rig) protectTwice(v *vma) {
	r.t.Helper()
	v.flags &^= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	v.flags |= vmWrite
	r.m.protectRange(&r.c, v, v.start, v.end)
	r.check()
}

// TestProtectAllows is mprotect to read-only and back, and which writes then
// fault. Seen in guests: 6.1 lacks what 6.2 brought.
func TestProtectAllows(t *testing.T) {
	for _, c := range []struct {
		version            string
		dirty, clean, huge Outcome
	}{
		{"5.19", Done, Done, Done},
		{"6.0", Hit, Done, Done},
		{"6.1.192", Hit, Done, Done},
		{"6.2", Hit, Hit, Hit},
		{"6.18", Hit, Hit, Hit},
	} {
		version := func(cfg *Config) { cfg.Rules = rules(t, c.version) }
		r := newRig(t, policyOff(), version)
		v := r.mmap(base, 64*kB)
		r.write(v, 0)
		r.write(v, 1)
		r.m.freeRange(&r.c, v, v.start+4096, v.start+8192) // leaves the page clean
		r.protectTwice(v)
		eq(t, c.version+" dirty page", r.write(v, 0), c.dirty)
		eq(t, c.version+" clean page", r.write(v, 1), c.clean)
		eq(t, c.version+" once more", r.write(v, 1), Hit)

		r = newRig(t, thpAlways(), version)
		v = r.mmap(base, 2*mB)
		r.write(v, 0)
		eq(t, c.version+" has it", r.m.Counters.VM[THPFaultAlloc], 1)
		r.protectTwice(v)
		eq(t, c.version+" huge page", r.write(v, 5), c.huge)
		eq(t, c.version+" huge page once more", r.write(v, 6), Hit)
		eq(t, c.version+" is not split", r.m.Counters.VM[THPSplitPMD], 0)
	}
}

// TestSplitDirty: before 6.2 a split huge entry leaves clean entries, which
// mprotect does not make writable; a page written since is dirty again.
func TestSplitDirty(t *testing.T) {
	for _, c := range []struct {
		version string
		want    Outcome
	}{{"6.1", Done}, {"6.2", Hit}} {
		r := newRig(t, thpAlways(), func(cfg *Config) { cfg.Rules = rules(t, c.version) })
		v := r.mmap(base, 2*mB)
		r.write(v, 0)
		pmd := r.m.pmdTable(v.sp, v.start)
		r.m.splitPMD(&r.c, v.sp, pmd, v.start)
		eq(t, c.version+" split leaves it writable", r.write(v, 7), Hit)
		r.protectTwice(v)
		eq(t, c.version+" written since", r.write(v, 7), Hit)
		eq(t, c.version+" not written since", r.write(v, 8), c.want)
	}
}

// TestFreeWhole: MADV_FREE of a whole folio that is mapped by page splits it
// before 6.10, unless another space maps its page too: that ends the walk.
func TestFreeWhole(t *testing.T) {
	for _, c := range []struct {
		version string
		splits  uint64
	}{{"6.1", 1}, {"6.9", 1}, {"6.10", 0}, {"6.18", 0}} {
		r := newRig(t, thpAlways(), func(cfg *Config) { cfg.Rules = rules(t, c.version) })
		v := r.mmap(base, 2*mB)
		for i := range VA(512) {
			r.write(v, i)
		}
		r.m.splitPMD(&r.c, v.sp, r.m.pmdTable(v.sp, v.start), v.start)
		child := r.fork(v)
		r.m.freeRange(&r.c, v, v.start, v.end)
		r.check()
		eq(t, c.version+" shared", r.m.Counters.VM[THPSplitPage], 0)
		r.exit(child)
		r.m.freeRange(&r.c, v, v.start, v.end)
		r.check()
		eq(t, c.version+" thp_split_page", r.m.Counters.VM[THPSplitPage], c.splits)
		eq(t, c.version+" rss", v.sp.rssAnon, 512)
	}
}
