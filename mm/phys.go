package mm

import (
	"fmt"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// newPhys makes the machine's physical memory.
func (m *Machine) newPhys() error {
	m.policy = m.cfg.Policy
	cfg, err := m.memoryConfig()
	if err != nil {
		return err
	}
	if m.alloc, err = buddy.New(cfg); err != nil {
		return fmt.Errorf("mm: config: %w", err)
	}
	m.pages.slabs = make([]*slabDir, m.physEnd()>>dirShift+1)
	m.newVmemmap(cfg.Zones)
	return nil
}

// physEnd is the first frame number behind all memory.
func (m *Machine) physEnd() PFN { return PFN(m.alloc.End()) }

// physAlloc takes a block for the caller's CPU, from its node first, and counts
// the work.
func (m *Machine) physAlloc(c *Current, order Order, t buddy.MigrateType, f buddy.Flags) (PFN, bool) {
	return m.physAllocOn(c, -1, order, t, f)
}

// physAllocOn is physAlloc from another node first; a negative one is the
// CPU's own.
func (m *Machine) physAllocOn(c *Current, node int, order Order, t buddy.MigrateType, f buddy.Flags) (PFN, bool) {
	a := m.alloc
	pfn, ok := a.Alloc(int(c.CPU), node, uint8(order), t, f)
	if a.Events == (buddy.Events{PCPHit: 1}) {
		a.Events.PCPHit = 0
		c.Work[PrimAllocPCP]++
		return PFN(pfn), true
	}
	if n := uint64(a.Events.Compact); n > 0 {
		m.Counters.VM[CompactStall] += n
		if ok {
			m.Counters.VM[CompactSuccess] += n
		} else {
			m.Counters.VM[CompactFail] += n
		}
	}
	m.physWork(c)
	return PFN(pfn), ok
}

// physFree gives a block back through the caller's CPU. t is the type it was
// allocated as.
func (m *Machine) physFree(c *Current, pfn PFN, order Order, t buddy.MigrateType) {
	a := m.alloc
	a.Free(int(c.CPU), uint64(pfn), uint8(order), t)
	if a.Events == (buddy.Events{PCPFree: 1}) {
		a.Events.PCPFree = 0
		c.Work[PrimFreePCP]++
		return
	}
	m.physWork(c)
}

// physWork moves what the allocator did into the caller's work.
func (m *Machine) physWork(c *Current) {
	e, w := &m.alloc.Events, &c.Work
	w[PrimAllocPCP] += e.PCPHit
	w[PrimAllocRefill] += e.Refill
	w[PrimAllocBuddy] += e.Zone
	w[PrimAllocFail] += e.Fail
	w[PrimCompact] += e.Compact
	w[PrimExpand] += e.Expand
	w[PrimFreePCP] += e.PCPFree
	w[PrimFreeBuddy] += e.ZoneFree
	w[PrimMerge] += e.Merge
	w[PrimZoneLock] += e.Lock
	*e = buddy.Events{}
}

// nodeOf is the node that a page lies on.
func (m *Machine) nodeOf(pfn PFN) NodeID { return NodeID(m.alloc.NodeOf(uint64(pfn))) }

// physDecay does what each CPU's statistics worker does about once a second:
// per-CPU lists that grew long are cut. It is nobody's work.
func (m *Machine) physDecay() {
	for cpu := range m.cfg.CPUs {
		m.alloc.Decay(cpu)
	}
	m.alloc.Events = buddy.Events{}
}

// physCheck verifies the allocator.
func (m *Machine) physCheck() error { return m.alloc.Check() }

// physUsed is the number of pages handed out and not given back.
func (m *Machine) physUsed() uint64 { return m.alloc.InUse() }
