package mm

import "testing"

// TestAlignment is semantics 4.1: which lengths came out at a multiple of 2 MB.
func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		length  int
		rule    AlignRule
		aligned bool
	}{
		{2 * mb, AlignMultiple, true}, {4 * mb, AlignMultiple, true}, {6 * mb, AlignMultiple, true},
		{64 * mb, AlignMultiple, true}, {64 * kb, AlignMultiple, false}, {mb, AlignMultiple, false},
		{2*mb + page, AlignMultiple, false}, {3 * mb, AlignMultiple, false},
		{2*mb + page, AlignLong, true}, {3 * mb, AlignLong, true}, {mb, AlignLong, false},
		{2 * mb, AlignNone, false}, {64 * mb, AlignNone, false},
	} {
		m := vmaMachine(t, Config{})
		m.rules.AlignTHP = c.rule
		a := do(t, m, anon(1, c.length)).Addr
		if got := a%(2*mb) == 0; got != c.aligned {
			t.Errorf("length %d kB, rule %d: at %#x", c.length/kb, c.rule, a)
		}
		if !c.aligned && a+VA(c.length) != defaultMmapBase {
			t.Errorf("length %d kB, rule %d: at %#x, not below the base", c.length/kb, c.rule, a)
		}
	}
}

// TestPlacement follows a program's maps, by distance below the base.
func TestPlacement(t *testing.T) {
	m := vmaMachine(t, Config{})
	base := defaultMmapBase // 0x7ffff7fff000: 2 MB - 4 kB above a multiple of 2 MB
	step := func(op Op, want VA) {
		t.Helper()
		if a := do(t, m, op).Addr; a != base-want {
			t.Errorf("region %d: %#x below the base, want %#x", op.Region, base-a, want)
		}
	}
	step(anon(1, 64*kb), 64*kb)
	step(anon(2, 64*kb), 128*kb) // directly below, merged
	if n := m.spaces[1].vmas.Len(); n != 1 {
		t.Errorf("%d VMAs, want 1", n)
	}
	step(anon(3, 4*mb), 6*mb-page) // the highest aligned place below
	step(anon(4, 4*mb), 10*mb-page)
	step(anon(5, 128*kb), 256*kb) // the first small one fills the gap above the aligned ones
	step(anon(6, 3*mb), 13*mb-page)
	hint := anon(7, 2*mb)
	hint.Flags, hint.Arg = MapHint, uint64(base-32*mb+5*page)
	step(hint, 32*mb-5*page) // honoured, and not aligned
	hint.Region = 8
	step(hint, 15*mb-page) // taken: placed as without a hint, but not aligned
}

// TestPlacementKeepsGuardGap: nothing is placed within 256 pages below a
// stack, unless asked for by address.
func TestPlacementKeepsGuardGap(t *testing.T) {
	m := vmaMachine(t, Config{})
	st := fixed(1, defaultMmapBase-4*mb, 4*mb)
	st.Flags |= MapGrowsDown
	do(t, m, st)
	if a := do(t, m, anon(2, 64*kb)).Addr; a != defaultMmapBase-4*mb-256*page-64*kb {
		t.Errorf("placed %#x below the stack", defaultMmapBase-4*mb-a)
	}
	hint := anon(3, 64*kb)
	hint.Flags, hint.Arg = MapHint, uint64(defaultMmapBase-4*mb-64*kb)
	if a := do(t, m, hint).Addr; a == VA(hint.Arg) {
		t.Error("a hint within the guard gap was honoured")
	}
}

// TestBottomUp: when nothing is free below the base, maps go above a third of
// the address space.
func TestBottomUp(t *testing.T) {
	m := vmaMachine(t, Config{})
	m.spaces[1].mmapBase = mmapMinAddr + 64*kb
	do(t, m, anon(1, 64*kb))
	if a := do(t, m, anon(2, 64*kb)).Addr; a != 0x2aaaaaaab000 {
		t.Errorf("placed at %#x", a)
	}
}

// TestNoReplace: MAP_FIXED_NOREPLACE over a mapping is refused.
func TestNoReplace(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 4*page))
	op := fixed(2, at0+2*page, 4*page)
	op.Flags = MapFixed
	if r := do(t, m, op); r.Errno != EEXIST {
		t.Errorf("got %v", r.Errno)
	}
	op.Flags, op.Aux, op.Page = MapFixed|MapReplaces, 1, 1
	op.Access = Read
	do(t, m, op) // one page into region 1
	want(t, show(m, 1, at0), "0-1rw 1-5r")
}

// TestShift: areas of an exec move, hints near the mmap area follow.
func TestShift(t *testing.T) {
	m := vmaMachine(t, Config{Shift: func(n int) Shift { return Shift{Exe: 1, Heap: 2, Mmap: -3, Stack: 4} }})
	for i, c := range []struct {
		area Area
		by   int64
	}{{AreaFixed, 0}, {AreaExe, 1}, {AreaHeap, 2}, {AreaMmap, -3}, {AreaStack, 4}} {
		op := Op{Kind: OpMap, Region: Region(i + 1), N: 4, Access: Read, Flags: MapAtExec | MapFile,
			Arg: uint64(at0 + VA(i)*mb), Aux: uint64(c.area)}
		if a := do(t, m, op).Addr; a != VA(int64(op.Arg)+c.by*page) {
			t.Errorf("area %d: at %#x", c.area, a)
		}
	}
	top := at0 + 3*mb + page // end of the mmap area's only map
	if a := do(t, m, anon(9, 64*kb)).Addr; a != top-4*page-64*kb {
		t.Errorf("first map at %#x, top %#x", a, top)
	}
	hint := anon(10, 64*kb)
	hint.Flags, hint.Arg = MapHint, uint64(top-700*page)
	if a := do(t, m, hint).Addr; a != top-703*page {
		t.Errorf("hint did not follow the area: %#x", a)
	}
	hint = anon(11, 64*kb)
	hint.Flags, hint.Arg = MapHint, 0x7000_0000_0000
	if a := do(t, m, hint).Addr; a != VA(hint.Arg) {
		t.Errorf("absolute hint moved: %#x", a)
	}
}

// TestAsRecorded: every map lands where the recording had it.
func TestAsRecorded(t *testing.T) {
	m := vmaMachine(t, Config{AsRecorded: true})
	op := anon(1, 2*mb)
	op.Arg = uint64(at0 + page)
	if a := do(t, m, op).Addr; a != at0+page {
		t.Errorf("at %#x", a)
	}
	ops := []Op{
		{Kind: OpRemap, Space: 1, Region: 1, N: 512, Arg: 1024, Aux: 2, Flags: RemapMayMove},
		{Kind: OpNote, Space: 1, Arg: uint64(at0 + 64*mb)},
	}
	var out [2]Result
	if _, err := m.Exec(ops, out[:]); err != nil || out[0].Addr != at0+64*mb {
		t.Errorf("remap to %#x, %v", out[0].Addr, err)
	}
	// The same with the note in the next batch.
	ops[0].Region, ops[0].N, ops[0].Aux, ops[0].Arg = 2, 1024, 3, 2048
	ops[1].Arg = uint64(at0 + 128*mb)
	for i := range ops {
		if _, err := m.Exec(ops[i:i+1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := m.spaces[1].regions.base(3); b != at0+128*mb || m.spaces[1].at(b) == nil {
		t.Errorf("late note: region at %#x", b)
	}
}
