package record

import (
	"slices"
	"testing"

	"github.com/hugelab/hugelab/trace"
	"pgregory.net/rapid"
)

// TestQueueKeepsPlaces: whatever the order in which calls are completed, the
// events come out in the order of their places, each once, and none is held
// longer than the oldest pending one makes it wait.
func TestQueueKeepsPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got, want []uint64
		q := newQueue(func(e *trace.Event) { got = append(got, e.A) })
		q.slots = make([]slot, 2)
		type open struct{ seq, n uint64 }
		var pending []open
		for n := range uint64(rapid.IntRange(0, 200).Draw(t, "events")) {
			e := trace.Event{A: n}
			switch k := rapid.IntRange(0, 3).Draw(t, "do"); {
			case k == 0:
				q.add(&e)
				want = append(want, n)
			case k == 1 || len(pending) == 0:
				pending = append(pending, open{q.place(&e), n})
				want = append(want, n)
			default:
				i := rapid.IntRange(0, len(pending)-1).Draw(t, "which")
				p := pending[i]
				pending = slices.Delete(pending, i, i+1)
				if k == 2 {
					q.fill(p.seq, &trace.Event{A: p.n}, nil)
				} else {
					q.drop(p.seq)
					want = slices.DeleteFunc(want, func(v uint64) bool { return v == p.n })
				}
			}
			if len(pending) == 0 && q.head != q.tail {
				t.Fatalf("%d events held though none is pending", q.tail-q.head)
			}
		}
		for _, p := range pending {
			q.fill(p.seq, &trace.Event{A: p.n}, nil)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestQueueFull: a call that never ends may not hold the recording for ever.
func TestQueueFull(t *testing.T) {
	var got []uint64
	q := newQueue(func(e *trace.Event) { got = append(got, e.A) })
	q.slots, q.max = make([]slot, 4), 4
	seq := q.place(&trace.Event{A: 100})
	for n := range uint64(10) {
		q.add(&trace.Event{A: n})
	}
	q.fill(seq, &trace.Event{A: 100}, []trace.Event{{A: 101}})
	want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101}
	slices.Sort(got[:len(got)-2])
	if !slices.Equal(got, want) || q.forced != 1 {
		t.Errorf("got %v, forced %d", got, q.forced)
	}
}
