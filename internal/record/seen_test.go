package record

import (
	"testing"

	"github.com/hugelab/hugelab/mm"
	"pgregory.net/rapid"
)

// TestPageSetIsAMap holds a pageSet to a plain map under random operations.
func TestPageSetIsAMap(t *testing.T) {
	const pages = 4 * blockPages
	rapid.Check(t, func(t *rapid.T) {
		s, want := newPageSet(4096), map[uint64]pageState{}
		page := func(name string) uint64 { return rapid.Uint64Range(0, pages-1).Draw(t, name) }
		va := func(p uint64) mm.VA { return mm.VA(p * 4096) }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				from, st := page("page"), pageState(rapid.IntRange(0, 2).Draw(t, "state"))
				for p := from; p < min(from+40, pages); p++ {
					s.set(p, st)
					want[p] = st
				}
			},
			"forget": func(t *rapid.T) {
				from := page("page")
				to := from + rapid.Uint64Range(0, 2*blockPages).Draw(t, "pages")
				s.forget(va(from), va(to))
				for p := from; p < to; p++ {
					delete(want, p)
				}
			},
			"move": func(t *rapid.T) {
				from, n := page("page"), rapid.Uint64Range(1, 600).Draw(t, "pages")
				to := from + n + rapid.Uint64Range(0, 1000).Draw(t, "gap")
				s.move(va(from), va(to), n*4096)
				for i := range n {
					want[to+i] = want[from+i]
					delete(want, from+i)
				}
			},
			"clone": func(*rapid.T) { s = s.clone() },
			"": func(t *rapid.T) {
				for p := range uint64(2 * pages) {
					if got := s.get(p); got != want[p] {
						t.Fatalf("page %d is %d, want %d", p, got, want[p])
					}
				}
			},
		})
	})
}
