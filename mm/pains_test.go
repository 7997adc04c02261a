package mm_test

import (
	"math"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

// These are reports that people filed about huge pages, each with the figures
// it gave; the model must give the same answers. docs/pains.md lists them by
// number.

// script drives one machine by operations.
type script struct {
	t *testing.T
	m *mm.Machine
}

const (
	mainSpace mm.Space = 1
	base      mm.VA    = 0x7f0000000000
	page               = 4096
	mib                = 1 << 20
)

func newScript(t *testing.T, kernel, policy string, edit func(*mm.Config)) *script {
	t.Helper()
	rules, err := mm.RulesFor(kernel)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mm.Config{
		Nodes: []mm.Node{{Mem: 32 << 30}}, CPUs: 1, BasePage: page, Rules: rules, AsRecorded: true,
	}
	if edit != nil {
		edit(&cfg)
	}
	sizes, err := mm.SizesOf(cfg.BasePage)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy, err = mm.ParsePolicySpec(mm.NeverPolicy(sizes), policy, sizes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t, m}
	s.do(mm.Op{Kind: mm.OpExec, Space: mainSpace})
	return s
}

func (s *script) do(ops ...mm.Op) []mm.Result {
	s.t.Helper()
	out := make([]mm.Result, len(ops))
	for i := range ops {
		if ops[i].Space == 0 {
			ops[i].Space = mainSpace
		}
	}
	if n, err := s.m.Exec(ops, out); err != nil {
		s.t.Fatalf("op %d: %v", n, err)
	}
	for i, r := range out {
		if r.Errno != mm.OK {
			s.t.Fatalf("op %d (%v): %v", i, ops[i].Kind, r.Errno)
		}
	}
	return out
}

func (s *script) mapAnon(r mm.Region, at mm.VA, bytes uint64) {
	s.t.Helper()
	s.do(mm.Op{Kind: mm.OpMap, Region: r, N: mm.Pages(bytes / page), Arg: uint64(at), Access: mm.Read | mm.Write})
}

func (s *script) touch(r mm.Region, from uint64, n mm.Pages, stride int32) {
	s.t.Helper()
	s.do(mm.Op{Kind: mm.OpTouch, Region: r, Page: from, N: n, Stride: stride, Access: mm.Write})
}

func (s *script) check() {
	s.t.Helper()
	if err := s.m.Check(); err != nil {
		s.t.Fatal(err)
	}
}

// TestP01MaxPTEsNone: an allocator gives back all but every 33rd page of
// 2 GiB; khugepaged puts the freed memory back (gperftools#1073).
func TestP01MaxPTEsNone(t *testing.T) {
	const pages = 524288
	for _, c := range []struct {
		none      string
		collapsed uint64
		rss       mm.Pages
	}{
		{"511", 1024, 1024 * 512},
		{"497", 1024, 1024 * 512},
		{"496", 528, 528*512 + (1024-528)*15},
		{"495", 0, 15888},
		{"0", 0, 15888},
	} {
		t.Run(c.none, func(t *testing.T) {
			s := newScript(t, "4.4", "enabled=always,2m=inherit,defrag=always,pages_to_scan=2000000,scan_sleep_ms=10000,max_ptes_none="+c.none, nil)
			s.mapAnon(1, base, pages*page)
			s.touch(1, 0, pages, 1)
			for p := uint64(0); p < pages; p += 33 {
				n := min(uint64(32), pages-p-1)
				if n > 0 {
					s.do(mm.Op{Kind: mm.OpAdvise, Region: 1, Page: p + 1, N: mm.Pages(n), Arg: uint64(mm.AdviseDontNeed)})
				}
			}
			if rss := s.m.RSS(mainSpace); rss != 15888 {
				t.Fatalf("after free: rss %d pages, want 15888 (62.06 MiB)", rss)
			}
			s.m.Advance(60e9)
			if got := s.m.Counters.Get(mm.PagesCollapsed); got != c.collapsed {
				t.Errorf("collapsed %d regions, want %d", got, c.collapsed)
			}
			if rss := s.m.RSS(mainSpace); rss != c.rss {
				t.Errorf("rss %d pages, want %d", rss, c.rss)
			}
			s.check()
		})
	}
}

// TestP02ScanPace: how long khugepaged needs for 128 GiB (thp-usage README).
func TestP02ScanPace(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   float64 // seconds
	}{
		{"pages_to_scan=4096,scan_sleep_ms=10000", 22.76 * 3600},
		{"pages_to_scan=2097152,scan_sleep_ms=79000", 21.1 * 60},
	} {
		s := newScript(t, "6.18", "enabled=always,2m=inherit,max_ptes_none=0,"+c.policy, func(c *mm.Config) { c.Nodes[0].Mem = 160 << 30 })
		const size = 128 << 30
		s.mapAnon(1, base, size+page) // not 2 MiB aligned at its end, so that the first touch below is small
		s.touch(1, size/page, 1, 1)
		s.do(mm.Op{Kind: mm.OpAdvise, Region: 1, N: size / page, Arg: uint64(mm.AdviseHugePage)})
		start := s.m.Counters.Get(mm.FullScans)
		var took mm.Nanos
		for step := mm.Nanos(c.want * 1e9 / 500); s.m.Counters.Get(mm.FullScans) == start; {
			took += step
			if float64(took) > c.want*3e9 {
				t.Fatalf("%s: no full scan in three times %v s", c.policy, c.want)
			}
			s.m.Advance(took)
		}
		if got := float64(took) / 1e9; math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("%s: full scan took %.0f s, want %.0f", c.policy, got, c.want)
		}
	}
}

