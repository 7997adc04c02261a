package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// action is a step with every name resolved: what both executors do.
type action struct {
	step    *Step
	proc    int   // which process acts, from 0 in the order of first appearance
	child   int   // Fork: the new process
	at      mm.VA // start of the area, or of the result of a map
	n       mm.Pages
	to      mm.VA // Remap: where the result lies, 0: in place
	ops     [2]mm.Op
	nops    int
	rel     int   // of floats: what at lies in, 0 if its address is known
	relTo   int   // the same for to
	floats  int   // of floats: what the action makes
	virtual mm.VA // stands for that

	none bool // changes nothing: in, expect
	drop bool // of no process: what the whole machine does, or the debugging interface
}

func (a *action) op() *mm.Op { return &a.ops[0] }

// Regions of the model's operations: everything is told relative to the
// anchor, a page that both sides map first. 3 and up are fresh ones that only
// give results a name.
const (
	anchorRegion mm.Region = 1
	heapRegion   mm.Region = 2
)

// space is the model's number of a process.
func spaceOf(proc int) mm.Space { return mm.Space(proc + 1) }

// compiler resolves names from the first step to the last.
type compiler struct {
	slots   map[string]int
	regions map[string]regionAt
	procs   []procState
	byName  map[string]int
	cur     int
	next    mm.Region
	nfloat  int
	out     []action
}

type regionAt struct {
	base mm.VA
	size mm.Bytes
	rel  int // of floats: how far it is from base, 0 for not at all
}

type procState struct {
	name   string
	parent int
	alive  bool
	heap   mm.Bytes // the length last asked for
}

// compile resolves a program; an error says what in it makes no sense.
func compile(p *Program) ([]action, error) {
	c, err := compileAll(p)
	if err != nil {
		return nil, err
	}
	return c.out, nil
}

// compileAll is compile with the names that it resolved.
func compileAll(p *Program) (*compiler, error) {
	c := &compiler{
		slots:   map[string]int{},
		regions: map[string]regionAt{heapName: {base: heapAt}},
		procs:   []procState{{name: mainName, parent: -1, alive: true}},
		byName:  map[string]int{mainName: 0},
		next:    heapRegion + 1,
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if err := c.step(s); err != nil {
			return nil, fmt.Errorf("step %d: %s: %w", i+1, s, err)
		}
	}
	return c, nil
}

// check says what is wrong with a program that its lines do not show.
func (p *Program) check() error {
	_, err := compile(p)
	return err
}

func (c *compiler) step(s *Step) error {
	if c.cur < 0 && s.Verb != VerbResult && s.Verb != VerbExpectPool {
		return fmt.Errorf("no process is left")
	}
	a := action{step: s, proc: c.cur}
	a.ops[0].Space = spaceOf(c.cur)
	a.nops = 1
	var err error
	switch s.Verb {
	case VerbFork:
		err = c.fork(&a)
	case VerbIn:
		a.none = true
		i, ok := c.byName[s.Name]
		if !ok || !c.procs[i].alive {
			err = fmt.Errorf("no process %s", s.Name)
		}
		c.cur, a.proc = i, i
	case VerbExit:
		c.exit(&a)
	case VerbResult, VerbExpectPool:
		a.none = true
	case VerbDropCaches, VerbKhugepaged, VerbPool, VerbOvercommit, VerbDemote:
		a.drop = true
	case VerbExec:
		a.drop, c.procs[c.cur].heap = true, 0
		a.ops[0].Kind = mm.OpExec
	case VerbLockAll, VerbUnlockAll:
		a.ops[0].Kind, a.ops[0].Arg = mm.OpLockAll, uint64(s.How)
	case VerbMap:
		err = c.mapping(&a)
	case VerbBrk:
		err = c.brk(&a)
	case VerbPrctl:
		a.ops[0].Kind, a.ops[0].Arg = mm.OpTHPDisable, uint64(s.Prctl)
	default:
		err = c.ranged(&a)
	}
	c.out = append(c.out, a)
	return err
}

// brk sets the heap's length, or changes what the process last asked for.
func (c *compiler) brk(a *action) error {
	p, n := &c.procs[a.proc], a.step.Size
	switch a.step.Change {
	case 1:
		n = p.heap + n
	case -1:
		n = p.heap - min(n, p.heap)
	}
	if n > maxLen {
		return fmt.Errorf("a heap of more than %s", sizeText(maxLen))
	}
	p.heap = n
	a.n, a.at = mm.Pages(n/pageSize), heapAt
	a.ops[0] = mm.Op{Kind: mm.OpBrk, Space: spaceOf(a.proc), Region: heapRegion, N: a.n}
	c.regions[heapName] = regionAt{base: heapAt, size: n}
	return nil
}

