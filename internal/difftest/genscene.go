package difftest

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// This file holds short scenes: steps that together reach what single random
// steps hardly ever do.

// scan lets khugepaged pass, often over a region that has something for it.
func (g *generator) scan() {
	if r := pick(g.x, g.regions...); !g.chance(3) {
		whole := Area{Region: r.name, Whole: true}
		g.add(Step{Verb: VerbAdvise, Area: whole, Advice: mm.AdviseHugePage})
		if r.size <= large && g.chance(2) {
			g.add(Step{Verb: VerbTouch, Area: whole, Access: mm.Write, Step: int64(pick[mm.Bytes](g.x, 0, 2, 9) * pageSize)})
		}
		if g.chance(3) {
			from := g.within(r.size)
			g.add(Step{Verb: VerbAdvise, Area: Area{Region: r.name, From: from, To: from + g.pages(300)},
				Advice: mm.AdviseGuardInstall})
		}
	}
	g.add(Step{Verb: VerbKhugepaged})
}

// block is an aligned block of up to 2 MB in a region, as far as the generator
// knows where it lies.
func (g *generator) block(order int) Area {
	r := pick(g.x, g.regions...)
	n := mm.Bytes(pageSize) << order
	from := g.within(r.size) &^ (n - 1)
	return Area{Region: r.name, From: from, To: from + n}
}

// shrink drops caches, often after a huge page has been filled up to where
// max_ptes_none calls it used, or nearly.
func (g *generator) shrink() {
	if !g.chance(3) {
		limit := 511
		for w := range strings.FieldsSeq(g.p.Policy) {
			fmt.Sscanf(w, "max_ptes_none=%d", &limit)
		}
		a := g.block(9)
		g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseHugePage})
		fill := min(512, max(1, 512-limit+g.x.IntN(3)-1))
		part := Area{Region: a.Region, From: a.From, To: a.From + mm.Bytes(fill)*pageSize}
		g.add(Step{Verb: VerbTouch, Area: part, Access: mm.Write})
		if g.chance(3) {
			g.add(Step{Verb: VerbLock, Area: pick(g.x, a, part), Flags: mm.LockOnFault})
		}
	}
	g.add(Step{Verb: VerbDropCaches})
}

// lonely leaves one page of a large folio, which was shared, and writes it.
func (g *generator) lonely() {
	if len(g.procs) >= genProcs {
		return
	}
	a := g.block(pick(g.x, 2, 3, 4, 4, 5, 6, 7, 8, 9))
	first := Area{Region: a.Region, From: a.From, To: a.From + pageSize, Single: true}
	g.add(Step{Verb: VerbTouch, Area: first, Access: mm.Write})
	g.nproc++
	child := fmt.Sprintf("p%d", g.nproc)
	me := g.procs[len(g.procs)-1]
	g.add(Step{Verb: VerbFork, Name: child})
	g.add(Step{Verb: VerbAdvise, Area: Area{Region: a.Region, From: a.From + pageSize, To: a.To}, Advice: mm.AdviseDontNeed})
	g.add(Step{Verb: VerbIn, Name: child})
	g.add(Step{Verb: VerbExit})
	g.add(Step{Verb: VerbIn, Name: me})
	g.add(Step{Verb: VerbTouch, Area: first, Access: mm.Write})
}
