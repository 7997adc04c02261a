package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// beginMigrate counts what every caller does first: the call, and the draining
// of all CPUs' batches, without which pages are not found on the LRU lists.
// Linux: mm/migrate.c:migrate_prep (v4.9); mm/swap.c:lru_cache_disable (v6.18).
func (m *Machine) beginMigrate(c *Current) {
	c.Work[PrimMigrateCall]++
	c.Work[PrimLRUDrain]++
	c.step(PrimMigrateCall, 0, 1, 0)
	c.step(PrimLRUDrain, 0, 1, 0)
	m.indexAnons()
}

// isolate takes a folio off its LRU list.
func (m *Machine) isolate(c *Current, h PFN) {
	c.Work[PrimIsolate]++
	c.step(PrimIsolate, m.folioOrder(h), 1, h)
}

// leafAt is the anonymous page that a is mapped to: the page's frame and the
// head of its folio. ENOENT without a page, EFAULT for the zero page.
func (m *Machine) leafAt(sp *space, a VA) (pfn, head PFN, e Errno) {
	v := sp.at(a)
	if v == nil || !v.anonymous() {
		return 0, 0, EFAULT
	}
	pmd := m.pmdTable(sp, a)
	if pmd == 0 {
		return 0, 0, ENOENT
	}
	entry, inside := m.pages.tables.at(pmd)[m.pmdIndex(a)], PFN(m.pageIndex(a))
	if entry&eTable != 0 {
		entry, inside = m.pages.tables.at(eSlot(entry))[m.pageIndex(a)], 0
	}
	switch {
	case entry&ePresent == 0:
		return 0, 0, ENOENT
	case entry&eZero != 0:
		return 0, 0, EFAULT
	}
	pfn = ePFN(entry) + inside
	return pfn, pfn &^ (1<<m.pages.frame(pfn).order - 1), OK
}

// MovePages is move_pages(2) of space s: each page to its node, and into
// status, which is as long, the node where it is then, or a negative errno. A
// page of a large folio takes the whole folio along. With all pages that other
// spaces map too are moved. nodes nil only asks. Linux:
// mm/migrate.c:do_pages_move, add_folio_for_migration (v6.18).
func (m *Machine) MovePages(c *Current, s Space, pages []VA, nodes []NodeID, status []int32, all bool) Errno {
	sp := m.spaceOf(s)
	switch {
	case sp == nil:
		return ESRCH
	case len(status) < len(pages) || nodes != nil && len(nodes) < len(pages):
		return EINVAL
	}
	if nodes == nil {
		for i, a := range pages {
			status[i] = m.where(sp, a)
		}
		return OK
	}
	m.beginMigrate(c)
	q := moveQueue{m: m, c: c, sp: sp, pages: pages, status: status}
	for i, a := range pages {
		if int(nodes[i]) >= len(m.cfg.Nodes) {
			q.flush(i)
			return ENODEV
		}
		if len(q.heads) > 0 && nodes[i] != q.node {
			q.flush(i)
		}
		if len(q.heads) == 0 {
			q.node, q.first = nodes[i], i
		}
		if done, at := q.add(a, all); done {
			q.flush(i)
			status[i] = at
			q.first = i + 1
		}
	}
	q.flush(len(pages))
	return OK
}

// where is what move_pages says of a page: its node or an errno.
func (m *Machine) where(sp *space, a VA) int32 {
	pfn, _, e := m.leafAt(sp, a)
	if e != OK {
		return -int32(e)
	}
	return int32(m.nodeOf(pfn))
}

// moveQueue is the folios on their way to one node.
type moveQueue struct {
	m      *Machine
	c      *Current
	sp     *space
	pages  []VA
	status []int32
	node   NodeID
	first  int // index of the first page that status waits for
	heads  []PFN
}

// add queues the folio at a. It is done with the page at once where it refuses
// it, or where the page is on its node already; at is its status then.
func (q *moveQueue) add(a VA, all bool) (done bool, at int32) {
	m := q.m
	pfn, h, e := m.leafAt(q.sp, a)
	switch {
	case e != OK:
		return true, -int32(e)
	case m.nodeOf(pfn) == q.node:
		return true, int32(q.node)
	case !all && m.maybeShared(pfn, m.pages.frame(pfn)):
		return true, -int32(EACCES)
	}
	if k := len(q.heads); k > 0 && q.heads[k-1] == h {
		return true, -int32(EBUSY) // isolated already, by another page of it
	}
	m.isolate(q.c, h)
	q.heads = append(q.heads, h)
	return false, 0
}

// flush moves what is queued and says where the pages before index i are.
func (q *moveQueue) flush(i int) {
	if len(q.heads) == 0 {
		return
	}
	g := migration{mode: MigrateSync, reason: MigrateSyscall, target: q.m.toNode(q.node)}
	q.m.migrate(q.c, q.heads, &g)
	for k := q.first; k < i; k++ {
		q.status[k] = q.m.where(q.sp, q.pages[k])
	}
	q.heads = q.heads[:0]
}

