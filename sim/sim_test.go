package sim_test

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/sim"
)

// upTo ends a stream after n batches.
type upTo struct {
	st mm.Stream
	n  int
}

func (u *upTo) Next(ops []mm.Op) (int, error) {
	if u.n == 0 {
		return 0, io.EOF
	}
	u.n--
	return u.st.Next(ops)
}

// script is a fixed list of operations, again and again.
type script struct{ ops []mm.Op }

func (s *script) Next(ops []mm.Op) (int, error) { return copy(ops, s.ops), nil }

type rig struct {
	m *mm.Machine
	s *sim.Sim
}

// newRig is a machine of n processors with a space 1 that setup made.
func newRig(t testing.TB, n int, seed uint64, setup []mm.Op, rule func(*mm.Rules)) rig {
	t.Helper()
	hm, err := hw.LoadMachine("x86-vm-16")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := mm.RulesFor("4.15")
	if err != nil {
		t.Fatal(err)
	}
	if rule != nil {
		rule(&rules)
	}
	sizes, _ := mm.SizesOf(4096)
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 16 << 30}}, CPUs: n, Rules: rules,
		Policy: mm.DefaultPolicy(sizes)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Exec(setup, nil); err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(hm, m, sim.Config{CPUs: n, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return rig{m, s}
}

func (r rig) run(t testing.TB, until mm.Nanos) {
	t.Helper()
	if err := r.s.Run(until); err != nil {
		t.Fatal(err)
	}
}

var paths = map[string]func(*mm.Rules){
	"classic": nil,
	"v6":      func(r *mm.Rules) { r.Speculative = mm.SpecV6 },
	"v11":     func(r *mm.Rules) { r.Speculative = mm.SpecV11 },
	"vma":     func(r *mm.Rules) { r.PerVMALock = true },
}

// ebizzyRig is ebizzy with the options, every thread's batches limited to n.
func ebizzyRig(t testing.TB, path string, cpus, n int, seed uint64,
	args ...string) (rig, []*workload.EbizzyThread) {
	t.Helper()
	e, err := workload.ParseEbizzy(args...)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, cpus, seed, e.Setup(1, 4096), paths[path])
	var all []*workload.EbizzyThread
	for i := range e.Threads {
		th := e.Thread(r.m, 1, i)
		all = append(all, th)
		r.s.Add(1, &upTo{th, n})
	}
	return r, all
}

