package mm

// Faults without mmap_lock. Between Begin* and its Commit* other CPUs may
// change anything; what they change is what ends an attempt.

// BeginSpeculative tries a fault without any lock, as the never merged series
// did (semantics 10.1); the numbers below are its checks. Hit, Segv: finished.
// Pending: CommitSpeculative must follow, under the page-table lock. Retry: the
// classic path must do it; the event, already counted, says why. ok is false
// where the series raised none.
func (m *Machine) BeginSpeculative(c *Current, f *Fault) (out Outcome, e PathEvent, ok bool) {
	if int(f.Space) >= len(m.spaces) || m.spaces[f.Space] == nil {
		return Segv, 0, false
	}
	sp := m.spaces[f.Space]
	f.sp, f.kind, f.tries, f.soft, f.order = sp, faultNone, 0, false, 0
	v := sp.find(f.Addr)
	if v == nil { // 1
		return Retry, 0, false
	}
	if e, bad := v.unfit(f); bad {
		m.Paths[e]++
		if e == SPFVMAAccess {
			m.countFault(c, f, v)
			return Segv, e, true
		}
		return Retry, e, true
	}
	f.v, f.seq = v, v.seq
	f.pmd = m.pmdTable(sp, f.Addr)
	var entry uint64
	if f.pmd != 0 {
		entry = m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
	}
	if entry&eTable == 0 { // 11
		if entry&eHuge != 0 && (f.Access&Write == 0 || entry&eWrite != 0) {
			m.hitPMD(v, f.pmd, f.Addr, f.Access)
			return Hit, 0, false
		}
		m.Paths[SPFVMANotSup]++
		return Retry, SPFVMANotSup, true
	}
	f.table = PFN(eSlot(entry)) // what check 14 compares; the PTE path deposits none
	return m.speculatePTE(c, f, eSlot(entry)), 0, false
}

// unfit is checks 2 to 10 but for 10 itself: the model keeps no mempolicy's
// kind.
func (v *vma) unfit(f *Fault) (PathEvent, bool) {
	switch {
	case v.marked(): // 2
		return SPFVMAChanged, true
	case !v.anonymous(): // 3
		return SPFVMANotSup, true
	case v.anon == nil: // 4
		return SPFVMANotSup, true
	case v.flags&(vmUffd|vmGrowsDown) != 0: // 5, 6
		return SPFVMANotSup, true
	case f.Addr < v.start: // 7
		return SPFVMAChanged, true
	case !permits(v, f.Access): // 8, 9
		return SPFVMAAccess, true
	}
	return 0, false
}

// speculatePTE is step 13: what Begin does to an entry whose table is there,
// with nothing but small pages.
func (m *Machine) speculatePTE(c *Current, f *Fault, slot uint32) Outcome {
	p := m.pages.tables.entry(slot, m.pageIndex(f.Addr))
	f.old = *p
	f.at = f.Addr &^ (m.pageSize() - 1)
	f.before = c.Work
	switch {
	case f.old&ePresent != 0 && (f.Access&Write == 0 || f.old&eWrite != 0):
		m.hit(f.v, p, f.Access)
		return Hit
	case f.old&eGuard != 0:
		return Retry
	case f.old&ePresent != 0:
		return m.beginReadOnly(c, f)
	case f.Access&Write == 0 && !m.rules.NoZeroPage:
		f.kind = faultZeroPTE
		return Pending
	}
	return m.beginAnonPTE(c, f, slot, 0)
}

// SpeculationValid is the part of check 14 before the page-table lock: false,
// with the folio given back and the event counted, sends the fault to the
// classic path.
func (m *Machine) SpeculationValid(c *Current, f *Fault) bool {
	e := SPFVMAChanged
	switch {
	case f.v.seq != f.seq || f.v.marked():
	case m.pmdTable(f.sp, f.Addr) != f.pmd ||
		m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)] != tableEntry(uint32(f.table)):
		e = SPFPMDChanged
	default:
		return true
	}
	m.AbortSpeculation(c, f, e)
	return false
}

// AbortSpeculation gives back what BeginSpeculative took, and counts why.
func (m *Machine) AbortSpeculation(c *Current, f *Fault, e PathEvent) {
	m.Paths[e]++
	m.raced(c, f)
}

// CommitSpeculative is the rest of check 14, and the mapping. Retry: as with
// SpeculationValid. Raced: another thread's fault on the page was faster, which
// the series counts as handled.
func (m *Machine) CommitSpeculative(c *Current, f *Fault) Outcome {
	if !m.SpeculationValid(c, f) {
		return Retry
	}
	out := Raced
	same := *m.pages.tables.entry(uint32(f.table), m.pageIndex(f.Addr)) == f.old
	m.Paths[SPF]++
	m.countSpeculative(c, f)
	if !same {
		m.raced(c, f)
	} else {
		out = m.commit(c, f)
	}
	return out
}

// countSpeculative is countFault for a fault that took no mmap_lock. It leaves
// f.before as the beginning of the attempt.
func (m *Machine) countSpeculative(c *Current, f *Fault) {
	m.Usage.Faults++
	f.sp.faults++
	m.Counters.VM[PgFault]++
	c.Work[PrimFaultUser]++
}

// BeginVMALocked tries a fault under the lock of its VMA alone (semantics 10.2,
// 10.4). free says whether mmap_lock could be had for reading without waiting:
// the first anonymous page of a VMA asks for it. Retry: the classic path must
// do it. Otherwise the VMA is held until UnlockVMA.
// Linux: mm/mmap_lock.c:lock_vma_under_rcu, arch/x86/mm/fault.c (v6.18).
func (m *Machine) BeginVMALocked(c *Current, f *Fault, free bool) Outcome {
	if int(f.Space) >= len(m.spaces) || m.spaces[f.Space] == nil {
		return Segv
	}
	v := m.spaces[f.Space].find(f.Addr)
	switch {
	case v == nil || v.start > f.Addr || v.marked():
		m.Paths[VMALockAbort]++
		return Retry
	case v.anonymous() && v.anon == nil && !free:
		m.Paths[VMALockRetry]++
		return Retry
	}
	v.holders++
	out := m.Begin(c, f)
	f.v = v
	return out
}

// UnlockVMA ends what BeginVMALocked began; the fault is handled.
func (m *Machine) UnlockVMA(f *Fault) {
	f.v.holders--
	m.Paths[VMALockSuccess]++
}
