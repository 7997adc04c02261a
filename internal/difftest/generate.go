package difftest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// generator makes one program. It keeps a rough idea of what is mapped, so that
// most steps have something to do; what they do then is for the two sides to
// say.
type generator struct {
	x       *rand.Rand
	p       *Program
	regions []genRegion
	procs   []string // alive; the last one acts
	nproc   int
	nregion int
	heap    mm.Bytes            // what the region "heap" is long
	heaps   map[string]mm.Bytes // what each process last asked for
	stack   bool
	pageout bool // may have pageout, and then not free
	split   bool // may have split
	alone   bool // may have what the model alone does
	huge    genHuge
	shared  genShared
}

type genRegion struct {
	name string
	size mm.Bytes
}

// Most regions, and most processes at one time, that a program has.
const (
	genRegions = 9
	genProcs   = 6
)

// Generate makes the program numbered n of a seed: at most steps steps. Where
// nothing can force a split on the kernel, split is false and other steps stand
// in its place.
func Generate(seed, n uint64, policy string, steps int, split bool) *Program {
	return generate(seed, n, policy, steps, split, false)
}

// generate is Generate, with steps that only the model does if alone.
func generate(seed, n uint64, policy string, steps int, split, alone bool) *Program {
	g := &generator{
		x:     rand.New(rand.NewPCG(seed, n)),
		p:     &Program{Name: fmt.Sprintf("seed %d program %d", seed, n), Policy: policy},
		procs: []string{mainName},
		heaps: map[string]mm.Bytes{},
		split: split, alone: alone,
	}
	g.pageout = g.x.IntN(3) == 0
	g.huge.on = hasPool(policy)
	g.shared = sharedOf(policy)
	g.pageout = g.pageout && !g.shared.on
	g.mapping()
	g.corner(n)
	for len(g.p.Steps) < steps && len(g.procs) > 0 {
		g.step()
	}
	g.p.Steps = g.p.Steps[:min(steps, len(g.p.Steps))]
	return g.p
}

func (g *generator) add(s Step) { g.p.Steps = append(g.p.Steps, s) }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.x.IntN(n) == 0 }

// step adds one step, or a few that belong together. A share of the steps is
// hardly anything where what it needs is not there.
func (g *generator) step() {
	if g.huge.on && !g.chance(3) {
		g.hugeStep()
		return
	}
	if g.alone && g.chance(5) {
		g.aloneStep()
		return
	}
	k := g.x.IntN(genShares)
	for i := range genSteps {
		if k -= genSteps[i].share; k < 0 {
			genSteps[i].make(g)
			return
		}
	}
}

// genSteps are the kinds of steps, each with its share.
var genSteps = []struct {
	share int
	make  func(*generator)
}{
	{7, func(g *generator) {
		if len(g.regions) < genRegions-1 {
			g.mapping()
		}
	}},
	{33, (*generator).touch},
	{19, func(g *generator) { g.add(Step{Verb: VerbAdvise, Area: g.area(), Advice: g.advice()}) }},
	{3, func(g *generator) { // what only whole blocks get
		a := pick(g.x, mm.AdviseCollapse, mm.AdviseCollapse, mm.AdviseDontNeed, mm.AdviseHugePage)
		if !g.shared.may(a) {
			a = mm.AdviseDontNeed
		}
		g.add(Step{Verb: VerbAdvise, Area: Area{Region: pick(g.x, g.regions...).name, Whole: true}, Advice: a})
	}},
	{4, func(g *generator) { g.add(Step{Verb: VerbUnmap, Area: g.area()}) }},
	{5, func(g *generator) {
		prot := pick(g.x, mm.Read, mm.Read|mm.Write, mm.Read|mm.Write, mm.Write, 0)
		g.add(Step{Verb: VerbProtect, Area: g.area(), Access: prot})
	}},
	{6, (*generator).remap},
	{3, func(g *generator) {
		s := Step{Verb: VerbLock, Area: g.area()}
		if g.chance(3) {
			s.Flags = mm.LockOnFault
		}
		g.add(s)
	}},
	{2, func(g *generator) { g.add(Step{Verb: VerbUnlock, Area: g.area()}) }},
	{1, (*generator).lockAll},
	{4, (*generator).brk},
	{2, func(g *generator) { g.add(Step{Verb: VerbPrctl, Prctl: uint8(pick(g.x, 0, 0, 1, 2))}) }},
	{5, (*generator).fork},
	{5, (*generator).in},
	{2, (*generator).exit},
	{2, (*generator).shrink},
	{1, (*generator).lonely},
	{2, (*generator).scan},
	{1, (*generator).splits},
	{1, (*generator).grow},
}

