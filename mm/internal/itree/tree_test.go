package itree

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type span struct{ start, end uint64 }

// model is the reference: a sorted slice.
type model []span

func (m model) find(a uint64) int {
	return slices.IndexFunc(m, func(s span) bool { return s.end > a })
}

func (m model) free(s span) bool {
	for _, x := range m {
		if x.start < s.end && s.start < x.end {
			return false
		}
	}
	return s.start < s.end
}

// gaps lists the free pieces within [floor, limit).
func (m model) gaps(floor, limit uint64) []span {
	var out []span
	low := floor
	for _, x := range m {
		if hi := min(x.start, limit); hi > low {
			out = append(out, span{low, hi})
		}
		low = max(low, x.end)
	}
	if limit > low {
		out = append(out, span{low, limit})
	}
	return out
}

func compare(t interface{ Fatalf(string, ...any) }, tr *Tree[int], m model, a, floor, limit, length uint64) {
	if err := tr.Check(); err != nil {
		t.Fatalf("%v", err)
	}
	n, i := tr.Find(a), m.find(a)
	if (n == nil) != (i < 0) || n != nil && (n.Start() != m[i].start || n.End() != m[i].end) {
		t.Fatalf("Find(%d): got %v, want index %d of %v", a, n, i, m)
	}
	length = max(length, 1)
	fits := slices.DeleteFunc(m.gaps(floor, limit), func(s span) bool { return s.end-s.start < length })
	hi, ok := tr.HighestGap(floor, limit, length)
	if ok != (len(fits) > 0) || ok && hi != fits[len(fits)-1].end {
		t.Fatalf("HighestGap(%d, %d, %d) = %d, %v; pieces %v", floor, limit, length, hi, ok, fits)
	}
	lo, ok := tr.LowestGap(floor, limit, length)
	if ok != (len(fits) > 0) || ok && lo != fits[0].start {
		t.Fatalf("LowestGap(%d, %d, %d) = %d, %v; pieces %v", floor, limit, length, lo, ok, fits)
	}
}

// step does one operation on both, steered by four small numbers.
func step(tr *Tree[int], m model, op, a, b, c uint64) model {
	switch op % 3 {
	case 0:
		s := span{a, a + 1 + b%8}
		if m.free(s) {
			tr.Insert(s.start, s.end, 0)
			m = append(m, s)
			slices.SortFunc(m, func(x, y span) int { return int(x.start) - int(y.start) })
		}
	case 1:
		if n := tr.Find(a); n != nil {
			i := m.find(a)
			tr.Remove(n)
			m = slices.Delete(m, i, i+1)
		}
	case 2:
		n, i := tr.Find(a), m.find(a)
		if n == nil {
			break
		}
		lo, hi := uint64(0), n.End()+8
		if i > 0 {
			lo = m[i-1].end
		}
		if i+1 < len(m) {
			hi = m[i+1].start
		}
		start := lo + b%(hi-lo)
		end := start + 1 + c%(hi-start)
		tr.Resize(n, start, end)
		m[i] = span{start, end}
	}
	return m
}

func TestAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr Tree[int]
		var m model
		small := rapid.Uint64Range(0, 120)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m = step(&tr, m, small.Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), small.Draw(t, "c"))
			compare(t, &tr, m, small.Draw(t, "find"), small.Draw(t, "floor"), small.Draw(t, "limit"), small.Draw(t, "len")%20)
		}
	})
}

func FuzzAgainstSlice(f *testing.F) {
	f.Add([]byte{0, 10, 3, 0, 0, 20, 3, 0, 2, 10, 4, 2, 1, 20, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var tr Tree[int]
		var m model
		for ; len(in) >= 4; in = in[4:] {
			a, b, c := uint64(in[1]), uint64(in[2]), uint64(in[3])
			m = step(&tr, m, uint64(in[0]), a, b, c)
			compare(t, &tr, m, b, c, a, b%16)
		}
	})
}

// build fills a tree with n ranges of one page, gaps of one page, as a program
// that protects every other page makes them.
func build(n int) *Tree[int] {
	var tr Tree[int]
	for i := range n {
		at := uint64(1<<20) + uint64(i)*0x2000
		tr.Insert(at, at+0x1000, i)
	}
	return &tr
}

func TestFindDoesNotAllocate(t *testing.T) {
	tr := build(1000)
	if n := testing.AllocsPerRun(100, func() { tr.Find(1<<20 + 777*0x2000) }); n != 0 {
		t.Fatalf("Find allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { tr.HighestGap(0, 1<<30, 0x2000) }); n != 0 {
		t.Fatalf("HighestGap allocates %v times", n)
	}
}

func BenchmarkFind(b *testing.B) {
	tr := build(50_000)
	x := uint64(1)
	for b.Loop() {
		x = x*6364136223846793005 + 1
		tr.Find(1<<20 + x>>40%50_000*0x2000)
	}
}

func BenchmarkHighestGap(b *testing.B) {
	tr := build(50_000)
	limit := tr.Last().Start()
	for b.Loop() {
		tr.HighestGap(0x1000, limit, 0x2000) // only the one below everything fits
	}
}
