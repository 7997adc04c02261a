package mm

// opBrk sets the heap's length. A shorter heap loses its pages; a longer one
// grows the heap's VMA or, beside it, begins a new one.
// Linux: mm/mmap.c:SYSCALL brk, mm/vma.c:do_brk_flags (v6.18).
func (m *Machine) opBrk(c *Current, sp *space, op *Op, base VA) Errno {
	c.Work.Add(PrimBrk, 1)
	c.Work.Add(PrimMmapWrite, 1)
	if sp.brkStart == 0 {
		sp.brkStart, sp.brkEnd = base, base // a recording that never named the heap
	}
	end, ok := m.rangeEnd(sp, sp.brkStart, op.N)
	if !ok {
		return ENOMEM
	}
	old := sp.brkEnd
	switch {
	case end < old:
		if v := sp.find(end); v == nil || v.start >= old {
			return ENOMEM // the heap was unmapped there
		}
		if e := m.unmapRange(c, sp, end, old); e != OK {
			return e
		}
	case end > old:
		if !m.heapRoom(sp, old, end) {
			return ENOMEM
		}
		if sp.vmas.Len() > maxMapCount {
			return ENOMEM
		}
		m.growHeap(c, sp, op.Region, old, end)
	}
	sp.brkEnd = end
	sp.regions.set(op.Region, sp.brkStart, op.N)
	return OK
}

// heapRoom says whether [old, end) and one page above it are free, guard gap
// of a stack included.
func (m *Machine) heapRoom(sp *space, old, end VA) bool {
	v := sp.lookupQuiet(old)
	return v == nil || end+1<<m.pageShift <= m.startGap(v)
}

func (m *Machine) growHeap(c *Current, sp *space, r Region, old, end VA) {
	flags := vmRead | vmWrite | vmAccount | sp.defFlags
	if a := &m.policy.Advise; a.All || a.Heap {
		flags |= vmHuge
	}
	q := mergeReq{sp: sp, prev: sp.before(old), start: old, end: end, pgoff: uint64(old >> m.pageShift),
		flags: flags, justExpand: true}
	if m.rules.HeapApart && q.prev != nil && q.prev.end <= sp.brkStart {
		// The search for it ends at the heap's start, so that the bss right below is
		// never found. Linux: mm/mmap.c:SYSCALL brk, vma_prev_limit (v6.18).
		q.prev, sp.loose = nil, true
	}
	v := m.mergeNew(c, &q)
	if v == nil {
		v = &vma{start: old, end: end, flags: flags, pgoff: q.pgoff, sp: sp, region: r}
		m.addVMA(c, v)
		if flags&vmHuge != 0 {
			m.khugepagedEnter(sp, v)
		}
	}
	if n := v.next(); n != nil && n.start == v.end {
		sp.loose = true
	}
	if flags&vmLockMask == vmLocked {
		m.populateAll(c, sp, old, end)
	}
}
