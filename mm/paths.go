package mm

// PathEvent is one way in which a fault without mmap_lock ended, under the
// kernel's own name of the event.
type PathEvent uint8

// Events of speculative page faults (semantics 10.1), then of per-VMA locks
// (10.3).
const (
	SPF           PathEvent = iota // handled speculatively
	SPFPTELock                     // the page-table lock was held by another; up to v10
	SPFVMAChanged                  // a writer changed the VMA, or is about to
	SPFVMANoAnon                   // defined by the series, raised by none of its versions
	SPFVMANotSup                   // a mapping or an entry that speculation does not handle
	SPFVMAAccess                   // the VMA does not allow the access
	SPFPMDChanged                  // the table went away: a collapse
	VMALockSuccess
	VMALockAbort
	VMALockRetry
	VMALockMiss       // a lookup met a VMA on its way out; the model has no such instant
	NumPathEvents int = iota
)

var pathEventNames = [NumPathEvents]string{
	SPF: "spf", SPFPTELock: "spf_pte_lock", SPFVMAChanged: "spf_vma_changed", SPFVMANoAnon: "spf_vma_noanon",
	SPFVMANotSup: "spf_vma_notsup", SPFVMAAccess: "spf_vma_access", SPFPMDChanged: "spf_pmd_changed",
	VMALockSuccess: "vma_lock_success", VMALockAbort: "vma_lock_abort", VMALockRetry: "vma_lock_retry",
	VMALockMiss: "vma_lock_miss",
}

// String is the kernel's name of the event.
func (e PathEvent) String() string { return pathEventNames[e] }

// SpecRule says whether the kernel has speculative page faults, and which.
type SpecRule uint8

// The series' versions that differ in what they do.
const (
	SpecNone SpecRule = iota // every released kernel
	SpecV6                   // v6 to v10: a held page-table lock ends the attempt
	SpecV11                  // v11 and v12: the page-table lock is waited for
)

/*
The life of a VMA's write mark, by which faults without mmap_lock know that the
VMA is being changed:

	           changed (by any writer)
	unmarked -------------------------> marked, sequence raised
	    ^                                  |
	    +----------------------------------+
	        EndWrite (the writer lets mmap_lock go)

Linux: include/linux/mm.h:vma_start_write, vma_end_write_all (v6.18); the
speculative series' vm_write_begin and vm_write_end have the same effect with
one count a VMA, odd while it is written.
*/

// changed raises the sequence of a VMA that a writer changes, and marks it.
func (v *vma) changed() {
	v.seq++
	v.mark = v.sp.mark
}

// marked says whether a writer is at v.
func (v *vma) marked() bool { return v.mark == v.sp.mark }

// EndWrite ends the marks of every VMA of s: its writer lets mmap_lock go.
func (m *Machine) EndWrite(s Space) { m.spaces[s].mark++ }

// BeginWrite marks the VMAs that op is going to change or take away, as its
// writer does once it has mmap_lock. It reports how many faults hold one of them
// by its VMA lock: the writer waits until WriteHeld finds none, and until then
// those faults go on as if it were not there.
func (m *Machine) BeginWrite(op *Op) (held int) {
	m.eachWritten(op, func(v *vma) {
		if v.holders == 0 {
			v.changed()
		}
		v.mark = v.sp.mark
		held += int(v.holders)
	})
	return held
}

// WriteHeld is how many faults still hold the lock of a VMA that op changes.
func (m *Machine) WriteHeld(op *Op) (held int) {
	m.eachWritten(op, func(v *vma) { held += int(v.holders) })
	return held
}

// eachWritten calls f for each VMA that op changes: those in its range; of a
// new mapping those that it merges with. Brk's heap counts whole.
func (m *Machine) eachWritten(op *Op, f func(v *vma)) {
	sp := m.spaceOf(op.Space)
	if sp == nil {
		return
	}
	if op.Kind == OpMap {
		m.eachMerged(sp, op, f)
		return
	}
	from, ok := sp.regions.base(op.Region)
	if !ok || op.Kind == OpTouch || op.Kind == OpNone {
		return
	}
	from += m.bytes(Pages(op.Page))
	to := from + m.bytes(op.N)
	for v := sp.lookupQuiet(from); v != nil && v.start < to; v = v.next() {
		f(v)
	}
}

// eachMerged calls f for the neighbours that the mapping op will merge with.
func (m *Machine) eachMerged(sp *space, op *Op, f func(v *vma)) {
	start, e, err := m.whereMap(sp, op)
	if e != OK || err != nil || op.N == 0 {
		return
	}
	flags := m.mapFlags(sp, op)
	if flags&vmFile != 0 {
		return // every region is a file of its own
	}
	end := start + m.bytes(op.N)
	q := mergeReq{sp: sp, prev: sp.before(start), next: sp.lookupQuiet(start), start: start, end: end,
		pgoff: uint64(start >> m.pageShift), flags: flags}
	left := q.canLeft(m)
	if left {
		f(q.prev)
	}
	if q.canRight(m, left) {
		f(q.next)
	}
}
