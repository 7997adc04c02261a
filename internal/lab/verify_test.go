package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

func TestShifts(t *testing.T) {
	recorded := []Bases{
		{Program: "/bin/sh", Exe: 0x10000, Heap: 0x20000, Mmap: 0x90000, Stack: 0xf0000},
		{Program: "/bin/ls", Exe: 0x10000, Mmap: 0x90000},
		{Program: "/bin/sh", Exe: 0x30000, Heap: 0x40000, Stack: 0xf0000},
	}
	run := []Bases{ // another order of the two programs, the same of each
		{Program: "/bin/ls", Exe: 0x13000, Mmap: 0x80000, Heap: 0x5000},
		{Program: "/bin/sh", Exe: 0x11000, Heap: 0x1f000, Mmap: 0x91000, Stack: 0xe0000},
		{Program: "/bin/sh", Exe: 0x30000, Heap: 0x48000, Mmap: 0x1000, Stack: 0xf0000},
	}
	f, err := shifts(recorded, run, 0x1000)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []mm.Shift{
		{Exe: 1, Heap: -1, Mmap: 1, Stack: -16},
		{Exe: 3, Mmap: -16}, // the recording did not know its heap: it stays
		{Heap: 8},
		{}, // no such exec
	} {
		if got := f(n); got != want {
			t.Errorf("exec %d: %+v, want %+v", n, got, want)
		}
	}
	for _, c := range []struct {
		run  []Bases
		says string
	}{
		{run[:2], "recording ran /bin/sh once more"},
		{append(slices.Clone(run), Bases{Program: "/bin/cat"}), "this run ran /bin/cat once more"},
	} {
		if _, err := shifts(recorded, c.run, 0x1000); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one with %q", err, c.says)
		}
	}
}

// TestOrder: every policy once in each round, the same for the same seed; twice
// with Again, and with khugepaged at work at the end.
func TestOrder(t *testing.T) {
	w := verifier{Plan: Plan{Seed: 7}, rows: make([]predict.Named, 4)}
	other := verifier{Plan: Plan{Seed: 8}, rows: w.rows}
	first, differ := map[int]int{}, false
	for round := range 50 {
		jobs := w.order(round)
		if !slices.Equal(jobs, w.order(round)) {
			t.Fatal("the order is not the seed's")
		}
		differ = differ || !slices.Equal(jobs, other.order(round))
		first[jobs[0].row]++
		seen := map[int]bool{}
		for _, j := range jobs {
			seen[j.row] = true
		}
		if len(jobs) != 4 || len(seen) != 4 {
			t.Errorf("round %d: %v", round, jobs)
		}
	}
	if len(first) != 4 || !differ {
		t.Errorf("some policy never comes first: %v; another seed's order is another: %v", first, differ)
	}
	w.Again, w.Khugepaged = true, true
	jobs := w.order(0)
	if len(jobs) != 12 {
		t.Fatalf("%d runs, want 12", len(jobs))
	}
	for i, j := range jobs {
		if (j.part == active) != (i >= 8) {
			t.Errorf("run %d: part %d", i, j.part)
		}
	}
}

// TestValue: errors are of each run against its own prediction, and only then
// averaged.
func TestValue(t *testing.T) {
	pair := func(predicted, measured uint64, real time.Duration) Pair {
		return Pair{predict.Row{Faults: predicted}, Run{Faults: measured, Real: real}}
	}
	c := Cell{Pairs: []Pair{pair(110, 100, time.Second), pair(190, 200, 3*time.Second)}}
	v := c.Faults()
	want := Value{Predicted: 150, Measured: 150, Median: 150, Least: 100, Most: 200,
		Error: (0.1 - 0.05) / 2, WorstError: 0.1}
	if abs(v.Error-want.Error) > 1e-12 {
		t.Errorf("error %v, want %v", v.Error, want.Error)
	}
	if v.Error = want.Error; v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
	if real := c.Real(); real.Measured != 2 || real.Least != 1 || real.Most != 3 {
		t.Errorf("real time %+v", real)
	}
	if row := c.Row(); row.Faults != 150 || row.Spread == nil || row.Spread.FaultsMax != 190 {
		t.Errorf("row %+v", row)
	}
}

