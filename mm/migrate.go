package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

/*
Moving folios to other frames (semantics 9).

	caller --isolate--> list --batches--> one folio:
	                                        split first?  --split--> its pages, moved after the batch
	                                        target frames --none---> split, or failed
	                                        pinned?       ---------> tried again, then failed
	                                        out (migration entries), [flush], copy, in

In Linux other CPUs run between "out" and "in" and sleep at the migration
entries that they meet. Here the whole move is one step of one CPU: nobody can
see the entries, and only the work of making and removing them is counted.
*/

// MigrateMode says how long a migration may wait.
type MigrateMode uint8

// Modes. Linux: include/linux/migrate_mode.h (v6.18).
const (
	MigrateAsync MigrateMode = iota
	MigrateSyncLight
	MigrateSync
)

// MigrateReason says who asks. Linux: enum migrate_reason (v6.18).
type MigrateReason uint8

// Reasons.
const (
	MigrateSyscall MigrateReason = iota // move_pages, migrate_pages, cpuset
	MigrateMbind
	MigrateCompaction
	MigrateHotplug
	MigrateFailure // soft offline
	MigrateNUMA    // NUMA balancing
)

// Passes over folios that could not be moved at once. Linux:
// mm/migrate.c:NR_MAX_MIGRATE_PAGES_RETRY and its two shares (v6.18).
const (
	migrateRetry      = 10
	migrateRetryAsync = 3
	migrateRetrySync  = migrateRetry - migrateRetryAsync
	migrateBatchPages = 512 // base pages in a batch
)

// migration is one call of migrate_pages().
type migration struct {
	mode   MigrateMode
	reason MigrateReason

	// target takes frames for a folio; false where there are none.
	target func(c *Current, pfn PFN, o Order) (PFN, bool)
	// keep is a page whose frame is taken out of use once it is empty, 0: none.
	keep PFN

	failed              uint64 // folios that stayed where they were
	okPages, badPages   Pages
	thpOK, thpBad       uint64
	thpSplit            uint64
	split               []PFN // pages of folios split on the way, for later
	splitting, stopping bool  // at work on those; out of memory
}

// folioOrder is the order of the anonymous folio whose head is pfn.
func (m *Machine) folioOrder(pfn PFN) Order { return Order(m.pages.frame(pfn).order) }

// migrate moves the folios with these heads and adds to the counters. It
// returns how many stayed. Linux: mm/migrate.c:migrate_pages (v6.18).
func (m *Machine) migrate(c *Current, heads []PFN, g *migration) uint64 {
	if !m.rules.MigrateBatch {
		m.migrateEach(c, heads, g, migrateRetry)
	} else {
		for len(heads) > 0 && !g.stopping {
			n := m.batchOf(heads)
			m.migrateBatch(c, heads[:n], g)
			heads = heads[n:]
		}
	}
	vm := &m.Counters.VM
	vm[PgMigrateSuccess] += uint64(g.okPages)
	vm[PgMigrateFail] += uint64(g.badPages)
	vm[THPMigrationSuccess] += g.thpOK
	vm[THPMigrationFail] += g.thpBad
	vm[THPMigrationSplit] += g.thpSplit
	return g.failed
}

// batchOf is how many folios make up one batch: those that begin within 512
// base pages.
func (m *Machine) batchOf(heads []PFN) int {
	var pages Pages
	for i, h := range heads {
		if pages += m.folioOrder(h).Pages(); pages >= migrateBatchPages {
			return i + 1
		}
	}
	return len(heads)
}

// migrateBatch unmaps a batch, flushes once, and moves it. In the synchronous
// modes the batch is tried as if asynchronous first, and what remains goes one
// by one. Linux: mm/migrate.c:migrate_pages_batch, migrate_pages_sync (v6.18).
func (m *Machine) migrateBatch(c *Current, heads []PFN, g *migration) {
	passes := migrateRetry
	if g.mode != MigrateAsync {
		passes = migrateRetryAsync
	}
	var left []PFN
	flush := false
	for _, h := range heads {
		if g.stopping {
			break // what follows is put back untried, and not counted
		}
		switch m.migrateOne(c, h, g) {
		case migrated:
			flush = true
		case again:
			left = append(left, h)
		}
	}
	if flush {
		c.Work[PrimFlush]++
		c.step(PrimFlush, 0, 1, 0)
	}
	m.migrateSplit(c, g)
	for range passes - 1 {
		m.tryAgain(c, left)
	}
	if g.mode != MigrateAsync {
		for range migrateRetrySync {
			m.tryAgain(c, left)
			c.Work[PrimFlush] += uint32(len(left))
		}
	}
	m.giveUp(left, g)
}

// migrateEach moves folios one after another, each with a flush of its own, as
// kernels before 6.3 did. What was split is moved last. Linux:
// mm/migrate.c:migrate_pages (v6.1).
func (m *Machine) migrateEach(c *Current, heads []PFN, g *migration, passes int) {
	var left []PFN
	for _, h := range heads {
		if g.stopping {
			return
		}
		switch m.migrateOne(c, h, g) {
		case again:
			left = append(left, h)
			fallthrough
		case migrated:
			m.flushFolio(c, h)
		}
	}
	for range passes - 1 {
		m.tryAgain(c, left)
		c.Work[PrimFlush] += uint32(len(left))
	}
	m.giveUp(left, g)
	m.migrateSplit(c, g)
}

