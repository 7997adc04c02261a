package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// quick does the two commonest accesses in one step, or nothing at all: a hit
// on a small page, and a first touch that Begin and Commit would serve with
// one small page from the CPU's own list, into a table that is there. What it
// leaves behind is to the last counter what they would leave;
// TestQuickChangesNothing runs both.
//
// It is apart for speed. A first touch at a random place has its entry come from
// memory: it neither reads it nor writes it at once (tablePool). What is left
// overlaps with the faults before and after it as far as it does not read what
// was stored in smaller pieces just before (Fault.before, buddy.Events) and is
// short enough to fit the processor's window.
func (m *Machine) quick(c *Current, sp *space, a VA, acc Access) (out Outcome, ok bool) {
	v := sp.hit
	if v == nil || a-v.start >= v.end-v.start || v.flags&vmFile != 0 || !permits(v, acc) || m.pages.noQuick {
		return 0, false
	}
	k, tag := m.know(sp, a)
	if k.tag != tag {
		return 0, false
	}
	e := *m.pages.tables.raw(k.slot, m.pmdIndex(a))
	if e&eTable == 0 {
		return 0, false
	}
	i := m.pageIndex(a)
	used, bit := m.pages.tables.usedWord(eSlot(e), i)
	if *used&bit != 0 {
		if p := m.pages.tables.entry(eSlot(e), i); *p != 0 {
			if *p&ePresent == 0 || acc&Write != 0 && *p&eWrite == 0 {
				return 0, false
			}
			m.hit(v, p, acc)
			return Hit, true
		}
	}
	// The costliest small fault so far must be no cheaper than this one, so
	// that noteWorst has nothing to note.
	if acc&Write == 0 && !m.rules.NoZeroPage || v.anon == nil || c.WantSteps || m.cfg.Limit != 0 ||
		m.pages.worstKey[0] <= onePage || m.ordersSmall && m.allowable(v, useFault)&^m.pmdBit() != 0 {
		return 0, false
	}
	pfn, ok := m.alloc.Quick(int(c.CPU), buddy.Movable)
	if !ok {
		return 0, false
	}
	m.quickCount(c, sp, v, acc)
	flags, marks := ePresent|eYoung|eSeen, frameAnon|frameExclusive|frameTouched
	if v.flags&vmWrite != 0 {
		flags |= eWrite | eDirty
	}
	if acc&(Write|ZeroData) == Write {
		flags |= eFull
		marks |= frameFilled
	}
	// Field by field: a literal would be put together elsewhere in small pieces
	// and read back as one.
	fr := m.pages.freshFrame(PFN(pfn))
	fr.flags, fr.maps, fr.ref = marks, 1, v.anon.id
	fr.setIndex(v.anonIndex(a, m.pageShift&63))
	*used |= bit
	m.pages.tables.writeLater(eSlot(e), i, leafEntry(PFN(pfn), flags))
	return Done, true
}

// onePage is the worstKey of a fault that cleared one page and did nothing else dear.
const onePage = uint64(1) << 32

// quickCount counts all of a first touch.
func (m *Machine) quickCount(c *Current, sp *space, v *vma, acc Access) {
	w := &c.Work
	if acc&KernelMode != 0 {
		w[PrimFaultKernel]++
	} else {
		w[PrimFaultUser]++
	}
	if acc&KernelMode != 0 || !m.rules.PerVMALock {
		w[PrimMmapRead]++
	} else {
		w[PrimVMALock]++
	}
	w[PrimAllocPCP]++
	w[PrimCharge]++
	w[PrimClearSmall]++
	w[PrimPTELock]++
	w[PrimRmapAdd]++
	w[PrimLRUAdd]++
	w[PrimPTESet]++
	m.Counters.VM[PgFault]++
	m.Counters.VM[PgAlloc]++
	m.Counters.VM[NrAnonPages]++
	u := &m.Usage
	u.Faults++
	u.Anon++
	u.Touched++
	u.ByOrder[0]++
	if u.Anon > u.AnonPeak {
		u.AnonPeak, u.UntouchedAtPeak = u.Anon, u.Anon-u.Touched
	}
	sp.faults++
	sp.rssAnon++
	if m.cfg.ByRegion {
		r := m.usageOf(v)
		r.Allocated++
		r.Touched++
	}
}
