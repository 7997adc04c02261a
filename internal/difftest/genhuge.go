package difftest

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// This file makes hugetlb steps, in programs whose policy has a pool. Their
// regions keep to themselves, each in its slot and only among each other, because
// of two things that Linux does and a test must not have it do:
//
//   - mremap of a part of a private hugetlb mapping leaves the reservation of the
//     rest with nobody, until the machine is booted again (mm: moveHuge). Only
//     mappings that nothing was mapped over are moved, whole.
//   - A write of the owner that must steal a page from a child which moved its
//     mapping never ends (mm: stealHuge). Nothing is moved once there was a fork.

// genHuge is what the generator knows of a program's hugetlb.
type genHuge struct {
	on      bool
	regions []hugeRegion
}

type hugeRegion struct {
	name    string
	size    mm.Bytes
	covered bool // another one may lie over it
}

const (
	hugeRegions = 5
	hugePool    = 10 // most pages of a generated pool
)

// poolPolicy draws the pool of a policy, "" for none.
func poolPolicy(pages, over int) string {
	spec := fmt.Sprintf("pool=2m:%d", pages)
	if over > 0 {
		spec += fmt.Sprintf(" overcommit=2m:%d", over)
	}
	return spec
}

func hasPool(policy string) bool { return strings.Contains(policy, "pool=2m") }

// hugeStep adds a hugetlb step.
func (g *generator) hugeStep() {
	k := g.x.IntN(hugeShares)
	if len(g.huge.regions) == 0 {
		k = 0
	}
	for i := range hugeSteps {
		if k -= hugeSteps[i].share; k < 0 {
			hugeSteps[i].make(g)
			return
		}
	}
}

// hugeSteps are the kinds of hugetlb steps, each with its share.
var hugeSteps = []struct {
	share int
	make  func(*generator)
}{
	{8, (*generator).hugeMapping},
	{30, (*generator).hugeTouch},
	{14, func(g *generator) {
		g.add(Step{Verb: VerbAdvise, Area: g.hugeArea(), Advice: pick(g.x, mm.AdviseDontNeed, mm.AdviseDontNeed,
			mm.AdviseDontNeed, mm.AdviseDontNeedLocked, mm.AdvisePopulateRead, mm.AdvisePopulateWrite,
			mm.AdviseDontFork, mm.AdviseDoFork, mm.AdviseFree, mm.AdviseCollapse, mm.AdviseHugePage,
			mm.AdviseNoHugePage, mm.AdviseCold, mm.AdviseGuardInstall, mm.AdviseWipeOnFork, mm.AdviseDontDump,
			mm.AdviseDoDump)})
	}},
	{7, func(g *generator) { g.add(Step{Verb: VerbUnmap, Area: g.hugeArea()}) }},
	{6, func(g *generator) {
		prot := pick(g.x, mm.Read, mm.Read|mm.Write, mm.Read|mm.Write, 0)
		g.add(Step{Verb: VerbProtect, Area: g.hugeArea(), Access: prot})
	}},
	{5, (*generator).hugeRemap},
	{3, func(g *generator) { g.add(Step{Verb: VerbLock, Area: g.hugeArea()}) }},
	{6, func(g *generator) { g.add(Step{Verb: VerbPool, Pool: poolClaim{int64(g.x.IntN(hugePool))}}) }},
	{3, func(g *generator) { g.add(Step{Verb: VerbOvercommit, Pool: poolClaim{int64(g.x.IntN(4))}}) }},
	{6, (*generator).fork},
	{8, (*generator).in},
	{3, (*generator).exit},
}

// hugeShares is the sum of all shares.
var hugeShares = func() (n int) {
	for i := range hugeSteps {
		n += hugeSteps[i].share
	}
	return n
}()

func (g *generator) hugeMapping() {
	if len(g.huge.regions) >= hugeRegions {
		return
	}
	s := Step{Verb: VerbMap, Access: mm.Read | mm.Write, Flags: mm.MapHugetlb | mm.MapPool}
	n := pick[mm.Bytes](g.x, 2<<20, 2<<20, 4<<20, 4<<20, 6<<20, 8<<20, 1<<20, 5<<20)
	s.Area = Area{Region: g.name(), To: n}
	switch {
	case g.chance(20):
		s.Place.At = g.pages(511) // cannot be
	case len(g.huge.regions) > 0 && g.chance(4):
		r := &g.huge.regions[g.x.IntN(len(g.huge.regions))]
		s.Place = Place{In: r.name, At: g.hugeWithin(r.size)}
		r.covered = true
	}
	switch g.x.IntN(8) {
	case 0, 1:
		s.Flags |= mm.MapShared
	case 2, 3:
		s.Flags |= mm.MapNoReserve
	case 4:
		s.Flags |= mm.MapPopulate
	case 5:
		s.Flags |= mm.MapLocked
	}
	if g.chance(10) {
		s.Access = pick(g.x, mm.Read, 0)
	}
	covered := s.Place != (Place{})
	g.huge.regions = append(g.huge.regions, hugeRegion{s.Area.Region, s.Area.To, covered})
	g.add(s)
}

// hugeWithin is the start of a page of a region.
func (g *generator) hugeWithin(size mm.Bytes) mm.Bytes {
	return mm.Bytes(g.x.IntN(int((size+pmdSize-1)/pmdSize))) * pmdSize
}

// hugeArea is all of a region, a page or some, or what cuts a page.
func (g *generator) hugeArea() Area {
	r := pick(g.x, g.huge.regions...)
	from := g.hugeWithin(r.size)
	switch g.x.IntN(8) {
	case 0, 1:
		return Area{Region: r.name, Whole: true}
	case 2:
		return Area{Region: r.name, From: from, To: from + g.pages(1024)}
	case 3:
		from += g.pages(511)
		return Area{Region: r.name, From: from, To: from + g.pages(700)}
	}
	return Area{Region: r.name, From: from, To: from + pmdSize*mm.Bytes(1+g.x.IntN(2))}
}

func (g *generator) hugeTouch() {
	s := Step{Verb: VerbTouch, Area: g.hugeArea(), Access: pick(g.x, mm.Read, mm.Write, mm.Write)}
	switch {
	case g.chance(2):
		s.Area.Single, s.Area.Whole = true, false
		s.Area.To = s.Area.From + pageSize
	default:
		s.Step = pick(g.x, int64(pmdSize), int64(pmdSize), -int64(pmdSize), int64(pmdSize)/2)
	}
	g.add(s)
}

// hugeRemap moves, shrinks, or is refused.
func (g *generator) hugeRemap() {
	r := &g.huge.regions[g.x.IntN(len(g.huge.regions))]
	s := Step{Verb: VerbRemap, Area: Area{Region: r.name, Whole: true}}
	if g.nproc > 0 || r.covered {
		return
	}
	switch g.x.IntN(4) {
	case 0:
		s.Size = pick(g.x, pmdSize, r.size+pmdSize)
		r.covered = true // its size is not known any more
	case 1:
		s.Name, s.Flags = g.name(), mm.RemapDontUnmap
	default:
		if len(g.huge.regions) >= hugeRegions {
			return
		}
		s.Name = g.name()
		r.covered = true
		g.huge.regions = append(g.huge.regions, hugeRegion{s.Name, r.size, false})
	}
	g.add(s)
}