// flushFolio counts the flush after one folio was unmapped.
func (m *Machine) flushFolio(c *Current, h PFN) {
	c.Work[PrimFlush]++
	c.step(PrimFlush, 0, 1, h)
}

// tryAgain counts one more pass over folios that something holds: unmapped,
// found held, and mapped again.
func (m *Machine) tryAgain(c *Current, heads []PFN) {
	for _, h := range heads {
		m.countMove(c, h, h, false)
	}
}

// giveUp counts folios that stay.
func (m *Machine) giveUp(heads []PFN, g *migration) {
	for _, h := range heads {
		m.fails(h, g)
	}
}

// fails counts one folio that stays.
func (m *Machine) fails(h PFN, g *migration) {
	o := m.folioOrder(h)
	g.failed++
	g.badPages += o.Pages()
	if o == m.pmdOrder && !g.splitting {
		g.thpBad++
	}
}

// migrateSplit moves, once, the pages of folios that were split on the way.
func (m *Machine) migrateSplit(c *Current, g *migration) {
	pages := g.split
	if len(pages) == 0 {
		return
	}
	g.split, g.splitting = nil, true
	flush := false
	for _, h := range pages {
		if g.stopping {
			break
		}
		if m.pages.frame(h).flags&frameAnon == 0 {
			continue // freed by the split: all zeros, or mapped by nothing
		}
		switch m.migrateOne(c, h, g) {
		case migrated:
			if flush = true; !m.rules.MigrateBatch {
				m.flushFolio(c, h)
			}
		case again:
			m.fails(h, g)
		}
	}
	if flush && m.rules.MigrateBatch {
		m.flushFolio(c, pages[0])
	}
	g.splitting = false
}

// moveResult is how the attempt at one folio ended.
type moveResult uint8

const (
	migrated moveResult = iota
	again               // something holds it
	ended               // failed, or split: counted already
)

// migrateOne tries one folio (semantics 9.2). Linux:
// mm/migrate.c:migrate_folio_unmap, migrate_folio_move (v6.18).
func (m *Machine) migrateOne(c *Current, h PFN, g *migration) moveResult {
	fr := m.pages.frame(h)
	o := Order(fr.order)
	if o > 0 {
		fo := m.folioOf(fr)
		partial := fo.flags&(folioQueued|folioPartial) == folioQueued|folioPartial
		switch {
		case partial && m.rules.MigrateBatch, o == m.pmdOrder && !m.rules.MigrateTHP:
			return m.splitToMigrate(c, h, g)
		case fo.pins > 0:
			m.countMove(c, h, h, false)
			return again
		}
	}
	to, ok := g.target(c, h, o)
	switch {
	case !ok && o > 0 && g.reason != MigrateNUMA:
		return m.splitToMigrate(c, h, g)
	case !ok:
		m.fails(h, g)
		g.stopping = g.reason != MigrateNUMA
		return ended
	}
	m.countMove(c, h, to, true)
	m.moveFolio(c, h, to, h == g.keep)
	if g.okPages += o.Pages(); o == m.pmdOrder && !g.splitting {
		g.thpOK++
	}
	return migrated
}

// splitToMigrate splits a folio that cannot be moved whole; its pages follow
// on their own. A folio of the PMD's order counts as failed and as split.
func (m *Machine) splitToMigrate(c *Current, h PFN, g *migration) moveResult {
	fr := m.pages.frame(h)
	o := Order(fr.order)
	if !m.splitFolio(c, fr.ref) {
		m.fails(h, g)
		return ended
	}
	if o == m.pmdOrder {
		g.thpBad++
		g.thpSplit++
	}
	for i := range PFN(o.Pages()) {
		g.split = append(g.split, h+i)
	}
	return ended
}

// allocTarget takes frames on a node for a folio that moves there. The charge
// goes with the folio. Linux: mm/migrate.c:alloc_migration_target (v6.18).
func (m *Machine) allocTarget(c *Current, node NodeID, o Order, f buddy.Flags) (PFN, bool) {
	if o == 0 {
		f |= smallGFP
	} else {
		f |= buddy.DirectReclaim
	}
	pfn, ok := m.physAllocOn(c, int(node), o, buddy.Movable, f)
	if !ok {
		return 0, false
	}
	m.pages.ensureFrames(pfn, o)
	m.Counters.VM[PgAlloc] += uint64(o.Pages())
	return pfn, true
}

// toNode is a target on exactly one node.
func (m *Machine) toNode(node NodeID) func(*Current, PFN, Order) (PFN, bool) {
	return func(c *Current, _ PFN, o Order) (PFN, bool) {
		return m.allocTarget(c, node, o, buddy.ThisNode)
	}
}
