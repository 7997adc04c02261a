package mm

import "testing"

// lab is a machine driven through Exec alone.
type lab struct {
	t *testing.T
	m *Machine
}

func newLab(t *testing.T, p Policy) *lab {
	t.Helper()
	m, err := New(Config{Nodes: []Node{{Mem: 2 * gB}}, Rules: rules618(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, m}
	l.do(Op{Kind: OpExec, Space: 1})
	return l
}

func (l *lab) do(op Op) Result {
	l.t.Helper()
	if op.Space == 0 {
		op.Space = 1
	}
	out := make([]Result, 1)
	if _, err := l.m.Exec([]Op{op}, out); err != nil {
		l.t.Fatal(err)
	}
	if err := l.m.Check(); err != nil {
		l.t.Fatal(err)
	}
	return out[0]
}

// fixed maps a region at an address, in bytes.
func (l *lab) fixed(r Region, at VA, n Bytes, fl OpFlags) VA {
	l.t.Helper()
	return l.do(Op{
		Kind: OpMap, Region: r, N: Pages(n >> 12), Access: Read | Write, Arg: uint64(at),
		Flags: MapFixed | MapReplaces | fl,
	}).Addr
}

func (l *lab) write(r Region, page uint64, n Pages) Result {
	l.t.Helper()
	return l.do(Op{Kind: OpTouch, Region: r, Page: page, N: n, Stride: 1, Access: Read | Write})
}

const spot = VA(0x7f0000000000)

// TestE7 is mprotect, MADV_NOHUGEPAGE and mlock on a part of a THP: the PMD is
// split, the folio stays whole. On all of it nothing is split.
func TestE7(t *testing.T) {
	for name, op := range map[string]Op{
		"mprotect":  {Kind: OpProtect, Access: Read},
		"nohuge":    {Kind: OpAdvise, Arg: uint64(AdviseNoHugePage)},
		"mlock":     {Kind: OpLock},
		"dontfork":  {Kind: OpAdvise, Arg: uint64(AdviseDontFork)},
		"mempolicy": {Kind: OpPolicyNode, Arg: 7},
	} {
		for _, whole := range []bool{false, true} {
			l := newLab(t, sizes(9))
			l.fixed(1, spot, 4*mB, 0)
			l.write(1, 0, 1)
			op.Region, op.Page, op.N = 1, 16, 16
			if whole {
				op.Page, op.N = 0, 512
			}
			eq(t, name, l.do(op).Errno, OK)
			splits := uint64(1)
			if whole {
				splits = 0
			}
			vm := &l.m.Counters.VM
			eq(t, name+": thp_split_pmd", vm[THPSplitPMD], splits)
			eq(t, name+": thp_split_page", vm[THPSplitPage], 0)
			eq(t, name+": nr_anon", l.m.Counters.Size[9].NrAnon, 1)
			eq(t, name+": AnonHugePages", vm[NrAnonTHPs], 1-splits)
			eq(t, name+": anon", l.m.Usage.Anon, 512)
		}
	}
}

// TestD is semantics 4.3: adjacent mappings are one VMA to a 64K folio, and
// mprotect of one page makes 64K unsuitable until the protection is restored.
func TestD(t *testing.T) {
	l := newLab(t, sizes(4))
	l.fixed(1, spot, 32*kB, 0)
	l.fixed(2, spot+32<<10, 32*kB, 0)
	l.write(2, 0, 1)
	eq(t, "spans both", l.m.PageInfo(1, spot).Order, 4)
	l = newLab(t, sizes(4))
	l.fixed(1, spot, 32*kB, 0)
	l.write(1, 0, 1)
	l.fixed(2, spot+32<<10, 32*kB, 0)
	l.write(2, 0, 1)
	eq(t, "not none", l.m.PageInfo(1, spot+32<<10).Order, 0)
	l = newLab(t, sizes(4))
	l.fixed(1, spot, 64*kB, 0)
	l.do(Op{Kind: OpProtect, Region: 1, Page: 3, N: 1, Access: Read})
	l.write(1, 9, 1)
	eq(t, "unsuitable", l.m.PageInfo(1, spot+9<<12).Order, 0)
	l = newLab(t, sizes(4))
	l.fixed(1, spot, 64*kB, 0)
	l.do(Op{Kind: OpProtect, Region: 1, Page: 3, N: 1, Access: Read})
	l.do(Op{Kind: OpProtect, Region: 1, Page: 3, N: 1, Access: Read | Write})
	l.write(1, 9, 1)
	eq(t, "restored", l.m.PageInfo(1, spot+9<<12).Order, 4)
}

// TestCrossVMA: a folio that crosses two VMAs is zapped in two batches, and
// that makes it partially mapped even inside one munmap (3.2.4).
func TestCrossVMA(t *testing.T) {
	l := newLab(t, sizes(4))
	l.fixed(1, spot, 64*kB, 0)
	l.write(1, 0, 1)
	l.do(Op{Kind: OpProtect, Region: 1, Page: 8, N: 8, Access: Read})
	l.do(Op{Kind: OpUnmap, Region: 1, N: 16})
	eq(t, "split_deferred", l.m.Counters.Size[4].SplitDeferred, 1)
	eq(t, "anon", l.m.Usage.Anon, 0)
}

// TestStack: used page by page a stack grows page by page and gets small
// pages; once a deep frame was touched it gets folios (2.8).
func TestStack(t *testing.T) {
	l := newLab(t, sizes(4))
	stack := Op{
		Kind: OpMap, Region: 1, N: 2048, Page: 2048 - 33, Access: Read | Write,
		Flags: MapGrowsDown | MapAtExec, Aux: uint64(AreaStack), Arg: uint64(spot) + (2048-33)<<12,
	}
	l.do(stack)
	l.do(Op{Kind: OpTouch, Region: 1, Page: 2047, N: 1024, Stride: -1, Access: Read | Write})
	small := l.m.Counters.Size[4].AnonFaultAlloc
	if small > 2 {
		t.Errorf("page by page: %d folios of 64K", small)
	}
	l = newLab(t, sizes(4))
	l.do(stack)
	l.write(1, 1024, 1)
	l.do(Op{Kind: OpTouch, Region: 1, Page: 2047, N: 1000, Stride: -1, Access: Read | Write})
	if got := l.m.Counters.Size[4].AnonFaultAlloc; got < 60 {
		t.Errorf("deep frame first: %d folios of 64K", got)
	}
}

// TestE5Remap is E5 through the system call.
func TestE5Remap(t *testing.T) {
	for _, s := range []struct {
		name   string
		page   uint64
		n      Pages
		to     VA
		splits uint64
	}{
		{"whole, congruent", 0, 512, spot + 64<<20, 0},
		{"whole, +64K", 0, 512, spot + 64<<20 + 64<<10, 1},
		{"half", 0, 256, spot + 64<<20, 1},
	} {
		l := newLab(t, sizes(9))
		l.fixed(1, spot, 2*mB, 0)
		l.write(1, 0, 1)
		ops := []Op{
			{Kind: OpRemap, Space: 1, Region: 1, Page: s.page, N: s.n, Arg: uint64(s.n), Aux: 2,
				Flags: RemapFixed | RemapMayMove},
			{Kind: OpNote, Space: 1, Arg: uint64(s.to)},
		}
		out := make([]Result, 2)
		if _, err := l.m.Exec(ops, out); err != nil {
			t.Fatal(err)
		}
		eq(t, s.name+": errno", out[0].Errno, OK)
		eq(t, s.name+": addr", out[0].Addr, s.to)
		eq(t, s.name+": check", l.m.Check(), nil)
		eq(t, s.name+": split_pmd", l.m.Counters.VM[THPSplitPMD], s.splits)
		eq(t, s.name+": deferred", l.m.Counters.VM[THPDeferredSplitPage], 0)
		l.do(Op{Kind: OpUnmap, Region: 2, N: s.n})
		want := uint64(0)
		if s.splits > 0 {
			want = 1
		}
		eq(t, s.name+": at munmap", l.m.Counters.VM[THPDeferredSplitPage], want)
	}
}

// TestForkExec: fork, copy-on-write, exec and exit leave nothing behind.
func TestForkExec(t *testing.T) {
	l := newLab(t, sizes(4, 9))
	l.fixed(1, spot, 6*mB+64*kB, 0)
	l.write(1, 0, 6*256+16)
	l.do(Op{Kind: OpFork, Arg: 2})
	touch := Op{Kind: OpTouch, Space: 2, Region: 1, N: 20, Stride: 1, Access: Write}
	eq(t, "child", l.do(touch).Faults, 20)
	eq(t, "split_pmd", l.m.Counters.VM[THPSplitPMD], 1)
	l.do(Op{Kind: OpExec, Space: 2})
	eq(t, "parent", l.write(1, 512, 512).Faults, 1)
	l.do(Op{Kind: OpExit, Space: 2})
	l.do(Op{Kind: OpExit})
	eq(t, "anon", l.m.Usage.Anon, 0)
	eq(t, "tables", l.m.Usage.Tables, 0)
}

// TestCollapseSyscall: advice at the system call, on a range of two VMAs.
func TestCollapseSyscall(t *testing.T) {
	l := newLab(t, policyOff())
	l.fixed(1, spot, 4*mB, 0)
	l.write(1, 0, 1024)
	eq(t, "collapse", l.do(Op{Kind: OpAdvise, Region: 1, N: 1024, Arg: uint64(AdviseCollapse)}).Errno, OK)
	eq(t, "thps", l.m.Counters.VM[NrAnonTHPs], 2)
	drop := Op{Kind: OpAdvise, Region: 1, Page: 1, N: 511, Arg: uint64(AdviseDontNeed)}
	eq(t, "dontneed", l.do(drop).Errno, OK)
	eq(t, "partially mapped", l.m.Counters.VM[THPDeferredSplitPage], 1)
	eq(t, "free", l.do(Op{Kind: OpAdvise, Region: 1, Page: 512, N: 16, Arg: uint64(AdviseFree)}).Errno, OK)
	eq(t, "split", l.m.Counters.VM[THPSplitPage], 1)
	eq(t, "zero pages", l.m.PageInfo(1, spot+2<<20).Zero, false)
}

// TestC1C2 is compact_memory with 64K folios and with THPs: 64K folios move
// whole or are split and their pages move, which counts split_deferred too;
// THPs stay.
func TestC1C2(t *testing.T) {
	l := newLab(t, sizes(4))
	l.fixed(1, spot, 64*mB, 0)
	l.write(1, 0, 64<<8)
	for i := range uint64(512) {
		l.do(Op{Kind: OpAdvise, Region: 1, Page: i * 32, N: 16, Arg: uint64(AdviseDontNeed)})
	}
	vm, st := &l.m.Counters.VM, &l.m.Counters.Size[4]
	eq(t, "C1: errno", l.m.CompactMemory(&Current{}, -1), OK)
	eq(t, "C1: check", l.m.Check(), nil)
	if n := vm[PgMigrateSuccess]; n == 0 || n%16 != 0 {
		t.Errorf("C1: pgmigrate_success %d: want whole folios", n)
	}
	eq(t, "C1: 64K folios", st.NrAnon+st.Split, 512)
	eq(t, "C1: split_deferred", st.SplitDeferred, st.Split)
	eq(t, "C1: anon", l.m.Usage.Anon, 512*16)

	l = newLab(t, sizes(9))
	l.fixed(1, spot, 64*mB, 0)
	l.write(1, 0, 64<<8)
	was := l.m.PageInfo(1, spot)
	eq(t, "C2: errno", l.m.CompactMemory(&Current{}, -1), OK)
	eq(t, "C2: check", l.m.Check(), nil)
	eq(t, "C2: page", l.m.PageInfo(1, spot), was)
	vm = &l.m.Counters.VM
	eq(t, "C2: THPs", vm[NrAnonTHPs], 32)
	eq(t, "C2: moved", vm[PgMigrateSuccess]+vm[PgMigrateFail]+vm[THPMigrationFail], 0)
}
