package mm

import (
	"slices"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

/*
Compaction of whole zones, as a caller of migrate (semantics 9.4). Two scanners
go through a zone by pageblocks until they meet:

	zone's start                                          zone's end
	| migrate scanner ->                     <- free scanner |
	      movable folios of up to 32 pages,       free blocks, held by order,
	      then the rest of the pageblock          until they are enough

	held blocks --smallest that fits, halved--> target frames of a folio
	      none fits: one more look by the free scanner, then the folio is split

Nothing calls it by itself: direct compaction at an allocation moves nothing.
*/

// compactCluster is how many pages are isolated at first in a pageblock.
// Linux: include/linux/swap.h:COMPACT_CLUSTER_MAX (v6.18).
const compactCluster = 32

// compaction is one zone's.
type compaction struct {
	m          *Machine
	start, end PFN // of the zone
	block      PFN // pages of a pageblock
	migrate    PFN // where each scanner goes on
	free       PFN

	held      [NumOrders][]PFN // free blocks taken for targets
	heldPages Pages
	wanted    Pages // pages isolated and without a target so far
}

// CompactMemory compacts a node's zones, as writing to its file compact does,
// or with a negative node those of all, as writing to
// /proc/sys/vm/compact_memory. Anonymous folios move that are smaller than a
// pageblock and not pinned; before 6.9 only small pages do. Shared anonymous
// memory stays where it is, which in Linux moves as well. pgalloc counts the
// targets, which Linux leaves out: so it still balances pgfree. ENOENT for a
// node that does not exist. Linux: mm/compaction.c:compact_node, compact_zone (v6.18).
func (m *Machine) CompactMemory(c *Current, node int) Errno {
	if node >= len(m.cfg.Nodes) {
		return ENOENT
	}
	m.beginMigrate(c)
	for _, z := range m.alloc.BuddyInfo() {
		if node < 0 || node == z.Node {
			k := compaction{m: m, start: PFN(z.Start), end: PFN(z.Start + z.Managed), block: 1 << m.pmdOrder}
			k.run(c)
		}
	}
	return OK
}

// run compacts the zone. It ends early where the free scanner may take no more.
func (k *compaction) run(c *Current) {
	k.migrate, k.free = k.start, k.blockStart(k.end-1)
	last, began := PFN(0), false // the pageblock that folios were last moved out of
	for k.migrate/k.block < k.free/k.block {
		heads := k.isolateFolios(c, began && last == k.blockStart(k.migrate))
		if len(heads) == 0 {
			continue
		}
		last, began = k.blockStart(k.migrate-1), true
		g := migration{mode: MigrateSync, reason: MigrateCompaction, target: k.target}
		k.m.migrate(c, heads, &g)
		k.wanted = 0
		if g.stopping {
			break
		}
	}
	for o := range k.held {
		for _, pfn := range k.held[o] {
			k.m.physFree(c, pfn, Order(o), buddy.Movable)
		}
	}
}

func (k *compaction) blockStart(pfn PFN) PFN { return pfn &^ (k.block - 1) }

// isolateFolios goes on with the migrate scanner to the next pageblock that it
// may look at, not one that a huge page fills, and through it: up to 32 pages,
// or with whole to its end. What it found comes last first. Linux:
// mm/compaction.c:isolate_migratepages, isolate_migratepages_block (v6.18).
func (k *compaction) isolateFolios(c *Current, whole bool) (heads []PFN) {
	m, vm := k.m, &k.m.Counters.VM
	for {
		first := k.blockStart(k.migrate)
		if first+k.block > k.free {
			k.migrate = max(k.migrate, k.free)
			return nil
		}
		o := m.compoundAt(max(first, k.start))
		if o < m.pmdOrder {
			break
		}
		k.migrate = first + PFN(o.Pages())
	}
	end := k.blockStart(k.migrate) + k.block
	at, was := k.migrate, k.migrate
	for at < end && (whole || k.wanted < compactCluster) {
		next := at + 1
		if o, free := m.alloc.FreeAt(uint64(at)); free {
			next = at + PFN(Order(o).Pages())
		} else if o, ok := m.compactable(at); ok {
			m.isolate(c, at)
			heads = append(heads, at)
			k.wanted += o.Pages()
			vm[CompactIsolated] += uint64(o.Pages())
			next = at + PFN(o.Pages())
		}
		at = next
	}
	k.migrate = min(at, end)
	vm[CompactMigrateScanned] += uint64(at - was)
	slices.Reverse(heads)
	return heads
}

// compoundAt is the order of the large folio or hugetlb page whose head is pfn,
// 0 where there is none.
func (m *Machine) compoundAt(pfn PFN) Order {
	if m.pages.slab(pfn) == nil {
		return 0
	}
	fr := m.pages.frame(pfn)
	if pfn&(1<<fr.order-1) != 0 {
		return 0
	}
	return Order(fr.order)
}

// compactable says whether pfn is the head of a folio that compaction takes,
// in a pageblock that no larger one fills. One that is pinned could not be
// moved, and is not isolated. Linux: mm/compaction.c:skip_isolation_on_order,
// isolate_migratepages_block (v6.18).
func (m *Machine) compactable(pfn PFN) (o Order, ok bool) {
	if m.pages.slab(pfn) == nil {
		return 0, false
	}
	fr := m.pages.frame(pfn)
	o = Order(fr.order)
	switch {
	case fr.flags&frameAnon == 0 || pfn&(1<<o-1) != 0:
		return 0, false
	case o > 0 && (!m.rules.CompactLarge || m.folioOf(fr).pins > 0):
		return 0, false
	}
	return o, true
}

// target takes frames for a folio out of the held blocks, of which it halves the
// smallest that fits. Linux: mm/compaction.c:compaction_alloc_noprof (v6.18).
func (k *compaction) target(c *Current, _ PFN, o Order) (PFN, bool) {
	from := k.fitting(o)
	if from < 0 {
		k.isolateFree(c)
		if from = k.fitting(o); from < 0 {
			return 0, false
		}
	}
	pfn := k.held[from][0]
	k.held[from] = k.held[from][1:]
	for ; from > int(o); from-- {
		half := Order(from - 1)
		k.held[half] = slices.Insert(k.held[half], 0, pfn+PFN(half.Pages()))
		c.Work[PrimExpand]++
	}
	k.heldPages -= o.Pages()
	k.wanted -= min(k.wanted, o.Pages())
	k.m.pages.ensureFrames(pfn, o)
	k.m.Counters.VM[PgAlloc] += uint64(o.Pages())
	return pfn, true
}

// fitting is the lowest order of a held block that o fits into, or -1.
func (k *compaction) fitting(o Order) int {
	for i := int(o); i < len(k.held); i++ {
		if len(k.held[i]) > 0 {
			return i
		}
	}
	return -1
}

// isolateFree goes on with the free scanner, pageblock by pageblock downwards
// and upwards inside each, until the held pages are enough or it meets the
// other. Where it finds nothing it looks at fewer pages of the next pageblock.
// Linux: mm/compaction.c:isolate_freepages (v6.18).
func (k *compaction) isolateFree(c *Current) {
	low := k.blockStart(k.migrate) + k.block
	at, first := k.free, k.blockStart(k.free)
	for stride := PFN(1); first >= low; {
		end := min(first+k.block, k.end)
		if k.takesTargets(first) {
			next, found := k.isolateFreeIn(c, at, end, stride)
			at = next
			if k.heldPages >= k.wanted {
				if at >= end {
					at = first - k.block
				}
				break
			}
			if at < end {
				break // the watermark
			}
			if stride = min(stride<<1, compactCluster); found {
				stride = 1
			}
		}
		first -= k.block
		at = first
	}
	k.free = at
}

// takesTargets says whether the free scanner looks into a pageblock: a movable
// one that is not free as a whole. Linux: mm/compaction.c:suitable_migration_target
// (v6.18).
func (k *compaction) takesTargets(first PFN) bool {
	a := k.m.alloc
	if o, free := a.FreeAt(uint64(first)); free && Order(o) >= k.m.pmdOrder {
		return false
	}
	return a.TypeAt(uint64(first)) == buddy.Movable
}

// isolateFreeIn takes free blocks of [at, end) until they are enough. It
// returns where it stopped, end when it saw all. Linux:
// mm/compaction.c:isolate_freepages_block (v6.18).
func (k *compaction) isolateFreeIn(c *Current, at, end, stride PFN) (next PFN, found bool) {
	m, vm := k.m, &k.m.Counters.VM
	for at < end {
		vm[CompactFreeScanned]++
		if _, free := m.alloc.FreeAt(uint64(at)); !free {
			if n := PFN(m.compoundAt(at).Pages()); at+n <= end {
				vm[CompactFreeScanned] += uint64(n - 1)
				at += n - 1
			}
			at += stride
			continue
		}
		o, ok := m.alloc.TakeFree(uint64(at))
		if !ok {
			return at, found
		}
		m.physWork(c)
		if !found {
			c.Work[PrimZoneLock]++
		}
		found = true
		n := Order(o).Pages()
		k.held[o] = append(k.held[o], at)
		k.heldPages += n
		vm[CompactIsolated] += uint64(n)
		vm[CompactFreeScanned] += uint64(n - 1)
		if k.heldPages >= k.wanted {
			return min(at+PFN(n), end), true
		}
		at += PFN(n) - 1 + stride
	}
	return end, found
}
