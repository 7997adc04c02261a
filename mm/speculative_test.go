package mm

import "testing"

// specRig is a machine with speculation and one VMA of 4 MB whose first page of
// each table is there.
func specRig(t *testing.T, change ...func(*Config)) (*rig, *vma) {
	r := newRig(t, policyOff(), append(change, func(c *Config) { c.Rules.Speculative = SpecV11 })...)
	v := r.mmap(1<<40, 4*mB)
	r.touch(v.start, Write)
	r.touch(v.start+VA(2*mB), Write)
	r.m.EndWrite(r.sp.id)
	return r, v
}

// TestSpeculationChecks holds each check before the page walk, and the walk, to
// its event (semantics 10.1). None may count a fault: the classic path will.
func TestSpeculationChecks(t *testing.T) {
	const page = 4096
	for _, s := range []struct {
		what  string
		make  func(r *rig, v *vma) VA // changes the space; the address to try
		acc   Access
		out   Outcome
		event PathEvent // NumPathEvents: none
	}{
		{"1: no VMA", func(*rig, *vma) VA { return 1 << 41 }, Write, Retry, PathEvent(NumPathEvents)},
		{"2: a writer is there", func(_ *rig, v *vma) VA {
			v.changed()
			return v.start + page
		}, Write, Retry, SPFVMAChanged},
		{"3: a file", func(r *rig, _ *vma) VA {
			v := r.mmap(1<<42, mB, vmFile)
			r.m.EndWrite(r.sp.id)
			return v.start
		}, Write, Retry, SPFVMANotSup},
		{"4: no anon_vma", func(r *rig, _ *vma) VA {
			v := r.mmap(1<<42, mB)
			r.m.EndWrite(r.sp.id)
			return v.start
		}, Write, Retry, SPFVMANotSup},
		{"5: userfaultfd", func(_ *rig, v *vma) VA {
			v.flags |= vmUffd
			return v.start + page
		}, Write, Retry, SPFVMANotSup},
		{"6: a stack, before 7", func(_ *rig, v *vma) VA {
			v.flags |= vmGrowsDown
			return v.start - page
		}, Write, Retry, SPFVMANotSup},
		{"7: below the VMA", func(_ *rig, v *vma) VA { return v.start - page }, Write, Retry, SPFVMAChanged},
		{"9: not allowed", func(_ *rig, v *vma) VA {
			v.flags &^= vmWrite
			return v.start + page
		}, Write, Segv, SPFVMAAccess},
		{"11: no table", func(r *rig, v *vma) VA {
			r.m.zapRange(&r.c, v, v.start, v.end, zapUnmap)
			r.m.freeTables(&r.c, r.sp, v.start, v.end, 0, 0)
			return v.start + page
		}, Write, Retry, SPFVMANotSup},
		{"13: a page to make", func(_ *rig, v *vma) VA {
			return v.start + page
		}, Write, Pending, PathEvent(NumPathEvents)},
		{"13: it is there", func(_ *rig, v *vma) VA { return v.start }, Write, Hit, PathEvent(NumPathEvents)},
	} {
		t.Run(s.what, func(t *testing.T) {
			r, v := specRig(t)
			f := Fault{Space: r.sp.id, Addr: s.make(r, v), Access: s.acc}
			before := r.m.Usage.Faults
			out, e, ok := r.m.BeginSpeculative(&r.c, &f)
			if out != s.out || ok != (int(s.event) < NumPathEvents) || ok && (e != s.event || r.m.Paths[e] != 1) {
				t.Errorf("outcome %d, event %v (%v), want %d, %v", out, e, ok, s.out, s.event)
			}
			if n := r.m.Usage.Faults - before; out == Retry && n != 0 {
				t.Errorf("an attempt was counted as %d faults", n)
			}
			if r.m.Paths[SPFVMANoAnon] != 0 {
				t.Error("spf_vma_noanon was raised; no version does")
			}
		})
	}
}

