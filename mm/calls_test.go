package mm

import "testing"

func heapMachine(t testing.TB, cfg Config) *Machine {
	m := vmaMachine(t, cfg)
	do(t, m, Op{Kind: OpMap, Region: 1, Flags: MapAtExec, Arg: uint64(at0), Aux: uint64(AreaHeap)})
	return m
}

func TestBrk(t *testing.T) {
	m := heapMachine(t, Config{})
	brk := func(n Pages) Errno { return do(t, m, Op{Kind: OpBrk, Region: 1, N: n}).Errno }
	brk(4)
	brk(9)
	want(t, show(m, 1, at0), "0-9rw")
	touchAt(m, 1, at0)
	brk(3)
	brk(12)
	want(t, show(m, 1, at0), "0-12rw@1") // kept its pages, merged again
	do(t, m, fixed(2, at0+20*page, page))
	if e := brk(20); e != ENOMEM { // one page must stay free behind it
		t.Errorf("brk up to a mapping: %v", e)
	}
	if e := brk(19); e != OK {
		t.Errorf("brk to a page before a mapping: %v", e)
	}
	brk(0)
	want(t, show(m, 1, at0), "20-21rw")
}

func TestAdvisePolicy(t *testing.T) {
	m := heapMachine(t, Config{Policy: Policy{Advise: AdviseRule{Heap: true, AtLeast: mb}}})
	do(t, m, Op{Kind: OpBrk, Region: 1, N: 4})
	do(t, m, Op{Kind: OpBrk, Region: 1, N: 8})
	do(t, m, fixed(2, at0+mb, 64*kb))
	do(t, m, fixed(3, at0+2*mb, mb))
	want(t, show(m, 1, at0), "0-8rwH 256-272rw 512-768rwH")
}

func TestStackGrowth(t *testing.T) {
	m := vmaMachine(t, Config{})
	top := at0 + 8*mb
	do(t, m, Op{Kind: OpMap, Region: 1, N: 2048, Page: 2048 - 33, Access: Read | Write,
		Flags: MapAtExec | MapGrowsDown, Arg: uint64(top - 33*page), Aux: uint64(AreaStack)})
	sp, c := m.spaces[1], &Current{}
	if b, _ := sp.regions.base(1); b != at0 {
		t.Fatalf("region at %#x", b)
	}
	grow := func(a VA) bool { return m.expandStack(c, sp, a) != nil && m.checkVMAs() == nil }
	if !grow(at0+1000*page+123) || sp.vmas.First().Val.start != at0+1000*page {
		t.Errorf("grew to %#x, not exactly to the faulting page", sp.vmas.First().Val.start)
	}
	if grow(at0 - page) {
		t.Error("grew below the limit")
	}
	if c.Work[PrimStackGrow] != 1 {
		t.Errorf("%d expansions counted", c.Work[PrimStackGrow])
	}
	do(t, m, fixed(2, at0+100*page, page))
	if grow(at0 + 356*page) {
		t.Error("grew into the guard gap")
	}
	if !grow(at0 + 357*page) {
		t.Error("did not grow up to the guard gap")
	}
	do(t, m, Op{Kind: OpProtect, Region: 2, N: 1})
	if !grow(at0 + 101*page) {
		t.Error("an inaccessible map needs no guard gap")
	}
}

