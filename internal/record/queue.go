package record

import "github.com/hugelab/hugelab/trace"

// queue holds events back while an earlier one waits to be completed: a call
// takes its place when it holds the address space, and its result is known
// only at its exit.
//
//	pending --fill--> ready --flush--> gone
//	pending --drop--> dropped --flush--> gone
//	pending --the queue is full--> gone (its owner then emits it late)
type queue struct {
	slots      []slot // a ring, length a power of two
	head, tail uint64 // sequence numbers; slot n lies at n mod len
	max        int
	forced     uint64 // pending events that had to give up their place
	emit       func(*trace.Event)
}

type slotState uint8

const (
	slotReady slotState = iota
	slotPending
	slotDropped
)

type slot struct {
	event trace.Event
	state slotState
	after []trace.Event // written right behind event
}

// queueMax bounds the memory of a queue: about 110 bytes an event.
const queueMax = 1 << 20

func newQueue(emit func(*trace.Event)) *queue {
	return &queue{slots: make([]slot, 256), max: queueMax, emit: emit}
}

// add writes a complete event behind all that are in the queue.
func (q *queue) add(e *trace.Event) {
	q.room()
	if q.head == q.tail {
		q.emit(e)
		return
	}
	s := q.push()
	s.event, s.state = *e, slotReady
}

// place reserves the next place for an event that is completed later.
func (q *queue) place(e *trace.Event) (seq uint64) {
	q.room()
	s := q.push()
	s.event, s.state = *e, slotPending
	return q.tail - 1
}

// room makes room for one more event. The first in the queue is always pending.
func (q *queue) room() {
	if int(q.tail-q.head) < len(q.slots) {
		return
	}
	if len(q.slots) < q.max {
		q.grow()
		return
	}
	q.slots[q.head&uint64(len(q.slots)-1)].state = slotDropped
	q.forced++
	q.flush()
}

func (q *queue) push() *slot {
	s := &q.slots[q.tail&uint64(len(q.slots)-1)]
	s.after = nil
	q.tail++
	return s
}

func (q *queue) grow() {
	bigger := make([]slot, 2*len(q.slots))
	for n := q.head; n < q.tail; n++ {
		bigger[n&uint64(len(bigger)-1)] = q.slots[n&uint64(len(q.slots)-1)]
	}
	q.slots = bigger
}

// fill completes the event placed at seq; without its place it goes to the end.
func (q *queue) fill(seq uint64, e *trace.Event, after []trace.Event) {
	if seq >= q.head && seq < q.tail {
		s := &q.slots[seq&uint64(len(q.slots)-1)]
		s.event, s.state, s.after = *e, slotReady, after
		q.flush()
		return
	}
	q.add(e)
	for i := range after {
		q.add(&after[i])
	}
}

// drop gives up the place at seq.
func (q *queue) drop(seq uint64) {
	if seq >= q.head && seq < q.tail {
		q.slots[seq&uint64(len(q.slots)-1)].state = slotDropped
		q.flush()
	}
}

// flush writes from the front until an event is pending.
func (q *queue) flush() {
	for q.head < q.tail {
		s := &q.slots[q.head&uint64(len(q.slots)-1)]
		if s.state == slotPending {
			return
		}
		q.head++
		if s.state == slotDropped {
			continue
		}
		q.emit(&s.event)
		for i := range s.after {
			q.emit(&s.after[i])
		}
		s.after = nil
	}
}
