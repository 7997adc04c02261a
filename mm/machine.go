package mm

import (
	"errors"
	"fmt"
)

// pageState is what the page side of the machine owns.
type pageState struct {
	slabs  []*slabDir // by frame number >> dirShift
	folios folioPool
	tables tablePool
	top    uint // level of the top page table
	queue  splitQueue
	anons  []*anonVMA // by identity
	zero   hugeZero

	regions   []RegionUsage
	worst     [NumOrders]Work
	worstKey  [NumOrders]uint64
	scratch   Fault // of touch
	softly    Fault // of populate, which a fault may call
	untouched bool  // the access at hand is the kernel's own (populate)
	noQuick   bool  // tests: every access takes the long way

	decayed    Nanos   // until when the per-CPU lists were let shrink
	background WorkSum // khugepaged's work
}

// New makes a machine with no address space on it.
func New(cfg Config) (*Machine, error) {
	if cfg.BasePage == 0 {
		cfg.BasePage = 4096
	}
	if cfg.CPUs == 0 {
		cfg.CPUs = 1
	}
	m := &Machine{cfg: cfg, rules: cfg.Rules}
	switch cfg.BasePage {
	case 4096:
		m.pageShift, m.pmdOrder = 12, 9
	case 16384:
		m.pageShift, m.pmdOrder = 14, 11
	case 65536:
		m.pageShift, m.pmdOrder = 16, 13
	default:
		return nil, fmt.Errorf("mm: base page of %d bytes: want 4096, 16384 or 65536", cfg.BasePage)
	}
	if len(cfg.Nodes) == 0 {
		return nil, errors.New("mm: config: no memory: give at least one node")
	}
	m.pages.tables.bits = uint(m.pmdOrder)
	m.pages.top = m.topLevel()
	m.khuge.cur = -1
	m.spaces = make([]*space, 1)
	if err := m.newPhys(); err != nil {
		return nil, err
	}
	if err := m.newHuge(); err != nil {
		return nil, err
	}
	m.policy.Pools = [hugeSizes]HugePool{} // none yet: SetPolicy fills them
	m.SetPolicy(cfg.Policy)
	return m, nil
}

// WorkDone is all work done through Exec and Advance since New. Khugepaged's
// own work, which runs beside the program, is the second result.
func (m *Machine) WorkDone() (program, background *WorkSum) {
	return m.programWork(), &m.pages.background
}

// RegionUsage is what one region cost, counted when Config.ByRegion is set.
type RegionUsage struct {
	Faults    uint64 // hardware faults
	Allocated Pages  // anonymous pages ever allocated for it
	Touched   Pages  // of them, those the program is known to have accessed
}

// Begin does a fault's first half and Commit its second; Touch does both.
// A Fault is the caller's and is reused.

// Outcome is how a fault, or half of one, ended.
type Outcome uint8

// Outcomes.
const (
	Done    Outcome = iota // finished; nothing more to do
	Pending                // Begin: Commit must follow
	Retry                  // run it again from the start
	Raced                  // Commit: another CPU was faster; the folio was given back
	Hit                    // no fault: the page was there and allowed the access
	Segv
	Bus
	OOM
)