func TestRemap(t *testing.T) {
	remap := func(m *Machine, page_ uint64, old, n Pages, flags OpFlags) Result {
		return do(t, m, Op{Kind: OpRemap, Region: 1, Page: page_, N: old, Arg: uint64(n), Aux: 9, Flags: flags})
	}
	t.Run("shrink", func(t *testing.T) {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 16*page))
		remap(m, 0, 16, 4, 0)
		want(t, show(m, 1, at0), "0-4rw")
	})
	t.Run("grow in place and meet the next", func(t *testing.T) {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 4*page))
		do(t, m, fixed(2, at0+8*page, 4*page))
		remap(m, 0, 4, 8, 0)
		want(t, show(m, 1, at0), "0-12rw")
	})
	t.Run("no room", func(t *testing.T) {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 4*page))
		do(t, m, fixed(2, at0+4*page, 4*page))
		if e := remap(m, 0, 4, 8, 0).Errno; e != ENOMEM {
			t.Errorf("got %v", e)
		}
	})
	t.Run("past the end of its VMA", func(t *testing.T) {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 4*page))
		if e := remap(m, 0, 5, 8, RemapMayMove).Errno; e != EFAULT {
			t.Errorf("got %v", e)
		}
	})
	for _, faulted := range []bool{false, true} {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 4*page))
		do(t, m, fixed(2, at0+4*page, 4*page))
		do(t, m, Op{Kind: OpProtect, Region: 2, N: 4, Access: Read})
		if faulted {
			touchAt(m, 1, at0)
		}
		r := remap(m, 0, 4, 8, RemapMayMove)
		v := m.spaces[1].at(r.Addr)
		renumbered := v.pgoff == uint64(r.Addr>>12)
		if r.Addr != defaultMmapBase-8*page || renumbered == faulted {
			t.Errorf("faulted %v: moved to %#x, page offset %#x", faulted, r.Addr, v.pgoff)
		}
		// A new neighbour merges only with the renumbered one (semantics 3.8).
		do(t, m, anon(5, 4*page))
		if merged := v.start == r.Addr-4*page; merged == faulted {
			t.Errorf("faulted %v: merged %v", faulted, merged)
		}
		if _, ok := m.spaces[1].regions.base(1); ok {
			t.Error("the region that moved away is still known")
		}
	}
	t.Run("keep the source", func(t *testing.T) {
		m := vmaMachine(t, Config{})
		do(t, m, fixed(1, at0, 4*page))
		touchAt(m, 1, at0)
		r := remap(m, 0, 4, 4, RemapMayMove|RemapDontUnmap)
		src, dst := m.spaces[1].at(at0), m.spaces[1].at(r.Addr)
		if src == nil || dst == nil || src.anon != nil || dst.anon == nil {
			t.Errorf("source %+v, destination %+v", src, dst)
		}
	})
}

func TestFork(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 4*page))
	do(t, m, fixed(2, at0+8*page, 4*page))
	do(t, m, fixed(3, at0+16*page, 4*page))
	do(t, m, Op{Kind: OpAdvise, Region: 2, N: 4, Arg: uint64(AdviseDontFork)})
	do(t, m, Op{Kind: OpAdvise, Region: 3, N: 4, Arg: uint64(AdviseWipeOnFork)})
	do(t, m, Op{Kind: OpLock, Region: 1, N: 4, Flags: LockOnFault})
	do(t, m, Op{Kind: OpTHPDisable, Arg: uint64(THPDisabled)})
	for _, a := range []VA{0, 8, 16} {
		touchAt(m, 1, at0+a*page)
	}
	do(t, m, Op{Kind: OpFork, Arg: 2})
	want(t, show(m, 2, at0), "0-4rw@4 16-20rw")
	if m.spaces[2].thpDisable != THPDisabled {
		t.Error("the child lost the prctl")
	}

	// The parent's pages are found in both, the child's own in it alone.
	count := func(v *vma) (n int) {
		m.rmapVMAs(v.anon, v.pgoff+1, 2, func(x *vma, at VA) bool {
			if at != at0+page {
				t.Errorf("found at %#x", at)
			}
			n++
			return true
		})
		return n
	}
	if p, c := count(m.spaces[1].at(at0)), count(m.spaces[2].at(at0)); p != 2 || c != 1 {
		t.Errorf("parent's pages in %d VMAs, child's in %d", p, c)
	}

	// What stems from a fork does not lend its anon_vma to a new neighbour;
	// in the parent, whose VMA has one link only, it does.
	for id, w := range map[Space]string{1: "0-4rwL@1 4-8rw", 2: "0-4rw@4 4-8rw 16-20rw"} {
		op := fixed(5, at0+4*page, 4*page)
		op.Space = id
		do(t, m, op)
		if got := show(m, id, at0); got[:len(w)] != w {
			t.Errorf("space %d: %s", id, got)
		}
	}
	do(t, m, Op{Kind: OpUnlock, Region: 1, N: 4})
	want(t, show(m, 1, at0), "0-8rw@1 8-12rwD@2 16-20rw@3")

	// Regions of the two are apart now; exit and exec.
	do(t, m, Op{Kind: OpUnmap, Space: 2, Region: 1, N: 4})
	if _, ok := m.spaces[1].regions.base(1); !ok {
		t.Error("the child's munmap forgot the parent's region")
	}
	do(t, m, Op{Kind: OpExec, Space: 3, Arg: 2})
	if m.spaces[3].thpDisable != THPDisabled || m.spaces[3].vmas.Len() != 0 {
		t.Error("exec lost the prctl or kept maps")
	}
	do(t, m, Op{Kind: OpExit, Space: 2})
	if m.spaceOf(2) != nil || len(m.spaces[1].at(at0).anon.links) != 1 {
		t.Error("the child's exit left links")
	}
}