// TestP04AdviceOutlivesAllocation: a library advises heap memory that it got
// from malloc; the flag stays after free (numpy#31590).
func TestP04AdviceOutlivesAllocation(t *testing.T) {
	s := newScript(t, "6.18", "enabled=madvise,2m=inherit", nil)
	s.mapAnon(1, base, 64*mib)
	s.do(mm.Op{Kind: mm.OpAdvise, Region: 1, Page: 28 * mib / page, N: 8 * mib / page, Arg: uint64(mm.AdviseHugePage)})
	if n := len(s.m.VMAs(mainSpace, nil)); n != 3 {
		t.Errorf("%d VMAs, want 3", n)
	}
	s.do(mm.Op{Kind: mm.OpAdvise, Region: 1, Page: 28 * mib / page, N: 8 * mib / page, Arg: uint64(mm.AdviseDontNeed)})
	s.touch(1, 0, 64*mib/page, 1)
	if got := s.m.Counters.Get(mm.THPFaultAlloc); got != 4 {
		t.Errorf("thp_fault_alloc %d after reuse, want the 4 of the advised 8 MiB", got)
	}
	s.check()
}

// TestP05DeferredSplit: memory that was freed but is still held by partly
// mapped huge pages (cadvisor#3587; tried on 6.18: RSS 128 kB, 32 held).
func TestP05DeferredSplit(t *testing.T) {
	s := newScript(t, "6.18", "enabled=always,2m=inherit", nil)
	s.mapAnon(1, base, 64*mib)
	s.touch(1, 0, 64*mib/page, 512)
	s.touch(1, 0, 32, 512)
	for b := uint64(0); b < 32; b++ {
		s.do(mm.Op{Kind: mm.OpAdvise, Region: 1, Page: b*512 + 1, N: 511, Arg: uint64(mm.AdviseDontNeed)})
	}
	if rss := s.m.RSS(mainSpace); rss != 32 {
		t.Errorf("rss %d pages, want 32 (128 kB)", rss)
	}
	if got := s.m.Counters.Size[9].NrAnonPartiallyMapped; got != 32 {
		t.Errorf("nr_anon_partially_mapped %d, want 32", got)
	}
	if s.m.Usage.Anon != 64*mib/page {
		t.Errorf("held %d pages, want all %d", s.m.Usage.Anon, 64*mib/page)
	}
	s.check()
}

