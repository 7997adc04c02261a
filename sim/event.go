package sim

import "github.com/hugelab/hugelab/mm"

// event is a thread's next step. Events at the same time happen in the order
// in which they were made.
type event struct {
	at     mm.Nanos
	made   uint64
	thread int32
	gen    uint32 // of the thread when the event was made: an older one is void
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.made < f.made }

// events is a heap of four children a node.
type events struct {
	heap []event
	made uint64
}

func (q *events) push(at mm.Nanos, thread int32, gen uint32) {
	q.made++
	e := event{at, q.made, thread, gen}
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
}

// pop takes the earliest event; the heap must not be empty.
func (q *events) pop() event {
	h := q.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		least := c
		for k := c + 1; k < min(c+4, len(h)); k++ {
			if h[k].before(&h[least]) {
				least = k
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}
