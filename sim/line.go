package sim

import "github.com/hugelab/hugelab/mm"

// line is one cache line of the kernel's that several processors use: a lock's
// word, a reference count. A processor that wants it waits for those before it,
// and then for the line to come. So what an atomic operation costs grows with
// the number of processors that contend. A move takes the mean of all pairs of
// processors in use: who follows whom in a queue would be an accident of how
// the threads started.
//
//	            write by another: moves
//	   owned by p -------------------> owned by q
//	      ^  |  read by another: moves
//	write |  v
//	     shared   read: no cost to speak of
type line struct {
	free   mm.Nanos // when the last transfer ends
	owner  int32    // processor that wrote it last, plus 1; 0: none yet
	shared bool     // read by others since
}

// write is when processor p, from now on, has done an atomic operation on l.
func (s *Sim) write(l *line, p int32, now mm.Nanos) mm.Nanos {
	if l.owner == p+1 && !l.shared && l.free <= now {
		return now + s.cost.lineOwn
	}
	return s.move(l, p, now, false)
}

// read is when p has read l.
func (s *Sim) read(l *line, p int32, now mm.Nanos) mm.Nanos {
	if l.owner == 0 || l.shared || l.owner == p+1 {
		return now
	}
	return s.move(l, p, now, true)
}

// move brings l to p after all who asked before.
func (s *Sim) move(l *line, p int32, now mm.Nanos, read bool) mm.Nanos {
	l.free = max(l.free, now) + s.cost.lineMove
	l.shared = read
	if !read {
		l.owner = p + 1
	}
	s.stats.Moves++
	return l.free
}

// spinlock is a lock that is held for a time known when it is taken: the
// page-table lock, a zone's, the LRU's. Waiters get it in order.
type spinlock struct {
	line line
	free mm.Nanos // when the last holder so far lets go
}

// take is when p, from now on, has l for hold.
func (s *Sim) take(l *spinlock, p int32, now, hold mm.Nanos) (from mm.Nanos) {
	from = max(s.write(&l.line, p, now), l.free)
	l.free = from + hold
	return from
}
