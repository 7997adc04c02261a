package sim

import "github.com/hugelab/hugelab/mm"

/*
rwsem is mmap_lock as kernels up to 5.2 had it.

	reader: free of writers and of waiters -> has it. Else it queues and sleeps.
	writer: free -> has it, whoever queues (it steals). Held by a running writer:
	        it spins, in order of arrival, until the lock is free, its slice is
	        over or readers own it. Else it queues and sleeps.
	let go by the last reader or the writer: the first that spins has it; the
	        first that sleeps is woken too. A woken writer must still find the lock
	        free, or sleeps again. Readers at the head of the queue are given the
	        lock at once, all up to the next writer, and woken.

What it means: as long as only writers want it, nobody sleeps. One reader among
them, and each later owner first has to be woken.

Linux: kernel/locking/rwsem-xadd.c:rwsem_down_read_failed,
rwsem_optimistic_spin, __rwsem_mark_wake, rwsem_wake (v4.15).
*/
type rwsem struct {
	line    line
	readers int32
	writer  int32 // thread, -1: none
	// readerOwned: a reader was the last to run with it, so writers do not spin.
	readerOwned bool
	since       mm.Nanos // the writer has it
	wanted      int      // writers that have it or wait for it
	wantedSince mm.Nanos // the first of them came
	queue       []waiter
	spinners    fifo
}

// waiter is a thread in the queue.
type waiter struct {
	thread int32
	write  bool
	woken  bool // a writer on its way
}

func (l *rwsem) free() bool { return l.writer < 0 && l.readers == 0 }

// down is th's attempt to have l, once it has its line. If it must wait, it goes
// on in state then when it has the lock.
func (s *Sim) down(l *rwsem, th *thread, write bool, then state) (has bool) {
	if write {
		if l.wanted++; l.wanted == 1 {
			l.wantedSince = s.now
		}
		return s.downWrite(l, th, then)
	}
	if l.writer < 0 && len(l.queue) == 0 {
		l.readers++
		s.ownByReaders(l)
		return true
	}
	s.stats.ReadWaits++
	l.queue = append(l.queue, waiter{thread: th.id})
	if l.free() {
		s.wakeHead(l, th)
		if th.granted {
			th.granted = false
			s.ownByReaders(l)
			return true
		}
	}
	s.sleep(th, then)
	return false
}

func (s *Sim) downWrite(l *rwsem, th *thread, then state) bool {
	if l.free() {
		s.own(l, th)
		return true
	}
	s.stats.WriteWaits++
	th.then = then
	if s.cost.spin && !l.readerOwned && (l.writer < 0 || s.threads[l.writer].running()) &&
		(s.now < th.sliceEnd || s.runq.len() == 0) {
		th.state = stSpinning
		l.spinners.push(th.id)
		s.look(th)
		return false
	}
	s.queueWriter(l, th)
	return false
}

// own makes a running writer the owner.
func (s *Sim) own(l *rwsem, th *thread) { l.writer, l.readerOwned, l.since = th.id, false, s.now }

// ownByReaders notes that a reader runs with l: no writer spins on that.
func (s *Sim) ownByReaders(l *rwsem) {
	l.readerOwned = true
	for l.spinners.len() > 0 {
		s.queueWriter(l, s.threads[l.spinners.pop()])
	}
}

// look makes a spinning thread look at the end of its slice whether it should
// go on.
func (s *Sim) look(th *thread) {
	th.gen++
	s.queue.push(max(th.sliceEnd, s.now+s.cost.slice/4), th.id, th.gen)
}

// spun is that look.
func (s *Sim) spun(th *thread) {
	if s.runq.len() == 0 {
		s.look(th)
		return
	}
	l := &s.spaces[th.space].lock
	l.spinners.remove(th.id)
	s.queueWriter(l, th)
}

// queueWriter puts a writer to sleep. If readers hold the lock, readers at the
// head may join them.
func (s *Sim) queueWriter(l *rwsem, th *thread) {
	l.queue = append(l.queue, waiter{thread: th.id, write: true})
	if len(l.queue) > 1 && l.writer < 0 && !l.queue[0].write {
		s.wakeHead(l, th)
	}
	s.sleep(th, stWoken)
}

// woken is a woken writer's attempt.
func (s *Sim) woken(th *thread) {
	l := &s.spaces[th.space].lock
	i := 0
	for l.queue[i].thread != th.id {
		i++
	}
	if !l.free() {
		l.queue[i].woken = false
		s.sleep(th, stWoken)
		return
	}
	l.queue = append(l.queue[:i], l.queue[i+1:]...)
	s.own(l, th)
	th.state = th.then
	s.at(th, s.write(&l.line, th.cpu, s.now))
}

// wakeHead wakes the first waiter, or gives the lock to the first readers. by
// may be among them: it then has the lock without having slept. It returns what
// that takes by.
func (s *Sim) wakeHead(l *rwsem, by *thread) (cost mm.Nanos) {
	if len(l.queue) == 0 {
		return 0
	}
	if w := &l.queue[0]; w.write {
		if !w.woken {
			w.woken = true
			cost = s.wake(s.threads[w.thread])
		}
		return cost
	}
	n := 0
	for ; n < len(l.queue) && !l.queue[n].write; n++ {
		l.readers++
		if th := s.threads[l.queue[n].thread]; th == by {
			th.granted = true
		} else {
			cost += s.wake(th)
		}
	}
	l.queue = append(l.queue[:0], l.queue[n:]...)
	return cost
}

// up lets go of l for th. It returns what waking others takes th.
func (s *Sim) up(l *rwsem, th *thread) mm.Nanos {
	if l.writer == th.id {
		l.writer = -1
		s.stats.WriteHeld += s.now - l.since
		if l.wanted--; l.wanted == 0 {
			s.stats.WriteWanted += s.now - l.wantedSince
		}
	} else {
		l.readers--
	}
	if !l.free() {
		return 0
	}
	if l.spinners.len() > 0 {
		next := s.threads[l.spinners.pop()]
		s.own(l, next)
		next.state = next.then
		s.at(next, s.write(&l.line, next.cpu, s.now))
		if len(l.queue) > 0 && l.queue[0].write {
			return s.wakeHead(l, th)
		}
		return 0
	}
	return s.wakeHead(l, th)
}
