package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

/*
khugeState is the khugepaged thread: a list of registered spaces and a cursor.

	waiting  -- first space registers, PMD size enabled --> due at once
	due      -- one pass --> sleeping for scan_sleep_millisecs
	           (alloc_sleep_millisecs in the middle after a failed allocation)
	sleeping -- time --> due, or waiting if no space is left

Linux: mm/khugepaged.c (v6.18).
*/
type khugeState struct {
	list []*space // in order of registration
	cur  int      // index of the space under the cursor, -1: none
	addr VA       // where the cursor stands in it

	next     Nanos // when the next pass, or the rest of one, is due
	sleeping bool  // false: waits for a first space

	// The rest of a pass that an allocation failure interrupted.
	resumed  bool
	progress uint32
	heads    int

	c Current // khugepaged's own context; its work is not the program's
}

// shortestPass stands for the time that a pass itself takes, which matters only
// when scan_sleep_millisecs is 0.
const shortestPass Nanos = 1e6

// khugepagedDue says whether a pass is to be done by now.
func (m *Machine) khugepagedDue(now Nanos) bool {
	k := &m.khuge
	return len(k.list) > 0 && k.next <= now && !m.cfg.Still && m.khugepagedOn()
}

// khugepagedOn says whether the thread runs: the PMD's size is enabled in some
// way. Linux: mm/khugepaged.c:hugepage_pmd_enabled (v6.18).
func (m *Machine) khugepagedOn() bool {
	b := m.pmdBit()
	return (m.ordersAlways|m.ordersMadvise)&b != 0 || m.ordersInherit&b != 0 && m.policy.Enabled != Never ||
		m.shmemPMDOn()
}

// khugepagedPolicy follows a change of the knobs: a thread that starts looks
// at once.
func (m *Machine) khugepagedPolicy() {
	k := &m.khuge
	if !m.khugepagedOn() {
		k.sleeping = false
		return
	}
	if !k.sleeping && len(k.list) > 0 {
		k.next = m.Usage.Last
		k.sleeping = true
	}
}

// khugepagedEnter registers v's space if khugepaged might find work in v.
// Linux: mm/khugepaged.c:khugepaged_enter_vma (v6.18).
func (m *Machine) khugepagedEnter(sp *space, v *vma) {
	if sp.khugeSlot || !m.khugepagedOn() || m.allowable(v, useKhugepaged)&m.pmdBit() == 0 {
		return
	}
	m.khugepagedAdd(sp)
}

// khugepagedFork registers a child whose parent is. Linux:
// include/linux/khugepaged.h:khugepaged_fork (v6.18).
func (m *Machine) khugepagedFork(child, parent *space) {
	if parent.khugeSlot && !child.khugeSlot {
		m.khugepagedAdd(child)
	}
}

// khugepagedAdd appends a space; the first one wakes the thread.
func (m *Machine) khugepagedAdd(sp *space) {
	k := &m.khuge
	sp.khugeSlot = true
	if len(k.list) == 0 && m.khugepagedOn() {
		if !k.sleeping || k.next < m.Usage.Last {
			k.next = m.Usage.Last
		}
		k.sleeping = true
	}
	if len(k.list) == 0 {
		k.cur = -1
	}
	k.list = append(k.list, sp)
}

// khugepagedExit takes a space off the list; the cursor goes on to the next.
func (m *Machine) khugepagedExit(sp *space) {
	k := &m.khuge
	if !sp.khugeSlot {
		return
	}
	sp.khugeSlot = false
	for i, s := range k.list {
		if s != sp {
			continue
		}
		k.list = append(k.list[:i], k.list[i+1:]...)
		if i < k.cur {
			k.cur--
		} else if i == k.cur {
			k.addr = 0
			if k.cur >= len(k.list) {
				k.cur = -1
				m.Counters.VM[FullScans]++
			}
		}
		break
	}
	if len(k.list) == 0 {
		k.sleeping, k.resumed = false, false
	}
}

// khugepagedRun does the passes that are due by now.
func (m *Machine) khugepagedRun(now Nanos) {
	for n := 0; m.khugepagedDue(now) && n < 1; n++ {
		m.khugepagedPass(now)
	}
}

// Khugepaged does one pass at once, as a write to scan_sleep_millisecs makes
// happen. Linux: mm/khugepaged.c:__sleep_millisecs_store (v6.18).
func (m *Machine) Khugepaged() {
	if m.khugepagedOn() && len(m.khuge.list) > 0 {
		m.khugepagedPass(m.Usage.Last)
	}
}

// khugepagedPass is one pass over the budget. Linux:
// mm/khugepaged.c:khugepaged_do_scan (v6.18).
func (m *Machine) khugepagedPass(now Nanos) {
	k := &m.khuge
	p := &m.policy.Khugepaged
	k.c.Now = now
	wait := !k.resumed
	if !k.resumed {
		k.progress, k.heads = 0, 0
	}
	k.resumed = false
	for {
		if k.cur < 0 {
			k.heads++
		}
		if len(k.list) == 0 || k.heads >= 2 {
			break
		}
		res, n := m.khugepagedVisit(p.PagesToScan - k.progress)
		k.progress += n
		if k.progress >= p.PagesToScan {
			break
		}
		if res == scanAllocFail {
			if !wait {
				break
			}
			k.resumed = true
			k.next = now + p.AllocSleep
			m.pages.background.Take(&k.c.Work)
			return
		}
	}
	k.next = now + max(p.ScanSleep, shortestPass)
	k.sleeping = len(k.list) > 0
	m.pages.background.Take(&k.c.Work)
}

// khugepagedVisit looks at the space under the cursor for up to budget pages.
// Linux: mm/khugepaged.c:khugepaged_scan_mm_slot (v6.18).
func (m *Machine) khugepagedVisit(budget uint32) (res scanResult, progress uint32) {
	k := &m.khuge
	if k.cur < 0 {
		k.cur, k.addr = 0, 0
	}
	sp := k.list[k.cur]
	res = scanFail
	progress = 1
	s := scanner{khugepaged: true}
	if m.policy.Khugepaged.Defrag {
		s.gfp = buddy.DirectReclaim
	}
	k.c.Work[PrimMmapRead]++
	if sp.thpDisable == THPDisabled {
		m.khugepagedNext()
		return res, progress
	}
	size := m.pmdSize()
	for v := sp.find(k.addr); v != nil; v = sp.find(v.end) {
		start, end := (v.start+size-1)&^(size-1), v.end&^(size-1)
		if m.allowable(v, useKhugepaged)&m.pmdBit() == 0 || k.addr > end {
			progress++
			continue
		}
		k.addr = max(k.addr, start)
		for k.addr < end {
			var tried bool
			res, tried = m.scanPMD(&k.c, v, k.addr, s)
			if res == scanSucceed {
				m.Counters.VM[PagesCollapsed]++
			}
			k.addr += size
			progress += uint32(m.pmdOrder.Pages())
			if tried || progress >= budget {
				return res, progress
			}
		}
	}
	m.khugepagedNext()
	return res, progress
}

// khugepagedNext moves the cursor to the next space; past the last one a full
// scan is done.
func (m *Machine) khugepagedNext() {
	k := &m.khuge
	k.addr = 0
	if k.cur++; k.cur >= len(k.list) {
		k.cur = -1
		m.Counters.VM[FullScans]++
	}
}
