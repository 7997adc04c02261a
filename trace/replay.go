package trace

import (
	"io"
	"math/bits"
	"slices"

	"github.com/hugelab/hugelab/mm"
)

// Replay is an mm.Stream over a Reader: it follows each address space, so that
// operations come out relative to regions.
//
// What it keeps grows with the mappings and threads alive, and by 12 bytes with
// every mapping ever made (its name and its faults); not with faults.
type Replay struct {
	r     *Reader
	err   error
	shift uint
	event Event

	tasks     map[int32]*task  // by TID
	groups    map[int32]*group // by PID
	last      *task            // of the event before
	nextSpace mm.Space

	queue []mm.Op // made by an event that is no fault, not yet handed out
	head  int

	regions regions
	stats   Stats
}

// NewReplay makes a Replay of r from where r stands.
func NewReplay(r *Reader) *Replay {
	p := &Replay{r: r, shift: 12, tasks: map[int32]*task{}, groups: map[int32]*group{}, nextSpace: 1}
	if n := uint(r.Header.PageSize); n >= 4096 && n <= 65536 && n&(n-1) == 0 {
		p.shift = uint(bits.TrailingZeros(n))
	}
	p.stats.UnknownPages = map[mm.UnknownKind]uint64{}
	p.regions.init()
	return p
}

const (
	// foldWindow is how long after the first touch of a run the last may lie:
	// a run has one time. It is far below khugepaged's shortest sleep.
	foldWindow mm.Nanos = 1e6
	// foldStride is the longest stride of a run, in pages.
	foldStride = 16
	maxNotes   = 200
)

// Next implements mm.Stream. An error of the Reader comes after the operations
// before it.
func (p *Replay) Next(buf []mm.Op) (int, error) {
	n := 0
	for n < len(buf) {
		if p.head < len(p.queue) {
			k := copy(buf[n:], p.queue[p.head:])
			p.head += k
			n += k
			continue
		}
		if p.err != nil {
			break
		}
		if p.err = p.r.Next(&p.event); p.err != nil {
			p.end()
			break
		}
		if p.event.Kind != KindFault {
			p.handle(&p.event)
			continue
		}
		n = p.fault(buf, n)
	}
	if n > 0 || len(buf) == 0 {
		return n, nil
	}
	return 0, p.err
}

// end is called when the Reader ended.
func (p *Replay) end() {
	if cut, what := p.r.Cut(); p.err == io.EOF && cut {
		p.note(what)
	}
}

// fault makes a touch of the event in buf[n], or adds it to the run in
// buf[n-1], and returns the new n. A run is one thread's with no other event
// in between, so the order among threads is kept.
func (p *Replay) fault(buf []mm.Op, n int) int {
	e := &p.event
	t := p.task(e)
	if t == nil {
		return n
	}
	if e.Access&mm.KernelMode != 0 {
		p.stats.KernelMode++
	}
	page := e.A >> p.shift
	v, ok := t.space.maps.find(page)
	op := &buf[n]
	*op = mm.Op{Kind: mm.OpTouch, Access: e.Access, CPU: e.CPU, Space: t.space.id, Thread: mm.Thread(t.tid),
		N: 1, Stride: 1, Arg: e.A, When: e.When}
	p.count(&v, 1)
	if !ok {
		return n + 1
	}
	op.Region, op.Page = v.region, page-v.base
	if n > 0 && extend(&buf[n-1], op) {
		return n
	}
	return n + 1
}

// extend adds the touch op to the run before it, if it continues it.
func extend(run, op *mm.Op) bool {
	if run.Kind != mm.OpTouch || run.Region != op.Region || run.Space != op.Space || run.Thread != op.Thread ||
		run.Access != op.Access || run.CPU != op.CPU || op.When < run.When || op.When-run.When > foldWindow {
		return false
	}
	if run.N == 1 {
		stride := int64(op.Page - run.Page)
		if stride == 0 || stride > foldStride || stride < -foldStride {
			return false
		}
		run.Stride, run.N = int32(stride), 2
		return true
	}
	if run.Page+uint64(run.N)*uint64(int64(run.Stride)) != op.Page {
		return false
	}
	run.N++
	return true
}

