package mm

import "math/bits"

// beginNone handles an access that found nothing at its address: the PMD path
// where it is allowed, else the PTE path. e is the PMD entry, none or a table.
// Linux: mm/memory.c:__handle_mm_fault (v6.18).
func (m *Machine) beginNone(c *Current, f *Fault, e uint64) Outcome {
	v := f.v
	m.countFault(c, f, v)
	if f.old&eGuard != 0 {
		return Segv
	}
	if f.pmd == 0 {
		if f.pmd = m.makePMDTable(c, f.sp, f.Addr); f.pmd == 0 {
			return m.outOfMemory(f)
		}
	}
	mask := m.allowable(v, useFault)
	if e == 0 {
		if mask&m.pmdBit() != 0 {
			if out := m.beginPMD(c, f); out != fallback {
				return out
			}
		}
		t := m.newTable(c)
		if t == 0 {
			return m.outOfMemory(f)
		}
		e = tableEntry(t)
		m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] = e
	}
	f.order = 0
	if f.Access&Write == 0 && !m.rules.NoZeroPage {
		f.kind = faultZeroPTE
		return Pending
	}
	m.prepareAnon(c, v)
	return m.beginAnonPTE(c, f, eSlot(e), mask&^m.pmdBit())
}

// beginAnonPTE chooses the order, allocates and clears (semantics 2.5.4).
// Linux: mm/memory.c:alloc_anon_folio (v6.18).
func (m *Machine) beginAnonPTE(c *Current, f *Fault, slot uint32, mask uint16) Outcome {
	if mask != 0 && f.v.flags&vmUffd == 0 {
		mask = m.freeOrders(f.v, f.Addr, slot, mask)
	} else {
		mask = 0
	}
	gfp := m.gfp(f.v)
	for mask != 0 {
		o := Order(bits.Len16(mask) - 1)
		pfn, res := m.allocAnon(c, o, gfp)
		if res == allocOK {
			f.kind, f.order, f.pfn = faultPTE, o, pfn
			f.at = f.Addr &^ (VA(1)<<(m.pageShift+uint(o)) - 1)
			m.clearPages(c, pfn, o, uint32(f.Addr>>m.pageShift)&(1<<o-1))
			return Pending
		}
		m.countFallback(o, res)
		f.tries++
		mask &^= 1 << o
	}
	pfn, ok := m.allocSmall(c)
	if !ok {
		return m.outOfMemory(f)
	}
	f.kind, f.order, f.pfn, f.at = faultPTE, 0, pfn, f.Addr&^(m.pageSize()-1)
	m.clearPages(c, pfn, 0, 0)
	return Pending
}

// freeOrders drops the orders that do not fit the VMA, then those whose range
// of PTEs is not entirely none.
func (m *Machine) freeOrders(v *vma, a VA, slot uint32, mask uint16) uint16 {
	mask = m.suitable(v, a, mask, false)
	for mask != 0 {
		o := Order(bits.Len16(mask) - 1)
		if m.pages.tables.none(slot, m.pageIndex(a)&^(1<<o-1), o) {
			return mask
		}
		mask &^= 1 << o
	}
	return 0
}

// countFallback counts a large allocation that failed at its order.
func (m *Machine) countFallback(o Order, res allocResult) {
	s := &m.Counters.Size[o]
	s.AnonFaultFallback++
	if res == allocNoCharge && m.rules.PMDChargeStats {
		s.AnonFaultFallbackCharge++
	}
	if o == m.pmdOrder {
		m.Counters.VM[THPFaultFallback]++
		if res == allocNoCharge {
			m.Counters.VM[THPFaultFallbackCharge]++
		}
	}
}

// commitPTE maps a new folio by PTEs, all at once (semantics 2.5.6).
func (m *Machine) commitPTE(c *Current, f *Fault) {
	v, o, n := f.v, f.order, f.order.Pages()
	p := m.newPTE(f)
	flags := ePresent | eYoung
	if v.flags&vmWrite != 0 {
		flags |= eWrite | eDirty
	}
	c.Work[PrimRmapAdd]++
	c.Work[PrimLRUAdd]++
	c.Work[PrimPTESet] += uint32(n)
	f.sp.rssAnon += n
	if m.cfg.ByRegion {
		m.usageOf(v).Allocated += n
	}
	if o == 0 {
		m.newSmall(f.pfn, v, f.at, 0)
		*p = leafEntry(f.pfn, flags) | m.access(v, f.pfn, f.Access)
		return
	}
	fo := m.newFolio(f.pfn, o, v, f.at)
	m.mapFolio(f.pmd, f.sp, fo, f.at, flags)
	*p |= m.access(v, f.pfn+PFN((f.Addr-f.at)>>m.pageShift), f.Access)
	m.Counters.Size[o].AnonFaultAlloc++
}

// mapFolio maps a whole new folio by the PTEs of one existing table.
func (m *Machine) mapFolio(pmd uint32, sp *space, fo *folio, at VA, flags uint64) {
	e := m.pages.tables.at(pmd)[m.pmdIndex(at)]
	t := m.pages.tables.at(eSlot(e))
	i := m.pageIndex(at)
	m.pages.tables.markRange(eSlot(e), i, int(fo.order.Pages()))
	for k := range PFN(fo.order.Pages()) {
		t[i+int(k)] = leafEntry(fo.head+k, flags)
		m.pages.frame(fo.head + k).flags |= frameExclusive
	}
	m.addPTEs(fo, sp, fo.head, fo.order.Pages())
}
