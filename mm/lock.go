package mm

// Bits of OpLockAll's Arg. Linux: include/uapi/asm-generic/mman.h (v6.18).
const (
	mclCurrent = 1 << iota
	mclFuture
	mclOnFault
)

// opLock does mlock, mlock2 and munlock.
// Linux: mm/mlock.c:do_mlock, apply_vma_lock_flags (v6.18).
func (m *Machine) opLock(c *Current, sp *space, op *Op, from VA) Errno {
	c.Work.Add(PrimMlock, 1)
	c.Work.Add(PrimMmapWrite, 1)
	to, ok := m.rangeEnd(sp, from, op.N)
	if !ok {
		return ENOMEM
	}
	if from == to {
		return OK
	}
	var lock vmFlags
	if op.Kind == OpLock {
		lock = vmLocked
		if op.Flags&LockOnFault != 0 {
			lock |= vmLockOnFault
		}
	}
	at := from
	for v := sp.at(from); v != nil && v.start <= at && at < to; {
		end := min(v.end, to)
		t, e := m.lockVMA(c, v, at, end, lock)
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
	if op.Kind == OpLock { // what is locked on fault populates nothing; hugetlb memory never is
		return m.populateLocked(c, sp, from, to)
	}
	return OK
}

// populateLocked is populateAll for mlock: the first refusal ends it, under
// another name. Linux: mm/mlock.c:__mlock_posix_error_return (v6.18).
func (m *Machine) populateLocked(c *Current, sp *space, from, to VA) Errno {
	for v := sp.find(from); v != nil && v.start < to; v = v.next() {
		switch m.populateVMA(c, v, max(from, v.start), min(to, v.end)) {
		case EFAULT:
			return ENOMEM
		case ENOMEM:
			return EAGAIN
		}
	}
	return OK
}

// lockVMA sets the lock flags of [start, end) of v; maps that never page out
// keep theirs. Linux: mm/mlock.c:mlock_fixup (v6.18).
func (m *Machine) lockVMA(c *Current, v *vma, start, end VA, lock vmFlags) (*vma, Errno) {
	flags := v.flags&^vmLockMask | lock
	if flags == v.flags || v.flags&(vmSpecials|vmDroppable) != 0 {
		return v, OK
	}
	was := v.flags
	t, e := m.modify(c, v, start, end, flags, v.node)
	if e == OK && (was^flags)&vmLocked != 0 {
		m.lockPages(t, start, end)
	}
	return t, e
}

// opLockAll does mlockall, and munlockall with Arg 0.
// Linux: mm/mlock.c:apply_mlockall_flags (v6.18).
func (m *Machine) opLockAll(c *Current, sp *space, op *Op) Errno {
	c.Work.Add(PrimMlock, 1)
	c.Work.Add(PrimMmapWrite, 1)
	how := op.Arg
	if how > mclCurrent|mclFuture|mclOnFault || how == mclOnFault {
		return EINVAL
	}
	var lock vmFlags
	if how != 0 {
		lock = vmLocked
		if how&mclOnFault != 0 {
			lock |= vmLockOnFault
		}
	}
	sp.defFlags = 0
	if how&mclFuture != 0 {
		sp.defFlags = lock
		if how&mclCurrent == 0 {
			return OK
		}
	}
	for n := sp.vmas.First(); n != nil; {
		v := n.Val
		t, e := m.lockVMA(c, v, v.start, v.end, lock)
		if e != OK {
			t = v
		}
		n = t.place.Next()
	}
	if how&mclCurrent != 0 {
		m.populateAll(c, sp, 0, sp.limitOf())
	}
	return OK
}

// opPopulate faults in a range. Linux: mm/gup.c:__mm_populate (v6.18).
func (m *Machine) opPopulate(c *Current, sp *space, op *Op, from VA) Errno {
	to, ok := m.rangeEnd(sp, from, op.N)
	if !ok {
		return ENOMEM
	}
	m.populateAll(c, sp, from, to)
	return OK
}