// emit queues an operation of the event under way.
func (p *Replay) emit(op mm.Op) {
	if p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	op.CPU, op.When = p.event.CPU, p.event.When
	p.queue = append(p.queue, op)
}

func (p *Replay) note(s string) {
	if len(p.stats.Notes) < maxNotes && !slices.Contains(p.stats.Notes, s) {
		p.stats.Notes = append(p.stats.Notes, s)
	}
}

// handle does any event but a fault.
func (p *Replay) handle(e *Event) {
	switch e.Kind {
	case KindLost:
		p.stats.Lost += e.A
		return
	case KindNote:
		p.note(e.Name)
		return
	case KindNewTask:
		p.newTask(e)
		return
	case KindExec:
		p.exec(e)
		return
	case KindExit:
		p.exit(e)
		return
	case KindOtherFaults:
		p.otherFaults(e)
		return
	}
	t := p.task(e)
	if t == nil {
		t = p.found(e)
	}
	if t == nil || refused(e.Ret) && !partial(e) {
		return
	}
	if e.Kind == KindMapAt || e.Kind == KindBrkAt || e.Kind == KindResident {
		p.present(t, e)
		return
	}
	p.call(t, e)
}

// count counts n faults in v, whose region is 0 where nothing is known to be mapped.
func (p *Replay) count(v *span, n uint64) {
	p.stats.Faults += n
	switch {
	case v.region == 0:
		p.stats.Unknown += n
		return
	case v.class == classAnon:
		p.stats.AnonFaults += n
	default:
		p.stats.FileFaults += n
	}
	p.regions.faults[v.region] += n
}

// otherFaults passes on faults that only the kernel's counter saw.
func (p *Replay) otherFaults(e *Event) {
	p.stats.Faults += e.A
	p.stats.Unknown += e.A
	t := p.task(e)
	if t == nil {
		p.note("faults that only the kernel's counter saw belong to a process that is gone; they stand in no prediction")
		return
	}
	p.emit(mm.Op{Kind: mm.OpTouch, Access: mm.AccessUnknown, Space: t.space.id, Thread: mm.Thread(t.tid),
		N: mm.Pages(e.A), Stride: 1})
}

// Stats is what the replay has learnt so far.
type Stats struct {
	Faults       uint64 // told by an event, found by a page map, or only counted by the kernel
	KernelMode   uint64 // of them
	AnonFaults   uint64 // on private anonymous memory
	FileFaults   uint64
	Unknown      uint64 // at addresses in no known mapping, and those only counted
	Found        uint64 // pages that a page map found present; not among Faults when it was at attach
	Lost         uint64
	Spaces       int // address spaces seen
	UnknownPages map[mm.UnknownKind]uint64
	Notes        []string
}

// Stats returns what the replay has learnt so far. Faults before a process's
// first exec are not counted.
func (p *Replay) Stats() Stats {
	s := p.stats
	s.UnknownPages = make(map[mm.UnknownKind]uint64, len(p.stats.UnknownPages))
	for k, n := range p.stats.UnknownPages {
		s.UnknownPages[k] = n
	}
	s.Notes = slices.Clone(p.stats.Notes)
	return s
}

// RegionName says what a region is: "[heap]", "[stack]", a file, or "anonymous".
func (p *Replay) RegionName(r mm.Region) string { return p.regions.name(r) }

// RegionFaults is how many recorded faults fell on a region, in all spaces.
func (p *Replay) RegionFaults(r mm.Region) uint64 {
	if int(r) >= len(p.regions.faults) {
		return 0
	}
	return p.regions.faults[r]
}
