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

// TestOrder: every policy once in each round, the same for the same seed.
func TestOrder(t *testing.T) {
	all := order(4, 50, 7)
	if !slices.Equal(all, order(4, 50, 7)) || slices.Equal(all, order(4, 50, 8)) {
		t.Error("the order is not the seed's")
	}
	first := map[int]int{}
	for i := 0; i < len(all); i += 4 {
		first[all[i]]++
		round := slices.Sorted(slices.Values(all[i : i+4]))
		if !slices.Equal(round, []int{0, 1, 2, 3}) {
			t.Errorf("round %d: %v", i/4, all[i:i+4])
		}
	}
	if len(first) != 4 {
		t.Errorf("some policy never comes first: %v", first)
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
	want := Value{Predicted: 150, Measured: 150, Least: 100, Most: 200, Error: (0.1 - 0.05) / 2, WorstError: 0.1}
	if abs(v.Error-want.Error) > 1e-12 {
		t.Errorf("error %v, want %v", v.Error, want.Error)
	}
	if v.Error = want.Error; v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
	if real, _, _ := c.Times(); real.Measured != 2 || real.Least != 1 || real.Most != 3 {
		t.Errorf("real time %+v", real)
	}
	if row := c.Row(); row.Faults != 150 || row.Spread == nil || row.Spread.FaultsMax != 190 {
		t.Errorf("row %+v", row)
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