// TestForkTakesOver: a grandchild takes over the anon_vma of a parent that is
// gone, so that chains stay short (mm/rmap.c:anon_vma_clone).
func TestForkTakesOver(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 4*page))
	touchAt(m, 1, at0)
	for id := Space(1); id < 30; id++ {
		do(t, m, Op{Kind: OpFork, Space: id, Arg: uint64(id + 1)})
		do(t, m, Op{Kind: OpExit, Space: id})
	}
	if n := len(m.spaces[30].at(at0).chain); n > 3 {
		t.Errorf("a chain of %d links after 29 generations", n)
	}
}

func TestAdviceErrors(t *testing.T) {
	locked := Op{Kind: OpMap, Region: 1, N: 1, Access: Read | Write, Flags: MapLocked}
	file := Op{Kind: OpMap, Region: 1, N: 1, Access: Read, Flags: MapFile}
	special := Op{Kind: OpMap, Region: 1, N: 1, Access: Read, Flags: MapSpecial}
	for _, c := range []struct {
		name string
		op   Op
		adv  Advice
		want Errno
	}{
		{"unknown", anon(1, page), 77, EINVAL},
		{"free a file", file, AdviseFree, EINVAL},
		{"wipe a file", file, AdviseWipeOnFork, EINVAL},
		{"drop locked", locked, AdviseDontNeed, EINVAL},
		{"drop locked, meant", locked, AdviseDontNeedLocked, OK},
		{"guard locked", locked, AdviseGuardInstall, EINVAL},
		{"populate read-only", Op{Kind: OpMap, Region: 1, N: 1, Access: Read}, AdvisePopulateWrite, EINVAL},
		{"remove private", anon(1, page), AdviseRemove, EINVAL},
		{"hint a special map", special, AdviseHugePage, OK},
	} {
		m := vmaMachine(t, Config{})
		do(t, m, c.op)
		if r := do(t, m, Op{Kind: OpAdvise, Region: 1, N: 1, Arg: uint64(c.adv)}); r.Errno != c.want {
			t.Errorf("%s: got %v, want %v", c.name, r.Errno, c.want)
		}
	}
}

func TestNonsenseIsAnError(t *testing.T) {
	m := vmaMachine(t, Config{})
	for _, op := range []Op{
		{Kind: OpTouch, Space: 1, Region: 7, N: 1}, {Kind: OpTouch, Space: 9, Region: 7, N: 1},
		{Kind: OpUnmap, Space: 1, Region: 3, N: 1}, {Kind: OpFork, Space: 1}, {Kind: NumOpKinds, Space: 1},
		{Kind: OpBrk, Space: 1, Region: 4, N: 1},
	} {
		if _, err := m.Exec([]Op{op}, nil); err == nil {
			t.Errorf("%+v was done", op)
		}
	}
}

func TestTouchCounts(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, Op{Kind: OpMap, Region: 1, N: 8, Access: Read, Flags: MapFile})
	if r := do(t, m, Op{Kind: OpTouch, Region: 1, N: 4, Stride: 2, Access: Read}); r.Faults != 4 {
		t.Errorf("%d faults on a file", r.Faults)
	}
	if r := do(t, m, Op{Kind: OpTouch, N: 3}); r.Faults != 3 {
		t.Errorf("%d faults at unknown addresses", r.Faults)
	}
	if u := m.Usage; u.Faults != 7 || u.FileFaults != 4 || u.Unknown != 3 {
		t.Errorf("usage %+v", u)
	}
}
