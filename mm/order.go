package mm

import "math/bits"

// SetPolicy changes the knobs. As in the kernel, only later faults and scans
// see it.
func (m *Machine) SetPolicy(p Policy) {
	m.hugePolicy(&m.policy, &p)
	m.policy = p
	m.shmemPolicy(&p)
	m.ordersAlways, m.ordersMadvise, m.ordersInherit = 0, 0, 0
	for o := Order(2); o <= m.pmdOrder; o++ {
		if !m.rules.MTHP && o < m.pmdOrder {
			continue
		}
		mode := p.Size[o]
		if !m.rules.MTHP {
			mode = Inherit // such kernels have the one switch for the one size
		}
		switch mode {
		case Always:
			m.ordersAlways |= 1 << o
		case Madvise:
			m.ordersMadvise |= 1 << o
		case Inherit:
			m.ordersInherit |= 1 << o
		}
	}
	m.ordersSmall = (m.ordersAlways|m.ordersMadvise|m.ordersInherit)&^m.pmdBit() != 0
	m.alloc.SetTHP(m.khugepagedOn())
	m.khugepagedPolicy()
}

// orderUse says who asks which orders are allowed.
type orderUse uint8

const (
	useFault orderUse = iota
	useKhugepaged
	useCollapse // MADV_COLLAPSE: the knobs do not count
	useReport   // smaps THPeligible
)

// allowable is the set of orders that policy, process and VMA allow (bit o for
// order o), whatever the address (semantics 2.1). Linux:
// mm/huge_memory.c:__thp_vma_allowable_orders (v6.18).
func (m *Machine) allowable(v *vma, use orderUse) uint16 {
	fl := v.flags
	if fl&(vmNoHuge|vmFile|vmHugetlb|vmStackSetup) != 0 {
		return 0
	}
	hinted := fl&vmHuge != 0
	switch v.sp.thpDisable {
	case THPDisabled:
		return 0
	case THPExceptAdvised:
		if !hinted && use != useCollapse {
			return 0
		}
	}
	var mask uint16
	if use == useCollapse {
		mask = m.orderBits()
	} else {
		mask = m.ordersAlways
		if hinted {
			mask |= m.ordersMadvise
		}
		if m.policy.Enabled == Always || hinted && m.policy.Enabled == Madvise {
			mask |= m.ordersInherit
		}
	}
	if use == useFault || mask == 0 {
		return mask
	}
	if fl&vmSpecial != 0 && use != useReport {
		return 0
	}
	if v.anon == nil && use != useReport {
		return 0
	}
	return m.suitable(v, v.end-1, mask, true)
}

// orderBits is every order that an anonymous folio can have.
func (m *Machine) orderBits() uint16 { return (1<<(m.pmdOrder+1) - 1) &^ 3 }

// suitable drops the orders whose aligned block around a leaves the VMA
// (semantics 2.2). With last set, a stands in the last page of the VMA and a
// block that ends there or before it is looked for.
func (m *Machine) suitable(v *vma, a VA, mask uint16, last bool) uint16 {
	for mask != 0 {
		o := uint(bits.Len16(mask) - 1)
		size := VA(1) << (o + m.pageShift)
		at := a &^ (size - 1)
		if last && at+size > v.end {
			if at < size {
				mask &^= 1 << o
				continue
			}
			at -= size
		}
		if at >= v.start && at+size <= v.end {
			return mask
		}
		mask &^= 1 << o
	}
	return 0
}

func (m *Machine) pageSize() VA { return 1 << m.pageShift }

func (m *Machine) pmdBit() uint16 { return 1 << m.pmdOrder }
