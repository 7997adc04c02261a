package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// A stand-in for the buddy allocator: a bump pointer and free lists by order.

type physStub struct {
	next, end uint64
	lists     [NumOrders][]uint64
	deny      func(order uint8) bool
	used      uint64
}

var _ = buddy.Movable

func (m *Machine) newPhys() error {
	var n Pages
	for _, nd := range m.cfg.Nodes {
		n += Pages(uint64(nd.Mem) >> m.pageShift)
	}
	m.pages.phys = physStub{next: 1 << uint(m.pmdOrder), end: uint64(n)}
	m.pages.slabs = make([]*frameSlab, uint64(n)>>slabShift+9)
	return nil
}

func (m *Machine) physAlloc(c *Current, order Order, t buddy.MigrateType, fl buddy.Flags) (PFN, bool) {
	p := &m.pages.phys
	if p.deny != nil && p.deny(uint8(order)) {
		c.Work[PrimAllocFail]++
		return 0, false
	}
	if l := p.lists[order]; len(l) > 0 {
		pfn := l[len(l)-1]
		p.lists[order] = l[:len(l)-1]
		p.used += uint64(order.Pages())
		c.Work[PrimAllocPCP]++
		return PFN(pfn), true
	}
	n := uint64(order.Pages())
	at := (p.next + n - 1) &^ (n - 1)
	if at+n > p.end {
		c.Work[PrimAllocFail]++
		return 0, false
	}
	p.next = at + n
	p.used += n
	c.Work[PrimAllocPCP]++
	return PFN(at), true
}

func (m *Machine) physFree(c *Current, pfn PFN, order Order, t buddy.MigrateType) {
	p := &m.pages.phys
	p.lists[order] = append(p.lists[order], uint64(pfn))
	p.used -= uint64(order.Pages())
	c.Work[PrimFreePCP]++
}

func (m *Machine) physCheck() error { return nil }

func (m *Machine) physUsed() uint64 { return m.pages.phys.used }
