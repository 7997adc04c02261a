package difftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// This file is about hugetlb: the pool of 2 MB pages that a program has, what
// it claims of it, and what both sides show.

// PoolSeen is the pool of 2 MB pages.
type PoolSeen struct{ Pages, Free, Reserved, Surplus int64 }

// poolNames are its files, in order, less "_hugepages".
var poolNames = [...]string{"nr", "free", "resv", "surplus"}

func (p PoolSeen) list() [4]int64 { return [4]int64{p.Pages, p.Free, p.Reserved, p.Surplus} }

// String is the pool as a claim writes it.
func (p PoolSeen) String() string {
	var w []string
	for i, n := range p.list() {
		w = append(w, poolNames[i]+"="+strconv.FormatInt(n, 10))
	}
	return strings.Join(w, " ")
}

// poolClaim is what a program claims of the pool; what it does not name is
// unclaimed. Linux lets resv pass below zero at times.
type poolClaim [4]int64

const unclaimed = -1 << 63

// word reads NAME=NUMBER.
func (c *poolClaim) word(text string) error {
	name, value, _ := strings.Cut(text, "=")
	i := slices.Index(poolNames[:], name)
	n, err := strconv.ParseInt(value, 10, 32)
	if i < 0 || err != nil {
		return fmt.Errorf("%s: want nr=, free=, resv= or surplus= and a number", text)
	}
	c[i] = n
	return nil
}

func (c *poolClaim) String() string {
	var w []string
	for i, n := range c {
		if n != unclaimed {
			w = append(w, poolNames[i]+"="+strconv.FormatInt(n, 10))
		}
	}
	return strings.Join(w, " ")
}

// holds says whether a pool is as claimed.
func (c *poolClaim) holds(p PoolSeen) bool {
	for i, n := range p.list() {
		if c[i] != unclaimed && c[i] != n {
			return false
		}
	}
	return true
}

// expectPool holds a claim about the pool against the sides.
func expectPool(c *poolClaim, m, h *Seen) *Difference {
	if m.Pool != nil && !c.holds(*m.Pool) {
		return &Difference{What: "pool", Model: m.Pool.String(), Host: c.String() + " expected"}
	}
	if h != nil && h.Pool != nil && !c.holds(*h.Pool) {
		return &Difference{What: "pool", Model: c.String() + " expected", Host: h.Pool.String()}
	}
	return nil
}

// poolWords reads what follows pool, overcommit and expect-pool: a size, then a
// number or claims.
func (s *Step) poolWords(w []string) error {
	if w[0] != "2m" {
		return fmt.Errorf("%s: want 2m", w[0])
	}
	if s.Verb == VerbExpectPool {
		s.Pool = poolClaim{unclaimed, unclaimed, unclaimed, unclaimed}
		for _, t := range w[1:] {
			if err := s.Pool.word(t); err != nil {
				return err
			}
		}
		return nil
	}
	n, err := strconv.ParseInt(w[1], 10, 32)
	if err != nil || n < 0 || n > maxPool || len(w) > 2 {
		return fmt.Errorf("%s: want a number of pages up to %d", w[1], maxPool)
	}
	s.Pool[0] = n
	return nil
}

// poolText is what follows the verb.
func (s *Step) poolText() string {
	if s.Verb == VerbExpectPool {
		return "2m " + s.Pool.String()
	}
	return "2m " + strconv.FormatInt(s.Pool[0], 10)
}

// maxPool is the largest pool that a program may ask for: the memory is the
// machine's.
const maxPool = 64

func (s *Step) setHugetlb(size string) error {
	if size != "2m" {
		return fmt.Errorf("hugetlb=%s: want 2m", size)
	}
	s.Flags |= mm.MapHugetlb | mm.MapPool
	return nil
}

// mapWords checks a map's options that need one another. A shared map that is
// not hugetlb is shared anonymous memory.
func (s *Step) mapWords() error {
	if s.Verb == VerbMap && s.Flags&mm.MapHugetlb != 0 && s.Flags&(mm.MapFile|mm.MapDroppable) != 0 {
		return fmt.Errorf("hugetlb=2m: not of a file or droppable")
	}
	if s.Verb != VerbMap || s.Flags&mm.MapShared == 0 || s.Flags&(mm.MapHugetlb|mm.MapFile) != 0 {
		return nil
	}
	if s.Area.Region == stackName {
		return fmt.Errorf("shared: no stack is")
	}
	s.Flags |= mm.MapShmem
	return nil
}

// usesPool says whether the program has to do with hugetlb: its pool is shown
// and compared.
func (p *Program) usesPool() bool {
	if strings.Contains(p.Policy, "pool=") || strings.Contains(p.Policy, "overcommit=") {
		return true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Flags&mm.MapHugetlb != 0 && s.Verb == VerbMap || s.Verb == VerbPool || s.Verb == VerbOvercommit ||
			s.Verb == VerbDemote ||
			s.Verb == VerbExpectPool
	})
}

// pool is what the model shows.
func (x *Model) pool() *PoolSeen {
	if !x.pools {
		return nil
	}
	p := x.m.Pools()[0]
	return &PoolSeen{int64(p.Pages), int64(p.Free), p.Reserved, int64(p.Surplus)}
}

// setPool does a pool or overcommit step on the model.
func (x *Model) setPool(s *Step) {
	n := uint64(s.Pool[0])
	if s.Verb == VerbPool {
		x.m.ResizePool(&x.c, programSizes().PMD, mm.AnyNode, n)
	} else {
		x.m.SetOvercommit(programSizes().PMD, n)
	}
}

// comparePools holds the pools together.
func comparePools(m, h *PoolSeen) *Difference {
	if m == nil || h == nil || *m == *h {
		return nil
	}
	return &Difference{What: "pool", Model: m.String(), Host: h.String()}
}
