package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// Page-table entries. Every level uses the same words; zero is none.
const (
	ePresent uint64 = 1 << iota
	eWrite
	eYoung
	eDirty
	eZero    // the shared zero page: small in a PTE, huge in a PMD entry
	eGuard   // guard region marker; not present
	eHuge    // PMD entry that maps a block
	eTable   // points to a table: slot in the frame field
	eSeen    // hint: the frame's touched flag is set
	eFull    // hint: the frame's filled flag is set
	eHugetlb // with eHuge: a page of a hugetlb pool; no table is deposited for it

	ePFNShift = 12
	eFlags    = 1<<ePFNShift - 1
)

func ePFN(e uint64) PFN                      { return PFN(e >> ePFNShift) }
func eSlot(e uint64) uint32                  { return uint32(e >> ePFNShift) }
func tableEntry(slot uint32) uint64          { return uint64(slot)<<ePFNShift | eTable }
func leafEntry(pfn PFN, flags uint64) uint64 { return uint64(pfn)<<ePFNShift | flags }

// The shifts are below 64: saying so (&63) spares a test of each.
func (m *Machine) pageIndex(a VA) int         { return int(a>>(m.pageShift&63)) & (1<<(m.pmdOrder&63) - 1) }
func (m *Machine) pmdIndex(a VA) int          { return m.levelIndex(a, 1) }
func (m *Machine) levelShift(level uint) uint { return m.pageShift + level*uint(m.pmdOrder) }
func (m *Machine) levelIndex(a VA, l uint) int {
	return int(a>>(m.levelShift(l)&63)) & (1<<(m.pmdOrder&63) - 1)
}

// tableRoot is the top of one space's page tables. Level 0 tables hold PTEs,
// level 1 tables PMD entries, and so up; all levels are as long, because a
// table fills one base page. PMD tables of the last walks are remembered, one
// by each value of the low bits of the span's number: 32 GiB with 4 kB pages.
type tableRoot struct {
	top   uint32 // slot of the top table, 0: none yet
	known [knownTables]knownTable
}

const knownTables = 32

type knownTable struct {
	tag  VA     // number of the span that the PMD table covers, plus 1; 0: none
	slot uint32 // of the PMD table
}

// know is the place where the PMD table over a is remembered, and its tag.
func (m *Machine) know(sp *space, a VA) (k *knownTable, tag VA) {
	n := a >> (m.levelShift(2) & 63)
	return &sp.root.known[n%knownTables], n + 1
}

// tableMeta is what a table has beside its entries.
type tableMeta struct {
	pfn     PFN
	deposit PFN    // first of the frames deposited for huge entries of this PMD table
	count   uint32 // how many are deposited
}

// tableFrame takes the page of a table and counts it.
func (m *Machine) tableFrame(c *Current) (PFN, bool) {
	pfn, ok := m.physAlloc(c, 0, buddy.Unmovable, smallGFP)
	if !ok {
		return 0, false
	}
	m.pages.ensureFrames(pfn, 0)
	m.Counters.VM[PgAlloc]++
	*m.pages.frame(pfn) = frame{flags: frameTable}
	m.Usage.Tables++
	m.Counters.VM[NrPageTablePages]++
	c.Work[PrimTableAlloc]++
	return pfn, true
}

func (m *Machine) freeTableFrame(c *Current, pfn PFN) {
	*m.pages.frame(pfn) = frame{}
	m.Usage.Tables--
	m.Counters.VM[NrPageTablePages]--
	c.Work[PrimTableFree]++
	m.Counters.VM[PgFree]++
	m.physFree(c, pfn, 0, buddy.Unmovable)
}

// newTable makes an empty table; 0 means no memory.
func (m *Machine) newTable(c *Current) uint32 {
	pfn, ok := m.tableFrame(c)
	if !ok {
		return 0
	}
	slot := m.pages.tables.get()
	m.pages.tables.meta[slot] = tableMeta{pfn: pfn}
	return slot
}

func (m *Machine) dropTable(c *Current, slot uint32) {
	m.freeTableFrame(c, m.pages.tables.meta[slot].pfn)
	m.pages.tables.put(slot)
}

// deposit sets the page of a future PTE table aside in the PMD table that got
// a huge entry, so that splitting that entry never needs memory. Linux:
// pgtable_trans_huge_deposit.
func (m *Machine) deposit(pmd uint32, pfn PFN) {
	t := &m.pages.tables.meta[pmd]
	if t.count > 0 {
		m.pages.frame(pfn).setIndex(uint64(t.deposit))
	}
	t.deposit = pfn
	t.count++
}

