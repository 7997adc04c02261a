package mm

import "errors"

// New makes a machine with no address space on it.
func New(cfg Config) (*Machine, error) { return nil, errors.New("mm: not built yet") }

// WorkDone is all work done through Exec and Advance since New. Khugepaged's
// own work, which runs beside the program, is the second result.
func (m *Machine) WorkDone() (program, background *WorkSum) { return nil, nil }

// WorstFaults is the costliest fault seen of each order of the folio it mapped
// (index 0 takes small pages, copies and the rest), as work: price each and
// take the largest. Costliest means most pages cleared and copied, then most
// tables and failed allocations.
func (m *Machine) WorstFaults() *[NumOrders]Work { return nil }

// RegionUsage is what one region cost, counted when Config.ByRegion is set.
type RegionUsage struct {
	Faults    uint64 // hardware faults
	Allocated Pages  // anonymous pages ever allocated for it
	Touched   Pages  // of them, those the program is known to have accessed
}

// Regions calls f for every region in use by number, in order.
func (m *Machine) Regions(f func(Region, RegionUsage)) {}

// Check proves that every frame has exactly one owner and that every counter
// adds up. It is slow; tests call it after every step.
func (m *Machine) Check() error { return nil }

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