// TestP08ThreadStacks: 10,000 adjacent 2 MiB stacks under always (openjdk PR
// 14919). They merge into one VMA, the first touch of each takes 2 MiB, and
// the guard's mprotect splits the mapping but frees nothing. Kernels since 6.7
// refuse huge pages to MAP_STACK maps.
func TestP08ThreadStacks(t *testing.T) {
	const stacks = 10000
	for _, c := range []struct {
		kernel, policy string
		stack          bool
		want           mm.Pages // held
	}{
		{"5.15", "enabled=always,2m=inherit", true, stacks * 512},
		{"6.18", "enabled=always,2m=inherit", false, stacks * 512},
		{"6.18", "enabled=always,2m=inherit", true, stacks * 2},
		{"5.15", "enabled=madvise,2m=inherit", true, stacks * 2},
	} {
		s := newScript(t, c.kernel, c.policy, nil)
		var flags mm.OpFlags
		if c.stack {
			flags = mm.MapStack
		}
		for i := mm.Region(1); i <= stacks; i++ {
			s.do(mm.Op{Kind: mm.OpMap, Region: i, N: 512, Arg: uint64(base) + uint64(stacks-i)*2*mib, Access: mm.Read | mm.Write, Flags: flags},
				mm.Op{Kind: mm.OpTouch, Region: i, Page: 511, N: 2, Stride: -1, Access: mm.Write},
				mm.Op{Kind: mm.OpProtect, Region: i, Page: 0, N: 4})
		}
		if s.m.Usage.Anon != c.want {
			t.Errorf("%s %s MAP_STACK=%v: %d pages held, want %d", c.kernel, c.policy, c.stack, s.m.Usage.Anon, c.want)
		}
		// No Check here: it takes seconds for five million pages.
	}
}

// TestP11BasePage64K: with 64 kB base pages a THP is 512 MiB, so two touched
// regions are a gigabyte (ClickHouse#22841).
func TestP11BasePage64K(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   mm.Bytes
	}{
		{"enabled=always,512m=inherit", 1 << 30},
		{"enabled=madvise,512m=inherit", 2 << 16},
		{"enabled=never,2m=always", 2 * 2 << 20},
	} {
		s := newScript(t, "6.18", c.policy, func(c *mm.Config) { c.BasePage = 65536 })
		s.do(mm.Op{Kind: mm.OpMap, Region: 1, N: 2 * 8192, Arg: uint64(base), Access: mm.Read | mm.Write},
			mm.Op{Kind: mm.OpTouch, Region: 1, Page: 5, N: 2, Stride: 8192, Access: mm.Write})
		if got := mm.Bytes(s.m.Usage.Anon) * 65536; got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.policy, got, c.want)
		}
		s.check()
	}
}

// TestP12ForkAndTHP: 64 MiB huge, fork, the child writes one byte in each
// 2 MiB (redis#7381): before 5.8 each write copied 2 MiB, since then the PMD
// is split and 4 kB copied.
func TestP12ForkAndTHP(t *testing.T) {
	const child mm.Space = 2
	for _, c := range []struct {
		kernel string
		want   mm.Pages // copied
	}{
		{"5.7", 64 * mib / page},
		{"5.8", 32},
		{"6.18", 32},
	} {
		s := newScript(t, c.kernel, "enabled=always,2m=inherit", nil)
		s.mapAnon(1, base, 64*mib)
		s.touch(1, 0, 32, 512)
		before := s.m.Usage.Anon
		s.do(mm.Op{Kind: mm.OpFork, Arg: uint64(child)},
			mm.Op{Kind: mm.OpTouch, Space: child, Region: 1, Page: 7, N: 32, Stride: 512, Access: mm.Write})
		if got := s.m.Usage.Anon - before; got != c.want {
			t.Errorf("%s: the child's writes took %d pages, want %d", c.kernel, got, c.want)
		}
		s.check()
	}
}
