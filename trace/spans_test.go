package trace

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hugelab/hugelab/mm"
)

// TestSpansAgreeWithPages drives spans and a plain array of pages alike, with
// copies as fork makes them.
func TestSpansAgreeWithPages(t *testing.T) {
	const size = 64
	type page struct {
		region mm.Region
		offset uint64
	}
	type pair struct {
		spans *spans
		pages [size]page
	}
	rapid.Check(t, func(t *rapid.T) {
		all := []*pair{{spans: &spans{}}}
		next := mm.Region(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p := all[rapid.IntRange(0, len(all)-1).Draw(t, "space")]
			from := rapid.Uint64Range(0, size-1).Draw(t, "from")
			to := rapid.Uint64Range(from, size).Draw(t, "to")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				next++
				p.spans.put(span{start: from, end: to, base: from, region: next, root: next})
				for i := from; i < to; i++ {
					p.pages[i] = page{next, i - from}
				}
			case 2:
				p.spans.cut(from, to)
				for i := from; i < to; i++ {
					p.pages[i] = page{}
				}
			case 3: // grow what lies before
				if v, ok := p.spans.find(from); ok && v.end < to {
					end := v.end
					v.start, v.end = end, to
					p.spans.put(v)
					for i := end; i < to; i++ {
						p.pages[i] = page{v.region, i - v.base}
					}
				}
			case 4:
				if len(all) < 4 {
					c := &pair{p.spans.copy(), p.pages}
					all = append(all, c)
				}
			case 5:
				var got [size]page
				for _, v := range p.spans.parts(from, to) {
					for i := v.start; i < v.end; i++ {
						got[i] = page{v.region, i - v.base}
					}
				}
				for i := range uint64(size) {
					want := p.pages[i]
					if i < from || i >= to {
						want = page{}
					}
					if got[i] != want {
						t.Fatalf("parts of [%d, %d): page %d is %v, not %v", from, to, i, got[i], want)
					}
				}
			}
			for _, p := range all {
				i := rapid.Uint64Range(0, size-1).Draw(t, "look")
				v, ok := p.spans.find(i)
				if got := (page{v.region, i - v.base}); ok && got != p.pages[i] || !ok && p.pages[i] != (page{}) {
					t.Fatalf("page %d is %v, not %v", i, got, p.pages[i])
				}
			}
		}
	})
}