// TestSystem: the error is of the median, and what the recording did in the
// kernel beside memory is in the prediction.
func TestSystem(t *testing.T) {
	var c Cell
	for _, s := range []time.Duration{2 * time.Second, 9 * time.Second, 4 * time.Second} {
		c.Pairs = append(c.Pairs, Pair{predict.Row{Kernel: time.Second}, Run{System: s}})
	}
	v := Verification{Times: predict.SystemTime{Scale: 1, Rest: 2 * time.Second}}
	if s := v.System(&c); s.Predicted != 3 || s.Median != 4 || s.Error != -0.25 {
		t.Errorf("%+v", s)
	}
}

// TestFolios: the command's own where they are known, else the machine's.
func TestFolios(t *testing.T) {
	s, _ := mm.SizesOf(4096)
	v := Verification{Sizes: s}
	var p Pair
	p.Predicted.Folios[4], p.Measured.Events.Folios[4], p.Measured.Events.Folios[5] = 10, 12, 3
	p.Measured.Events.Folios[9], p.Measured.Events.Collapses, p.Predicted.Folios[9] = 1, 2, 3
	c := Cell{Pairs: []Pair{p}}
	if got := v.SizesUsed(&c); !slices.Equal(got, []mm.Order{4, 9}) {
		t.Errorf("sizes %v", got)
	}
	if f := v.Folios(&c, 9); f.Predicted != 3 || f.Measured != 3 {
		t.Errorf("%+v", f)
	}
	c.Pairs[0].Measured.OwnFolios, c.Pairs[0].Measured.Folios[5] = true, 7
	if f := v.Folios(&c, 5); f.Predicted != 0 || f.Measured != 7 {
		t.Errorf("%+v", f)
	}
}

// TestAA: two lots of the same.
func TestAA(t *testing.T) {
	runs := func(n ...uint64) (all []Pair) {
		for _, n := range n {
			all = append(all, Pair{Measured: Run{Faults: n}})
		}
		return all
	}
	c := Cell{Pairs: runs(98, 102), Again: runs(100, 100)}
	if a := c.AAFaults(); a.Apart != 0 || abs(a.Spread-0.02) > 1e-12 {
		t.Errorf("%+v", a)
	}
	c.Again = runs(200, 200)
	if a := c.AAFaults(); abs(a.Apart+100./150) > 1e-12 {
		t.Errorf("%+v", a)
	}
}

// TestUnlike: a clear difference is told, a small one is not.
func TestUnlike(t *testing.T) {
	end := func(name string, mib ...mm.Bytes) (all []End) {
		for _, m := range mib {
			all = append(all, End{name, m << 20})
		}
		return all
	}
	for _, c := range []struct {
		recorded, run []End
		says          string
	}{
		{end("a", 100), end("a", 100), ""},
		{end("a", 100), end("a", 150), ""}, // less than 64 MiB
		{end("a", 1000), end("a", 1200), ""},
		{end("a", 1000), end("a", 1300), "a had 1300 MiB mapped at its end, 1000 MiB when it was recorded"},
		{end("a", 1, 1, 1, 1), end("a", 1, 1, 1), ""},
		{end("a", 1, 1, 1, 1), end("a", 1), "1 processes of a ended, 4 when it was recorded"},
		{slices.Concat(end("a", 1), end("b", 1, 1)),
			slices.Concat(end("a", 1), end("b", 1, 1, 1, 1)), "4 processes of b"},
		{nil, end("a", 1000), ""},
	} {
		if got := unlike(c.recorded, c.run); got != c.says && (c.says == "" || !strings.HasPrefix(got, c.says)) {
			t.Errorf("%v against %v: %q, want %q", c.run, c.recorded, got, c.says)
		}
	}
}

func TestNotSameWork(t *testing.T) {
	var n *NotSameWork
	err := error(&NotSameWork{"exit code 1", "do this"})
	s := err.Error()
	if !errors.As(err, &n) || !strings.Contains(s, "same work") || !strings.HasSuffix(s, "do this") {
		t.Error(err)
	}
}

// TestStill: khugepaged's sleep outlasts any run, and nothing else changes.
func TestStill(t *testing.T) {
	s, err := mm.SizesOf(4096)
	if err != nil {
		t.Fatal(err)
	}
	p := mm.DefaultPolicy(s)
	q := still(p)
	if q.Khugepaged.ScanSleep < mm.Nanos(time.Hour) || q.Khugepaged.ScanSleep/1e6 >= 1<<32 {
		t.Errorf("sleep %v", q.Khugepaged.ScanSleep)
	}
	q.Khugepaged.ScanSleep, q.Khugepaged.PagesToScan = p.Khugepaged.ScanSleep, p.Khugepaged.PagesToScan
	if q != p {
		t.Error("still changed more than khugepaged's pace")
	}
}