// genShares is the sum of all shares.
var genShares = func() (n int) {
	for i := range genSteps {
		n += genSteps[i].share
	}
	return n
}()

// fork makes a child, and often writes on one side or on both.
func (g *generator) fork() {
	if len(g.procs) >= genProcs {
		return
	}
	g.nproc++
	name := fmt.Sprintf("p%d", g.nproc)
	g.add(Step{Verb: VerbFork, Name: name})
	last := len(g.procs) - 1
	g.heaps[name] = g.heaps[g.procs[last]]
	g.procs = append(g.procs[:last], name, g.procs[last])
	if g.chance(2) {
		g.touch()
	}
	if g.chance(2) {
		g.becomes(last)
		g.touch()
	}
}

// becomes lets the i-th process act.
func (g *generator) becomes(i int) {
	last := len(g.procs) - 1
	g.procs[i], g.procs[last] = g.procs[last], g.procs[i]
	g.add(Step{Verb: VerbIn, Name: g.procs[last]})
}

func (g *generator) in() {
	if len(g.procs) > 1 {
		g.becomes(g.x.IntN(len(g.procs) - 1))
	}
}

// exit ends the process that acts and says who goes on, because the rule about
// that is no business of the generator.
func (g *generator) exit() {
	if len(g.procs) < 2 {
		return
	}
	g.procs = g.procs[:len(g.procs)-1]
	g.add(Step{Verb: VerbExit})
	g.add(Step{Verb: VerbIn, Name: g.procs[len(g.procs)-1]})
	if len(g.procs) > 1 && g.chance(2) {
		g.in()
	}
}

// lockAll locks all that is mapped or will be. What future maps get is taken
// back soon, or little else would be seen.
func (g *generator) lockAll() {
	if g.chance(2) {
		g.add(Step{Verb: VerbUnlockAll})
		return
	}
	g.add(Step{Verb: VerbLockAll, How: pick[uint8](g.x, 1, 1, 2, 3, 4, 5, 6, 7)})
	if g.chance(2) {
		g.mapping()
		g.add(Step{Verb: VerbUnlockAll})
	}
}

// splits forces a split, or what comes near it: memory that is not used splits
// folios that lie in it by a part.
func (g *generator) splits() {
	s := Step{Verb: VerbSplit, Area: g.area()}
	if !g.split {
		s.Verb, s.Advice = VerbAdvise, mm.AdviseCold
		if g.pageout {
			s.Advice = mm.AdvisePageOut
		}
	}
	g.add(s)
}

// grow makes a stack, or touches below the one that is there.
func (g *generator) grow() {
	if !g.stack {
		g.stack = true
		s := Step{Verb: VerbMap, Area: Area{Region: stackName, To: g.pages(80)}, Access: mm.Read | mm.Write}
		s.Place.At = g.offset()
		g.add(s)
		if g.chance(2) {
			g.add(Step{Verb: VerbAdvise, Area: g.stackArea(), Advice: mm.AdviseHugePage})
		}
	}
	a := g.stackArea()
	a.Single, a.To = true, a.From+pageSize
	g.add(Step{Verb: VerbTouch, Area: a, Access: pick(g.x, mm.Read, mm.Write)})
}

// stackArea is near the top of the stack's span.
func (g *generator) stackArea() Area {
	top := mm.Bytes(stackSpan)
	from := top - g.pages(pick(g.x, 16, 100, 700))
	if g.chance(20) {
		from = g.pages(8) - pageSize
	}
	return Area{Region: stackName, From: from, To: min(top, from+g.pages(64))}
}

func (g *generator) name() string {
	g.nregion++
	return string(rune('a'+(g.nregion-1)%26)) + strings.Repeat("x", (g.nregion-1)/26)
}

func (g *generator) mapping() {
	s := Step{Verb: VerbMap, Access: mm.Read | mm.Write}
	s.Area = Area{Region: g.name(), To: g.length()}
	s.Place.At = g.offset()
	if len(g.regions) > 0 && g.chance(3) { // beside, or over, another one
		r := pick(g.x, g.regions...)
		s.Place = Place{In: r.name, At: r.size}
		if g.chance(3) {
			s.Place.At = g.within(r.size)
			s.Area.To = min(s.Area.To, g.pages(600))
		}
		if g.chance(6) {
			s.Flags |= mm.MapFixed // refuse to replace
		}
	}
	if g.chance(5) && s.Flags == 0 { // the kernel chooses, perhaps with a hint
		s.Free = true
		if g.chance(2) {
			s.Place = Place{}
		}
	}
	switch g.x.IntN(12) {
	case 0:
		s.Access = pick(g.x, mm.Read, mm.Read, mm.Write, 0)
	case 1:
		s.Flags |= pick[mm.OpFlags](g.x, mm.MapStack, mm.MapNoReserve)
	case 2:
		s.Flags |= mm.MapPopulate
	case 3:
		s.Flags |= mm.MapLocked
	}
	if g.shared.on && !g.chance(3) {
		s.Flags |= mm.MapShmem
	}
	if len(g.regions) < genRegions {
		g.regions = append(g.regions, genRegion{s.Area.Region, s.Area.To})
	}
	g.add(s)
	if !g.chance(4) {
		g.add(Step{Verb: VerbAdvise, Area: Area{Region: s.Area.Region, Whole: true}, Advice: mm.AdviseHugePage})
	}
}

