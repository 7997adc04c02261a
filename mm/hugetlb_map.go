package mm

// zapHuge unmaps the pages of v in [from, to); flushHuge must follow.
// Linux: mm/hugetlb.c:__unmap_hugepage_range (v6.18).
func (m *Machine) zapHuge(c *Current, v *vma, from, to VA) {
	size, o, any := m.hugeLen(v), m.hugeVMAPool(v).order, false
	for a := from; a < to; a += size {
		p := m.hugeEntry(v.sp, a, o)
		if p == nil {
			if _, skip := m.nextPMD(v.sp, a); skip > a {
				a = skip&^(size-1) - size
				if skip > to {
					break
				}
			}
			continue
		}
		if *p&ePresent != 0 {
			m.unmapHuge(c, v, p, a)
			any = true
		}
	}
	if any {
		c.Work[PrimFlush]++
	}
}

// unmapHuge clears one entry. A private page's reservation is made anew while
// the pool has no surplus pages, so that another touch cannot fail; the page
// brings it along when it is freed (semantics 6.3.8).
func (m *Machine) unmapHuge(c *Current, v *vma, p *uint64, a VA) {
	pg, slot := m.hugeAt(*p)
	*p = 0
	v.sp.hugetlb -= m.hugeVMAPool(v).order.Pages()
	c.Work[PrimPMDZap]++
	if m.hugeVMAPool(v).surplus == 0 && v.huge.owner && pg.flags&hugeAnon != 0 {
		pg.flags |= hugeRestore
		v.huge.used.unset(m.hugeIndex(v, a))
	}
	m.putHuge(c, slot)
}

// putHuge drops one mapping of a page; the last one of a private page gathers it.
func (m *Machine) putHuge(c *Current, slot uint32) {
	pg := &m.huge.pages[slot]
	c.Work[PrimRmapRemove]++
	if pg.maps--; pg.maps == 0 && pg.flags&hugeCached == 0 {
		m.huge.gather = append(m.huge.gather, slot)
	}
}

// copyHuge copies a parent's private entries to the child's at fork: both are
// read-only then. Linux: mm/hugetlb.c:copy_hugetlb_page_range (v6.18).
func (m *Machine) copyHuge(c *Current, child, parent *vma) {
	size, o := m.hugeLen(parent), m.hugeVMAPool(parent).order
	for a := parent.start; a < parent.end; a += size {
		p := m.hugeEntry(parent.sp, a, o)
		if p == nil || *p&ePresent == 0 {
			continue
		}
		d := m.makeHugeEntry(c, child.sp, a, o)
		if d == nil {
			m.Usage.OOM++
			return
		}
		p = m.hugeEntry(parent.sp, a, o) // making d may have moved it
		if parent.flags&vmShared == 0 {
			*p &^= eWrite
		}
		*d = *p
		pg, _ := m.hugeAt(*p)
		pg.maps++
		child.sp.hugetlb += o.Pages()
		c.Work[PrimPMDCopy]++
		c.Work[PrimRmapAdd]++
	}
}

// moveHuge moves the entries of n pages from old to new, and with them the whole
// reservation of the source: what of it is not moved has none any more.
// Linux: mm/hugetlb.c:move_hugetlb_page_tables, clear_vma_resv_huge_pages (v6.18).
func (m *Machine) moveHuge(c *Current, from *vma, old, new VA, n Pages) {
	size, o := m.hugeLen(from), m.hugeVMAPool(from).order
	moved := m.bytes(n)
	for d := VA(0); d < moved; d += size {
		s := m.hugeEntry(from.sp, old+d, o)
		if s == nil || *s&ePresent == 0 {
			continue
		}
		t := m.makeHugeEntry(c, from.sp, new+d, o)
		if t == nil {
			m.Usage.OOM++
			break
		}
		s = m.hugeEntry(from.sp, old+d, o)
		*t, *s = *s, 0
		c.Work[PrimPMDMove]++
	}
	c.Work[PrimFlush]++
	h := from.huge
	if h.owner {
		for a := from.start; a < from.end; a += size {
			if i := m.hugeIndex(from, a); (a < old || a >= old+moved) && !h.used.has(i) {
				m.hugeVMAPool(from).leaked++
			}
		}
	}
	h.owner, h.used, h.unmapped = false, nil, false
}

// protectHuge makes the entries of [from, to) agree with the flags of v. Private
// pages become read-only by any change; the next write finds out that nobody
// else maps them. Linux: mm/hugetlb.c:hugetlb_change_protection (v6.18).
func (m *Machine) protectHuge(c *Current, v *vma, from, to VA) {
	size, o, any := m.hugeLen(v), m.hugeVMAPool(v).order, false
	for a := from; a < to; a += size {
		p := m.hugeEntry(v.sp, a, o)
		if p == nil || *p&ePresent == 0 {
			continue
		}
		*p &^= eWrite
		if v.flags&(vmShared|vmWrite) == vmShared|vmWrite {
			*p |= eWrite
		}
		c.Work[PrimPMDProt]++
		any = true
	}
	if any {
		c.Work[PrimFlush]++
	}
}

// populateHuge faults in the pages of v in [from, to).
func (m *Machine) populateHuge(c *Current, v *vma, from, to VA, write bool) Errno {
	acc := Read
	if write {
		acc = Write
	}
	size := m.hugeLen(v)
	f := &m.pages.softly
	for a := from; a < to; a = a&^(size-1) + size {
		f.Addr, f.Access, f.soft = a, acc|ZeroData|NoFault, true
		switch m.softFault(c, v.sp, f) {
		case Segv, Bus:
			m.Usage.SoftFaults--
			return EFAULT
		case OOM:
			return ENOMEM
		}
	}
	return OK
}

// dontNeedHuge is MADV_DONTNEED: the start must be a page's, the end is rounded
// down to one. Linux: mm/madvise.c:madvise_dontneed_free_valid_vma (v6.18).
func (m *Machine) dontNeedHuge(c *Current, v *vma, from, to VA) Errno {
	size := m.hugeLen(v)
	if from&(size-1) != 0 {
		return EINVAL
	}
	m.zapHuge(c, v, from, to&^(size-1))
	return OK
}
