package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Model is the model as an executor.
type Model struct {
	m     *mm.Machine
	c     mm.Current
	procs []bool // alive
	check bool
	pools bool     // the program has to do with hugetlb
	tick  mm.Nanos // from one operation to the next, 0: time stands still
	now   mm.Nanos

	floats floats
	room   action

	// Of machines that only the model is.
	path     int
	twin     *Model // goes the classic way
	twinSeen Seen
	order    []uint32
	nnodes   int
	pins     []pinned
	present  int // pages mapped after the last step
}

// NewModel makes a machine with one process on it, under the program's policy.
// With check every step is held to mm.Machine.Check.
func NewModel(p *Program, rules mm.Rules, check bool) (*Model, error) {
	policy, err := policyOf(p.Policy)
	if err != nil {
		return nil, err
	}
	machine, err := parseMachine(p.Machine, rules)
	if err != nil {
		return nil, err
	}
	if check {
		if err := roundTrips(policy, machine.rules); err != nil {
			return nil, err
		}
	}
	cfg := machine.config(policy)
	m, err := mm.New(cfg)
	if err != nil {
		return nil, err
	}
	x := &Model{m: m, procs: []bool{true}, check: check, tick: machine.tick, pools: p.usesPool(),
		path: machine.path, nnodes: len(cfg.Nodes)}
	x.c.WantSteps = x.path == pathSteps
	if comparablePath(x.path, &policy) {
		classic := *p
		classic.Machine += " path=classic"
		if x.twin, err = NewModel(&classic, rules, false); err != nil {
			return nil, err
		}
	}
	return x, x.exec(spaceOf(0))
}

// firstOps are how a process begins: nothing but the start of a heap and a page
// below everything.
func firstOps(sp mm.Space) []mm.Op {
	return []mm.Op{
		{Kind: mm.OpExec, Space: sp},
		{Kind: mm.OpMap, Space: sp, Region: heapRegion, Flags: mm.MapAtExec, Aux: uint64(mm.AreaHeap),
			Arg: uint64(heapAt)},
		{Kind: mm.OpMap, Space: sp, Region: anchorRegion, N: 1, Flags: mm.MapFixed, Arg: uint64(anchorAt)},
	}
}

// Close implements Executor.
func (x *Model) Close() error { return nil }

// Do implements Executor.
func (x *Model) Do(a *action, s *Seen) error {
	told := a
	a = x.floats.here(a, &x.room)
	if a.drop {
		if err := x.machine(a, s); err != nil {
			return err
		}
	} else if a.op().Kind == mm.OpTouch && x.tick == 0 {
		x.touch(a, s)
	} else if err := x.call(a, s); err != nil {
		return err
	}
	switch a.op().Kind {
	case mm.OpFork:
		x.procs = append(x.procs, true)
	case mm.OpExit:
		x.procs[a.proc] = false
	}
	if x.check {
		if err := x.m.Check(); err != nil {
			return fmt.Errorf("the model contradicts itself: %w", err)
		}
	}
	for i, alive := range x.procs {
		if p := s.process(); alive {
			x.proc(spaceOf(i), p)
		}
	}
	s.Pool = x.pool()
	s.Counters = x.counters(s.Counters)
	if x.check {
		if err := x.sound(a, s); err != nil {
			return err
		}
	}
	return x.agrees(told, s)
}

// sound holds what the model shows to what must be true of every step.
func (x *Model) sound(a *action, s *Seen) error {
	before := x.present
	x.present = 0
	for i := range s.Procs {
		x.present += len(s.Procs[i].Pages)
	}
	if a.step.keeps() && x.present != before {
		return fmt.Errorf("%d pages are mapped, before it were %d", x.present, before)
	}
	if err := x.cleared(); err != nil {
		return err
	}
	if v := a.step.Verb; v == VerbExit || v == VerbDropCaches {
		return x.settled()
	}
	return nil
}

// machine does what no system call of the process does.
func (x *Model) machine(a *action, s *Seen) error {
	switch a.step.Verb {
	case VerbDropCaches:
		x.m.Shrink(&x.c)
	case VerbKhugepaged:
		x.m.Khugepaged()
	case VerbSplit:
		x.m.SplitPages(&x.c, spaceOf(a.proc), a.at, a.n)
	case VerbPool, VerbOvercommit:
		x.setPool(a.step)
	default:
		return x.alone(a, s)
	}
	return nil
}

func (x *Model) call(a *action, s *Seen) error {
	var res [2]mm.Result
	before := x.m.Usage.SoftFaults
	x.now += x.tick
	a.ops[0].When = x.now
	err := x.written(a.op(), func() error {
		_, err := x.m.Exec(a.ops[:a.nops], res[:a.nops])
		return err
	})
	if err != nil {
		return err
	}
	s.Errno = res[0].Errno
	if k := a.op().Kind; s.Errno == mm.OK && (k == mm.OpMap || k == mm.OpRemap) {
		s.Addr = res[0].Addr
		x.floats.landed(a, s.Addr)
	}
	s.Faults = x.m.Usage.SoftFaults - before
	return nil
}

// touch does the run one by one, because only Touch says how each ended.
func (x *Model) touch(a *action, s *Seen) {
	op, at := a.op(), a.at
	for n := op.N; n > 0; n-- {
		switch x.access(op.Space, at, op.Access) {
		case mm.Hit:
		case mm.Done:
			s.Faults++
		case mm.Bus:
			s.Bus++
			s.Refused++
		default:
			s.Refused++
		}
		at += mm.VA(int64(op.Stride) * pageSize)
	}
}

func (x *Model) proc(sp mm.Space, p *ProcSeen) {
	p.VMAs = x.m.VMAs(sp, p.VMAs)
	for _, v := range p.VMAs {
		for at := v.Start; at < v.End; at += pageSize {
			in := x.m.PageInfo(sp, at)
			if in.Present || in.Guard {
				p.Pages = append(p.Pages, PageSeen{
					At: at, PFN: in.PFN, Index: in.Index, Order: in.Order, PMD: in.PMD, Zero: in.Zero,
					Maps: in.Maps, Guard: in.Guard,
				})
			}
		}
	}
}

func (x *Model) counters(all []int64) []int64 {
	c := &x.m.Counters
	for _, n := range vmCounters {
		all = append(all, int64(c.Get(n)))
	}
	for i := range sizeFiles {
		f := &sizeFiles[i]
		all = append(all, int64(f.get(&c.Size[f.order])))
	}
	return all
}