func (g *generator) advice() mm.Advice {
	a := pick(g.x, mm.AdviseHugePage, mm.AdviseHugePage, mm.AdviseNoHugePage, mm.AdviseDontNeed, mm.AdviseDontNeed,
		mm.AdviseDontNeed, mm.AdviseFree, mm.AdviseCollapse, mm.AdviseCollapse, mm.AdvisePopulateRead,
		mm.AdvisePopulateWrite, mm.AdviseCold, mm.AdviseGuardInstall, mm.AdviseGuardRemove, mm.AdviseDontFork,
		mm.AdviseDoFork, mm.AdviseWipeOnFork, mm.AdviseKeepOnFork, mm.AdviseDontNeedLocked, mm.AdvisePageOut,
		mm.AdviseDontDump, mm.AdviseDoDump)
	// What MADV_FREE has freed, reclaim takes; the model has no reclaim. A
	// program has the one or the other.
	if a == mm.AdvisePageOut && !g.pageout || !g.shared.may(a) {
		a = mm.AdviseCold
	}
	if a == mm.AdviseFree && g.pageout {
		a = mm.AdviseCold
	}
	return a
}

func (g *generator) touch() {
	s := Step{Verb: VerbTouch, Area: g.area(), Access: pick(g.x, mm.Read, mm.Write, mm.Write)}
	switch {
	case g.chance(2) && !s.Area.Single:
		from := s.Area.From
		if s.Area.Whole {
			from = 0
		}
		s.Area = Area{Region: s.Area.Region, From: from, To: from + pageSize, Single: true}
	case s.Area.Single:
	case g.chance(4):
		s.Step = -pageSize
	case g.chance(3):
		s.Step = pageSize * int64(pick(g.x, 2, 3, 7, 16, 32, 33, 128, -2, -16, -31, -512))
	}
	if s.Access == mm.Write && g.chance(4) {
		s.Access |= mm.ZeroData
	}
	s.Second = g.chance(6)
	g.add(s)
}

func (g *generator) remap() {
	s := Step{Verb: VerbRemap, Area: g.area()}
	size := s.Area.To - s.Area.From
	if s.Area.Whole {
		size = g.heap
		for _, r := range g.regions {
			if r.name == s.Area.Region {
				size = r.size
			}
		}
	}
	switch g.x.IntN(4) {
	case 0: // in place
		s.Size = max(pageSize, (size+g.pages(64)-g.pages(64))&^(pageSize-1))
		if s.Size > maxLen {
			s.Size = pageSize
		}
		g.add(s)
		return
	case 1:
		s.Size = size + g.pages(600)
	case 2:
		s.Flags = mm.RemapDontUnmap
		if g.chance(4) {
			s.Size = size + g.pages(9) // which is refused
		}
	}
	if len(g.regions) >= genRegions {
		return
	}
	s.Name = g.name()
	if g.chance(4) {
		s.Free = true
		g.regions = append(g.regions, genRegion{s.Name, max(size, s.Size)})
		g.add(s)
		return
	}
	s.Place.At = g.offset()
	if g.chance(3) { // at the same place in 2 MB
		s.Place.At = s.Area.From % pmdSize
	}
	g.regions = append(g.regions, genRegion{s.Name, max(size, s.Size)})
	g.add(s)
}

// brk sets or changes the heap's length.
func (g *generator) brk() {
	const most = 16 << 20
	s := Step{Verb: VerbBrk, Size: g.pages(64)}
	switch g.x.IntN(4) {
	case 0:
		s.Change, s.Size = 1, g.length()
	case 1:
		s.Change = 1
	case 2:
		s.Change = -1
	default:
		s.Size = g.pages(int(g.heap/pageSize) + 1)
	}
	me := g.procs[len(g.procs)-1]
	n := g.heaps[me]
	switch s.Change {
	case 0:
		n = s.Size
	case 1:
		n += s.Size
	default:
		n -= min(s.Size, n)
	}
	if n > most || n == 0 {
		s.Change, s.Size, n = 0, 64<<10, 64<<10
	}
	g.heap, g.heaps[me] = n, n
	g.add(s)
}