func (m *Machine) withdraw(pmd uint32) PFN {
	t := &m.pages.tables.meta[pmd]
	pfn := t.deposit
	fr := m.pages.frame(pfn)
	t.deposit = PFN(fr.index())
	t.count--
	fr.setIndex(0)
	return pfn
}

// topLevel is the level of the top table: enough levels for 48 bits.
func (m *Machine) topLevel() uint {
	n := (48 - m.pageShift + uint(m.pmdOrder) - 1) / uint(m.pmdOrder)
	if m.pageShift == 14 {
		n = 3 // 47 bits, as the common configuration has it
	}
	return n - 1
}

// pmdTable is the slot of the PMD table over a, 0 if there is none.
func (m *Machine) pmdTable(sp *space, a VA) uint32 {
	k, tag := m.know(sp, a)
	if k.tag == tag {
		return k.slot
	}
	slot := sp.root.top
	for l := m.pages.top; l > 1 && slot != 0; l-- {
		e := m.pages.tables.at(slot)[m.levelIndex(a, l)]
		if e&eHuge != 0 {
			return 0 // a page of the PUD's size
		}
		slot = eSlot(e)
	}
	if slot != 0 {
		k.tag, k.slot = tag, slot
	}
	return slot
}

// makePMDTable is pmdTable, making what is missing; 0 means no memory.
func (m *Machine) makePMDTable(c *Current, sp *space, a VA) uint32 {
	if s := m.pmdTable(sp, a); s != 0 {
		return s
	}
	slot := m.makeLevel(c, sp, a, 1)
	if slot == 0 {
		return 0
	}
	k, tag := m.know(sp, a)
	k.tag, k.slot = tag, slot
	return slot
}

// makeLevel finds the table of a level over a, making what is missing; 0 means no
// memory.
func (m *Machine) makeLevel(c *Current, sp *space, a VA, level uint) uint32 {
	r := &sp.root
	if r.top == 0 {
		// The top table lives as long as the space and is not counted.
		r.top = m.pages.tables.get()
	}
	slot := r.top
	for l := m.pages.top; l > level; l-- {
		if m.pages.tables.at(slot)[m.levelIndex(a, l)] == 0 {
			t := m.newTable(c)
			if t == 0 {
				return 0
			}
			// Making one may have moved the tables.
			m.pages.tables.at(slot)[m.levelIndex(a, l)] = tableEntry(t)
		}
		slot = eSlot(m.pages.tables.at(slot)[m.levelIndex(a, l)])
	}
	return slot
}

// nextPMD finds the PMD table over a. Where there is none it returns slot 0
// and the end of the span that is missing.
func (m *Machine) nextPMD(sp *space, a VA) (slot uint32, next VA) {
	if slot = m.pmdTable(sp, a); slot != 0 {
		return slot, 0
	}
	slot = sp.root.top
	for l := m.pages.top; l > 1 && slot != 0; l-- {
		e := m.pages.tables.at(slot)[m.levelIndex(a, l)]
		if e&eTable == 0 {
			span := VA(1) << m.levelShift(l)
			return 0, a&^(span-1) + span
		}
		slot = eSlot(e)
	}
	return 0, ^VA(0)
}

// freeTables frees the tables of [from, to) whose whole span lies between
// floor and ceiling (0: the end of the address space). The caller has zapped
// every page below them. Linux: mm/memory.c:free_pgd_range (v6.18).
func (m *Machine) freeTables(c *Current, sp *space, from, to, floor, ceiling VA) {
	if sp.root.top == 0 || from >= to {
		return
	}
	clear(sp.root.known[:])
	m.freeLevel(c, sp.root.top, m.pages.top, from, to, floor, ceiling)
}

func (m *Machine) freeLevel(c *Current, slot uint32, level uint, from, to, floor, ceiling VA) {
	span := VA(1) << m.levelShift(level)
	for a := from &^ (span - 1); a < to; a += span {
		e := &m.pages.tables.at(slot)[m.levelIndex(a, level)]
		if *e&eTable == 0 {
			continue
		}
		if level > 1 {
			m.freeLevel(c, eSlot(*e), level-1, max(a, from), min(a+span, to), floor, ceiling)
		}
		if a >= floor && (ceiling == 0 || a+span <= ceiling) {
			m.dropTable(c, eSlot(*e))
			*e = 0
		}
	}
}

// spaceGone drops what an ended space still holds: its remaining tables, its
// place with khugepaged, its reference to the huge zero page.
func (m *Machine) spaceGone(c *Current, sp *space) {
	m.khugepagedExit(sp)
	if sp.root.top != 0 {
		m.freeTables(c, sp, 0, 1<<48, 0, 0)
		m.pages.tables.put(sp.root.top)
		sp.root = tableRoot{}
	}
	m.putHugeZero(sp)
	c.Work[PrimFlushFull]++
}
