package mm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const hugeMB = 2 << 20

// newPoolLab is a lab with a pool of n pages of 2 MB and an overcommit limit.
func newPoolLab(t *testing.T, n, overcommit uint64) *lab {
	t.Helper()
	p := NeverPolicy(Sizes{4096, 9})
	p.Pools[0] = HugePool{n, overcommit}
	return newLab(t, p)
}

// huge maps n pages of 2 MB as region r.
func (l *lab) huge(r Region, n Pages, fl OpFlags) Errno {
	l.t.Helper()
	fl |= MapHugetlb | MapPool
	return l.do(Op{Kind: OpMap, Region: r, N: n * 512, Access: Read | Write, Flags: fl}).Errno
}

// pool is "nr free resv surplus".
func (l *lab) pool() string {
	p := l.m.Pools()[0]
	return fmt.Sprintf("%d %d %d %d", p.Pages, p.Free, p.Reserved, p.Surplus)
}

func (l *lab) wantPool(what, want string) {
	l.t.Helper()
	if got := l.pool(); got != want {
		l.t.Errorf("%s: nr free resv surplus are %s, want %s", what, got, want)
	}
}

// touchAt is one access of a space at a huge page of a region.
func (l *lab) touchAt(s Space, r Region, page uint64, acc Access) Outcome {
	l.t.Helper()
	a, ok := l.m.spaces[s].regions.base(r)
	if !ok {
		l.t.Fatalf("region %d is not mapped", r)
	}
	var c Current
	out := l.m.Touch(&c, s, a+VA(page*hugeMB)+0x5000, acc)
	if err := l.m.Check(); err != nil {
		l.t.Fatal(err)
	}
	return out
}

// TestHugeReserve: mmap promises pages, munmap takes promises back, and what
// cannot be promised is refused (semantics 6.2).
func TestHugeReserve(t *testing.T) {
	l := newPoolLab(t, 4, 0)
	l.wantPool("fresh", "4 4 0 0")
	if e := l.huge(1, 3, 0); e != OK {
		t.Fatal(e)
	}
	l.wantPool("mapped", "4 4 3 0")
	if e := l.huge(2, 2, 0); e != ENOMEM {
		t.Errorf("2 pages of 1 that is left: %v", e)
	}
	l.wantPool("refused", "4 4 3 0")
	if e := l.huge(3, 8, MapNoReserve); e != OK {
		t.Errorf("without a reservation: %v", e)
	}
	l.touchAt(1, 1, 0, Write)
	l.wantPool("touched", "4 3 2 0")
	if out := l.touchAt(1, 3, 0, Write); out != Done {
		t.Errorf("the page that is left: %v", out)
	}
	l.wantPool("no reservation touched", "4 2 2 0")
	if out := l.touchAt(1, 3, 1, Write); out != Bus {
		t.Errorf("all that is free is promised: %v, want Bus", out)
	}
	l.do(Op{Kind: OpUnmap, Region: 1, N: 3 * 512})
	l.wantPool("unmapped", "4 3 0 0")
	if l.m.RSS(1) != 0 || l.m.Hugetlb(1) != 512 {
		t.Errorf("rss %d, hugetlb %d", l.m.RSS(1), l.m.Hugetlb(1))
	}
	l.do(Op{Kind: OpExit})
	l.wantPool("ended", "4 4 0 0")
}

// TestHugeSurplus: what a pool lacks is taken from free memory up to the
// overcommit limit, all or nothing, and given back at once.
func TestHugeSurplus(t *testing.T) {
	l := newPoolLab(t, 1, 2)
	if e := l.huge(1, 4, 0); e != ENOMEM {
		t.Fatalf("4 pages of 1+2: %v", e)
	}
	l.wantPool("refused", "1 1 0 0")
	if e := l.huge(1, 3, 0); e != OK {
		t.Fatal(e)
	}
	l.wantPool("mapped", "3 3 3 2")
	l.touchAt(1, 1, 2, Write)
	l.wantPool("touched", "3 2 2 2")
	l.do(Op{Kind: OpAdvise, Region: 1, Page: 2 * 512, N: 512, Arg: uint64(AdviseDontNeed)})
	// With surplus pages about, the freed page goes, and its reservation with it.
	l.wantPool("dontneed", "2 2 2 1")
	l.do(Op{Kind: OpUnmap, Region: 1, N: 3 * 512})
	l.wantPool("unmapped", "1 1 0 0")
}