func (c *compiler) fork(a *action) error {
	name := a.step.Name
	if _, ok := c.byName[name]; ok {
		return fmt.Errorf("a process %s was there before", name)
	}
	alive := 0
	for i := range c.procs {
		if c.procs[i].alive {
			alive++
		}
	}
	if alive >= maxProcs {
		return fmt.Errorf("more than %d processes at one time", maxProcs)
	}
	a.child = len(c.procs)
	c.byName[name] = a.child
	c.procs = append(c.procs, procState{name: name, parent: c.cur, alive: true, heap: c.procs[c.cur].heap})
	a.ops[0].Kind, a.ops[0].Arg = mm.OpFork, uint64(spaceOf(a.child))
	return nil
}

// maxProcs is how many processes a program may have at one time.
const maxProcs = 8

// exit goes back to the nearest ancestor that lives, else to the first process
// that does.
func (c *compiler) exit(a *action) {
	a.ops[0].Kind = mm.OpExit
	c.procs[c.cur].alive = false
	for i := c.procs[c.cur].parent; i >= 0; i = c.procs[i].parent {
		if c.procs[i].alive {
			c.cur = i
			return
		}
	}
	for i := range c.procs {
		if c.procs[i].alive {
			c.cur = i
			return
		}
	}
	c.cur = -1
}

// place is the address that a Place means for the region name.
func (c *compiler) place(name string, p Place) (mm.VA, error) {
	if p.In != "" {
		r, ok := c.regions[p.In]
		if !ok {
			return 0, fmt.Errorf("no region %s", p.In)
		}
		return inArena(r.base + mm.VA(p.At))
	}
	i, ok := c.slots[name]
	if !ok {
		if i = len(c.slots); i >= maxSlots {
			return 0, fmt.Errorf("more than %d regions", maxSlots)
		}
		c.slots[name] = i
	}
	return arenaAt + mm.VA(slotSize)*mm.VA(i) + mm.VA(p.At), nil
}

// inArena refuses addresses that have come too close to an end of the arena.
func inArena(at mm.VA) (mm.VA, error) {
	inHeap := at >= heapAt && at < heapAt+mm.VA(maxLen)
	if !inHeap && (at < arenaAt || at > arenaEnd-mm.VA(2*maxLen)) {
		return 0, fmt.Errorf("%#x: too far from the regions' own places", at)
	}
	return at, nil
}

// fromAnchor is an address as operations tell it.
func fromAnchor(at mm.VA) uint64 { return uint64(at-anchorAt) / pageSize }

func (c *compiler) mapping(a *action) (err error) {
	s := a.step
	name := s.Area.Region
	if name == heapName {
		return fmt.Errorf("the heap grows by brk")
	}
	if a.at, err = c.place(name, s.Place); err != nil {
		return err
	}
	a.rel = c.relOf(s.Place)
	c.regions[name] = regionAt{a.at, s.Area.To, a.rel}
	a.n = mm.Pages(s.Area.To / pageSize)
	flags := s.Flags | mm.MapFixed
	if s.Flags&mm.MapFixed == 0 {
		flags |= mm.MapReplaces
	}
	if name == stackName {
		// The region is what the stack may grow to; it begins as the end of that.
		if s.Area.To > stackSpan {
			return fmt.Errorf("a stack of more than %s", sizeText(stackSpan))
		}
		flags |= mm.MapGrowsDown
		c.regions[name] = regionAt{a.at, stackSpan, a.rel}
		a.at += mm.VA(stackSpan - s.Area.To)
	}
	a.ops[0] = mm.Op{
		Kind: mm.OpMap, Space: spaceOf(a.proc), Region: c.fresh(), N: a.n, Access: s.Access,
		Flags: flags, Aux: uint64(anchorRegion), Page: fromAnchor(a.at),
	}
	if s.Free {
		if name == stackName || s.Flags&mm.MapFixed != 0 {
			return fmt.Errorf("a stack, or what may not replace, has its own place")
		}
		op := a.op()
		op.Flags, op.Aux, op.Page = s.Flags, 0, 0
		if s.Place != (Place{}) {
			op.Flags |= mm.MapHint
			op.Arg = uint64(a.at)
		}
		return c.float(a, name, s.Area.To)
	}
	return nil
}

