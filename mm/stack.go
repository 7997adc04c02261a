package mm

// stackLimit is the usual soft RLIMIT_STACK, for stacks that a recording did
// not bound.
const stackLimit VA = 8 << 20

// expandStack grows the grows-down VMA above a down to the page of a, and no
// further. It returns the VMA that holds a, or nil: no stack there, the limit
// reached, or another mapping within the guard gap.
// Linux: mm/mmap_lock.c:lock_mm_and_find_vma, mm/vma.c:expand_downwards (v6.18).
func (m *Machine) expandStack(c *Current, sp *space, a VA) *vma {
	a &^= 1<<m.pageShift - 1
	v := sp.find(a)
	if v == nil || v.start <= a {
		return v
	}
	if v.flags&vmGrowsDown == 0 || a < mmapMinAddr || a < m.stackFloor(sp, v) {
		return nil
	}
	if p := v.prev(); p != nil && p.flags&vmGrowsDown == 0 && p.flags&vmAccess != 0 &&
		a-p.end < m.bytes(guardPages) {
		return nil
	}
	grow := uint64(m.span(a, v.start))
	if grow > v.pgoff {
		return nil
	}
	v.setRange(a, v.end, v.pgoff-grow)
	c.Work.Add(PrimStackGrow, 1)
	m.khugepagedEnter(sp, v)
	return v
}

// stackFloor is the lowest address that v may grow to.
func (m *Machine) stackFloor(sp *space, v *vma) VA {
	if sp.stackLow != 0 && sp.stackLow < v.end && v.end <= sp.stackHigh {
		return sp.stackLow
	}
	if v.end < stackLimit {
		return 0
	}
	return v.end - stackLimit
}
