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
	heap    mm.Bytes
	pageout bool // may have pageout, and then not free
}

type genRegion struct {
	name string
	size mm.Bytes
}

// GeneratePolicy makes a policy. Quiet ones change nothing for programs that
// never asked for huge pages, so that others on the machine leave the counters
// alone.
func GeneratePolicy(seed uint64, quiet bool) string {
	x := rand.New(rand.NewPCG(seed, 0x706f6c))
	var w []string
	enabled := pick(x, "madvise", "madvise", "never", "always")
	modes := []string{"madvise", "inherit", "madvise", "always", "never"}
	if quiet {
		enabled = pick(x, "madvise", "madvise", "madvise", "never")
		modes = []string{"madvise", "inherit"}
	}
	w = append(w, "enabled="+enabled)
	sizes := programSizes()
	for _, o := range sizes.Orders() {
		chance := 4
		if o == sizes.PMD {
			chance = 1 + x.IntN(4)/3
		}
		if x.IntN(chance) == 0 {
			w = append(w, sizes.Name(o)+"="+pick(x, modes...))
		}
	}
	if x.IntN(3) == 0 {
		w = append(w, "use_zero_page=0")
	}
	if x.IntN(4) == 0 {
		w = append(w, "shrink_underused=0")
	}
	if x.IntN(3) == 0 {
		w = append(w, "defrag="+pick(x, "always", "defer", "defer+madvise", "never"))
	}
	if x.IntN(3) == 0 {
		w = append(w, fmt.Sprintf("max_ptes_none=%d", pick(x, x.IntN(512), 510, 400)))
	}
	return strings.Join(w, " ")
}

func pick[T any](x *rand.Rand, from ...T) T { return from[x.IntN(len(from))] }

// Generate makes the program numbered n of a seed: at most steps steps.
func Generate(seed, n uint64, policy string, steps int) *Program {
	g := &generator{
		x:     rand.New(rand.NewPCG(seed, n)),
		p:     &Program{Name: fmt.Sprintf("seed %d program %d", seed, n), Policy: policy},
		procs: []string{mainName},
	}
	g.pageout = g.x.IntN(3) == 0
	g.mapping()
	for len(g.p.Steps) < steps && len(g.procs) > 0 {
		g.step()
	}
	return g.p
}

func (g *generator) add(s Step) { g.p.Steps = append(g.p.Steps, s) }

// step adds one step, or two that belong together.
func (g *generator) step() {
	switch k := g.x.IntN(100); {
	case k < 7 && len(g.regions) < 8:
		g.mapping()
	case k < 40:
		g.touch()
	case k < 60:
		g.add(Step{Verb: VerbAdvise, Area: g.area(), Advice: g.advice()})
	case k < 62: // what only whole blocks get
		g.add(Step{Verb: VerbAdvise, Area: Area{Region: pick(g.x, g.regions...).name, Whole: true},
			Advice: pick(g.x, mm.AdviseCollapse, mm.AdviseCollapse, mm.AdviseDontNeed)})
	case k < 66:
		g.add(Step{Verb: VerbUnmap, Area: g.area()})
	case k < 71:
		prot := pick(g.x, mm.Read, mm.Read|mm.Write, mm.Read|mm.Write, 0)
		g.add(Step{Verb: VerbProtect, Area: g.area(), Access: prot})
	case k < 77:
		g.remap()
	case k < 80:
		s := Step{Verb: VerbLock, Area: g.area()}
		if g.x.IntN(3) == 0 {
			s.Flags = mm.LockOnFault
		}
		g.add(s)
	case k < 82:
		g.add(Step{Verb: VerbUnlock, Area: g.area()})
	case k < 86:
		g.brk()
	case k < 88:
		g.add(Step{Verb: VerbPrctl, Prctl: uint8(pick(g.x, 0, 0, 1, 2))})
	case k < 92 && len(g.procs) < 4:
		g.nproc++
		name := fmt.Sprintf("p%d", g.nproc)
		g.add(Step{Verb: VerbFork, Name: name})
		g.procs = append(g.procs[:len(g.procs)-1], name, g.procs[len(g.procs)-1])
	case k < 97 && len(g.procs) > 1:
		i := g.x.IntN(len(g.procs) - 1)
		last := len(g.procs) - 1
		g.procs[i], g.procs[last] = g.procs[last], g.procs[i]
		g.add(Step{Verb: VerbIn, Name: g.procs[last]})
	case k < 98:
		if g.x.IntN(2) == 0 {
			g.add(Step{Verb: VerbDropCaches})
		}
	case len(g.procs) > 1:
		g.exit()
	}
}

