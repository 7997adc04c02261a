package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// fallback is the PMD path's way to say: go on with the PTE path. It never
// leaves the package.
const fallback Outcome = 255

// beginPMD tries to serve a fault on an empty PMD entry by a block of the
// PMD's order (semantics 2.4). Linux:
// mm/huge_memory.c:do_huge_pmd_anonymous_page (v6.18).
func (m *Machine) beginPMD(c *Current, f *Fault) Outcome {
	v := f.v
	at := f.Addr &^ (m.pmdSize() - 1)
	if at < v.start || at+m.pmdSize() > v.end {
		return fallback
	}
	m.prepareAnon(c, v)
	m.khugepagedEnter(f.sp, v)
	f.at = at
	if f.Access&Write == 0 && m.policy.UseZeroPage && !m.rules.NoZeroPage {
		if !m.depositFor(c, f) {
			return m.outOfMemory(f)
		}
		if !m.getHugeZero(c, f.sp) {
			m.freeTableFrame(c, f.table)
			m.Counters.VM[THPFaultFallback]++
			return fallback
		}
		f.kind, f.order = faultZeroPMD, 0
		return Pending
	}
	if v.flags&vmUffd != 0 {
		return fallback // user space resolves it, with a small page
	}
	if !m.beginTHP(c, f) {
		return fallback
	}
	if !m.depositFor(c, f) {
		m.giveBack(c, f.pfn, f.order)
		return m.outOfMemory(f)
	}
	f.kind = faultPMD
	return Pending
}

// depositFor takes the page of the table that the new PMD entry will need if
// it is ever split.
func (m *Machine) depositFor(c *Current, f *Fault) (ok bool) {
	f.table, ok = m.tableFrame(c)
	return ok
}

// beginTHP allocates and clears a THP for f; false is counted as a fallback.
// Linux: mm/huge_memory.c:vma_alloc_anon_folio_pmd (v6.18).
func (m *Machine) beginTHP(c *Current, f *Fault) bool {
	pfn, res := m.allocAnon(c, m.pmdOrder, m.gfp(f.v))
	if res != allocOK {
		m.countFallback(m.pmdOrder, res)
		f.tries++
		return false
	}
	f.pfn, f.order = pfn, m.pmdOrder
	f.kind = faultPMD
	f.at = f.Addr &^ (m.pmdSize() - 1)
	m.clearPages(c, pfn, m.pmdOrder, uint32(m.pageIndex(f.Addr)))
	return true
}

// commitPMD deposits a table and maps the THP.
func (m *Machine) commitPMD(c *Current, f *Fault) {
	m.deposit(f.pmd, f.table)
	f.sp.rssAnon += f.order.Pages()
	m.mapTHP(c, f)
}

// mapTHP makes the block f.pfn a folio and maps it over f.at; the deposit and
// RSS are the caller's.
func (m *Machine) mapTHP(c *Current, f *Fault) {
	v := f.v
	fo := m.newFolio(f.pfn, f.order, v, f.at)
	m.setTHP(c, f.pmd, f.sp, v, fo, f.at)
	m.access(v, f.pfn+PFN(m.pageIndex(f.Addr)), f.Access)
	m.Counters.VM[THPFaultAlloc]++
	m.Counters.Size[f.order].AnonFaultAlloc++
	if m.cfg.ByRegion {
		m.usageOf(v).Allocated += f.order.Pages()
	}
}

// setTHP maps a new folio by a PMD entry and queues it as maybe underused.
func (m *Machine) setTHP(c *Current, pmd uint32, sp *space, v *vma, fo *folio, at VA) {
	flags := ePresent | eHuge | eYoung | eDirty
	if v.flags&vmWrite != 0 {
		flags |= eWrite
	}
	head := m.pages.frame(fo.head)
	head.flags |= frameExclusive
	m.addPMD(fo, sp)
	m.pages.tables.at(pmd)[m.pmdIndex(at)] = leafEntry(fo.head, flags)
	c.Work[PrimPMDSet]++
	c.Work[PrimRmapAdd]++
	c.Work[PrimLRUAdd]++
	if m.rules.FastDeferred {
		m.deferSplit(c, head.ref, false)
	}
}

// commitZeroPMD maps the huge zero page: no counter but the deposit.
func (m *Machine) commitZeroPMD(c *Current, f *Fault) {
	m.deposit(f.pmd, f.table)
	m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] = ePresent | eHuge | eZero | eYoung
	c.Work[PrimPMDSet]++
}

// getHugeZero gives the space its reference to the huge zero page, which is
// allocated for the first user, as an unmovable block and whatever defrag says.
// Linux: mm/huge_memory.c:get_huge_zero_folio (v6.18).
func (m *Machine) getHugeZero(c *Current, sp *space) bool {
	if sp.zeroHuge {
		return true
	}
	z := &m.pages.zero
	if !z.have {
		pfn, ok := m.physAlloc(c, m.pmdOrder, buddy.Unmovable, buddy.DirectReclaim)
		if !ok {
			m.Counters.VM[THPZeroPageAllocFailed]++
			return false
		}
		m.Counters.VM[THPZeroPageAlloc]++
		m.Counters.VM[PgAlloc] += uint64(m.pmdOrder.Pages())
		m.pages.ensureFrames(pfn, m.pmdOrder)
		for i := range PFN(m.pmdOrder.Pages()) {
			*m.pages.frame(pfn + i) = frame{flags: frameHugeZero, order: uint8(m.pmdOrder)}
		}
		m.clearPages(c, pfn, m.pmdOrder, 0)
		*z = hugeZero{have: true, pfn: pfn}
	}
	z.users++
	sp.zeroHuge = true
	return true
}

// hugeZero is the one huge zero page of the machine.
type hugeZero struct {
	have  bool
	pfn   PFN
	users uint32 // spaces that hold a reference
}

// putHugeZero ends a space's reference; the shrinker frees the page.
func (m *Machine) putHugeZero(sp *space) {
	if sp.zeroHuge {
		sp.zeroHuge = false
		m.pages.zero.users--
	}
}

// shrinkHugeZero frees the huge zero page when no space holds it.
func (m *Machine) shrinkHugeZero(c *Current) {
	z := &m.pages.zero
	if !z.have || z.users > 0 {
		return
	}
	m.pages.clearFrames(z.pfn, m.pmdOrder)
	m.Counters.VM[PgFree] += uint64(m.pmdOrder.Pages())
	m.physFree(c, z.pfn, m.pmdOrder, buddy.Unmovable)
	*z = hugeZero{}
}
