package predict

import (
	"math"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

// TestClock holds timelines of any length to a bounded number of evenly spaced
// samples.
func TestClock(t *testing.T) {
	for _, end := range []mm.Nanos{0, 99_999, 100_000, 50_000_000, 3_600e9, math.MaxInt64} {
		c := newClock()
		var line timeline
		var u mm.Usage
		stops := 0
		for c.due(end) {
			when := c.next
			line.take(when, &u, c.tick())
			if stops++; stops > 20_000 {
				t.Fatalf("end %d: more than %d stops", end, stops)
			}
		}
		if len(line) >= maxSamples {
			t.Errorf("end %d: %d samples", end, len(line))
		}
		for i := range line {
			if want := mm.Nanos(i+1) * c.interval; line[i].when != want {
				t.Fatalf("end %d: sample %d at %d, want %d", end, i, line[i].when, want)
			}
		}
		if end > 100_000_000 && end < math.MaxInt64 && len(line) < maxSamples/2-1 {
			t.Errorf("end %d: only %d samples", end, len(line))
		}
	}
}

func TestCoverage(t *testing.T) {
	var line timeline
	u := mm.Usage{Anon: 100}
	u.ByOrder[0], u.ByOrder[4], u.ByOrder[9] = 50, 20, 30
	line.take(1, &u, false)
	u = mm.Usage{Anon: 300}
	u.ByOrder[0], u.ByOrder[9] = 150, 150
	line.take(2, &u, false)
	all, by := line.coverage()
	if all != 0.5 || by[4] != 0.05 || by[9] != 0.45 || by[0] != 0 {
		t.Errorf("got %v, %v", all, by)
	}
	if all, _ := (timeline{}).coverage(); all != 0 {
		t.Errorf("without samples: %v", all)
	}
}

// TestShifts: layouts are the kernel's ranges, repeat, differ, and let no two
// areas meet.
func TestShifts(t *testing.T) {
	v618, err := mm.ParseRelease("6.18")
	if err != nil {
		t.Fatal(err)
	}
	v66, _ := mm.ParseRelease("6.6")
	if e := entropyOf("x86_64", 4096, v618); e != (entropy{1 << 28, 1 << 22, 1 << 18}) {
		t.Errorf("x86_64: %+v", e)
	}
	if e := entropyOf("x86_64", 4096, v66); e.brk != 8192 {
		t.Errorf("x86_64 before 6.9: %+v", e)
	}
	if e := entropyOf("aarch64", 4096, v618); e != (entropy{1 << 18, 1 << 18, 1 << 18}) {
		t.Errorf("aarch64: %+v", e)
	}
	e := entropyOf("x86_64", 4096, v618)
	residue := map[int64]int{}
	seen := map[mm.Shift]bool{}
	for layout := range 8 {
		f, g := e.shifts(5, layout), e.shifts(5, layout)
		for n := range 64 {
			s := f(n)
			if s != g(n) {
				t.Fatal("not a pure function")
			}
			if seen[s] {
				t.Fatalf("layout %d, exec %d: drawn before", layout, n)
			}
			seen[s] = true
			residue[s.Mmap&511>>6]++
			// Everything above moves down, the mmap area below the whole range of the
			// stack; everything below moves up, the heap above the program.
			if s.Stack > 0 || s.Stack <= -int64(e.stack) || s.Mmap > -int64(e.stack) || s.Exe < 0 || s.Heap < s.Exe ||
				s.Heap-s.Exe >= int64(e.brk) || s.Exe >= int64(e.mmap) || s.Mmap <= -int64(e.stack+e.mmap) {
				t.Fatalf("out of range: %+v", s)
			}
		}
	}
	for r := range int64(8) { // 512 draws over 8 classes
		if n := residue[r]; n < 32 || n > 128 {
			t.Errorf("%d of 512 draws in class %d: not even", n, r)
		}
	}
}
