package workload

import (
	"testing"

	"github.com/hugelab/hugelab/mm"
)

func TestParseEbizzy(t *testing.T) {
	with := func(f func(*Ebizzy)) Ebizzy { e := DefaultEbizzy(); f(&e); return e }
	for _, s := range []struct {
		args []string
		want Ebizzy
	}{
		{nil, DefaultEbizzy()},
		{[]string{"-mTRp"}, with(func(e *Ebizzy) {
			e.AlwaysMmap, e.TouchOnly, e.RandomSize, e.Protect = true, true, true, true
		})},
		{[]string{"-mTt", "16"}, with(func(e *Ebizzy) { e.AlwaysMmap, e.TouchOnly, e.Threads = true, true, 16 })},
		{[]string{"-mTt16"}, with(func(e *Ebizzy) { e.AlwaysMmap, e.TouchOnly, e.Threads = true, true, 16 })},
		{[]string{"-HT", "-s", "134217728"}, with(func(e *Ebizzy) {
			e.Huge, e.TouchOnly, e.ChunkSize = true, true, 128<<20
		})},
		{[]string{"-lMPzv", "-n", "3", "-S5"}, with(func(e *Ebizzy) {
			e.OwnCopy, e.NeverMmap, e.Holes, e.Linear, e.Verbose = true, true, true, true, true
			e.Chunks, e.Seconds = 3, 5
		})},
	} {
		if got, err := ParseEbizzy(s.args...); err != nil || got != s.want {
			t.Errorf("%q: %+v, %v", s.args, got, err)
		}
	}
	for _, args := range [][]string{{"-mM"}, {"-x"}, {"16"}, {"-t"}, {"-t", "none"}, {"-n0"}, {"-"}} {
		if _, err := ParseEbizzy(args...); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

// pagesOfRecords is how many pages each of n records of -mTR maps.
func pagesOfRecords(t *testing.T, fixed bool, n int) (all []mm.Pages) {
	t.Helper()
	e, err := ParseEbizzy("-mTR", "-t", "1")
	if err != nil {
		t.Fatal(err)
	}
	e.FixedRNG = fixed
	sizes, _ := mm.SizesOf(4096)
	rules, _ := mm.RulesFor("4.15")
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 1 << 30}}, Rules: rules, Policy: mm.DefaultPolicy(sizes)})
	if err != nil {
		t.Fatal(err)
	}
	th := e.Thread(m, 1, 0)
	var buf [16]mm.Op
	for range n {
		k, err := th.Next(buf[:])
		if err != nil || k != 3 || buf[0].Kind != mm.OpMap || buf[1].N != buf[0].N || buf[2].N != buf[0].N {
			t.Fatalf("a record is %+v, %v", buf[:k], err)
		}
		all = append(all, buf[0].N)
	}
	return all
}

// TestEbizzyRNG: 0.3's generator never leaves 0, so every buffer is one page;
// the later one gives all sizes.
func TestEbizzyRNG(t *testing.T) {
	for _, n := range pagesOfRecords(t, false, 100) {
		if n != 1 {
			t.Fatalf("0.3 maps %d pages, want 1", n)
		}
	}
	var sum mm.Pages
	for _, n := range pagesOfRecords(t, true, 1000) {
		sum += n
	}
	if mean := float64(sum) / 1000; mean < 60 || mean > 69 {
		t.Errorf("the later generator maps %.1f pages a record, want about 64", mean)
	}
}

// TestPageFaultOps: what a round of each task is.
func TestPageFaultOps(t *testing.T) {
	for kind, flags := range map[int]mm.OpFlags{1: 0, 2: mm.MapFile, 3: mm.MapFile | mm.MapShared} {
		for _, processes := range []bool{false, true} {
			w := &PageFault{Kind: kind, Tasks: 3, Processes: processes}
			spaces := map[mm.Space]bool{}
			for i := range w.Tasks {
				spaces[w.Space(i)] = true
			}
			if len(spaces) != 3 && processes || len(spaces) != 1 && !processes {
				t.Errorf("processes %v: %d spaces", processes, len(spaces))
			}
			var ops [8]mm.Op
			n, err := w.Task(1, 4096).Next(ops[:])
			if err != nil || n != 3 || ops[0].Flags != flags || ops[1].N != 32768 {
				t.Errorf("page_fault%d: %+v, %v", kind, ops[:n], err)
			}
		}
	}
}
