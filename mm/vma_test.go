package mm

import (
	"fmt"
	"strings"
	"testing"
)

const (
	kb   = 1 << 10
	mb   = 1 << 20
	page = 4096
)

// bareMachine is a machine with the rules of 6.18 and no space.
func bareMachine(t interface{ Fatal(...any) }, cfg Config) *Machine {
	cfg.Nodes = []Node{{Mem: 1 << 30}}
	if cfg.Rules.Version == "" {
		cfg.Rules = Rules{
			UpgradeZeroPMD: true, HeapApart: true, MergeFaulted: true, MoveSeveral: true, KeepUnlocksAll: true, CollapseReadOnly: true,
			AlignTHP: AlignMultiple, StackNoHuge: true, GuardRegions: true, Collapse: true, ExceptAdvised: true,
		}
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// vmaMachine has one space, number 1, whose mmap area is empty.
func vmaMachine(t testing.TB, cfg Config) *Machine {
	t.Helper()
	m := bareMachine(t, cfg)
	do(t, m, Op{Kind: OpExec})
	return m
}

// do executes one operation in space 1 unless it names another.
func do(t testing.TB, m *Machine, op Op) Result {
	t.Helper()
	if op.Space == 0 {
		op.Space = 1
	}
	var out [1]Result
	if _, err := m.Exec([]Op{op}, out[:]); err != nil {
		t.Fatal(err)
	}
	if err := m.checkVMAs(); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// anon maps n bytes read-write as region r wherever the kernel likes.
func anon(r Region, n int) Op {
	return Op{Kind: OpMap, Region: r, N: Pages(n / page), Access: Read | Write}
}

// fixed maps n bytes at a.
func fixed(r Region, a VA, n int) Op {
	op := anon(r, n)
	op.Flags, op.Arg = MapFixed|MapReplaces, uint64(a)
	return op
}

// show draws the VMAs of space id in pages from base: "0-4rw 4-8r".
func show(m *Machine, id Space, base VA) string {
	var b strings.Builder
	for n := m.spaces[id].vmas.First(); n != nil; n = n.Next() {
		v := n.Val
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d-%d", int64(v.start-base)/page, int64(v.end-base)/page)
		for _, c := range []struct {
			f vmFlags
			s string
		}{{vmRead, "r"}, {vmWrite, "w"}, {vmHuge, "H"}, {vmNoHuge, "N"}, {vmLocked, "L"}, {vmDontFork, "D"}} {
			if v.flags&c.f != 0 {
				b.WriteString(c.s)
			}
		}
		if v.anon != nil {
			fmt.Fprintf(&b, "@%d", v.anon.id)
		}
	}
	return b.String()
}

// touchAt stands for the first anonymous fault at a.
func touchAt(m *Machine, id Space, a VA) {
	var c Current
	m.anonPrepare(&c, m.spaces[id].at(a))
}

func want(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFindCaches(t *testing.T) {
	m := vmaMachine(t, Config{})
	a := do(t, m, anon(1, 64*kb)).Addr
	sp := m.spaces[1]
	v := sp.find(a + page)
	if v == nil || sp.hit != v {
		t.Fatal("find did not remember its VMA")
	}
	do(t, m, Op{Kind: OpUnmap, Region: 1, N: 16})
	if sp.hit != nil || sp.find(a) != nil {
		t.Fatal("find remembers a VMA that is gone")
	}
}

func BenchmarkFindHit(b *testing.B) {
	m := vmaMachine(b, Config{})
	a := do(b, m, anon(1, 64*mb)).Addr
	sp := m.spaces[1]
	for b.Loop() {
		if sp.find(a+page) == nil {
			b.Fatal("not mapped")
		}
	}
}

func BenchmarkExecTouch(b *testing.B) {
	m := vmaMachine(b, Config{})
	do(b, m, anon(1, 64*mb))
	ops := make([]Op, 256)
	for i := range ops {
		ops[i] = Op{Kind: OpTouch, Space: 1, Region: 1, Page: uint64(i), N: 1, Access: Write}
	}
	for b.Loop() {
		if _, err := m.Exec(ops, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/event")
}
