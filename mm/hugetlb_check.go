package mm

import "fmt"

// checkHuge proves that the pools add up: maps are the entries per slot that the
// tables hold. It returns how many frames the pools own.
func (m *Machine) checkHuge(maps map[uint32]uint32) (owned uint64, err error) {
	live := make([]uint64, len(m.huge.pools))
	free := map[uint32]bool{}
	for i := range m.huge.pools {
		if err := m.checkFree(&m.huge.pools[i], free); err != nil {
			return 0, err
		}
	}
	used, restore := uint64(0), make([]uint64, len(m.huge.pools))
	for s := range m.huge.pages {
		pg, slot := &m.huge.pages[s], uint32(s)
		if pg.flags&hugeLive == 0 {
			continue
		}
		p := &m.huge.pools[pg.pool]
		fr := *m.pages.frame(pg.head)
		switch {
		case fr != frame{flags: frameHugetlb, order: uint8(p.order), ref: slot}:
			return 0, fmt.Errorf("hugetlb page %d: its frame is marked %+v", slot, fr)
		case free[slot] != (pg.flags&hugeFree != 0):
			return 0, fmt.Errorf("hugetlb page %d: flags %x, on a free list %v", slot, pg.flags, free[slot])
		case pg.maps != maps[slot]:
			return 0, fmt.Errorf("hugetlb page %d: map count %d, tables map it %d times", slot, pg.maps, maps[slot])
		case pg.maps == 0 && pg.flags&(hugeFree|hugeCached) == 0:
			return 0, fmt.Errorf("hugetlb page %d is held by nothing", slot)
		}
		live[pg.pool]++
		owned += uint64(p.order.Pages())
		if !free[slot] {
			used += uint64(p.order.Pages())
			if pg.flags&hugeRestore != 0 {
				restore[pg.pool]++
			}
		}
	}
	promised := m.promised()
	for i := range m.huge.pools {
		p := &m.huge.pools[i]
		// A page that another mapping still holds brings its promise when it is freed.
		if p.nr != live[i] || p.resv+restore[i] != promised[i]+p.leaked {
			return 0, fmt.Errorf("hugetlb pool of order %d: %d pages, %d promised; there are %d and %d (%d to come)",
				p.order, p.nr, p.resv, live[i], promised[i]+p.leaked, restore[i])
		}
	}
	if vm := m.Counters.VM[NrHugetlb]; vm != used {
		return 0, fmt.Errorf("nr_hugetlb is %d, in use are %d", vm, used)
	}
	return owned, nil
}

// checkFree walks a pool's free lists.
func (m *Machine) checkFree(p *hugePool, free map[uint32]bool) error {
	var sum hugeNode
	for i, n := range p.node {
		k := uint64(0)
		for s := n.head; s != 0; s = m.huge.pages[s].next {
			if pg := &m.huge.pages[s]; free[s] || pg.maps != 0 || int(pg.node) != i {
				return fmt.Errorf("hugetlb page %d does not belong on node %d's free list", s, i)
			}
			free[s] = true
			k++
		}
		if k != n.free || n.free > n.nr || n.surplus > n.nr {
			return fmt.Errorf("hugetlb node %d: %+v, but %d on the free list", i, n, k)
		}
		sum.nr, sum.free, sum.surplus = sum.nr+n.nr, sum.free+n.free, sum.surplus+n.surplus
	}
	if sum.nr != p.nr || sum.free != p.free || sum.surplus != p.surplus {
		return fmt.Errorf("hugetlb pool of order %d: its nodes do not add up", p.order)
	}
	return nil
}

// promised sums up what mappings were promised and have not used, by pool.
func (m *Machine) promised() []uint64 {
	sum := make([]uint64, len(m.huge.pools))
	seen := map[*hugeFile]bool{}
	for _, sp := range m.spaces {
		if sp == nil {
			continue
		}
		for n := sp.vmas.First(); n != nil; n = n.Next() {
			v := n.Val
			h := v.huge
			switch {
			case h == nil:
			case h.owner:
				from, to := m.hugeIndex(v, v.start), m.hugeIndex(v, v.end)
				sum[h.pool] += to - from - h.used.count(from, to)
			case h.file.cache != nil && !seen[h.file]:
				seen[h.file] = true
				sum[h.pool] += h.file.promised()
			}
		}
	}
	return sum
}

func (f *hugeFile) promised() (n uint64) {
	for i, slot := range f.cache {
		if slot == 0 && f.resv.has(uint64(i)) {
			n++
		}
	}
	return n
}
