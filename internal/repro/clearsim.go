package repro

import (
	"fmt"
	"math/rand/v2"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// A huge page and its parts, on x86: 2 MB of 4 KB.
const (
	hugeBytes = 2 << 20
	baseBytes = 4 << 10
	subPages  = hugeBytes / baseBytes
)

// Bytes of struct page that the kernel writes to make a huge page of free base
// pages, in sub-pages' worth. Linux: mm/page_alloc.c:prep_compound_page (v4.17).
const structPages = subPages * 64 / baseBytes

// Instructions of the kernel, other than the moves themselves: around each
// sub-page's clearing, and for a fault with the allocation. They are few beside
// the program's 5 million a page, so their order of magnitude is enough.
const (
	subPageInstructions = 60
	faultInstructions   = 6000
)

// turnSteps is the steps of a turn.
const turnSteps = structPages + 2*subPages

// clearSetup is one way to run the workload.
type clearSetup struct {
	use   workload.Usemem
	order mm.ClearOrder
	known bool // the fault's address reaches the clearing; else the page's start
}

// target is the sub-page that clearing works towards.
func (c *clearSetup) target() uint32 {
	if c.known && c.use.Reverse {
		return subPages - 1
	}
	return 0
}

// sameOrder says whether two setups do the same in the same order.
func (c clearSetup) sameOrder(d clearSetup) bool {
	return c.use == d.use && c.order == d.order && c.target() == d.target()
}

// clearRun is what a setup came to in its steady state: all processes of one
// package, scaled to the machine.
type clearRun struct {
	throughput     float64 // bytes written a second
	credited       float64 // what usemem would report
	user, kernel   float64 // shares of the processors' time
	ipc            float64 // instructions a cycle
	references     float64 // of the last-level cache, a huge page
	misses         float64 // of them
	reads, writes  float64 // lines of memory, a huge page
	bandwidth      float64 // of one node, GB/s
	userNanosAPage float64
}

func (r *clearRun) missRate() float64 { return r.misses / r.references }

// Turns of a process over a huge page: until the caches are as they stay, and
// counted.
const (
	warmTurns    = 4
	countedTurns = 12
)

// stream is one process on its hardware thread. Its life is turns of
//
//	fault -> make the huge page -> clear or copy its sub-pages -> write all words
//
// and it is simulated by sub-pages: one line stands for all of its sub-page.
type stream struct {
	core   int
	share  float64 // processes on its core
	pace   float64 // of its lines, about 1: cores lie nearer or farther from slices and memory
	now    float64 // ns
	at     int     // step of the turn
	page   uint64  // huge page that it works on
	source uint64  // copying: the page that it copies
	load   float64 // ns that its lines in flight occupy the memory for
}

// clearSim is a package with its processes.
type clearSim struct {
	m       *hw.Machine
	set     clearSetup
	caches  *hw.Hierarchy
	streams []stream // a heap by time
	order   []uint32
	free    []float64 // when each core has issued what its threads gave it
	pages   uint64    // huge pages so far
	load    float64   // sum over streams

	line, lines            float64 // bytes of a line, lines of a sub-page
	l2, llc, memory        float64 // latencies
	bandwidth              float64 // bytes a ns
	clock, width           float64
	fills, queue           float64
	clearRate, copyRate    float64
	faultNanos             float64
	reads                  bool
	user, kernel           float64 // ns
	userInstr, kernelInstr float64
	written, prefetched    float64
	refs, misses           float64 // lines
}

// runClear simulates a setup on a machine.
func runClear(m *hw.Machine, seed uint64, set clearSetup) (clearRun, error) {
	s, err := newClearSim(m, seed, set)
	if err != nil {
		return clearRun{}, fmt.Errorf("clearing on %s: %w", m.Name, err)
	}
	// Few processes take more turns to fill the last level twice.
	filling := 2 * m.Get("llc.size") / hugeBytes / float64(len(s.streams))
	s.run(int(max(warmTurns, filling)) * turnSteps * len(s.streams))
	start := s.first().now
	s.forget()
	s.run(countedTurns * turnSteps * len(s.streams))
	return s.result(s.first().now - start), nil
}

func newClearSim(m *hw.Machine, seed uint64, set clearSetup) (*clearSim, error) {
	s := &clearSim{
		m: m, set: set, line: m.Get("line"), l2: m.Get("l2.latency"), llc: m.Get("llc.latency"),
		memory: m.Get("memory.latency"), bandwidth: m.Get("memory.bandwidth"), clock: m.Get("cpu.clock"),
		width: m.Get("cpu.width"), fills: m.Get("cpu.fill_buffers"), queue: m.Get("cpu.queue"),
		clearRate: m.Get("clear.rate"), copyRate: m.Get("copy.rate"),
		reads:      m.Int("clear.reads") != 0,
		prefetched: m.Get("llc.prefetched"),
	}
	sockets, cores := m.Int("cpu.sockets"), m.Int("cpu.cores")
	procs := set.use.Processes
	procs = (procs + sockets - 1) / sockets // of this package
	if s.line < workload.Word || s.line > baseBytes ||
		min(s.bandwidth, s.clock, s.width, s.clearRate, s.copyRate, s.queue, s.fills) <= 0 {
		return nil, fmt.Errorf("a size of lines, a rate or a queue is out of range")
	}
	if procs > cores*m.Int("cpu.threads") {
		return nil, fmt.Errorf("%d processes on %d cores: want one a hardware thread at most", procs, cores)
	}
	s.lines = baseBytes / s.line
	sample := uint(0)
	for 1<<sample < int(s.lines) {
		sample++
	}
	var err error
	if s.caches, err = hw.NewHierarchy(m, sample); err != nil {
		return nil, err
	}
	s.order = set.order.AppendOrder(nil, subPages, set.target())
	n := &m.Costs().Nanos
	s.faultNanos = n[mm.PrimFaultUser] + n[mm.PrimAllocBuddy] + n[mm.PrimCharge] + n[mm.PrimRmapAdd] +
		n[mm.PrimPMDSet]
	s.free = make([]float64, cores)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range procs {
		on := i % cores
		share := float64((procs - on + cores - 1) / cores)
		s.streams = append(s.streams, stream{
			core: on, share: share, pace: 1 + m.Get("memory.spread")*(2*r.Float64()-1),
			page: s.newPage(), at: r.IntN(turnSteps), source: r.Uint64N(1 << 20),
		})
	}
	return s, nil
}

func (s *clearSim) newPage() uint64 { s.pages++; return s.pages }

// first is the stream that is behind all others in time: streams are a heap by
// it, the earliest on top.
func (s *clearSim) first() *stream { return &s.streams[0] }

// settle puts the first stream, whose time has moved, in its place.
func (s *clearSim) settle() {
	h := s.streams
	for i := 0; ; {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if r := least + 1; r < len(h) && h[r].now < h[least].now {
			least = r
		}
		if h[i].now <= h[least].now {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// forget starts the counting.
func (s *clearSim) forget() {
	s.caches.Reset()
	s.user, s.kernel, s.userInstr, s.kernelInstr, s.written, s.refs, s.misses = 0, 0, 0, 0, 0, 0, 0
}

// run does that many steps.
func (s *clearSim) run(steps int) {
	for range steps {
		st := s.first()
		switch at := st.at; {
		case at < structPages:
			s.makePage(st, at)
		case at < structPages+subPages:
			s.clear(st, s.order[at-structPages])
		default:
			s.write(st, at-structPages-subPages)
		}
		if st.at++; st.at == turnSteps {
			st.at, st.page = 0, s.newPage()
			st.source++
		}
		s.settle()
	}
}

// Where lines are: huge pages from the bottom of memory, their struct pages
// far above, and pages that are copied from above those.
const (
	structBase = 1 << 46
	sourceBase = 1 << 47
)

// touch puts the line that stands for the sub-page at an address through the
// caches.
func (s *clearSim) touch(st *stream, addr uint64, a hw.Access) hw.Found {
	f := s.caches.Access(st.core, addr/uint64(s.line), a)
	if f.Level >= hw.InLLC {
		s.refs++
		if f.Level == hw.InMemory && a != hw.AccessClaim {
			s.misses++
		}
	}
	return f
}

// stall is how long a stream waits for the lines of a sub-page, of which so
// many are in flight at once. Memory serves what all streams have in flight in
// turn, so that nobody's line comes before all of them had one.
func (s *clearSim) stall(st *stream, f hw.Found, flight float64) float64 {
	moved := float64(f.Writes)
	if f.Read {
		moved++
	}
	s.load -= st.load
	st.load = flight * moved * s.line / s.bandwidth
	s.load += st.load
	var wait float64
	switch f.Level {
	case hw.InL2:
		wait = s.l2
	case hw.InLLC:
		wait = s.llc
	case hw.InMemory:
		wait = s.memory
	}
	if moved > 0 {
		wait = max(wait, s.load)
	}
	return s.lines * wait / flight * st.pace
}

// makePage does the fault and a part of the huge page's making.
func (s *clearSim) makePage(st *stream, part int) {
	f := s.touch(st, structBase+st.page*structPages*baseBytes+uint64(part)*baseBytes, hw.AccessWrite)
	cost := s.stall(st, f, s.queue/st.share)
	if part == 0 {
		cost += s.faultNanos
		s.kernelInstr += faultInstructions
	}
	s.spendKernel(st, cost)
}

// clear clears a sub-page, or copies it.
func (s *clearSim) clear(st *stream, sub uint32) {
	a := hw.AccessClaim
	if s.reads {
		a = hw.AccessWrite
	}
	f := s.touch(st, st.page*hugeBytes+uint64(sub)*baseBytes, a)
	flight, rate := s.fills/st.share, s.clearRate
	if s.set.use.Prealloc {
		// Two lines are in flight for one that is written.
		from := s.touch(st, sourceBase+st.source*hugeBytes+uint64(sub)*baseBytes, hw.AccessRead)
		f.Level = max(f.Level, from.Level)
		f.Writes += from.Writes
		if from.Read && f.Read {
			f.Writes++ // stall counts one read
		}
		f.Read = f.Read || from.Read
		flight, rate = flight/2, s.copyRate
	}
	cost := max(s.stall(st, f, flight), baseBytes/rate*st.share)
	s.kernelInstr += subPageInstructions
	s.spendKernel(st, cost)
}

func (s *clearSim) spendKernel(st *stream, cost float64) {
	st.now += cost
	s.kernel += cost
}

// write writes the words of a sub-page; at counts sub-pages as the program
// comes to them.
func (s *clearSim) write(st *stream, at int) {
	if s.set.use.Reverse {
		at = subPages - 1 - at
	}
	f := s.touch(st, st.page*hugeBytes+uint64(at)*baseBytes, hw.AccessWrite)
	stall := s.stall(st, f, s.queue/st.share)
	instr := baseBytes / float64(s.set.use.Step) * workload.UsememInstructions
	// Threads of a core issue in turn.
	issue := instr / s.width / s.clock
	begin := max(st.now, s.free[st.core])
	s.free[st.core] = begin + issue
	cost := max(begin+issue-st.now, stall)
	st.now += cost
	s.user += cost
	s.userInstr += instr
	s.written += baseBytes
}

// result is what was counted in a span of time.
func (s *clearSim) result(span float64) clearRun {
	sockets := float64(s.m.Int("cpu.sockets"))
	busy := s.user + s.kernel
	pages := s.written / hugeBytes
	c := s.caches.Counts()
	r := clearRun{
		throughput: s.written / span * 1e9 * sockets,
		user:       s.user / busy,
		kernel:     s.kernel / busy,
		ipc:        (s.userInstr + s.kernelInstr) / (busy * s.clock),
		references: s.refs * s.lines / pages,
		misses:     s.misses * (1 - s.prefetched) * s.lines / pages,
		reads:      float64(c.Reads) * s.lines / pages,
		writes:     float64(c.Writes) * s.lines / pages,
		bandwidth:  float64(c.Reads+c.Writes) * s.lines * s.line / span,
	}
	r.userNanosAPage = s.user / pages
	u := &s.set.use
	r.credited = r.throughput / 1e6 * float64(u.Credit(1e6, uint64(1e6/u.Step)))
	return r
}