// TestHugeReadFirst: a read leaves a private page read-only, so that the write
// after it is a second fault and no copy (semantics 6.3.5).
func TestHugeReadFirst(t *testing.T) {
	l := newPoolLab(t, 2, 0)
	l.huge(1, 1, 0)
	for i, step := range []struct {
		acc Access
		out Outcome
	}{{Read, Done}, {Read, Hit}, {Write, Done}, {Write, Hit}} {
		if out := l.touchAt(1, 1, 0, step.acc); out != step.out {
			t.Errorf("access %d: %v, want %v", i, out, step.out)
		}
	}
	l.wantPool("after", "2 1 0 0")
}

// TestHugeDontNeed: a promise is renewed, the end is rounded down, the start
// must be a page's (semantics 6.3.8).
func TestHugeDontNeed(t *testing.T) {
	l := newPoolLab(t, 3, 0)
	l.huge(1, 2, 0)
	l.touchAt(1, 1, 0, Write)
	l.touchAt(1, 1, 1, Write)
	advise := func(page uint64, n Pages) Errno {
		return l.do(Op{Kind: OpAdvise, Region: 1, Page: page, N: n, Arg: uint64(AdviseDontNeed)}).Errno
	}
	if e := advise(1, 512); e != EINVAL {
		t.Errorf("from inside a page: %v", e)
	}
	if e := advise(0, 1); e != OK {
		t.Errorf("4 kB at the start: %v", e)
	}
	l.wantPool("nothing", "3 1 0 0")
	if e := advise(0, 1023); e != OK {
		t.Errorf("one page and a half: %v", e)
	}
	l.wantPool("one", "3 2 1 0")
	if e := l.do(Op{Kind: OpUnmap, Region: 1, N: 1}).Errno; e != EINVAL {
		t.Errorf("munmap of 4 kB: %v", e)
	}
	for _, a := range []Advice{AdviseFree, AdviseCold, AdvisePageOut, AdviseCollapse, AdviseGuardInstall} {
		if e := l.do(Op{Kind: OpAdvise, Region: 1, N: 512, Arg: uint64(a)}).Errno; e != EINVAL {
			t.Errorf("advice %d: %v, want EINVAL", a, e)
		}
	}
}

// TestHugeSteal: with no page left the owner's write takes the page away from
// its child, which then gets SIGBUS (semantics 6.4.3).
func TestHugeSteal(t *testing.T) {
	l := newPoolLab(t, 2, 0)
	l.huge(1, 2, 0)
	l.touchAt(1, 1, 0, Write)
	l.do(Op{Kind: OpFork, Arg: 2})
	l.wantPool("forked", "2 1 1 0")
	if out := l.touchAt(2, 1, 1, Write); out != Bus {
		t.Errorf("a child has no promise: %v, want Bus", out)
	}
	if out := l.touchAt(1, 1, 0, Write); out != Done {
		t.Errorf("the owner's write: %v", out)
	}
	l.wantPool("stolen", "2 1 1 0")
	if out := l.touchAt(2, 1, 0, Read); out != Bus {
		t.Errorf("the child's lost page: %v, want Bus", out)
	}
	l.do(Op{Kind: OpExit, Space: 2})
	l.do(Op{Kind: OpExit})
	l.wantPool("ended", "2 2 0 0")
}

