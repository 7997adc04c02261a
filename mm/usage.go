package mm

// notePeak keeps the highest Usage.Anon, and what of it was never touched.
func (m *Machine) notePeak() {
	if m.Usage.Anon > m.Usage.AnonPeak {
		m.Usage.AnonPeak = m.Usage.Anon
		m.Usage.UntouchedAtPeak = m.Usage.Anon - m.Usage.Touched
	}
}

// tick moves virtual time on: memory held grows Usage.Integral, and khugepaged
// does the passes that are due.
func (m *Machine) tick(now Nanos) {
	if now <= m.Usage.Last {
		m.khugepagedRun(m.Usage.Last)
		return
	}
	for m.khugepagedDue(now) {
		m.passTime(max(m.khuge.next, m.Usage.Last))
		m.khugepagedPass(m.Usage.Last)
	}
	m.passTime(now)
}

func (m *Machine) passTime(now Nanos) {
	m.Usage.Integral += float64(m.Usage.Anon) * float64(now-m.Usage.Last) / 1e9
	m.Usage.Last = now
	m.decay(now)
}

// decay lets the per-CPU lists shrink about once a second, as the vmstat
// worker does; after a long pause a minute of it is as good as all.
func (m *Machine) decay(now Nanos) {
	const second, minute = Nanos(1e9), Nanos(60e9)
	if now-m.pages.decayed > minute {
		m.pages.decayed = now - minute
	}
	for ; m.pages.decayed+second <= now; m.pages.decayed += second {
		m.physDecay()
	}
}

// region is the usage record of a region, made on first use.
func (m *Machine) region(r Region) *RegionUsage {
	for int(r) >= len(m.pages.regions) {
		m.pages.regions = append(m.pages.regions, RegionUsage{})
	}
	return &m.pages.regions[r]
}

// usageOf is the usage record that pages of v count in: that of the region
// which the program named, because v may have grown out of another's VMA, as a
// heap does that begins where the program's own data ends.
func (m *Machine) usageOf(v *vma) *RegionUsage {
	if m.exec.region != 0 {
		return m.region(m.exec.region)
	}
	return m.region(v.region)
}

// Regions calls f for every region in use by number, in order.
func (m *Machine) Regions(f func(Region, RegionUsage)) {
	for r, u := range m.pages.regions {
		if u != (RegionUsage{}) {
			f(Region(r), u)
		}
	}
}

// worstKey orders faults by cost without prices: pages cleared and copied,
// then tables and failed allocations.
func worstKey(w, before *Work) uint64 {
	pages := w[PrimClearSmall] - before[PrimClearSmall] + w[PrimClearLarge] - before[PrimClearLarge] +
		w[PrimClearBlock] - before[PrimClearBlock] + w[PrimClearPMD] - before[PrimClearPMD] +
		w[PrimCopyCOW] - before[PrimCopyCOW]
	rest := w[PrimTableAlloc] - before[PrimTableAlloc] + w[PrimAllocFail] - before[PrimAllocFail]
	return uint64(pages)<<32 | uint64(rest)
}

// noteWorst keeps the costliest fault of each order.
func (m *Machine) noteWorst(c *Current, before *Work, o Order) {
	k := worstKey(&c.Work, before) + 1
	if k <= m.pages.worstKey[o] {
		return
	}
	m.pages.worstKey[o] = k
	w := &m.pages.worst[o]
	for i := range w {
		w[i] = c.Work[i] - before[i]
	}
}

// WorstFaults is the costliest fault seen of each order of the folio it mapped
// (index 0 takes small pages, copies and the rest), as work: price each and
// take the largest. Costliest means most pages cleared and copied, then most
// tables and failed allocations.
func (m *Machine) WorstFaults() *[NumOrders]Work { return &m.pages.worst }
