package difftest

import (
	"math/rand/v2"

	"github.com/hugelab/hugelab/mm"
)

// This file makes the steps that only the model does.

// aloneStep adds one of them, or a few.
func (g *generator) aloneStep() {
	switch g.x.IntN(12) {
	case 0:
		g.add(Step{Verb: VerbMigrate, Area: g.area(), Node: g.node(), Flags: pick(g.x, 0, withAll)})
	case 1:
		g.add(Step{Verb: VerbMigrate, Area: g.area(), Node: g.node(), Flags: wholeProcess | pick(g.x, 0, withAll)})
	case 2:
		g.add(Step{Verb: VerbBind, Area: g.area(), Node: g.node(), Flags: pick(g.x, 0, withAll)})
	case 3:
		g.add(Step{Verb: VerbOffline, Area: g.area(), Flags: pick(g.x, 0, withAll, withAll)})
	case 4, 5:
		g.pinned()
	case 6:
		g.add(Step{Verb: VerbUserfault, Area: g.area(), How: uint8(g.x.IntN(2))})
	case 7:
		g.resident()
	case 8:
		g.fileMap()
	case 9:
		g.add(Step{Verb: VerbPopulate, Area: g.area()})
	case 10:
		g.add(Step{Verb: VerbAdvise, Area: g.area(), Advice: pick(g.x, aloneAdvice...).advice})
	default:
		g.rare()
	}
}

func (g *generator) node() mm.NodeID { return mm.NodeID(g.x.IntN(2)) }

// rare is what a program has at most once.
func (g *generator) rare() {
	switch {
	case g.huge.on:
		g.add(Step{Verb: VerbDemote, Pool: poolClaim{1}})
	case g.chance(4):
		g.add(Step{Verb: VerbExec})
		me := g.procs[len(g.procs)-1]
		g.heaps[me], g.heap = 0, 0
		g.regions = g.regions[:0]
		g.stack = false
		g.mapping()
	}
}

// pinned pins pages of a region, does something to them, and lets them go.
func (g *generator) pinned() {
	a := g.block(pick(g.x, 3, 4, 6, 9, 9, 10))
	if g.chance(2) {
		g.add(Step{Verb: VerbTouch, Area: a, Access: mm.Write})
	}
	g.add(Step{Verb: VerbPin, Area: a, Access: pick(g.x, mm.Read, mm.Write)})
	switch g.x.IntN(7) {
	case 0:
		g.add(Step{Verb: VerbSplit, Area: a})
	case 1:
		g.add(Step{Verb: VerbMigrate, Area: a, Node: g.node(), Flags: withAll})
	case 2:
		g.fork()
	case 3:
		part := a
		part.From += pageSize
		if part.To > part.From {
			g.add(Step{Verb: VerbAdvise, Area: part, Advice: pick(g.x, mm.AdviseDontNeed, mm.AdviseCold)})
		}
		g.add(Step{Verb: VerbDropCaches})
	case 4:
		g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseCollapse})
	case 5:
		g.add(Step{Verb: VerbUnmap, Area: a})
	}
	if !g.chance(3) {
		g.add(Step{Verb: VerbUnpin, Area: a})
	}
}

// resident makes pages that were there when a recording began.
func (g *generator) resident() {
	orders := programSizes().Orders()
	s := Step{Verb: VerbResident, Area: g.area(), Expect: Expected{Order: pick(g.x, append(orders, 0)...)}}
	if g.chance(3) {
		s.Flags = withAll
	}
	g.add(s)
}

// fileMap maps what is no anonymous memory, and uses it.
func (g *generator) fileMap() {
	if len(g.regions) >= genRegions-1 {
		return
	}
	s := Step{Verb: VerbMap, Access: mm.Read | mm.Write, Area: Area{Region: g.name(), To: g.length()}}
	s.Flags = pick(g.x, mm.MapFile, mm.MapFile, mm.MapFile|mm.MapShared, mm.MapDroppable)
	g.regions = append(g.regions, genRegion{s.Area.Region, s.Area.To})
	g.add(s)
	if s.Area.To <= large {
		a := Area{Region: s.Area.Region, Whole: true}
		g.add(Step{Verb: VerbTouch, Area: a, Access: pick(g.x, mm.Read, mm.Write), Step: 16 * pageSize})
	}
}

// varyPolicy adds to a policy what only the model has memory for.
func varyPolicy(seed uint64, policy string) string {
	x := rand.New(rand.NewPCG(seed, 0x766172))
	if hasPool(policy) && x.IntN(2) == 0 {
		policy += " pool=1g:1"
	}
	if x.IntN(8) == 0 {
		policy += " pages_to_scan=" + pick(x, "64", "512", "4096")
	}
	return policy
}
