package mm

// Fault is one fault between its two halves. The caller owns and reuses it and
// sets the first three fields; the rest is between Begin and Commit.
type Fault struct {
	Space  Space
	Addr   VA
	Access Access

	kind  faultKind
	order Order
	soft  bool // no exception: populate, mlock
	seq   uint32
	pmd   uint32 // slot of the PMD table
	tries uint32 // large folios that could not be had
	at    VA     // where the folio begins
	pfn   PFN    // allocated by Begin
	table PFN    // page of a table to deposit, allocated by Begin
	huge  uint32 // slot of the hugetlb page to map
	old   uint64 // the entry that Begin saw
	v     *vma
	sp    *space

	before Work
}

// faultKind says what Commit has to do.
type faultKind uint8

/*
	pmd none, order allowed      -> faultPMD, faultZeroPMD

Begin: walk  --- table, pte none              -> faultPTE, faultZeroPTE

	read-only pte, write         -> faultReuse, faultCopy
	read-only huge pmd, write    -> faultReusePMD, faultUpgradePMD, faultCopyPMD
	                                or the pmd is split and it is a pte
*/
const (
	faultNone faultKind = iota
	faultPTE
	faultZeroPTE
	faultPMD
	faultZeroPMD
	faultReuse
	faultCopy
	faultReusePMD
	faultUpgradePMD // the huge zero page becomes a THP
	faultCopyPMD    // before 5.8: a shared THP is copied whole
	faultHuge       // hugetlb: a new page, or the file's
	faultHugeReuse  // hugetlb: a write to a page that nobody else maps
	faultHugeCopy   // hugetlb: a write to a shared private page
	faultShm        // shared memory: a page that is in the cache now
)

// Touch accesses one address: a hit, or both halves of a fault with nothing
// between them.
func (m *Machine) Touch(c *Current, s Space, a VA, acc Access) Outcome {
	if int(s) >= len(m.spaces) || m.spaces[s] == nil {
		return Segv
	}
	return m.touch(c, m.spaces[s], a, acc)
}

// touch is Touch on a known space.
func (m *Machine) touch(c *Current, sp *space, a VA, acc Access) Outcome {
	if out, ok := m.quick(c, sp, a, acc); ok {
		return out
	}
	f := &m.pages.scratch
	f.Addr, f.Access, f.soft = a, acc, false
	return m.fault(c, sp, f)
}

func (m *Machine) fault(c *Current, sp *space, f *Fault) Outcome {
	out := m.begin(c, sp, f)
	if out == Pending {
		return m.commit(c, f)
	}
	return out
}

// Begin does a fault's first half: it finds the VMA, chooses the order,
// allocates and clears. Only Pending asks for Commit.
func (m *Machine) Begin(c *Current, f *Fault) Outcome {
	if int(f.Space) >= len(m.spaces) || m.spaces[f.Space] == nil {
		return Segv
	}
	f.soft = false
	return m.begin(c, m.spaces[f.Space], f)
}

// Commit does a fault's second half: it rechecks what Begin saw, as Linux does
// under the page-table lock, then maps the folio. If anything changed the
// folio is given back, no counter moves, and the outcome is Raced.
func (m *Machine) Commit(c *Current, f *Fault) Outcome {
	if f.kind == faultNone {
		return Retry
	}
	if !m.unchanged(f) {
		m.raced(c, f)
		return Raced
	}
	return m.commit(c, f)
}

// begin finds the entry and sorts the access: a hit, a refusal, or a fault.
func (m *Machine) begin(c *Current, sp *space, f *Fault) Outcome {
	a, acc := f.Addr, f.Access
	f.sp, f.kind, f.tries = sp, faultNone, 0
	v := sp.find(a)
	if v == nil || v.start > a {
		if v = m.expandStack(c, sp, a); v == nil {
			m.countFault(c, f, nil)
			return Segv
		}
	}
	f.v, f.seq = v, v.seq
	if !permits(v, acc) {
		m.countFault(c, f, v)
		return Segv
	}
	if v.huge != nil {
		return m.beginHuge(c, f)
	}
	if v.shm != nil {
		return m.beginShm(c, f)
	}
	if !v.anonymous() {
		return m.fileFault(c, f)
	}
	pmd := m.pmdTable(sp, a)
	f.pmd = pmd
	var e uint64
	if pmd != 0 {
		e = m.pages.tables.at(pmd)[m.pmdIndex(a)]
	}
	if e&eTable != 0 {
		p := &m.pages.tables.at(eSlot(e))[m.pageIndex(a)]
		f.old = *p
		if f.old&ePresent == 0 {
			return m.beginNone(c, f, e)
		}
		if acc&Write == 0 || f.old&eWrite != 0 {
			m.hit(v, p, acc)
			return Hit
		}
		m.countFault(c, f, v)
		return m.beginReadOnly(c, f)
	}
	f.old = e
	if e&eHuge == 0 {
		return m.beginNone(c, f, e)
	}
	if acc&Write == 0 || e&eWrite != 0 {
		m.hitPMD(v, pmd, a, acc)
		return Hit
	}
	m.countFault(c, f, v)
	return m.beginReadOnlyPMD(c, f)
}

// permits tests an access against the VMA's protection. Linux:
// arch/x86/mm/fault.c:access_error.
func permits(v *vma, acc Access) bool {
	switch {
	case acc&Write != 0:
		return v.flags&vmWrite != 0
	case acc&Exec != 0:
		return v.flags&vmExec != 0
	}
	return v.flags&(vmRead|vmWrite|vmExec) != 0
}