// exit ends the process that acts and says who goes on, because the rule about
// that is no business of the generator.
func (g *generator) exit() {
	g.procs = g.procs[:len(g.procs)-1]
	g.add(Step{Verb: VerbExit})
	g.add(Step{Verb: VerbIn, Name: g.procs[len(g.procs)-1]})
}

func (g *generator) pages(most int) mm.Bytes { return mm.Bytes(1+g.x.IntN(most)) * pageSize }

// length prefers round lengths and those next to them.
func (g *generator) length() mm.Bytes {
	n := pick[mm.Bytes](g.x, 16<<10, 64<<10, 128<<10, 512<<10, 1<<20, 2<<20, 2<<20, 4<<20, 4<<20, 4<<20, 6<<20)
	switch g.x.IntN(6) {
	case 0:
		n += g.pages(16)
	case 1:
		n -= g.pages(3)
	case 2:
		n = g.pages(300)
	}
	return n
}

// offset is where in 2 MB a mapping begins.
func (g *generator) offset() mm.Bytes {
	switch g.x.IntN(6) {
	case 0:
		return g.pages(16)
	case 1:
		return 64 << 10 * mm.Bytes(g.x.IntN(32))
	case 2:
		return mm.Bytes(g.x.IntN(512)) * pageSize
	}
	return 0
}

func (g *generator) name() string {
	g.nregion++
	return string(rune('a'+(g.nregion-1)%26)) + strings.Repeat("x", (g.nregion-1)/26)
}

func (g *generator) mapping() {
	s := Step{Verb: VerbMap, Access: mm.Read | mm.Write}
	s.Area = Area{Region: g.name(), To: g.length()}
	s.Place.At = g.offset()
	if len(g.regions) > 0 && g.x.IntN(3) == 0 { // beside, or over, another one
		r := pick(g.x, g.regions...)
		s.Place = Place{In: r.name, At: r.size}
		if g.x.IntN(3) == 0 {
			s.Place.At = g.within(r.size)
			s.Area.To = min(s.Area.To, g.pages(600))
		}
	}
	switch g.x.IntN(12) {
	case 0:
		s.Access = mm.Read
	case 1:
		s.Flags = pick[mm.OpFlags](g.x, mm.MapStack, mm.MapNoReserve)
	case 2:
		s.Flags = mm.MapPopulate
	case 3:
		s.Flags = mm.MapLocked
	}
	g.regions = append(g.regions, genRegion{s.Area.Region, s.Area.To})
	g.add(s)
	if g.x.IntN(4) > 0 {
		g.add(Step{Verb: VerbAdvise, Area: Area{Region: s.Area.Region, Whole: true}, Advice: mm.AdviseHugePage})
	}
}

func (g *generator) within(size mm.Bytes) mm.Bytes {
	n := int(size / pageSize)
	at := g.x.IntN(n)
	switch g.x.IntN(3) {
	case 0:
		at &^= 15
	case 1:
		at &^= 511
	}
	return mm.Bytes(at) * pageSize
}