// float makes the region that a names one that the kernel places.
func (c *compiler) float(a *action, name string, size mm.Bytes) (err error) {
	c.nfloat++
	a.floats = c.nfloat
	if a.virtual, err = c.place(name, Place{}); err != nil {
		return err
	}
	c.regions[name] = regionAt{a.virtual, size, a.floats}
	return nil
}

// relOf is what a place lies in, of floats.
func (c *compiler) relOf(p Place) int {
	if p.In == "" {
		return 0
	}
	return c.regions[p.In].rel
}

func (c *compiler) fresh() mm.Region {
	c.next++
	return c.next - 1
}

// area resolves an Area to an address and a length.
func (c *compiler) area(a *action) error {
	r, ok := c.regions[a.step.Area.Region]
	if !ok {
		return fmt.Errorf("no region %s", a.step.Area.Region)
	}
	from, to := a.step.Area.From, a.step.Area.To
	if a.step.Area.Whole {
		from, to = 0, r.size
	}
	if to <= from {
		return fmt.Errorf("%s: is empty", a.step.Area.Region)
	}
	at, err := inArena(r.base + mm.VA(from))
	a.at, a.n, a.rel = at, mm.Pages((to-from)/pageSize), r.rel
	return err
}

var rangeKinds = map[Verb]mm.OpKind{
	VerbTouch: mm.OpTouch, VerbAdvise: mm.OpAdvise, VerbUnmap: mm.OpUnmap, VerbProtect: mm.OpProtect,
	VerbRemap: mm.OpRemap, VerbLock: mm.OpLock, VerbUnlock: mm.OpUnlock, VerbExpect: mm.OpNone,
	VerbSplit: mm.OpNone,
}

// ranged resolves the steps that are about an area.
func (c *compiler) ranged(a *action) error {
	if err := c.area(a); err != nil {
		return err
	}
	s := a.step
	a.ops[0] = mm.Op{
		Kind: rangeKinds[s.Verb], Space: spaceOf(a.proc), Region: anchorRegion, Page: fromAnchor(a.at), N: a.n,
		Access: s.Access, Flags: s.Flags, Arg: uint64(s.Advice),
	}
	if s.Verb.alone() {
		a.drop = true
		a.op().Kind, a.op().Arg = aloneKinds[s.Verb], s.aloneArg()
	}
	switch s.Verb {
	case VerbExpect:
		a.none = true
	case VerbSplit:
		a.drop = true
	case VerbTouch:
		c.touch(a)
	case VerbRemap:
		return c.remap(a)
	}
	return nil
}

// touch turns an area and a step into a run of touches. A step below zero
// begins at the last page.
func (c *compiler) touch(a *action) {
	op, step := a.op(), a.step.Step/pageSize
	if step == 0 {
		step = 1
	}
	op.Stride = int32(step)
	if a.step.Second {
		op.Thread = 1
	}
	if step < 0 {
		op.Page += uint64(a.n) - 1
		a.at += mm.VA(a.n-1) * pageSize
		step = -step
	}
	op.N = (a.n + mm.Pages(step) - 1) / mm.Pages(step)
}

func (c *compiler) remap(a *action) (err error) {
	s, op := a.step, a.op()
	size := s.Size
	if size == 0 {
		size = mm.Bytes(a.n) * pageSize
	}
	op.Arg, op.Aux = uint64(size/pageSize), uint64(anchorRegion)
	if s.Free {
		if s.Name == "" || s.Name == heapName || s.Name == stackName || s.Place != (Place{}) {
			return fmt.Errorf("anywhere needs to=, the name of what comes of it, and no at=")
		}
		op.Flags |= mm.RemapMayMove
		op.Aux = uint64(c.fresh())
		return c.float(a, s.Name, size)
	}
	if s.Name == "" {
		if s.Place != (Place{}) || s.Flags != 0 {
			return fmt.Errorf("at= and keep need to=")
		}
		if s.Area.Whole {
			c.regions[s.Area.Region] = regionAt{a.at, size, a.rel}
		}
		return nil
	}
	if s.Name == heapName {
		return fmt.Errorf("the heap grows by brk")
	}
	if a.to, err = c.place(s.Name, s.Place); err != nil {
		return err
	}
	a.relTo = c.relOf(s.Place)
	c.regions[s.Name] = regionAt{a.to, size, a.relTo}
	op.Flags |= mm.RemapFixed | mm.RemapMayMove
	op.Aux = uint64(c.fresh())
	a.ops[1] = mm.Op{Kind: mm.OpNote, Space: op.Space, Region: anchorRegion, Page: fromAnchor(a.to)}
	a.nops = 2
	return nil
}
