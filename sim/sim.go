package sim

import (
	"fmt"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// Config is how a machine is simulated.
type Config struct {
	CPUs int    // processors; 0: as many as the machine has. At most 1,024
	Seed uint64 // of the small variation of every duration

	// Worst ends every speculation at its last check, as if a writer had come
	// in time: what speculation costs where it never pays.
	Worst bool
}

// MaxCPUs is the most processors that a simulated machine may have.
const MaxCPUs = 1024

// Stats is what happened since New.
type Stats struct {
	Steps       uint64 // events handled
	Faults      uint64
	Touches     uint64 // accesses of OpTouch done, hits and faults
	Calls       uint64 // system calls that wrote the address space
	ReadWaits   uint64 // faults that found mmap_lock taken
	WriteWaits  uint64
	VMAWaits    uint64 // writers that waited for faults under a VMA's lock
	Sleeps      uint64
	Wakeups     uint64
	Preemptions uint64
	Moves       uint64 // cache lines that went from one processor to another
	Flushes     uint64
	IPIs        uint64
	User        mm.Nanos // processor time of all threads, waiting for lines and spinning not counted
	Kernel      mm.Nanos
	WriteHeld   mm.Nanos // mmap_locks were held for writing; several at once count several times
	WriteWanted mm.Nanos // they were held for writing or a writer waited for them
}

// Sim is a machine under simulation. One goroutine owns it, and its mm.Machine.
type Sim struct {
	m     *mm.Machine
	rules mm.Rules
	cost  costs
	rand  uint64
	worst bool

	now       mm.Nanos
	ticked    mm.Nanos
	queue     events
	threads   []*thread
	cpus      []cpu
	idle      []int32
	runq      fifo
	spaces    []space // by mm.Space
	tables    []spinlock
	vmas      [4096]line // references of VMAs, by their numbers
	zone, lru spinlock
	memory    mm.Nanos // until when the memory is busy
	stats     Stats
}

// space is what sim knows of an address space.
type space struct {
	lock    rwsem
	top     line  // the head of the mm: tree root, its lock, the lookup cache's number
	threads int   // ever added
	writer  int32 // that waits for holders of VMA locks, -1: none
}

// New simulates the machine hm with the memory m. The spaces of m, and what
// they map at the start, are made with m.Exec before.
func New(hm *hw.Machine, m *mm.Machine, cfg Config) (*Sim, error) {
	s := &Sim{m: m, rules: m.Rules(), worst: cfg.Worst, rand: cfg.Seed*0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d}
	n := cfg.CPUs
	if n == 0 {
		n = hm.Int("cpu.sockets") * hm.Int("cpu.cores") * hm.Int("cpu.threads")
	}
	if n < 1 || n > MaxCPUs {
		return nil, fmt.Errorf("sim: %d processors: want 1 to %d", n, MaxCPUs)
	}
	s.cost = costsOf(hm, m, n)
	s.cpus = make([]cpu, n)
	for p := n - 1; p >= 0; p-- {
		s.cpus[p] = cpu{thread: -1, listed: true}
		s.idle = append(s.idle, int32(p))
	}
	return s, nil
}

// Add starts a thread that does st's operations on a space that exists; their
// Space is not read. An OpNone is Arg nanoseconds of the thread's own computing.
// Next is called when all operations given before are done.
func (s *Sim) Add(id mm.Space, st mm.Stream) {
	for int(id) >= len(s.spaces) {
		s.spaces = append(s.spaces, space{lock: rwsem{writer: -1}, writer: -1})
	}
	s.spaces[id].threads++
	s.m.EndWrite(id)
	th := &thread{id: int32(len(s.threads)), space: id, stream: st, cpu: -1, last: -1, lru: lruBatch}
	s.threads = append(s.threads, th)
	if p := s.idleCPU(th); p >= 0 {
		s.start(th, p, s.vary(s.cost.sched))
	} else {
		s.runq.push(th.id)
	}
}

// Now is the virtual time.
func (s *Sim) Now() mm.Nanos { return s.now }

// Stats is what happened so far.
func (s *Sim) Stats() Stats {
	st := s.stats
	for i := range s.spaces {
		if l := &s.spaces[i].lock; l.wanted > 0 {
			st.WriteWanted += s.now - l.wantedSince
		}
	}
	return st
}

// tickEvery is how often mm is told the time: khugepaged, per-CPU lists.
const tickEvery = 10_000_000

// Run goes on until all threads are done or the virtual time is until. An error
// is a stream's, or an operation that makes no sense.
func (s *Sim) Run(until mm.Nanos) error {
	for len(s.queue.heap) > 0 {
		if s.queue.heap[0].at > until {
			break
		}
		e := s.queue.pop()
		th := s.threads[e.thread]
		if e.gen != th.gen {
			continue
		}
		s.now = e.at
		if s.now-s.ticked >= tickEvery {
			s.ticked = s.now
			s.m.Advance(s.now)
		}
		s.stats.Steps++
		if err := s.step(th); err != nil {
			return err
		}
	}
	s.now = max(s.now, until)
	return nil
}

// step does a thread's next step.
func (s *Sim) step(th *thread) error {
	sp := &s.spaces[th.space]
	switch th.state {
	case stNext:
		return s.next(th)
	case stTouch:
		s.touch(th)
	case stCall:
		if s.down(&sp.lock, th, true, stHeld) {
			return s.held(th, false)
		}
	case stHeld:
		return s.held(th, false)
	case stHolders:
		return s.held(th, true)
	case stCallDone:
		s.callDone(th)
	case stFault:
		s.choose(th)
	case stSpecLookup:
		s.specLookup(th)
	case stSpecBegin:
		s.specBegin(th)
	case stSpecLock:
		s.specLock(th)
	case stSpecCommit:
		s.specCommit(th)
	case stVMABegin:
		s.vmaBegin(th)
	case stClassic:
		if s.down(&sp.lock, th, false, stBegin) {
			s.begin(th)
		}
	case stBegin:
		s.begin(th)
	case stLock:
		th.state = stCommit
		s.at(th, s.takeTable(s.tableLock(&th.fault), th))
	case stCommit:
		s.commit(th)
	case stRelease:
		s.release(th)
	case stReleaseRead:
		s.released(th)
	case stSpinning:
		s.spun(th)
	case stWoken:
		s.woken(th)
	}
	return nil
}

// at sets th's next step at a time. Interrupts since its last one come first.
func (s *Sim) at(th *thread, at mm.Nanos) {
	th.gen++
	s.queue.push(at+th.debt, th.id, th.gen)
	th.debt = 0
}

func (s *Sim) after(th *thread, d mm.Nanos) { s.at(th, s.now+d) }

// user is th's own computing for d.
func (s *Sim) user(th *thread, d mm.Nanos) {
	d = s.vary(d)
	s.stats.User += d
	s.after(th, d)
}

// kernel accounts kernel time, varied, and returns it.
func (s *Sim) kernel(_ *thread, d mm.Nanos) mm.Nanos {
	d = s.vary(d)
	s.stats.Kernel += d
	return d
}

// vary makes d up to a tenth longer or shorter: nothing takes the same time
// twice, and threads in lock step would meet each other always or never.
func (s *Sim) vary(d mm.Nanos) mm.Nanos {
	s.rand ^= s.rand << 13
	s.rand ^= s.rand >> 7
	s.rand ^= s.rand << 17
	return d + d*mm.Nanos(s.rand>>48&0xfff-0x800)/(10*0x800)
}

// vmaLine is the line with a VMA's reference count.
func (s *Sim) vmaLine(number uint32) *line { return &s.vmas[number%uint32(len(s.vmas))] }