// hit notes an allowed access through a PTE.
func (m *Machine) hit(v *vma, p *uint64, acc Access) {
	e := *p
	want := ePresent | eYoung | eSeen
	if acc&Write != 0 {
		want |= eDirty
		if acc&ZeroData == 0 {
			want |= eFull
		}
	}
	if e&want == want {
		return
	}
	e |= eYoung
	if acc&Write != 0 {
		e |= eDirty
	}
	if e&eZero == 0 {
		e |= m.access(v, ePFN(e), acc)
	} else {
		e |= eSeen
	}
	*p = e
}

// hitPMD notes an allowed access through a huge entry.
func (m *Machine) hitPMD(v *vma, pmd uint32, a VA, acc Access) {
	p := &m.pages.tables.at(pmd)[m.pmdIndex(a)]
	*p |= eYoung
	if acc&Write != 0 {
		*p |= eDirty
	}
	if *p&eZero == 0 {
		m.access(v, ePFN(*p)+PFN(m.pageIndex(a)), acc)
	}
}

// countFault counts the exception, or the soft fault, and the way in. Faults
// that find no VMA are exceptions all the same; a completed handling is
// counted in pgfault (semantics 2.7).
func (m *Machine) countFault(c *Current, f *Fault, v *vma) {
	f.before = c.Work
	switch {
	case f.soft:
		m.Usage.SoftFaults++
		c.Work[PrimFaultSoft]++
	default:
		m.Usage.Faults++
		f.sp.faults++
		if f.Access&KernelMode != 0 {
			c.Work[PrimFaultKernel]++
		} else {
			c.Work[PrimFaultUser]++
		}
		if v == nil || f.Access&KernelMode != 0 || !m.rules.PerVMALock {
			c.Work[PrimMmapRead]++
		} else {
			c.Work[PrimVMALock]++
		}
	}
	if v == nil {
		return
	}
	m.Counters.VM[PgFault]++
}

// prepareAnon gives the VMA its anon_vma before the first anonymous page.
func (m *Machine) prepareAnon(c *Current, v *vma) {
	if v.anon == nil {
		c.Work[PrimMmapRead]++
		m.anonPrepare(c, v)
	}
}

// unchanged is Commit's recheck.
func (m *Machine) unchanged(f *Fault) bool {
	if f.sp.find(f.Addr) != f.v || f.v.seq != f.seq || f.v.start > f.Addr {
		return false
	}
	if f.kind == faultShm {
		return m.unchangedShm(f)
	}
	if f.kind >= faultHuge {
		return m.unchangedHuge(f)
	}
	if m.pmdTable(f.sp, f.Addr) != f.pmd {
		return false
	}
	e := m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
	switch f.kind {
	case faultPMD, faultZeroPMD, faultReusePMD, faultUpgradePMD, faultCopyPMD:
		return e == f.old
	}
	if e&eTable == 0 {
		return false
	}
	if f.kind == faultPTE {
		return m.pages.tables.none(eSlot(e), m.pageIndex(f.at), f.order)
	}
	return *m.pages.tables.entry(eSlot(e), m.pageIndex(f.Addr)) == f.old
}

// raced gives back what Begin took.
func (m *Machine) raced(c *Current, f *Fault) {
	switch f.kind {
	case faultPTE, faultPMD, faultCopy, faultUpgradePMD, faultCopyPMD:
		m.giveBack(c, f.pfn, f.order)
	case faultHuge, faultHugeReuse, faultHugeCopy:
		m.racedHuge(c, f)
	}
	if f.kind == faultPMD || f.kind == faultZeroPMD {
		m.freeTableFrame(c, f.table)
	}
	f.kind = faultNone
}

// commit maps what begin prepared; nothing has changed in between.
func (m *Machine) commit(c *Current, f *Fault) Outcome {
	c.Work[PrimPTELock]++
	switch f.kind {
	case faultPTE:
		m.commitPTE(c, f)
	case faultZeroPTE:
		p := m.newPTE(f)
		*p = ePresent | eZero | eYoung | eSeen
		c.Work[PrimZeroMap]++
	case faultPMD:
		m.commitPMD(c, f)
	case faultZeroPMD:
		m.commitZeroPMD(c, f)
	case faultReuse:
		m.commitReuse(c, f)
	case faultCopy:
		m.commitCopy(c, f)
	case faultReusePMD:
		m.commitReusePMD(c, f)
	case faultUpgradePMD:
		m.commitUpgradePMD(c, f)
	case faultCopyPMD:
		m.commitCopyPMD(c, f)
	case faultHuge, faultHugeReuse, faultHugeCopy:
		m.commitHuge(c, f)
		f.kind = faultNone
		return Done
	case faultShm:
		m.commitShm(c, f)
	default:
		return Retry
	}
	f.kind = faultNone
	m.notePeak()
	if !f.soft {
		m.noteWorst(c, &f.before, f.order)
	}
	return Done
}

// ptep is the entry of the faulting address; its table exists.
func (m *Machine) ptep(f *Fault) *uint64 {
	e := m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]
	return &m.pages.tables.at(eSlot(e))[m.pageIndex(f.Addr)]
}

// newPTE is ptep of an entry that was none and will not stay so.
func (m *Machine) newPTE(f *Fault) *uint64 {
	slot, i := eSlot(m.pages.tables.at(f.pmd)[m.pmdIndex(f.Addr)]), m.pageIndex(f.Addr)
	m.pages.tables.mark(slot, i)
	return m.pages.tables.entry(slot, i)
}

// outOfMemory ends a fault that found no memory at all.
func (m *Machine) outOfMemory(f *Fault) Outcome {
	m.Usage.OOM++
	f.kind = faultNone
	return OOM
}
