package mm

// protectRange makes the entries of [from, to) agree with the flags of v. What
// lost write permission becomes read-only; what gained it is made writable at
// once where the page is exclusive, and by a later fault elsewhere. Linux:
// mm/mprotect.c:change_protection_range, can_change_pte_writable (v6.18).
func (m *Machine) protectRange(c *Current, v *vma, from, to VA) {
	if v.huge != nil {
		m.protectHuge(c, v, from, to)
		return
	}
	size, any := m.pmdSize(), false
	for a := from; a < to; {
		pmd, skip := m.nextPMD(v.sp, a)
		if pmd == 0 {
			a = skip
			continue
		}
		next := min(a&^(size-1)+size, to)
		p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		if *p&eHuge != 0 && next-a < size {
			m.splitPMD(c, v.sp, pmd, a)
			p = &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		}
		switch e := *p; {
		case e&eHuge != 0:
			*p = m.protect(v, e)
			c.Work[PrimPMDProt]++
			any = true
		case e&eTable != 0:
			t := m.pages.tables.at(eSlot(e))
			i := m.pageIndex(a)
			for last := i + int((next-a)>>m.pageShift); i < last; i++ {
				if t[i]&ePresent != 0 {
					was := t[i]
					t[i] = m.protect(v, was)
					c.Work[protPrim(was, t[i])]++
					any = true
				}
			}
		}
		a = next
	}
	if any {
		c.Work[PrimFlush]++
	}
}

// protPrim is what changing a PTE so counts as.
func protPrim(was, is uint64) Prim {
	if is&^was&eWrite != 0 {
		return PrimPTEAllow
	}
	return PrimPTEProt
}

// protect is a present entry under the VMA's new protection. Linux:
// mm/mprotect.c:can_change_pte_writable (v6.1, v6.2),
// mm/huge_memory.c:can_change_pmd_writable (v6.2).
func (m *Machine) protect(v *vma, e uint64) uint64 {
	if v.flags&vmWrite == 0 {
		return e &^ eWrite
	}
	if v.shm != nil {
		return e | eWrite // nothing is copied, or written back
	}
	r := &m.rules
	allows := r.ProtectAllows && (r.ProtectClean || e&eDirty != 0)
	if e&eHuge != 0 {
		allows = r.ProtectPMD
	}
	if allows && e&eZero == 0 && m.pages.frame(ePFN(e)).flags&frameExclusive != 0 {
		e |= eWrite
	}
	return e
}
