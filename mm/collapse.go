package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// scanResult is what a look at one PMD-sized range found. Linux:
// mm/khugepaged.c:enum scan_result (v6.18).
type scanResult uint8

const (
	scanSucceed scanResult = iota
	scanFail
	scanPMDNull   // no PMD table
	scanPMDNone   // empty PMD entry
	scanPMDMapped // huge already
	scanExceedNone
	scanExceedSwap
	scanExceedShared
	scanPageCount // pinned
	scanUffd
	scanNotAnon
	scanLackReferenced
	scanPageReadOnly // no entry is writable, before 6.18
	scanAllocFail
	scanChargeFail
)

// scanner says for whom a range is looked at.
type scanner struct {
	khugepaged bool
	gfp        buddy.Flags
}

// scanPMD looks at the range at a and collapses it if the rules allow
// (semantics 5.2). tried is set when a collapse was attempted, which lets go
// of mmap_lock. Linux: mm/khugepaged.c:hpage_collapse_scan_pmd (v6.18).
func (m *Machine) scanPMD(c *Current, v *vma, a VA, s scanner) (res scanResult, tried bool) {
	pmd := m.pmdTable(v.sp, a)
	if pmd == 0 {
		return scanPMDNull, false
	}
	e := m.pages.tables.at(pmd)[m.pmdIndex(a)]
	switch {
	case e == 0:
		return scanPMDNone, false
	case e&eHuge != 0:
		return scanPMDMapped, false
	}
	t := m.pages.tables.at(eSlot(e))
	if res := m.scanTable(c, v, t, s); res != scanSucceed {
		return res, false
	}
	return m.collapseAt(c, v, pmd, a, s), true
}

// scanTable applies the limits to all entries, in order; the first rule that
// fails decides.
func (m *Machine) scanTable(c *Current, v *vma, t []uint64, s scanner) scanResult {
	k := &m.policy.Khugepaged
	var none, swap, shared, young uint32
	writable := m.rules.CollapseReadOnly
	for _, e := range t {
		c.Work[PrimScanPTE]++
		switch {
		case e&eGuard != 0:
			if swap++; s.khugepaged && swap > k.MaxPTEsSwap {
				m.Counters.VM[THPScanExceedSwapPTE]++
				return scanExceedSwap
			}
			continue
		case e == 0 || e&eZero != 0:
			if none++; v.flags&vmUffd != 0 || s.khugepaged && none > k.MaxPTEsNone {
				m.Counters.VM[THPScanExceedNonePTE]++
				return scanExceedNone
			}
			continue
		}
		fr := m.pages.frame(ePFN(e))
		if m.maybeShared(ePFN(e), fr) {
			if !m.rules.KhugepagedShared {
				return scanPageCount // before 5.8 any other reference refused
			}
			if shared++; s.khugepaged && shared > k.MaxPTEsShared {
				m.Counters.VM[THPScanExceedSharePTE]++
				return scanExceedShared
			}
		}
		if fr.order != 0 && m.folioOf(fr).pins > 0 {
			return scanPageCount
		}
		if e&eYoung != 0 {
			young++
		}
		writable = writable || e&eWrite != 0
	}
	if !writable {
		return scanPageReadOnly
	}
	if s.khugepaged && (young == 0 || swap > 0 && young < uint32(len(t))/2) {
		return scanLackReferenced
	}
	return scanSucceed
}

// collapseAt replaces what a table maps by one THP (semantics 5.3). Linux:
// mm/khugepaged.c:collapse_huge_page (v6.18).
func (m *Machine) collapseAt(c *Current, v *vma, pmd uint32, a VA, s scanner) scanResult {
	o := m.pmdOrder
	pfn, ok := m.allocBlock(c, o, s.gfp)
	if !ok {
		m.Counters.VM[THPCollapseAllocFailed]++
		m.Usage.Fallbacks++
		return scanAllocFail
	}
	m.Counters.VM[THPCollapseAlloc]++
	if !m.charge(c, o) {
		m.freeBlock(c, pfn, o)
		m.Usage.Fallbacks++
		return scanChargeFail
	}
	m.notePeak()
	c.Work[PrimMmapRead]++
	p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	slot := eSlot(*p)
	t := m.pages.tables.at(slot)
	for _, e := range t {
		if e&eGuard != 0 { // what swap-in cannot bring back
			m.giveBack(c, pfn, o)
			return scanFail
		}
	}
	c.Work[PrimMmapWrite]++
	c.Work[PrimFlush]++
	v.seq++
	fo := m.newFolio(pfn, o, v, a)
	*p = 0
	fresh := m.copyIn(c, v, fo, t)
	v.sp.rssAnon += fresh
	meta := m.pages.tables.meta[slot]
	m.pages.tables.put(slot)
	m.deposit(pmd, meta.pfn)
	m.setTHP(c, pmd, v.sp, v, fo, a)
	if m.cfg.ByRegion {
		m.usageOf(v).Allocated += o.Pages()
	}
	c.Work[PrimCollapse]++
	return scanSucceed
}

// copyIn moves the content of the old pages into the new folio, ascending, and
// takes their mappings away; it returns how many pages were not there before.
// Linux: mm/khugepaged.c:__collapse_huge_page_copy (v6.18).
func (m *Machine) copyIn(c *Current, v *vma, fo *folio, t []uint64) (fresh Pages) {
	for i, e := range t {
		if e == 0 || e&eZero != 0 {
			fresh++
			continue
		}
		from, to := m.pages.frame(ePFN(e)), m.pages.frame(fo.head+PFN(i))
		to.flags |= from.flags & (frameFilled | frameTouched)
		if from.flags&frameTouched != 0 {
			fo.touched++
			m.Usage.Touched++
		}
	}
	copied := uint32(len(t)) - uint32(fresh)
	c.Work[PrimCopyCollapse] += copied
	c.Work[PrimClearPMD] += uint32(fresh)
	c.step(PrimCopyCollapse, fo.order, copied, fo.head)
	for i := 0; i < len(t); {
		e := t[i]
		if e == 0 || e&eZero != 0 {
			t[i] = 0
			i++
			continue
		}
		k := m.batch(t, i, len(t), m.rules.BatchedZap)
		clear(t[i : i+k])
		c.Work[PrimPTEZap] += uint32(k)
		m.removePTEs(c, v, ePFN(e), Pages(k))
		i += k
	}
	return fresh
}

// collapse is MADV_COLLAPSE of [from, to) of v (semantics 5.4). Linux:
// mm/khugepaged.c:madvise_collapse (v6.18).
func (m *Machine) collapse(c *Current, v *vma, from, to VA) Errno {
	if m.allowable(v, useCollapse)&m.pmdBit() == 0 {
		return EINVAL
	}
	size := m.pmdSize()
	start, end := (from+size-1)&^(size-1), to&^(size-1)
	last := scanSucceed
	huge, want := 0, 0
	switch {
	case end > start:
		want = int((end - start) / size)
	case end < start: // inside one block; where both round to one boundary nothing was asked
		return EINVAL
	}
	for a := start; a < end; a += size {
		res, _ := m.scanPMD(c, v, a, scanner{gfp: buddy.DirectReclaim})
		switch res {
		case scanSucceed, scanPMDMapped:
			huge++
			continue
		case scanPMDNull, scanLackReferenced, scanPageCount, scanPageReadOnly:
			last = res
			continue
		}
		last = res
		break
	}
	if huge == want {
		return OK
	}
	switch last {
	case scanAllocFail:
		return ENOMEM
	case scanChargeFail, scanExceedNone:
		return EBUSY
	case scanPageCount:
		return EAGAIN
	}
	return EINVAL
}