// MigratePages is migrate_pages(2) of space s: everything on node from[i] goes
// to to[i]. It returns how many folios stayed. Linux:
// mm/mempolicy.c:do_migrate_pages (v6.18).
func (m *Machine) MigratePages(c *Current, s Space, from, to []NodeID, all bool) (stayed uint64, e Errno) {
	sp := m.spaceOf(s)
	switch {
	case sp == nil:
		return 0, ESRCH
	case len(from) != len(to):
		return 0, EINVAL
	}
	for _, n := range to {
		if int(n) >= len(m.cfg.Nodes) {
			return 0, EINVAL
		}
	}
	m.beginMigrate(c)
	for i := range from {
		heads := m.foliosIn(c, sp, 0, tablesEnd, func(pfn PFN) bool {
			return m.nodeOf(pfn) == from[i] && (all || !m.maybeShared(pfn, m.pages.frame(pfn)))
		})
		g := migration{mode: MigrateSync, reason: MigrateSyscall, target: m.toNode(to[i])}
		stayed += m.migrate(c, heads, &g)
	}
	return stayed, OK
}

// CpusetMove moves a space's pages when its cpuset's nodes change: pages that
// other spaces map too go along. Linux: kernel/cgroup/cpuset.c:cpuset_migrate_mm
// (v6.18).
func (m *Machine) CpusetMove(c *Current, s Space, from, to []NodeID) (stayed uint64, e Errno) {
	return m.MigratePages(c, s, from, to, true)
}

// MemPolicy is a memory policy as far as moving pages needs it.
type MemPolicy struct {
	Interleave bool     // else bind: the first node that has memory
	Nodes      []NodeID // allowed ones, ascending
}

// MbindMove is the moving part of mbind(2) with MPOL_MF_MOVE: pages of
// [from, from+n) that the policy does not allow where they are go where it
// does. Interleaving counts in units of the folio's order. The policy itself
// is OpPolicyNode's. Linux: mm/mempolicy.c:do_mbind, alloc_migration_target_by_mpol
// (v6.18).
func (m *Machine) MbindMove(c *Current, s Space, from VA, n Pages, pol MemPolicy) (stayed uint64, e Errno) {
	sp := m.spaceOf(s)
	if sp == nil {
		return 0, ESRCH
	}
	if len(pol.Nodes) == 0 {
		return 0, EINVAL
	}
	for _, id := range pol.Nodes {
		if int(id) >= len(m.cfg.Nodes) {
			return 0, EINVAL
		}
	}
	m.beginMigrate(c)
	heads := m.foliosIn(c, sp, from, from+m.bytes(n), func(pfn PFN) bool {
		return !pol.allows(m.nodeOf(pfn)) && !m.maybeShared(pfn, m.pages.frame(pfn))
	})
	g := migration{mode: MigrateSync, reason: MigrateMbind, target: m.byPolicy(pol)}
	return m.migrate(c, heads, &g), OK
}

func (p *MemPolicy) allows(n NodeID) bool {
	for _, id := range p.Nodes {
		if id == n {
			return true
		}
	}
	return false
}

// byPolicy is a target where a policy wants it.
func (m *Machine) byPolicy(pol MemPolicy) func(*Current, PFN, Order) (PFN, bool) {
	return func(c *Current, h PFN, o Order) (PFN, bool) {
		if pol.Interleave {
			at := m.folioIndex(h) >> o % uint64(len(pol.Nodes))
			return m.allocTarget(c, pol.Nodes[at], o, 0)
		}
		for _, id := range pol.Nodes {
			if pfn, ok := m.allocTarget(c, id, o, buddy.ThisNode); ok {
				return pfn, true
			}
		}
		return 0, false
	}
}

// folioIndex is the anonymous index of a folio's head.
func (m *Machine) folioIndex(h PFN) uint64 {
	if fr := m.pages.frame(h); fr.order != 0 {
		return m.folioOf(fr).index
	}
	return m.pages.frame(h).index()
}

// foliosIn isolates the folios mapped in [from, to) that want accepts, each
// once, in order of address.
func (m *Machine) foliosIn(c *Current, sp *space, from, to VA, want func(PFN) bool) []PFN {
	var heads []PFN
	seen := map[PFN]bool{}
	for v := sp.find(from); v != nil && v.start < to; v = v.next() {
		if !v.anonymous() {
			continue
		}
		m.eachLeaf(sp, max(from, v.start), min(to, v.end), func(pfn PFN) {
			h := pfn &^ (1<<m.pages.frame(pfn).order - 1)
			if !seen[h] && want(pfn) {
				seen[h] = true
				m.isolate(c, h)
				heads = append(heads, h)
			}
		})
	}
	return heads
}

// eachLeaf calls f for the frame of every page mapped in [from, to), a huge
// entry's first page standing for all of it.
func (m *Machine) eachLeaf(sp *space, from, to VA, f func(PFN)) {
	size := m.pmdSize()
	for a := from; a < to; {
		pmd, skip := m.nextPMD(sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		e := m.pages.tables.at(pmd)[m.pmdIndex(a)]
		switch {
		case e&(eHuge|eZero) == eHuge:
			f(ePFN(e))
		case e&eTable != 0:
			t := m.pages.tables.at(eSlot(e))
			for i, last := m.pageIndex(a), m.pageIndex(a)+int(m.span(a, next)); i < last; i++ {
				if t[i]&(ePresent|eZero) == ePresent {
					f(ePFN(t[i]))
				}
			}
		}
		a = next
	}
}
