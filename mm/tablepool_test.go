package mm

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMarks holds the marks of a few tables to a plain list of what is marked.
func TestMarks(t *testing.T) {
	for _, bits := range []uint{9, 11, 13} {
		x := rand.New(rand.NewPCG(uint64(bits), 0))
		p := tablePool{bits: bits}
		size := 1 << bits
		var slots []uint32
		plain := map[uint32][]bool{}
		for range 3 {
			slots = append(slots, p.get())
			plain[slots[len(slots)-1]] = make([]bool, size)
		}
		for step := range 400 {
			s := slots[x.IntN(len(slots))]
			i := x.IntN(size)
			n := 1 + x.IntN(min(size-i, 1<<x.IntN(int(bits)+1)))
			set := step%2 == 0
			if set {
				p.markRange(s, i, n)
			} else {
				p.unmarkRange(s, i, n)
			}
			for k := range n {
				plain[s][i+k] = set
			}
			for _, s := range slots {
				for i, want := range plain[s] {
					if w, bit := p.usedWord(s, i); *w&bit != 0 != want {
						t.Fatalf("%d bits, step %d: table %d entry %d: marked %v, want %v", bits, step, s, i, !want, want)
					}
				}
			}
		}
		p.put(slots[0])
		for i := range size {
			if w, bit := p.usedWord(slots[0], i); *w&bit != 0 {
				t.Fatalf("%d bits: a free table has entry %d marked", bits, i)
			}
		}
	}
}

// TestNone has none see every entry of its range and no other, marked in vain
// or not.
func TestNone(t *testing.T) {
	p := tablePool{bits: 9}
	s := p.get()
	for o := Order(2); o <= 8; o++ {
		first := 1 << o
		for i := range 1 << 9 {
			p.mark(s, i)
			if !p.none(s, first, o) {
				t.Fatalf("order %d: entry %d is marked, but none", o, i)
			}
			p.at(s)[i] = eGuard
			if got, want := p.none(s, first, o), i < first || i >= 2*first; got != want {
				t.Fatalf("order %d: entry %d is a guard marker: none says %v", o, i, got)
			}
			p.at(s)[i] = 0
		}
		p.unmarkRange(s, 0, 1<<9)
	}
}

// TestWriteLater reads entries that are to be written, before and after the
// list of them was full.
func TestWriteLater(t *testing.T) {
	for n := 1; n <= 2*lateLen+1; n++ {
		p := tablePool{bits: 9}
		s := p.get()
		for i := range n {
			p.writeLater(s, 3*i, uint64(i+1))
		}
		if e := *p.entry(s, 3*(n-1)); e != uint64(n) {
			t.Fatalf("%d written: the last entry is %d", n, e)
		}
		for i, e := range p.at(s) {
			want := uint64(0)
			if i%3 == 0 && i/3 < n {
				want = uint64(i/3 + 1)
			}
			if e != want {
				t.Fatalf("%d written: entry %d is %d, want %d", n, i, e, want)
			}
		}
	}
}

// TestCheckSeesMark takes the mark of a present page away.
func TestCheckSeesMark(t *testing.T) {
	r := newRig(t, policyOff())
	v := r.mmap(base, 64*kB)
	r.m.Touch(&r.c, r.sp.id, v.start, Write)
	r.m.Touch(&r.c, r.sp.id, v.start+4096, Write)
	if err := r.m.Check(); err != nil {
		t.Fatal(err)
	}
	pmd := r.m.pmdTable(r.sp, v.start)
	slot := eSlot(r.m.pages.tables.at(pmd)[r.m.pmdIndex(v.start)])
	r.m.pages.tables.unmarkRange(slot, r.m.pageIndex(v.start)+1, 1)
	if err := r.m.Check(); err == nil || !strings.Contains(err.Error(), "not marked") {
		t.Fatalf("an unmarked page went unseen: %v", err)
	}
}