// TestAllEnds runs ebizzy to its end on every path and checks what is left:
// nobody may wait for ever, no page may be lost by an attempt that failed.
func TestAllEnds(t *testing.T) {
	for path := range paths {
		for _, cpus := range []int{1, 2, 7, 16} {
			for _, args := range [][]string{{"-mTRp", "-t", "32"}, {"-mTP", "-s", "40000", "-t", "9"},
				{"-m", "-t", "3"}, {"-MR", "-t", "2"}, {"-HT", "-s", "4194304", "-t", "4"}} {
				t.Run(fmt.Sprint(path, " ", cpus, args), func(t *testing.T) {
					r, all := ebizzyRig(t, path, cpus, 20, 1, args...)
					r.run(t, math.MaxInt64)
					for i, th := range all {
						if th.Records != 20 && !th.Huge() {
							t.Errorf("thread %d stopped after %d records", i, th.Records)
						}
					}
					if err := r.m.Check(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestSameSeedSameRun is the promise of determinism.
func TestSameSeedSameRun(t *testing.T) {
	once := func(seed uint64) (sim.Stats, [mm.NumPathEvents]uint64) {
		r, _ := ebizzyRig(t, "v6", 16, 50, seed, "-mTRp", "-t", "32")
		r.run(t, math.MaxInt64)
		return r.s.Stats(), r.m.Paths
	}
	a, pa := once(7)
	b, pb := once(7)
	if a != b || pa != pb {
		t.Errorf("two runs of one seed differ:\n%+v %v\n%+v %v", a, pa, b, pb)
	}
	if c, _ := once(8); c == a {
		t.Error("another seed made no difference")
	}
}

// TestOneAlone: one thread waits for nothing and nothing fails.
func TestOneAlone(t *testing.T) {
	for path := range paths {
		r, _ := ebizzyRig(t, path, 4, 100, 1, "-mTRp", "-t", "1")
		r.run(t, math.MaxInt64)
		st := r.s.Stats()
		if st.ReadWaits+st.WriteWaits+st.Sleeps+st.IPIs+st.VMAWaits != 0 {
			t.Errorf("%s: one thread alone waited: %+v", path, st)
		}
		if n := r.m.Paths[mm.SPFVMAChanged] + r.m.Paths[mm.SPFPTELock] + r.m.Paths[mm.SPF]; n != 0 {
			t.Errorf("%s: a process of one thread speculated", path)
		}
	}
}

// TestAbortsComeFromWriters: threads that fault in one VMA while nobody writes
// never abort; a writer beside them makes them.
func TestAbortsComeFromWriters(t *testing.T) {
	const pages = 1 << 14
	setup := []mm.Op{{Kind: mm.OpExec, Space: 1},
		{Kind: mm.OpMap, Space: 1, Region: 1, N: 4 * pages, Access: mm.Read | mm.Write},
		{Kind: mm.OpAdvise, Space: 1, Region: 1, N: 4 * pages, Arg: uint64(mm.AdviseNoHugePage)},
	}
	// One page of each table, so that no fault finds the PMD empty.
	setup = append(setup, mm.Op{Kind: mm.OpTouch, Space: 1, Region: 1, N: 4 * pages / 512, Stride: 512,
		Access: mm.Write})
	for _, writer := range []bool{false, true} {
		r := newRig(t, 8, 1, setup, paths["v11"])
		for i := range 4 {
			op := mm.Op{Kind: mm.OpTouch, Region: 1, Page: uint64(i * pages), N: pages, Stride: 1, Access: mm.Write}
			r.s.Add(1, &upTo{&script{ops: []mm.Op{op}}, 1})
		}
		if writer {
			flip := func(n uint64) mm.Op {
				return mm.Op{Kind: mm.OpAdvise, Region: 1, N: pages, Arg: n}
			}
			both := []mm.Op{flip(uint64(mm.AdviseDontDump)), flip(uint64(mm.AdviseDoDump))}
			r.s.Add(1, &upTo{&script{ops: both}, 200})
		}
		r.run(t, math.MaxInt64)
		aborts, spf := r.m.Paths[mm.SPFVMAChanged], r.m.Paths[mm.SPF]
		if spf < pages || (aborts > 0) != writer {
			t.Errorf("writer %v: %d faults speculative, %d aborted because the VMA changed", writer, spf, aborts)
		}
		if st := r.s.Stats(); !writer && st.ReadWaits != 0 {
			t.Errorf("faults alone waited for mmap_lock %d times", st.ReadWaits)
		}
		if err := r.m.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestTableLockAborts: two threads that fault in one table collide there; v6
// gives up, v11 waits.
func TestTableLockAborts(t *testing.T) {
	setup := []mm.Op{{Kind: mm.OpExec, Space: 1},
		{Kind: mm.OpMap, Space: 1, Region: 1, N: 1024, Access: mm.Read | mm.Write},
		{Kind: mm.OpAdvise, Space: 1, Region: 1, N: 1024, Arg: uint64(mm.AdviseNoHugePage)},
		{Kind: mm.OpTouch, Space: 1, Region: 1, N: 3, Stride: 511, Access: mm.Write}}
	for _, path := range []string{"v6", "v11"} {
		r := newRig(t, 16, 1, setup, paths[path])
		for i := range 16 {
			op := mm.Op{Kind: mm.OpTouch, Region: 1, Page: 512 + uint64(i), N: 31, Stride: 16, Access: mm.Write}
			r.s.Add(1, &upTo{&script{ops: []mm.Op{op}}, 1})
		}
		r.run(t, math.MaxInt64)
		if n := r.m.Paths[mm.SPFPTELock]; (n > 0) != (path == "v6") {
			t.Errorf("%s: the table's lock ended %d attempts", path, n)
		}
	}
}

// TestLineCostGrowsWithCPUs: what an atomic operation on a shared line takes
// grows with the number of processors that want it.
func TestLineCostGrowsWithCPUs(t *testing.T) {
	perFault := func(n int) float64 {
		setup := []mm.Op{{Kind: mm.OpExec, Space: 1}}
		for i := range n {
			setup = append(setup, mm.Op{Kind: mm.OpMap, Space: 1, Region: mm.Region(i + 1), N: 1 << 12,
				Access: mm.Read | mm.Write, Flags: mm.MapShared | mm.MapFile})
		}
		r := newRig(t, n, 1, setup, nil)
		for i := range n {
			op := mm.Op{Kind: mm.OpTouch, Region: mm.Region(i + 1), N: 4096, Stride: 1, Access: mm.Write}
			r.s.Add(1, &upTo{&script{ops: []mm.Op{op}}, 1})
		}
		r.run(t, 2e6)
		return 2e6 * float64(n) / float64(r.s.Stats().Faults)
	}
	one, many, more := perFault(1), perFault(64), perFault(512)
	if many < one*1.5 || more < many*4 {
		t.Errorf("a fault takes %.0f ns on 1 processor, %.0f on 64, %.0f on 512", one, many, more)
	}
}

// BenchmarkFaults is ebizzy -mTRp with speculation: lock-level steps a second.
func BenchmarkFaults(b *testing.B) {
	for _, c := range []struct {
		path string
		cpus int
	}{{"classic", 16}, {"v6", 16}, {"vma", 16}, {"v6", 1024}} {
		b.Run(fmt.Sprint(c.path, "/", c.cpus), func(b *testing.B) {
			r, _ := ebizzyRig(b, c.path, c.cpus, math.MaxInt, 1, "-mT", "-t", fmt.Sprint(c.cpus))
			r.run(b, 5e6)
			from, at := r.s.Stats().Steps, r.s.Now()
			b.ResetTimer()
			b.ReportAllocs()
			for b.Loop() {
				at += 100_000
				r.run(b, at)
			}
			b.ReportMetric(float64(r.s.Stats().Steps-from)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
