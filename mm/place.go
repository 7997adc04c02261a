package mm

// placeReq asks for room for a mapping.
type placeReq struct {
	hint   VA // 0 for none
	length VA
	align  VA // the alignment asked for, 0 for none
}

// limitOf is the first address that sp's program cannot map.
func (sp *space) limitOf() VA {
	if sp.compat {
		return taskSizeCompat
	}
	return taskSize
}

// place finds room in sp. Linux: mm/mmap.c:__get_unmapped_area,
// mm/huge_memory.c:__thp_get_unmapped_area (v6.18).
func (m *Machine) place(sp *space, q placeReq) (VA, Errno) {
	if q.align != 0 && !sp.compat {
		pad := q.length + q.align
		if at, e := m.unmappedArea(sp, q.hint, pad); e == OK {
			off := -at & (q.align - 1)
			if off == 0 {
				return at + q.align, OK // the higher of the two that fit
			}
			return at + off, OK
		}
	}
	return m.unmappedArea(sp, q.hint, q.length)
}

// alignedMap says whether the kernel aligns an anonymous map of this length
// that came without a hint.
func (m *Machine) alignedMap(length VA) bool {
	switch m.rules.AlignTHP {
	case AlignLong:
		return length >= m.pmdSize()
	case AlignMultiple:
		return length&(m.pmdSize()-1) == 0
	}
	return false
}

// unmappedArea honours a free hint, else looks top-down below mmapBase, else
// bottom-up. Linux: arch/x86/kernel/sys_x86_64.c:arch_get_unmapped_area_topdown
// (v6.18).
func (m *Machine) unmappedArea(sp *space, hint, length VA) (VA, Errno) {
	limit := sp.limitOf()
	if length > limit || length == 0 {
		return 0, ENOMEM
	}
	if hint != 0 {
		hint = max(hint&^(1<<m.pageShift-1), mmapMinAddr)
		if hint <= limit-length {
			if v := sp.find(hint); v == nil || hint+length <= m.startGap(v) {
				return hint, OK
			}
		}
	}
	if at, ok := m.topDown(sp, length); ok {
		return at, OK
	}
	if at, ok := m.bottomUp(sp, length); ok {
		return at, OK
	}
	return 0, ENOMEM
}

// topDown takes the highest room below mmapBase that keeps out of the guard
// gap of a stack above it. Linux: mm/vma.c:unmapped_area_topdown (v6.18).
func (m *Machine) topDown(sp *space, length VA) (VA, bool) {
	high := sp.mmapBase
	for {
		end, ok := sp.vmas.HighestGap(uint64(mmapMinAddr), uint64(high), uint64(length))
		if !ok {
			return 0, false
		}
		if v := sp.lookupQuiet(VA(end)); v != nil && m.startGap(v) < VA(end) {
			high = m.startGap(v)
			continue
		}
		return VA(end) - length, true
	}
}

// bottomUp takes the lowest room above a third of the address space.
// Linux: mm/vma.c:unmapped_area (v6.18).
func (m *Machine) bottomUp(sp *space, length VA) (VA, bool) {
	page := VA(1) << m.pageShift
	low := (sp.limitOf()/3 + page - 1) &^ (page - 1)
	for {
		start, ok := sp.vmas.LowestGap(uint64(low), uint64(sp.limitOf()), uint64(length))
		if !ok {
			return 0, false
		}
		if v := sp.lookupQuiet(VA(start)); v != nil && m.startGap(v) < VA(start)+length {
			low = v.end
			continue
		}
		return VA(start), true
	}
}

// lookupQuiet is find without the cache: placement must not disturb it.
func (sp *space) lookupQuiet(a VA) *vma {
	if n := sp.vmas.Find(uint64(a)); n != nil {
		return n.Val
	}
	return nil
}
