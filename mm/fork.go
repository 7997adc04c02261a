package mm

// opFork makes op.Arg a copy of sp. Linux: kernel/fork.c, mm/mmap.c:dup_mmap
// (v6.18).
func (m *Machine) opFork(c *Current, sp *space, op *Op) error {
	if op.Arg == 0 || op.Arg > 1<<31 || Space(op.Arg) == sp.id {
		return opError(op, "a fork into an impossible space")
	}
	if old := m.spaceOf(Space(op.Arg)); old != nil {
		m.endSpace(c, old) // its exit was lost
	}
	c.Work.Add(PrimFork, 1)
	c.Work.Add(PrimMmapWrite, 1)
	child := m.newSpace(Space(op.Arg))
	child.thpDisable, child.compat, child.shift = sp.thpDisable, sp.compat, sp.shift
	child.loose = sp.loose
	child.brkStart, child.brkEnd = sp.brkStart, sp.brkEnd
	child.mmapBase, child.baseKnown = sp.mmapBase, sp.baseKnown
	child.stackLow, child.stackHigh = sp.stackLow, sp.stackHigh
	child.regions = sp.regions.fork()
	m.khugepagedFork(child, sp)
	for n := sp.vmas.First(); n != nil; n = n.Next() {
		if n.Val.flags&vmDontFork == 0 {
			m.forkVMA(c, child, n.Val)
		}
	}
	return nil
}

// forkVMA copies one VMA. Its pages follow only if it has anonymous ones.
func (m *Machine) forkVMA(c *Current, child *space, v *vma) {
	n := *v
	n.sp, n.place, n.chain, n.anon = child, nil, nil, nil
	n.flags &^= vmLockMask | vmUffd
	// Locks and anon_vmas that the child does not get no longer keep neighbours apart.
	child.loose = child.loose || n.flags != v.flags || v.flags&vmWipeFork != 0
	if v.flags&vmWipeFork == 0 {
		m.anonFork(&n, v)
	}
	m.forkHuge(&n, v)
	n.openShm()
	m.addVMA(c, &n)
	v.changed()
	if v.anon != nil && v.flags&vmWipeFork == 0 {
		m.copyRange(c, &n, v)
	}
}