// TestHugeCopy: with pages to spare a shared page is copied whole; the faulting
// sub-page is the hint of the order of copying, as of clearing.
func TestHugeCopy(t *testing.T) {
	l := newPoolLab(t, 3, 0)
	l.huge(1, 1, 0)
	c := Current{WantSteps: true}
	base, _ := l.m.spaces[1].regions.base(1)
	l.m.Touch(&c, 1, base+7<<12, Write)
	l.do(Op{Kind: OpFork, Arg: 2})
	l.m.Touch(&c, 2, base+9<<12, Write)
	l.wantPool("copied", "3 1 0 0")
	if len(c.Steps) != 2 || c.Steps[0].Prim != PrimClearPMD || c.Steps[0].N != 7 || c.Steps[0].Order != 9 ||
		c.Steps[1].Prim != PrimCopyCOW || c.Steps[1].N != 9 {
		t.Errorf("steps %+v", c.Steps)
	}
	if c.Work[PrimClearPMD] != 512 || c.Work[PrimCopyCOW] != 512 || c.Work[PrimPMDSet] != 2 {
		t.Errorf("work %v", c.Work)
	}
	in := l.m.PageInfo(2, base+9<<12)
	if !in.Hugetlb || !in.PMD || in.Order != 9 || in.Index != 9 || in.Maps != 1 || !in.Writable {
		t.Errorf("page %+v", in)
	}
}

// TestHugeShared: a shared mapping reserves once for all, and its pages live
// as long as a mapping of the file does.
func TestHugeShared(t *testing.T) {
	l := newPoolLab(t, 2, 0)
	l.huge(1, 2, MapShared)
	l.touchAt(1, 1, 0, Write)
	l.do(Op{Kind: OpFork, Arg: 2})
	l.touchAt(2, 1, 0, Write)
	l.touchAt(2, 1, 1, Write)
	l.wantPool("touched by both", "2 0 0 0")
	l.do(Op{Kind: OpUnmap, Region: 1, N: 2 * 512})
	l.wantPool("the child holds it", "2 0 0 0")
	l.do(Op{Kind: OpExit, Space: 2})
	l.wantPool("nobody holds it", "2 2 0 0")
}

