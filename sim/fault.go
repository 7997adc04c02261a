package sim

import "github.com/hugelab/hugelab/mm"

// choose sends a fault on its path.
func (s *Sim) choose(th *thread) {
	sp := &s.spaces[th.space]
	switch {
	case s.rules.Speculative != mm.SpecNone && sp.threads > 1:
		// The lookup is under the tree's own lock, taken for reading and let go;
		// then it counts a reference to the VMA.
		th.state = stSpecLookup
		s.at(th, s.write(&sp.top, th.cpu, s.now)+s.cost.lookup)
	case s.rules.PerVMALock:
		at := s.now + s.cost.lookup
		if th.vma = s.m.VMAAt(th.space, th.fault.Addr); th.vma != 0 {
			at = s.write(s.vmaLine(th.vma), th.cpu, at)
		}
		th.state = stVMABegin
		s.at(th, at)
	default:
		s.classic(th, s.now)
	}
}

// classic goes for mmap_lock from now on.
func (s *Sim) classic(th *thread, now mm.Nanos) {
	th.vmaPath = false
	th.state = stClassic
	s.at(th, s.write(&s.spaces[th.space].lock.line, th.cpu, now))
}

// specLookup is the end of a speculation's lookup: meanwhile others may have
// taken the line.
func (s *Sim) specLookup(th *thread) {
	at := s.write(&s.spaces[th.space].top, th.cpu, s.now)
	if th.vma = s.m.VMAAt(th.space, th.fault.Addr); th.vma != 0 {
		at = s.write(s.vmaLine(th.vma), th.cpu, at)
	}
	th.state = stSpecBegin
	s.at(th, at)
}

// put gives the VMA's reference back, from now on.
func (s *Sim) put(th *thread, now mm.Nanos) mm.Nanos {
	if th.vma == 0 {
		return now
	}
	return s.write(s.vmaLine(th.vma), th.cpu, now)
}

// specBegin is a speculative fault's first half.
func (s *Sim) specBegin(th *thread) {
	out, _, _ := s.m.BeginSpeculative(&th.cur, &th.fault)
	at := s.now + s.kernel(th, s.price(th, s.now)+s.cost.checks)
	switch out {
	case mm.Pending:
		th.state = stSpecLock
		s.at(th, at)
	case mm.Retry:
		s.classic(th, s.put(th, at))
	default:
		s.faulted(th, out, s.put(th, at))
	}
}

// specLock is a speculative fault at the page-table lock.
func (s *Sim) specLock(th *thread) {
	l := s.tableLock(&th.fault)
	switch {
	case s.rules.Speculative == mm.SpecV6 && l != nil && l.free > s.now:
		s.m.AbortSpeculation(&th.cur, &th.fault, mm.SPFPTELock)
		s.back(th)
	case !s.m.SpeculationValid(&th.cur, &th.fault):
		s.back(th)
	default:
		th.state = stSpecCommit
		s.at(th, s.takeTable(l, th))
	}
}

// back goes from a failed speculation to the classic path.
func (s *Sim) back(th *thread) {
	s.classic(th, s.put(th, s.now+s.kernel(th, s.price(th, s.now))))
}

// specCommit is a speculative fault's second half.
func (s *Sim) specCommit(th *thread) {
	if s.worst {
		s.m.AbortSpeculation(&th.cur, &th.fault, mm.SPFVMAChanged)
		s.back(th)
		return
	}
	out := s.m.CommitSpeculative(&th.cur, &th.fault)
	if out == mm.Retry {
		s.back(th)
		return
	}
	at := s.now + s.kernel(th, s.price(th, s.now))
	s.faulted(th, out, s.put(th, at))
}

// vmaBegin is the first half of a fault under its VMA's lock.
func (s *Sim) vmaBegin(th *thread) {
	l := &s.spaces[th.space].lock
	out := s.m.BeginVMALocked(&th.cur, &th.fault, l.writer < 0 && len(l.queue) == 0)
	if out == mm.Retry {
		s.classic(th, s.now)
		return
	}
	th.vmaPath = true
	s.begun(th, out, s.now)
}

// begin is the first half of a fault under mmap_lock. The lookup reads what
// writers, and speculation's lookups, write.
func (s *Sim) begin(th *thread) {
	sp := &s.spaces[th.space]
	s.ownByReaders(&sp.lock)
	at := s.read(&sp.top, th.cpu, s.now)
	s.begun(th, s.m.Begin(&th.cur, &th.fault), at)
}

// begun is the time that a first half takes.
func (s *Sim) begun(th *thread, out mm.Outcome, at mm.Nanos) {
	th.outcome = out
	th.state = stLock
	if out != mm.Pending {
		th.state = stRelease
		if out == mm.Done { // a file's page, whose second half is part of the first
			if l := s.tableLock(&th.fault); l != nil {
				at = s.takeTable(l, th)
			}
			th.fileTouched()
		}
	}
	s.at(th, at+s.kernel(th, s.price(th, at)))
}

// commit is a fault's second half.
func (s *Sim) commit(th *thread) {
	th.outcome = s.m.Commit(&th.cur, &th.fault)
	th.state = stRelease
	s.after(th, s.kernel(th, s.price(th, s.now)))
}

// release lets go of the fault's lock: the line first.
func (s *Sim) release(th *thread) {
	l := &s.spaces[th.space].lock.line
	if th.vmaPath {
		l = s.vmaLine(th.vma)
	}
	th.state = stReleaseRead
	s.at(th, s.write(l, th.cpu, s.now))
}

// released is the end of a fault that took a lock.
func (s *Sim) released(th *thread) {
	sp := &s.spaces[th.space]
	var cost mm.Nanos
	if !th.vmaPath {
		cost = s.up(&sp.lock, th)
	} else {
		s.m.UnlockVMA(&th.fault)
		if w := sp.writer; w >= 0 && s.m.WriteHeld(&s.threads[w].op) == 0 {
			sp.writer = -1
			cost = s.wake(s.threads[w])
		}
	}
	s.faulted(th, th.outcome, s.now+s.kernel(th, cost))
}

// faulted ends a fault: the way out, then the next access. A fault that came
// too late, or hit, is an access still to do.
func (s *Sim) faulted(th *thread, out mm.Outcome, at mm.Nanos) {
	s.stats.Faults++
	if out == mm.Done || out == mm.Segv || out == mm.OOM || out == mm.Bus {
		th.left--
		s.stats.Touches++
		th.fault.Addr += mm.VA(int64(th.op.Stride)) * mm.VA(s.m.PageSize())
	}
	th.state = stTouch
	s.at(th, at+s.kernel(th, s.cost.exit)+mm.Nanos(s.cost.touch))
}

// tableLock is the page-table lock of a fault, nil if it has no table yet.
func (s *Sim) tableLock(f *mm.Fault) *spinlock {
	n := int(s.m.LockOf(f))
	if n == 0 {
		return nil
	}
	if n >= len(s.tables) {
		s.tables = append(s.tables, make([]spinlock, n+64-len(s.tables))...)
	}
	return &s.tables[n]
}

// takeTable is when th has its page-table lock.
func (s *Sim) takeTable(l *spinlock, th *thread) mm.Nanos {
	if l == nil {
		return s.now
	}
	return s.take(l, th.cpu, s.now, s.cost.commit)
}

// fileTouched notes a page of a file, which mm does not keep.
func (th *thread) fileTouched() {
	if th.filed == nil {
		th.filed = map[mm.Region]mm.Pages{}
	}
	th.filed[th.op.Region]++
}
