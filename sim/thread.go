package sim

import (
	"errors"
	"fmt"
	"io"

	"github.com/hugelab/hugelab/mm"
)

// state is what a thread does at its next event.
type state uint8

const (
	stNext        state = iota // its next operation
	stTouch                    // its next access
	stCall                     // a system call that writes: has mmap_lock's line
	stHeld                     // has mmap_lock for writing
	stHolders                  // faults have let go of the VMAs it changes
	stCallDone                 // the call's work is done
	stFault                    // in the kernel, at the choice of a path
	stSpecLookup               // speculation: has looked the VMA up
	stSpecBegin                // speculation: has the VMA
	stSpecLock                 // before the page-table lock
	stSpecCommit               // with it
	stVMABegin                 // VMA lock: has its line
	stClassic                  // has mmap_lock's line
	stBegin                    // has mmap_lock for reading, or its VMA
	stLock                     // first half done
	stCommit                   // has the page-table lock
	stRelease                  // second half done
	stReleaseRead              // the fault's end
	stSpinning                 // spins for mmap_lock
	stWoken                    // woken as a writer of mmap_lock
	stGone
)

// thread is one stream on its way.
type thread struct {
	id      int32
	space   mm.Space
	state   state
	then    state // when a writer has the lock
	granted bool
	vmaPath bool // the fault at hand is under its VMA's lock
	gen     uint32

	cpu, last int32 // -1: none
	sliceEnd  mm.Nanos
	debt      mm.Nanos // time that interrupts took since its last step

	stream mm.Stream
	buf    [16]mm.Op
	pos, n int
	op     mm.Op

	left  mm.Pages               // accesses of a touch still to do
	filed map[mm.Region]mm.Pages // pages of files that it mapped by region
	lru   int                    // folios until its processor's batch goes to the LRU
	vma   uint32                 // found by speculation
	fault mm.Fault
	// outcome of the first half where there is no second, else of that.
	outcome mm.Outcome
	cur     mm.Current
}

// next takes the thread's next operation.
func (s *Sim) next(th *thread) error {
	if s.preempt(th) {
		return nil
	}
	if th.pos == th.n {
		n, err := th.stream.Next(th.buf[:])
		if n == 0 && err == nil {
			err = io.ErrNoProgress
		}
		if n == 0 {
			if errors.Is(err, io.EOF) {
				th.gen++
				th.state = stGone
				s.leave(th)
				return nil
			}
			return fmt.Errorf("sim: thread %d: %w", th.id, err)
		}
		th.pos, th.n = 0, n
	}
	th.op = th.buf[th.pos]
	th.pos++
	th.op.Space = th.space
	switch th.op.Kind {
	case mm.OpNone:
		th.state = stNext
		s.user(th, mm.Nanos(th.op.Arg))
	case mm.OpTouch:
		a, ok := s.m.Addr(th.space, th.op.Region, th.op.Page)
		if !ok {
			return fmt.Errorf("sim: thread %d: region %d is not mapped", th.id, th.op.Region)
		}
		th.fault.Space, th.fault.Addr, th.fault.Access = th.space, a, th.op.Access
		th.left = th.op.N
		th.state = stTouch
		s.touch(th)
	default:
		th.state = stCall
		l := &s.spaces[th.space].lock
		s.at(th, s.write(&l.line, th.cpu, s.now+s.kernel(th, s.cost.call)))
	}
	return nil
}

// touchMost bounds the accesses done at one event: what other threads do in
// between is seen that much late.
const touchMost = 512

// touch does accesses up to the next fault.
func (s *Sim) touch(th *thread) {
	if s.preempt(th) {
		return
	}
	stride := mm.VA(int64(th.op.Stride)) * mm.VA(s.m.PageSize())
	var n mm.Pages
	for n < touchMost {
		k := s.m.Hits(&th.fault, stride, min(th.left-n, touchMost-n))
		if k == 0 {
			break
		}
		n += k
	}
	if n > 0 {
		th.left -= n
		s.stats.Touches += uint64(n)
		s.user(th, mm.Nanos(float64(n)*s.cost.touch))
		if th.left == 0 {
			th.state = stNext
		}
		return
	}
	if th.left == 0 {
		th.state = stNext
		s.after(th, 0)
		return
	}
	th.state = stFault
	th.cur.Work = mm.Work{}
	th.cur.CPU, th.cur.Now = mm.CPU(th.cpu), s.now
	s.after(th, s.kernel(th, s.cost.enter))
}

// held does a system call's change, with mmap_lock held for writing.
func (s *Sim) held(th *thread, waited bool) error {
	sp := &s.spaces[th.space]
	held := 0
	if waited {
		held = s.m.WriteHeld(&th.op)
	} else {
		held = s.m.BeginWrite(&th.op)
	}
	if held > 0 {
		s.stats.VMAWaits++
		sp.writer = th.id
		s.sleep(th, stHolders)
		return nil
	}
	at := s.write(&sp.top, th.cpu, s.now)
	th.cur.Work = mm.Work{}
	th.cur.CPU, th.cur.Now = mm.CPU(th.cpu), s.now
	if _, err := s.m.Do(&th.cur, &th.op); err != nil {
		return fmt.Errorf("sim: thread %d: %w", th.id, err)
	}
	if th.op.Kind == mm.OpUnmap {
		th.cur.Work[mm.PrimPTEZap] += uint32(th.filed[th.op.Region])
		if th.filed[th.op.Region] > 0 {
			th.cur.Work[mm.PrimFlush]++
			delete(th.filed, th.op.Region)
		}
	}
	flush := th.cur.Work[mm.PrimFlush]+th.cur.Work[mm.PrimFlushFull] > 0
	d := s.price(th, at)
	if flush {
		d += s.vary(s.flush(th))
	}
	th.state = stCallDone
	s.at(th, at+s.kernel(th, d))
	return nil
}

// callDone lets go of mmap_lock.
func (s *Sim) callDone(th *thread) {
	sp := &s.spaces[th.space]
	s.m.EndWrite(th.space)
	s.stats.Calls++
	cost := s.up(&sp.lock, th)
	th.state = stNext
	s.at(th, s.write(&sp.lock.line, th.cpu, s.now)+s.kernel(th, cost))
}