// TestHugeResize is the experiment of semantics 6.5: three pages in use and one
// promised stay when the pool is set to nothing, as surplus ones.
func TestHugeResize(t *testing.T) {
	l := newPoolLab(t, 6, 0)
	l.huge(1, 4, 0)
	for i := range uint64(3) {
		l.touchAt(1, 1, i, Write)
	}
	l.wantPool("used", "6 3 1 0")
	var c Current
	set := func(n uint64) {
		if e := l.m.ResizePool(&c, 9, AnyNode, n); e != OK {
			t.Fatal(e)
		}
		if err := l.m.Check(); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	l.wantPool("shrunk", "4 1 1 4")
	set(3)
	l.wantPool("grown out of surplus", "4 1 1 1")
	set(0)
	l.do(Op{Kind: OpUnmap, Region: 1, N: 4 * 512})
	l.wantPool("unmapped", "0 0 0 0")
	was := l.m.Counters
	set(5)
	set(0)
	if got := l.m.Counters.VM[HtlbBuddyAllocSuccess] - was.VM[HtlbBuddyAllocSuccess]; got != 5 {
		t.Errorf("htlb_buddy_alloc_success moved by %d", got)
	}
	set(1 << 20)
	if p := l.m.Pools()[0]; p.Pages < 900 || p.Pages > 1024 || l.m.Counters.VM[HtlbBuddyAllocFail] == 0 {
		t.Errorf("a pool of all memory has %d pages", p.Pages)
	}
}

// TestHugeGigantic: pages of 1 GB come from free ranges, have no surplus, and
// can be demoted.
func TestHugeGigantic(t *testing.T) {
	p := NeverPolicy(Sizes{4096, 9})
	p.Pools[1].Pages = 3
	m, err := New(Config{Nodes: []Node{{Mem: 3 * gB}, {Mem: 2 * gB}}, CPUs: 1, Rules: rules618(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, m}
	l.do(Op{Kind: OpExec, Space: 1})
	has := m.Pools()[1]
	if has.Pages != 3 || has.Nodes[0].Pages == 0 || has.Nodes[1].Pages == 0 {
		t.Fatalf("pool %+v", has)
	}
	r := l.do(Op{Kind: OpMap, Region: 1, N: 1 << 18, Access: Read | Write, Flags: MapHugetlb | MapPoolPUD})
	if r.Errno != OK || r.Addr&(1<<30-1) != 0 {
		t.Fatalf("map: %+v", r)
	}
	l.do(Op{Kind: OpTouch, Region: 1, Page: 12345, N: 1, Access: Write})
	in := m.PageInfo(1, r.Addr+99999<<12)
	if !in.Hugetlb || in.Order != 18 || in.Index != 99999 || m.Hugetlb(1) != 1<<18 {
		t.Errorf("page %+v", in)
	}
	if e := m.SetOvercommit(18, 1); e != EINVAL {
		t.Errorf("overcommit: %v", e)
	}
	var c Current
	n, e := m.Demote(&c, 18, AnyNode, 5)
	if n != 2 || e != OK || m.Pools()[0].Pages != 2*512 || m.Pools()[1].Pages != 1 {
		t.Errorf("demoted %d, %v: %+v", n, e, m.Pools())
	}
	l.do(Op{Kind: OpExit})
	m.ResizePool(&c, 18, AnyNode, 0)
	m.ResizePool(&c, 9, AnyNode, 0)
	if err := m.Check(); err != nil || m.physUsed() != 0 {
		t.Errorf("left: %d pages, %v", m.physUsed(), err)
	}
}

// TestHugeLIFO: the page freed last is used first.
func TestHugeLIFO(t *testing.T) {
	l := newPoolLab(t, 4, 0)
	l.huge(1, 4, 0)
	for i := range uint64(4) {
		l.touchAt(1, 1, i, Write)
	}
	base, _ := l.m.spaces[1].regions.base(1)
	was := l.m.PageInfo(1, base+2*hugeMB).PFN
	for _, page := range []uint64{0, 2} {
		l.do(Op{Kind: OpAdvise, Region: 1, Page: page * 512, N: 512, Arg: uint64(AdviseDontNeed)})
	}
	l.touchAt(1, 1, 0, Write)
	if got := l.m.PageInfo(1, base).PFN; got != was {
		t.Errorf("frame %d, freed last was %d", got, was)
	}
}

// TestHugeRaced: a fault whose mapping changed under it gives page and promise
// back.
func TestHugeRaced(t *testing.T) {
	l := newPoolLab(t, 2, 0)
	l.huge(1, 1, 0)
	base, _ := l.m.spaces[1].regions.base(1)
	var c Current
	f := Fault{Space: 1, Addr: base, Access: Write}
	if out := l.m.Begin(&c, &f); out != Pending {
		t.Fatal(out)
	}
	l.touchAt2(base)
	if out := l.m.Commit(&c, &f); out != Raced {
		t.Fatal(out)
	}
	if err := l.m.Check(); err != nil {
		t.Fatal(err)
	}
	l.do(Op{Kind: OpExit})
	l.wantPool("ended", "2 2 0 0")
}

// touchAt2 is a write by another CPU, with no Check: a fault is under way.
func (l *lab) touchAt2(a VA) {
	var c Current
	l.m.Touch(&c, 1, a, Write)
}

// TestHugeRandom does random things with pools and mappings and holds the
// machine to Check after each; in the end every page is back.
func TestHugeRandom(t *testing.T) {
	for seed := range uint64(40) {
		x := rand.New(rand.NewPCG(seed, 7))
		l := newPoolLab(t, x.Uint64N(8), x.Uint64N(4))
		for range 60 {
			l.randomHuge(x)
		}
		for s := range l.m.spaces {
			if l.m.spaces[s] != nil {
				l.do(Op{Kind: OpExit, Space: Space(s)})
			}
		}
		var c Current
		l.m.ResizePool(&c, 9, AnyNode, 0)
		if p := l.m.Pools()[0]; p.Pages != uint64(p.Reserved) || l.m.physUsed() != p.Pages*512 {
			t.Fatalf("seed %d: left %+v, %d pages", seed, p, l.m.physUsed())
		}
	}
}

func (l *lab) randomHuge(x *rand.Rand) {
	s := Space(1 + x.IntN(3))
	if int(s) >= len(l.m.spaces) || l.m.spaces[s] == nil {
		s = 1
	}
	r := Region(1 + x.IntN(4))
	_, mapped := l.m.spaces[s].regions.base(r)
	op := Op{Space: s, Region: r, Page: x.Uint64N(4) * 512, N: Pages(1+x.IntN(3)) * 512}
	if x.IntN(8) == 0 {
		op.Page, op.N = op.Page+x.Uint64N(512), op.N-Pages(x.IntN(512))
	}
	switch k := x.IntN(12); {
	case k == 0:
		l.m.ResizePool(&l.m.exec.cur, 9, AnyNode, x.Uint64N(10))
		l.m.SetOvercommit(9, x.Uint64N(4))
		return
	case !mapped || k == 1:
		fl := [...]OpFlags{0, 0, MapShared, MapNoReserve, MapPopulate, MapLocked}[x.IntN(6)]
		op = Op{Space: s, Region: r, Kind: OpMap, N: Pages(1+x.IntN(4)) * 512, Access: Read | Write,
			Flags: MapHugetlb | MapPool | fl}
		if mapped {
			return
		}
	case k == 2:
		op.Kind = OpUnmap
	case k == 3:
		op.Kind, op.Access = OpProtect, [...]Access{0, Read, Read | Write}[x.IntN(3)]
	case k == 4:
		op.Kind, op.Arg = OpAdvise, uint64([...]Advice{AdviseDontNeed, AdvisePopulateWrite, AdviseFree}[x.IntN(3)])
	case k == 5 && s == 1:
		op.Kind, op.Arg = OpFork, uint64(2+x.IntN(2))
	case k == 6 && s != 1:
		op.Kind = OpExit
	case k == 7:
		op.Kind = OpLock
	case k == 8:
		op.Kind, op.Arg, op.Aux, op.Flags = OpRemap, uint64(op.N)/2, uint64(r), RemapMayMove
	default:
		op.Kind, op.N, op.Stride, op.Access = OpTouch, op.N/512+1, 512, [...]Access{Read, Write}[x.IntN(2)]
	}
	l.do(op)
}

// TestPoolPolicy: pools are spec items, print as they parse, and make files.
func TestPoolPolicy(t *testing.T) {
	s := Sizes{4096, 9}
	p, err := ParsePolicySpec(NeverPolicy(s), "64k=always,pool=2m:6+1g:2,overcommit=2m:4", s)
	if err != nil || p.Pools != [hugeSizes]HugePool{{6, 4}, {2, 0}} {
		t.Fatalf("%v, %+v", err, p.Pools)
	}
	back, err := ParsePolicySpec(DefaultPolicy(s), p.Spec(s), s)
	if err != nil || back != p {
		t.Errorf("%s reads as %+v, %v", p.Spec(s), back, err)
	}
	if f := p.PoolFiles(s); f["hugepages-2048kB/nr_hugepages"] != "6" || f["hugepages-1048576kB/nr_hugepages"] != "2" ||
		f["hugepages-2048kB/nr_overcommit_hugepages"] != "4" || len(f) != 3 {
		t.Errorf("files %v", f)
	}
	for _, bad := range []string{"pool=6", "pool=64k:1", "pool=2m:x", "overcommit=1g:1", "pool=2m:-1"} {
		if _, err := ParsePolicySpec(p, bad, s); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
