package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// OfflineRange empties [pfn, pfn+n) of anonymous folios, as taking the memory
// out does: to other nodes where they have room, else to other frames of the
// same one. It returns how many folios stayed. The free pages of the range are
// not taken from the allocator. Linux:
// mm/memory_hotplug.c:do_migrate_range (v6.18).
func (m *Machine) OfflineRange(c *Current, pfn PFN, n Pages) (stayed uint64) {
	m.beginMigrate(c)
	end := min(pfn+PFN(n), m.physEnd())
	var heads []PFN
	for at := pfn; at < end; {
		if m.pages.slab(at) == nil {
			at = at&^slabMask + slabLen
			continue
		}
		fr := m.pages.frame(at)
		next := at + 1
		if fr.flags&frameAnon != 0 {
			h := at &^ (1<<fr.order - 1)
			m.isolate(c, h)
			heads = append(heads, h)
			next = h + PFN(Order(fr.order).Pages())
		}
		at = next
	}
	held := heldBlocks{}
	g := migration{mode: MigrateSync, reason: MigrateHotplug,
		target: func(c *Current, h PFN, o Order) (PFN, bool) { return m.outside(c, h, o, pfn, end, &held) }}
	stayed = m.migrate(c, heads, &g)
	for _, b := range held {
		m.freeBlock(c, b.pfn, b.order)
	}
	return stayed
}

// heldBlocks are free blocks kept back until a call ends.
type heldBlocks []struct {
	pfn   PFN
	order Order
}

// outside takes frames outside of [from, end), on another node if it can.
// Blocks inside are held, so that the allocator does not give them again.
func (m *Machine) outside(c *Current, h PFN, o Order, from, end PFN, held *heldBlocks) (PFN, bool) {
	own := m.nodeOf(h)
	for i := range m.cfg.Nodes {
		if NodeID(i) == own {
			continue
		}
		if to, ok := m.allocTarget(c, NodeID(i), o, buddy.ThisNode); ok {
			return to, true
		}
	}
	for {
		to, ok := m.allocTarget(c, own, o, buddy.ThisNode)
		if !ok {
			return 0, false
		}
		if to+PFN(o.Pages()) <= from || to >= end {
			return to, true
		}
		*held = append(*held, struct {
			pfn   PFN
			order Order
		}{to, o})
	}
}

// SoftOffline takes one page out of use for good, its content moved elsewhere:
// an anonymous folio above order 0 is split first and only the one page moves.
// Linux: mm/memory-failure.c:soft_offline_in_use_page (v6.18).
func (m *Machine) SoftOffline(c *Current, pfn PFN) Errno {
	if pfn >= m.physEnd() || m.pages.slab(pfn) == nil || m.pages.frame(pfn).flags&frameAnon == 0 {
		return EBUSY // free pages and tables are not taken
	}
	m.beginMigrate(c)
	if fr := m.pages.frame(pfn); fr.order != 0 {
		if !m.splitFolio(c, fr.ref) {
			return EBUSY
		}
		if m.pages.frame(pfn).flags&frameAnon == 0 {
			return EAGAIN // the split freed it
		}
	}
	m.isolate(c, pfn)
	own := m.nodeOf(pfn)
	g := migration{mode: MigrateSync, reason: MigrateFailure,
		target: func(c *Current, _ PFN, o Order) (PFN, bool) { return m.allocTarget(c, own, o, 0) }}
	g.keep = pfn
	if m.migrate(c, []PFN{pfn}, &g) > 0 {
		return EBUSY
	}
	return OK
}

// SplitHugePages splits every large folio mapped in [from, from+n), as writing
// a range to the split_huge_pages file of debugfs does. It returns how many it
// split. Linux: mm/huge_memory.c:split_huge_pages_pid (v6.18).
func (m *Machine) SplitHugePages(c *Current, s Space, from VA, n Pages) (split uint64) {
	sp := m.spaceOf(s)
	if sp == nil {
		return 0
	}
	for a, end := from, from+m.bytes(n); a < end; a += m.pageSize() {
		pfn, _, e := m.leafAt(sp, a)
		if e != OK {
			continue
		}
		if fr := m.pages.frame(pfn); fr.order != 0 && m.splitFolio(c, fr.ref) {
			split++
		}
	}
	return split
}
