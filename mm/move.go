package mm

// movePages moves the entries of n pages from old in the VMA from to new in
// the VMA to. Where both addresses allow it whole tables and huge entries
// move; otherwise huge entries are split (semantics 3.8). Linux:
// mm/mremap.c:move_page_tables (v6.18).
func (m *Machine) movePages(c *Current, from, to *vma, old, new VA, n Pages) {
	if from.huge != nil {
		m.moveHuge(c, from, old, new, n)
		return
	}
	size := m.pmdSize()
	end := old + VA(n)<<m.pageShift
	old, new = m.realign(from, to, old, new, end)
	ssp, dsp := from.sp, to.sp
	for old < end {
		src, skip := m.nextPMD(ssp, old)
		if src == 0 {
			// Steps keep to the PMD grid of both addresses.
			skip = min(skip, end)
			new += skip - old
			old = skip
			continue
		}
		step := min(old&^(size-1)+size, end) - old
		step = min(step, new&^(size-1)+size-new)
		if m.pages.tables.at(src)[m.pmdIndex(old)] != 0 {
			if !m.moveStep(c, ssp, dsp, src, old, new, step) {
				m.Usage.OOM++
				break
			}
		}
		old += step
		new += step
	}
	c.Work[PrimFlush]++
}

// realign moves both addresses down to the start of their table when nothing
// else lies there, so that the whole table can go. Linux:
// mm/mremap.c:try_realign_addr (v6.18).
func (m *Machine) realign(from, to *vma, old, new, end VA) (VA, VA) {
	mask := m.pmdSize() - 1
	if old&mask == 0 || old&mask != new&mask || end < old&^mask+mask+1 {
		return old, new
	}
	if !alone(from, old, old&^mask) || !alone(to, new, new&^mask) {
		return old, new
	}
	return old &^ mask, new &^ mask
}

// alone says whether v starts at a and no VMA lies between low and there.
func alone(v *vma, a, low VA) bool {
	return v.start == a && v.sp.find(low) == v
}

// moveStep moves what one PMD entry maps of [old, old+step).
func (m *Machine) moveStep(c *Current, ssp, dsp *space, src uint32, old, new, step VA) bool {
	dst := m.makePMDTable(c, dsp, new)
	if dst == 0 {
		return false
	}
	s := &m.pages.tables.at(src)[m.pmdIndex(old)]
	d := &m.pages.tables.at(dst)[m.pmdIndex(new)]
	if step == m.pmdSize() && *d == 0 {
		if *s&eHuge != 0 && (*s&eZero != 0 || !m.pages.frame(ePFN(*s)).shared()) {
			m.deposit(dst, m.withdraw(src))
		}
		*d, *s = *s, 0
		c.Work[PrimPMDMove]++
		return true
	}
	if *s&eHuge != 0 {
		m.splitPMD(c, ssp, src, old)
	}
	if *s == 0 { // of shared memory nothing is left then
		return true
	}
	if *d == 0 {
		t := m.newTable(c)
		if t == 0 {
			return false
		}
		*d = tableEntry(t)
	}
	p, left, got := &m.pages.tables, eSlot(*s), eSlot(*d)
	from, to := p.at(left), p.at(got)
	i, j, n := m.pageIndex(old), m.pageIndex(new), int(step>>m.pageShift)
	for k := range n {
		if from[i+k] != 0 {
			to[j+k], from[i+k] = from[i+k], 0
			p.mark(got, j+k)
			c.Work[PrimPTEMove]++
		}
	}
	p.unmarkRange(left, i, n)
	return true
}
