package mm

import "math/bits"

// ShmemMode is a setting of shared memory's huge pages.
type ShmemMode uint8

// The modes of shmem_enabled and of hugepages-<k>kB/shmem_enabled. Inherit is of
// a single size only, deny and force are of shmem_enabled only.
const (
	ShmemNever ShmemMode = iota
	ShmemAdvise
	ShmemWithinSize
	ShmemAlways
	ShmemInherit
	ShmemDeny
	ShmemForce
)

var shmemModeNames = [...]string{"never", "advise", "within_size", "always", "inherit", "deny", "force"}

// String is the kernel's word for the mode.
func (m ShmemMode) String() string { return word(shmemModeNames[:], int(m)) }

// shmemGlobal and shmemSize are the words of the two kinds of file, by mode.
func shmemGlobal() []string {
	w := shmemModeNames
	w[ShmemInherit] = "" // not one of its words
	return w[:]
}

func shmemSize() []string { return shmemModeNames[:ShmemDeny] }

// ShmemOrders lists the orders that have a hugepages-<k>kB/shmem_enabled file,
// smallest first: one more than anonymous memory has.
// Linux: include/linux/huge_mm.h:THP_ORDERS_ALL_FILE_DEFAULT (v6.18).
func (s Sizes) ShmemOrders() []Order { return append([]Order{MinTHPOrder - 1}, s.Orders()...) }

// shmemPolicy derives the orders from the policy.
func (m *Machine) shmemPolicy(p *Policy) {
	s := &m.shm
	s.always, s.within, s.advise, s.inherit = 0, 0, 0, 0
	if !m.rules.ShmemMTHP {
		s.inherit = m.pmdBit() // such kernels have the one switch for the one size
		return
	}
	for o := MinTHPOrder - 1; o <= m.pmdOrder; o++ {
		switch p.ShmemSize[o] {
		case ShmemAlways:
			s.always |= 1 << o
		case ShmemWithinSize:
			s.within |= 1 << o
		case ShmemAdvise:
			s.advise |= 1 << o
		case ShmemInherit:
			s.inherit |= 1 << o
		}
	}
}

// shmemPMDOn says whether shared memory has huge pages of the PMD's size in any
// way. Linux: mm/shmem.c:shmem_hpage_pmd_enabled (v6.18).
func (m *Machine) shmemPMDOn() bool {
	s, b := &m.shm, m.pmdBit()
	if m.policy.Shmem == ShmemDeny {
		return false
	}
	return (s.always|s.within|s.advise)&b != 0 || s.inherit&b != 0 && m.policy.Shmem != ShmemNever
}

// allowableShm is the set of orders that policy, process and mapping allow for
// page i of v's file. Inheriting sizes, small ones too, ask whether the setting
// would allow a block of the PMD's size there.
// Linux: mm/shmem.c:shmem_allowable_huge_orders, shmem_huge_global_enabled (v6.18).
func (m *Machine) allowableShm(v *vma, i uint64) uint16 {
	hinted := v.flags&vmHuge != 0
	switch {
	case v.flags&vmNoHuge != 0 || v.sp.thpDisable == THPDisabled || v.sp.thpDisable == THPExceptAdvised && !hinted,
		m.policy.Shmem == ShmemDeny:
		return 0
	case m.policy.Shmem == ShmemForce:
		return m.shm.inherit
	}
	mask := m.shm.always | m.withinSize(v.shm, m.shm.within, i)
	if hinted {
		mask |= m.shm.advise
	}
	switch all := m.policy.Shmem; {
	case all == ShmemAlways, all == ShmemWithinSize && m.withinSize(v.shm, m.pmdBit(), i) != 0,
		(all == ShmemWithinSize || all == ShmemAdvise) && hinted:
		mask |= m.shm.inherit
	}
	return mask
}

// withinSize drops orders, largest first, until the block of page i ends within
// the file. Linux: mm/shmem.c:shmem_get_orders_within_size (v6.18).
func (m *Machine) withinSize(f *shmFile, mask uint16, i uint64) uint16 {
	for mask != 0 {
		o := uint(bits.Len16(mask) - 1)
		if i>>o<<o+1<<o <= f.n {
			return mask
		}
		mask &^= 1 << o
	}
	return 0
}

// suitableShm drops the orders whose block around a leaves the mapping, or does
// not begin where a block of the file does.
// Linux: include/linux/huge_mm.h:thp_vma_suitable_order (v6.18).
func (m *Machine) suitableShm(v *vma, a VA, mask uint16) uint16 {
	off := uint64(v.start>>m.pageShift) - v.pgoff
	for mask != 0 {
		o := uint(bits.Len16(mask) - 1)
		size := VA(1) << (o + m.pageShift)
		if at := a &^ (size - 1); off&(1<<o-1) == 0 && at >= v.start && at+size <= v.end {
			return mask
		}
		mask &^= 1 << o
	}
	return 0
}
