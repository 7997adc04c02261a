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
	if g.shared.pmd {
		return
	}
	if g.chance(3) {
		g.bounded()
		return
	}
	if r := pick(g.x, g.regions...); !g.chance(3) {
		whole := Area{Region: r.name, Whole: true}
		g.add(Step{Verb: VerbAdvise, Area: whole, Advice: mm.AdviseHugePage})
		if r.size <= large && g.chance(2) {
			step := pick[int64](g.x, 0, 2, 9) * pageSize
			g.add(Step{Verb: VerbTouch, Area: whole, Access: mm.Write, Step: step})
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

// bounded lets khugepaged see a range at one of its limits, or beside it, and now
// and then one that nobody has accessed of late.
func (g *generator) bounded() {
	a := g.fresh()
	g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseNoHugePage})
	part := Area{Region: a.Region, To: g.near(512 - g.limit("max_ptes_none", 511))}
	shared := g.chance(2) && len(g.procs) < genProcs
	if shared {
		part.To = g.near(g.limit("max_ptes_shared", 256))
	}
	g.add(Step{Verb: VerbTouch, Area: part, Access: mm.Write})
	if g.chance(5) {
		g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseCold})
	}
	g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseHugePage})
	if shared {
		g.fork()
	}
	g.add(Step{Verb: VerbKhugepaged})
}

// fresh maps 2 MB, aligned, that only the scene uses.
func (g *generator) fresh() Area {
	a := Area{Region: g.name(), To: pmdSize}
	g.add(Step{Verb: VerbMap, Area: a, Access: mm.Read | mm.Write})
	return a
}

// limit is a limit of the policy's, or the default.
func (g *generator) limit(key string, value int) int {
	for w := range strings.FieldsSeq(g.p.Policy) {
		if k, v, _ := strings.Cut(w, "="); k == key {
			fmt.Sscan(v, &value)
		}
	}
	return value
}

// near is a length of n pages, or one more or less, within 2 MB.
func (g *generator) near(n int) mm.Bytes {
	return mm.Bytes(min(512, max(1, n+g.x.IntN(3)-1))) * pageSize
}

// shrink drops caches, often after a huge page has been filled up to where
// max_ptes_none calls it used, or nearly.
func (g *generator) shrink() {
	if !g.chance(3) {
		a := g.fresh()
		g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseHugePage})
		n := g.near(512 - g.limit("max_ptes_none", 511))
		part := Area{Region: a.Region, To: n}
		if g.chance(2) {
			part.From, part.To = pmdSize-n, pmdSize
		}
		g.add(Step{Verb: VerbTouch, Area: part, Access: mm.Write})
		if g.chance(3) {
			g.add(Step{Verb: VerbLock, Area: pick(g.x, a, part), Flags: mm.LockOnFault})
		}
	}
	if !g.shared.sizes {
		g.add(Step{Verb: VerbDropCaches})
	}
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
	rest := Area{Region: a.Region, From: a.From + pageSize, To: a.To}
	g.add(Step{Verb: VerbAdvise, Area: rest, Advice: mm.AdviseDontNeed})
	g.add(Step{Verb: VerbIn, Name: child})
	g.add(Step{Verb: VerbExit})
	g.add(Step{Verb: VerbIn, Name: me})
	g.add(Step{Verb: VerbTouch, Area: first, Access: mm.Write})
}

// corner begins a few of the programs with what random steps have never been seen
// to reach.
func (g *generator) corner(n uint64) {
	if n%12 == 11 {
		g.neighbours()
		if !g.pageout {
			g.freeMost()
		}
	}
}

// neighbours makes two mappings that differ by their protection alone, gives the
// upper one pages, then the lower one, and makes them alike: they merge if the
// lower one took the anon_vma of the upper one.
func (g *generator) neighbours() {
	a := g.fresh()
	lower := Area{Region: a.Region, To: pmdSize / 2}
	g.add(Step{Verb: VerbProtect, Area: lower, Access: mm.Write})
	for _, at := range []mm.Bytes{pmdSize / 2, 0} {
		page := Area{Region: a.Region, From: at, To: at + pageSize, Single: true}
		g.add(Step{Verb: VerbTouch, Area: page, Access: mm.Write})
	}
	g.add(Step{Verb: VerbProtect, Area: lower, Access: mm.Read | mm.Write})
}

// freeMost frees all but the last page of a large folio with MADV_FREE.
func (g *generator) freeMost() {
	policy, err := policyOf(g.p.Policy)
	if err != nil {
		return
	}
	size := mm.Bytes(0)
	for _, o := range programSizes().Orders() {
		if policy.Effective(o) != mm.Never {
			size = pageSize << o // the largest comes last
		}
	}
	if size == 0 {
		return
	}
	a := g.fresh()
	g.add(Step{Verb: VerbAdvise, Area: a, Advice: mm.AdviseHugePage})
	g.add(Step{Verb: VerbTouch, Area: a, Access: mm.Write})
	g.add(Step{Verb: VerbAdvise, Area: Area{Region: a.Region, To: size - pageSize}, Advice: mm.AdviseFree})
}
