package mm

import "math/bits"

// placeShm finds room for shared anonymous memory that is mapped anew.
// Linux: mm/shmem.c:shmem_get_unmapped_area (v6.18).
func (m *Machine) placeShm(sp *space, length VA, op *Op) (VA, Errno) {
	q := placeReq{length: length}
	if op.Flags&MapHint != 0 {
		q.hint = m.movedHint(sp, VA(op.Arg))
	}
	at, e := m.place(sp, q)
	return m.alignShm(sp, q, at, e, 0, m.shmAlign(true))
}

// shmAlign is the alignment that huge pages of shared memory ask for, 0 for none:
// that of the largest size in use where a mapping is new, the PMD's where one of a
// file moves. Linux: mm/shmem.c:shmem_get_unmapped_area (v6.18).
func (m *Machine) shmAlign(fresh bool) VA {
	s, all := &m.shm, m.policy.Shmem
	switch {
	case all == ShmemDeny:
		return 0
	case all == ShmemForce, all != ShmemNever && (!fresh || !m.rules.ShmemMTHP):
		return m.pmdSize()
	case !fresh:
		return 0
	}
	mask := s.always | s.within | s.advise
	if all != ShmemNever {
		mask |= s.inherit
		if mask == 0 {
			return m.pmdSize()
		}
	}
	if mask == 0 {
		return 0
	}
	return m.bytes(1 << (bits.Len16(mask) - 1))
}

// alignShm moves a place that was found, at, to one where page index of the file
// lies as it does in the file, if there is room for that.
func (m *Machine) alignShm(sp *space, q placeReq, at VA, e Errno, index uint64, align VA) (VA, Errno) {
	if e != OK || align == 0 || q.hint != 0 && q.hint == at || q.length < align {
		return at, e
	}
	off := m.bytes(Pages(index)) & (align - 1)
	if at&(align-1) == off || off != 0 && off+q.length < 2*align {
		return at, e
	}
	q.length += align - m.pageSize()
	wide, e := m.place(sp, q)
	if e != OK {
		return at, OK
	}
	to := wide&^(align-1) + off
	if wide&(align-1) > off {
		to += align
	}
	return to, OK
}
