package sim

import "github.com/hugelab/hugelab/mm"

// cpu is one processor.
type cpu struct {
	thread int32    // that runs on it, -1: idle
	listed bool     // on the list of idle ones
	lazy   mm.Space // idle, with this space's tables still loaded; 0: none
}

/*
A thread:

	              Wake, a processor idle
	   sleeping -------------------------> running <---+
	    ^   |                               |   |      | a processor falls idle,
	    |   +--- Wake, none idle --> runnable --|------+ or another's slice ends
	    |                               ^       |
	    |                               +-------+ its slice ended, others runnable
	    +---------------------------------------- waits for a lock
*/

// running says whether a thread has a processor.
func (t *thread) running() bool { return t.cpu >= 0 }

// start gives th the processor p: its next step comes after the delay.
func (s *Sim) start(th *thread, p int32, delay mm.Nanos) {
	s.cpus[p].thread = th.id
	th.cpu, th.last = p, p
	th.sliceEnd = s.now + delay + s.cost.slice
	s.after(th, delay)
}

// idleCPU finds an idle processor, that of th's last run if it is; -1 if none.
func (s *Sim) idleCPU(th *thread) int32 {
	if th.last >= 0 && s.cpus[th.last].thread < 0 {
		return th.last
	}
	for len(s.idle) > 0 {
		p := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		s.cpus[p].listed = false
		if s.cpus[p].thread < 0 {
			return p
		}
	}
	return -1
}

// leave takes th off its processor, which goes to the next runnable thread.
func (s *Sim) leave(th *thread) {
	p := th.cpu
	th.cpu = -1
	s.cpus[p].thread = -1
	if s.runq.len() > 0 {
		s.start(s.threads[s.runq.pop()], p, s.cost.sched)
		return
	}
	s.cpus[p].lazy = th.space
	if !s.cpus[p].listed {
		s.cpus[p].listed = true
		s.idle = append(s.idle, p)
	}
}

// sleep ends th's step: it waits for a lock, and goes on in state when woken.
func (s *Sim) sleep(th *thread, state state) {
	th.state = state
	th.gen++
	s.stats.Sleeps++
	s.leave(th)
}

// wake makes a sleeping thread run. It returns what that takes the waker.
func (s *Sim) wake(th *thread) mm.Nanos {
	s.stats.Wakeups++
	if p := s.idleCPU(th); p >= 0 {
		s.start(th, p, s.vary(s.cost.wakeup))
	} else {
		s.runq.push(th.id)
	}
	return s.cost.wake
}

// preempt is a thread's return to user mode: true if its slice is over and
// another took its processor.
func (s *Sim) preempt(th *thread) bool {
	if s.now < th.sliceEnd || s.runq.len() == 0 {
		return false
	}
	th.gen++
	s.runq.push(th.id)
	s.stats.Preemptions++
	s.leave(th)
	return true
}

// fifo is a queue of threads.
type fifo struct {
	ids  []int32
	head int
}

func (q *fifo) len() int { return len(q.ids) - q.head }

func (q *fifo) push(id int32) {
	if q.head > 64 && q.head*2 > len(q.ids) {
		n := copy(q.ids, q.ids[q.head:])
		q.ids, q.head = q.ids[:n], 0
	}
	q.ids = append(q.ids, id)
}

func (q *fifo) pop() int32 {
	id := q.ids[q.head]
	q.head++
	if q.head == len(q.ids) {
		q.ids, q.head = q.ids[:0], 0
	}
	return id
}

// remove takes id out of the queue, wherever it stands.
func (q *fifo) remove(id int32) {
	for i := q.head; i < len(q.ids); i++ {
		if q.ids[i] == id {
			q.ids = append(q.ids[:i], q.ids[i+1:]...)
			return
		}
	}
}
