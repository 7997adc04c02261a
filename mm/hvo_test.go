package mm

import (
	"testing"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// hvoMachine is a machine of 4 GiB that keeps its struct pages in its own
// memory, with vmemmap optimisation on.
func hvoMachine(t testing.TB, version string, mem Bytes) *Machine {
	t.Helper()
	r, err := RulesFor(version)
	if err != nil {
		t.Fatal(err)
	}
	p := NeverPolicy(Sizes{4096, 9})
	p.HVO = true
	m, err := New(Config{Nodes: []Node{{Mem: mem}}, Rules: r, Policy: p, Vmemmap: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func check(t testing.TB, m *Machine) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestHVOSaves: how many pages of struct pages come free, by generation and by
// size (semantics 8.1), and that all come back.
func TestHVOSaves(t *testing.T) {
	for _, tc := range []struct {
		version string
		order   Order
		want    Pages // a page
	}{
		{"5.13", 9, 0}, {"5.14", 9, 6}, {"5.17", 9, 6}, {"5.18", 9, 7}, {"6.18", 9, 7},
		{"5.14", 18, 4094}, {"5.18", 18, 4095}, {"6.18", 18, 4095},
	} {
		m := hvoMachine(t, tc.version, 8*gB)
		n := Pages(2)
		var c Current
		before := m.alloc.InUse()
		boot := m.Counters.VM[NrMemmapBootPages]
		if e := m.ResizePool(&c, tc.order, AnyNode, uint64(n)); e != OK {
			t.Fatal(e)
		}
		check(t, m)
		if got := m.StructPagesSaved(); got != n*tc.want {
			t.Errorf("%s order %d: %d pages saved, want %d", tc.version, tc.order, got, n*tc.want)
		}
		tables := uint64(c.Work[PrimVmemmapSplit])
		if got, want := m.alloc.InUse()-before, uint64(n*tc.order.Pages()-n*tc.want)+tables; got != want {
			t.Errorf("%s order %d: the pool takes %d pages, want %d", tc.version, tc.order, got, want)
		}
		all := m.Counters.VM[NrMemmapPages] + m.Counters.VM[NrMemmapBootPages]
		if got := boot - all; got != uint64(n*tc.want) {
			t.Errorf("%s order %d: the counters of struct pages fell by %d, want %d", tc.version, tc.order, got, n*tc.want)
		}
		m.ResizePool(&c, tc.order, AnyNode, 0)
		check(t, m)
		if got := m.alloc.InUse() - before; m.StructPagesSaved() != 0 || got != tables {
			t.Errorf("%s order %d: %d pages saved and %d missing after the pool is gone", tc.version, tc.order,
				m.StructPagesSaved(), got-tables)
		}
	}
}

// TestHVOFlushes: before 6.7 each page is flushed for, since then each write.
func TestHVOFlushes(t *testing.T) {
	for _, tc := range []struct {
		version string
		want    uint32
	}{{"6.6", 64 + 1}, {"6.7", 2}} {
		m := hvoMachine(t, tc.version, 2*gB)
		var c Current
		m.ResizePool(&c, 9, AnyNode, 64)
		// 64 pages from an aligned start share one 2 MB entry of the vmemmap.
		if got, splits := c.Work[PrimFlushKernel], c.Work[PrimVmemmapSplit]; got != tc.want+splits-1 && got != tc.want {
			t.Errorf("%s: %d flushes of %d splits, want %d", tc.version, got, splits, tc.want)
		}
	}
}

// TestHVORestoreFails: without memory for its struct pages a page stays in the
// pool as surplus, and nothing is lost (semantics 8.4).
func TestHVORestoreFails(t *testing.T) {
	m := hvoMachine(t, "6.18", gB)
	var c Current
	m.ResizePool(&c, 9, AnyNode, 8)
	saved := m.StructPagesSaved()
	var held []PFN
	for {
		pfn, ok := m.alloc.Alloc(0, AnyNode, 0, buddy.Unmovable, buddy.DirectReclaim|buddy.KswapdReclaim)
		if !ok {
			break
		}
		held = append(held, PFN(pfn))
	}
	m.alloc.Events = buddy.Events{}
	m.ResizePool(&c, 9, AnyNode, 0)
	in := m.Pools()[0]
	if in.Pages == 0 || in.Surplus != in.Pages || in.Free != in.Pages {
		t.Errorf("pool %+v: want pages that stay, free and surplus", in)
	}
	if got := m.StructPagesSaved(); got != Pages(in.Pages)*7 || got > saved {
		t.Errorf("%d pages saved by %d pages of the pool", got, in.Pages)
	}
	for _, p := range held {
		m.alloc.Free(0, uint64(p), 0, buddy.Unmovable)
	}
	m.alloc.Events = buddy.Events{}
	check(t, m)
	m.ResizePool(&c, 9, AnyNode, 16)
	m.ResizePool(&c, 9, AnyNode, 0)
	check(t, m)
	if in := m.Pools()[0]; in.Pages != 0 || m.StructPagesSaved() != 0 {
		t.Errorf("with memory: %+v, %d pages saved", in, m.StructPagesSaved())
	}
}

// TestHVOOff: what is switched off later leaves pages as they are, and they are
// still restored (semantics 8.2).
func TestHVOOff(t *testing.T) {
	m := hvoMachine(t, "6.18", 2*gB)
	var c Current
	m.ResizePool(&c, 9, AnyNode, 4)
	p := m.Policy()
	p.HVO = false
	p.Pools[0].Pages = 4
	m.SetPolicy(p)
	m.ResizePool(&c, 9, AnyNode, 6)
	if got := m.StructPagesSaved(); got != 4*7 {
		t.Errorf("%d pages saved, want those of the first four", got)
	}
	m.ResizePool(&c, 9, AnyNode, 0)
	check(t, m)
	if got := m.StructPagesSaved(); got != 0 {
		t.Errorf("%d pages saved by no pages", got)
	}
}

// TestStructPageAliases: struct pages that were given back are read from the
// one page that was kept.
func TestStructPageAliases(t *testing.T) {
	m := hvoMachine(t, "6.18", 2*gB)
	var c Current
	m.ResizePool(&c, 9, AnyNode, 1)
	head := m.huge.pages[1].head
	physical := map[uint64]bool{}
	for i := range PFN(512) {
		offset, at, _ := m.StructPage(head + i)
		if offset != uint64(head+i)*64 {
			t.Fatalf("page %d: offset %d", i, offset)
		}
		physical[at>>12] = true
	}
	if len(physical) != 1 {
		t.Errorf("struct pages lie in %d pages, want 1", len(physical))
	}
}
