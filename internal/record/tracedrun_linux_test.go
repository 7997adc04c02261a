package record

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/trace"
)

func recordTraced(t *testing.T, usePerf bool, name string) recorded {
	t.Helper()
	t.Setenv("HUGELAB_TEST_PROGRAM", name)
	return recordTest(t, context.Background(), usePerf, "/proc/self/exe", name)
}

// TestTracedPages records programs whose touches are known, and wants those
// and no others.
func TestTracedPages(t *testing.T) {
	cases := []struct {
		name string
		want string // touches in the arena, by page
		exit int
	}{
		{name: "touch", want: "0:w 1:w 2:w 3:w 5:r", exit: 7},
		{name: "dontneed", want: "0:w 1:w 2:w 2:w 3:w"},
		{name: "remap", want: "0:w 1:w 18:w"},
		{name: "readwrite", want: "0:r 0:w"},
		{name: "kernel", want: "0:w 1:w 2:w 3:w 4:w"},
		{name: "populate", want: "3:w"},
		{name: "threadexec", want: "0:w 1:w", exit: 5},
		{name: "killed", want: "0:w 1:w", exit: 137},
		{name: "threads", want: "0:w 1:w 2:w 3:w 4:w 5:w 6:w 7:w"},
	}
	bothMethods(t, func(t *testing.T, usePerf bool) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				r := recordTraced(t, usePerf, c.name)
				want := strings.Fields(c.want)
				if !kernel.ZeroPageTold() { // reads look like writes, and a page is given once
					for i := range want {
						want[i] = strings.TrimRight(want[i], "rw") + "?"
					}
					if c.name == "readwrite" {
						want = want[:1]
					}
				}
				got := r.touchedIn(arena, 64)
				slices.SortFunc(got, byPage)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("touches (-want +got):\n%s", d)
				}
				if r.exit != c.exit {
					t.Errorf("exit %d, want %d", r.exit, c.exit)
				}
				for _, n := range r.footer.Notes {
					t.Log(n)
				}
			})
		}
	})
}

func byPage(a, b string) int {
	pa, _, _ := strings.Cut(a, ":")
	pb, _, _ := strings.Cut(b, ":")
	na, _ := strconv.Atoi(pa)
	nb, _ := strconv.Atoi(pb)
	if na != nb {
		return na - nb
	}
	return strings.Compare(a, b)
}

// TestTracedFork tells a child's pages from its parent's. The copy after fork is
// a fault of its own for perf; the page map does not show it.
func TestTracedFork(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		r := recordTraced(t, usePerf, "fork")
		var got []string
		for _, s := range r.touchedIn(arena, 64) {
			page, _, _ := strings.Cut(s, ":")
			got = append(got, page)
		}
		want := "0 1 2 5"
		if usePerf {
			want = "0 1 2 1 5"
		}
		if d := cmp.Diff(strings.Fields(want), got); d != "" {
			t.Errorf("pages in order (-want +got):\n%s", d)
		}
	})
}

// TestTracedLockShared: copies that mlock makes of pages shared by a fork are
// done by the call that the recording holds; they are not faults of their own.
func TestTracedLockShared(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		r := recordTraced(t, usePerf, "lockshared")
		var other uint64
		for _, e := range r.events {
			if e.Kind == trace.KindOtherFaults {
				other += e.A
			}
		}
		if r.exit != 0 {
			t.Fatalf("exit %d", r.exit)
		}
		if other >= sharedPages {
			t.Errorf("%d faults of unknown place, %d pages were copied within mlock", other, sharedPages)
		}
	})
}

// TestTracedFlood fills the rings faster than the ticker runs.
func TestTracedFlood(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		r := recordTraced(t, usePerf, "flood")
		told := make([]int, floodPages)
		for _, e := range r.events {
			n := uint64(1)
			switch e.Kind {
			case trace.KindResident:
				n = e.B
			case trace.KindFault:
			default:
				continue
			}
			for p := (e.A - arena) / pg; n > 0 && p < floodPages; n-- {
				told[p]++
				p++
			}
		}
		for p, n := range told {
			if n != 1 {
				t.Fatalf("page %d was told %d times", p, n)
			}
		}
		if n := r.footer.Lost; n > 0 {
			t.Logf("%d fault events were lost; the page map told their pages", n)
		}
	})
}

// TestTracedHeap wants each touch of a heap between the right two brk calls: a
// folio cannot reach beyond the heap's end of that time.
func TestTracedHeap(t *testing.T) {
	const want = "+4 0 1 +8 4 5 +0 +4 1"
	bothMethods(t, func(t *testing.T, usePerf bool) {
		r := recordTraced(t, usePerf, "brk")
		var base uint64
		var got []string
		for _, e := range r.events {
			page := strconv.FormatUint((e.A-base)/pg, 10)
			switch {
			case e.Kind == trace.KindBrk && e.A == 0:
				base = (uint64(e.Ret) + pg - 1) &^ (pg - 1)
			case e.Kind == trace.KindBrk:
				got = append(got, "+"+page)
			case base == 0 || e.A < base || e.A >= base+64*pg:
			case e.Kind == trace.KindFault:
				got = append(got, page)
			case e.Kind == trace.KindResident:
				for i := range e.B {
					got = append(got, strconv.FormatUint((e.A-base)/pg+i, 10))
				}
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("heap (-want +got):\n%s", d)
		}
	})
}

// TestTracedTree records a program that starts others.
func TestTracedTree(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		r := recordTraced(t, usePerf, "children")
		if r.exit != 3 {
			t.Errorf("exit %d, want 3", r.exit)
		}
		born, ended := map[int32]bool{}, map[int32]bool{}
		for _, e := range r.events {
			switch {
			case e.Kind == trace.KindNewTask && int32(e.C) != e.PID:
				born[int32(e.C)] = true
			case e.Kind == trace.KindExit && e.A == 1:
				ended[e.PID] = true
			}
		}
		if len(born) < 4 || len(ended) != len(born)+1 {
			t.Errorf("%d processes were born, %d ended", len(born), len(ended))
		}
		if n := r.count(trace.KindExec); n < 4 {
			t.Errorf("%d execs, want at least 4", n)
		}
		execs, command := 0, int32(0)
		for _, e := range r.events {
			if e.Kind == trace.KindExec && (command == 0 || e.PID == command) {
				command = e.PID
				execs++
			}
		}
		if execs > 1 {
			t.Error("the stub's own exec was recorded")
		}
	})
}

// TestTracedSignals passes signals on, and stops and goes on with the program.
func TestTracedSignals(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		began := time.Now()
		if r := recordTraced(t, usePerf, "signals"); r.exit != 143 {
			t.Errorf("exit %d, want an end by SIGTERM", r.exit)
		}
		if d := time.Since(began); d < 200*time.Millisecond || d > 4*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// TestTracedInterrupt ends a program when the context is done and leaves
// nothing behind.
func TestTracedInterrupt(t *testing.T) {
	bothMethods(t, func(t *testing.T, usePerf bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		t.Setenv("HUGELAB_TEST_PROGRAM", "forever")
		r := recordTest(t, ctx, usePerf, "/proc/self/exe", "forever")
		for _, e := range r.events {
			text, err := os.ReadFile(procPath(int(e.PID), "stat"))
			if err == nil && !strings.Contains(string(text), ") Z ") { // a zombie waits for init alone
				t.Fatalf("process %d is still there: %s", e.PID, text)
			}
		}
	})
}