// area picks a part of a region: all, a page, an aligned block, any range.
func (g *generator) area() Area {
	r := pick(g.x, g.regions...)
	if g.heap > 0 && g.x.IntN(8) == 0 {
		r = genRegion{heapName, g.heap}
	}
	switch g.x.IntN(5) {
	case 0:
		return Area{Region: r.name, Whole: true}
	case 1:
		from := g.within(r.size)
		return Area{Region: r.name, From: from, To: from + pageSize, Single: true}
	case 2:
		n := mm.Bytes(pageSize) << (1 + g.x.IntN(9))
		from := g.within(r.size) &^ (n - 1)
		return Area{Region: r.name, From: from, To: from + n}
	}
	from := g.within(r.size)
	to := from + g.pages(int((r.size-from)/pageSize))
	if g.x.IntN(10) == 0 {
		to += g.pages(8) // past the end
	}
	return Area{Region: r.name, From: from, To: to}
}

func (g *generator) touch() {
	s := Step{Verb: VerbTouch, Area: g.area(), Access: pick(g.x, mm.Read, mm.Write, mm.Write)}
	switch {
	case g.x.IntN(2) == 0 && !s.Area.Single:
		from := s.Area.From
		if s.Area.Whole {
			from = 0
		}
		s.Area = Area{Region: s.Area.Region, From: from, To: from + pageSize, Single: true}
	case s.Area.Single:
	case g.x.IntN(4) == 0:
		s.Step = -pageSize
	case g.x.IntN(3) == 0:
		s.Step = pageSize * int64(pick(g.x, 2, 3, 7, 16, 32, 33, 128, -2, -16, -31, -512))
	}
	if s.Access == mm.Write && g.x.IntN(4) == 0 {
		s.Access |= mm.ZeroData
	}
	g.add(s)
}

func (g *generator) advice() mm.Advice {
	a := pick(g.x, mm.AdviseHugePage, mm.AdviseHugePage, mm.AdviseNoHugePage, mm.AdviseDontNeed, mm.AdviseDontNeed,
		mm.AdviseDontNeed, mm.AdviseFree, mm.AdviseCollapse, mm.AdviseCollapse, mm.AdvisePopulateRead,
		mm.AdvisePopulateWrite, mm.AdviseCold, mm.AdviseGuardInstall, mm.AdviseGuardRemove, mm.AdviseDontFork,
		mm.AdviseDoFork, mm.AdviseWipeOnFork, mm.AdviseKeepOnFork, mm.AdviseDontNeedLocked, mm.AdvisePageOut,
		mm.AdviseDontDump, mm.AdviseDoDump)
	// What MADV_FREE has freed, reclaim takes; the model has no reclaim. A
	// program has the one or the other.
	if a == mm.AdvisePageOut && !g.pageout {
		a = mm.AdviseCold
	}
	if a == mm.AdviseFree && g.pageout {
		a = mm.AdviseCold
	}
	return a
}

func (g *generator) remap() {
	s := Step{Verb: VerbRemap, Area: g.area()}
	size := s.Area.To - s.Area.From
	if s.Area.Whole {
		for _, r := range g.regions {
			if r.name == s.Area.Region {
				size = r.size
			}
		}
		if s.Area.Region == heapName {
			size = g.heap
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
	}
	if len(g.regions) >= 10 {
		return
	}
	s.Name = g.name()
	s.Place.At = g.offset()
	if g.x.IntN(3) == 0 { // at the same place in 2 MB
		s.Place.At = s.Area.From % pmdSize
	}
	g.regions = append(g.regions, genRegion{s.Name, max(size, s.Size)})
	g.add(s)
}

func (g *generator) brk() {
	n := g.heap
	switch g.x.IntN(3) {
	case 0:
		n += g.length()
	case 1:
		n += g.pages(64)
	default:
		n = g.pages(int(n/pageSize) + 1)
	}
	g.heap = min(n, 16<<20)
	g.add(Step{Verb: VerbBrk, Size: g.heap})
}
