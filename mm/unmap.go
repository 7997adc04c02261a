package mm

// opUnmap does munmap.
func (m *Machine) opUnmap(c *Current, sp *space, op *Op, from VA) Errno {
	c.Work.Add(PrimMunmap, 1)
	c.Work.Add(PrimMmapWrite, 1)
	to, ok := m.rangeEnd(sp, from, op.N)
	if !ok || from == to {
		return EINVAL
	}
	e := m.unmapRange(c, sp, from, to)
	if e == OK && op.Page == 0 {
		sp.regions.forget(op.Region, op.N)
	}
	return e
}

// rangeEnd is the end of n pages from a; false if that leaves the space.
func (m *Machine) rangeEnd(sp *space, a VA, n Pages) (VA, bool) {
	limit := sp.limitOf()
	if a > limit || n > m.span(a, limit) {
		return 0, false
	}
	return a + m.bytes(n), true
}

// unmapRange takes away all that [from, to) maps: the VMAs at its ends are cut,
// pages go VMA by VMA, then the tables that no VMA needs any more.
// Linux: mm/vma.c:do_vmi_align_munmap, unmap_region (v6.18).
func (m *Machine) unmapRange(c *Current, sp *space, from, to VA) Errno {
	first := sp.lookupQuiet(from)
	if first == nil || first.start >= to {
		return OK
	}
	if first.start < from {
		switch {
		case first.flags&vmSpecial != 0 || m.hugeUnaligned(first, from):
			return EINVAL
		case to < first.end && sp.vmas.Len() >= maxMapCount:
			return ENOMEM
		}
		m.splitVMA(c, first, from, true)
	}
	last := first
	for {
		if last.end > to {
			if last.flags&vmSpecial != 0 || m.hugeUnaligned(last, to) {
				return EINVAL // the cut at from stays, as in Linux
			}
			m.splitVMA(c, last, to, false)
		}
		n := last.next()
		if n == nil || n.start >= to {
			break
		}
		last = n
	}
	low, high, floor, ceiling := first.start, last.end, VA(0), tablesEnd
	if p := first.prev(); p != nil {
		floor = p.end
	}
	stop := last.next()
	if stop != nil {
		ceiling = stop.start
	}
	for v := first; v != stop; v = v.next() {
		m.zapRange(c, v, v.start, v.end, zapUnmap)
	}
	m.flushHuge(c)
	for v := first; v != stop; {
		n := v.next()
		m.dropVMA(c, v)
		v = n
	}
	m.freeTables(c, sp, low, high, floor, ceiling)
	return OK
}