// TestSpeculationRaces does something between the halves of an attempt. No page
// may be lost by it, and afterwards the classic path must do the fault.
func TestSpeculationRaces(t *testing.T) {
	for _, s := range []struct {
		what    string
		between func(r *rig, v *vma)
		out     Outcome
		event   PathEvent
	}{
		{"nothing", func(*rig, *vma) {}, Done, SPF},
		{"a writer comes", func(_ *rig, v *vma) { v.changed() }, Retry, SPFVMAChanged},
		{"a writer came and went", func(r *rig, v *vma) { v.changed(); r.m.EndWrite(r.sp.id) }, Retry, SPFVMAChanged},
		{"the VMA shrinks", func(r *rig, v *vma) {
			v.setRange(v.start, v.end-VA(mB), v.pgoff)
			r.m.EndWrite(r.sp.id)
		}, Retry, SPFVMAChanged},
		{"the table goes", func(r *rig, v *vma) {
			r.m.zapRange(&r.c, v, v.start, v.end, zapUnmap)
			r.m.freeTables(&r.c, r.sp, v.start, v.end, 0, 0)
		}, Retry, SPFPMDChanged},
		{"another fault is faster", func(r *rig, v *vma) {
			r.m.Touch(&r.c, r.sp.id, v.start+4096, Write)
		}, Raced, SPF},
	} {
		t.Run(s.what, func(t *testing.T) {
			r, v := specRig(t)
			f := Fault{Space: r.sp.id, Addr: v.start + 4096, Access: Write}
			if out, _, _ := r.m.BeginSpeculative(&r.c, &f); out != Pending {
				t.Fatalf("first half: outcome %d", out)
			}
			s.between(r, v)
			out := r.m.CommitSpeculative(&r.c, &f)
			if out != s.out || r.m.Paths[s.event] != 1 {
				t.Errorf("outcome %d, events %v; want %d, %v", out, r.m.Paths, s.out, s.event)
			}
			if err := r.m.Check(); err != nil {
				t.Error(err)
			}
			if got := r.touch(v.start+4096, Write); out == Retry && got != Done || out != Retry && got != Hit {
				t.Errorf("afterwards the access is outcome %d", got)
			}
		})
	}
}

// TestSpeculationLeavesTheSame: a fault done speculatively leaves the machine as
// the classic one does, but for the lock it took.
func TestSpeculationLeavesTheSame(t *testing.T) {
	a, va := specRig(t)
	b, vb := specRig(t)
	for i := range VA(200) {
		f := Fault{Space: a.sp.id, Addr: va.start + i*4096*3, Access: Write}
		if out, _, _ := a.m.BeginSpeculative(&a.c, &f); out == Pending {
			a.m.CommitSpeculative(&a.c, &f)
		}
		b.m.Touch(&b.c, b.sp.id, vb.start+i*4096*3, Write)
	}
	if a.m.Counters != b.m.Counters || a.m.Usage != b.m.Usage {
		t.Errorf("counters or usage differ:\n%+v\n%+v", a.m.Usage, b.m.Usage)
	}
	if err := a.m.Check(); err != nil {
		t.Error(err)
	}
}

// TestVMALocks: what keeps a fault from its VMA's lock, and what the lock keeps
// a writer from.
func TestVMALocks(t *testing.T) {
	r, v := specRig(t)
	fresh := r.mmap(1<<42, mB)
	r.m.EndWrite(r.sp.id)
	try := func(a VA, free bool) (Outcome, *Fault) {
		f := &Fault{Space: r.sp.id, Addr: a, Access: Write}
		return r.m.BeginVMALocked(&r.c, f, free), f
	}
	if out, _ := try(1<<43, true); out != Retry || r.m.Paths[VMALockAbort] != 1 {
		t.Errorf("no VMA: outcome %d, events %v", out, r.m.Paths)
	}
	if out, _ := try(fresh.start, false); out != Retry || r.m.Paths[VMALockRetry] != 1 {
		t.Errorf("first page, mmap_lock taken: outcome %d, events %v", out, r.m.Paths)
	}
	out, f := try(v.start+4096, false)
	if out != Pending || v.holders != 1 {
		t.Fatalf("a page to make: outcome %d, %d holders", out, v.holders)
	}
	r.sp.regions.set(7, v.start, 16)
	unmap := &Op{Kind: OpUnmap, Space: r.sp.id, Region: 7, N: 16}
	if r.m.BeginWrite(unmap) != 1 {
		t.Error("a writer does not see the fault that holds the VMA")
	}
	if out, _ := try(v.start+2*4096, true); out != Retry || r.m.Paths[VMALockAbort] != 2 {
		t.Errorf("a writer is there: outcome %d, events %v", out, r.m.Paths)
	}
	if r.m.Commit(&r.c, f) != Done {
		t.Error("a fault that holds the VMA was not finished")
	}
	r.m.UnlockVMA(f)
	if r.m.WriteHeld(unmap) != 0 || r.m.Paths[VMALockSuccess] != 1 {
		t.Errorf("the fault is done: %d holders, events %v", v.holders, r.m.Paths)
	}
}
