package mm

// opProtect does mprotect. VMAs before a hole are changed although the call
// is refused. Linux: mm/mprotect.c:do_mprotect_pkey (v6.18).
func (m *Machine) opProtect(c *Current, sp *space, op *Op, from VA) Errno {
	c.Work.Add(PrimMprotect, 1)
	to, ok := m.rangeEnd(sp, from, op.N)
	if !ok {
		return ENOMEM
	}
	if from == to {
		return OK
	}
	c.Work.Add(PrimMmapWrite, 1)
	at := from
	for v := sp.at(from); v != nil && v.start <= at && at < to; {
		end := min(v.end, to)
		t, e := m.protectVMA(c, v, at, end, protFlags(op.Access))
		if e != OK {
			return e
		}
		at = end
		if v = t; v.end <= at {
			v = v.next()
		}
	}
	if at < to {
		return ENOMEM
	}
	return OK
}

// protectVMA gives [start, end) of v the protection prot and returns the VMA
// that then holds the range. Linux: mm/mprotect.c:mprotect_fixup (v6.18).
func (m *Machine) protectVMA(c *Current, v *vma, start, end VA, prot vmFlags) (*vma, Errno) {
	flags := v.flags&^vmAccess | prot
	if flags == v.flags {
		return v, OK
	}
	switch {
	case flags&vmWrite != 0:
		if v.flags&(vmAccount|vmWrite|vmHugetlb|vmShared|vmNoReserve) == 0 {
			flags |= vmAccount
		}
	case v.flags&vmAccount != 0 && v.anonymous() && v.anon == nil:
		flags &^= vmAccount
	}
	old := v.flags
	t, e := m.modify(c, v, start, end, flags, v.node)
	if e != OK {
		return nil, e
	}
	m.protectRange(c, t, start, end)
	// Locked memory that becomes writable is copied now.
	if old&(vmLocked|vmWrite|vmShared|vmLockOnFault|vmFile) == vmLocked && prot&vmWrite != 0 {
		m.populate(c, t, start, end, true)
	}
	return t, OK
}
