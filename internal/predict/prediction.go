package predict

import (
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// Prediction is what a recording would have done under each policy.
type Prediction struct {
	Recording Recording
	Kernel    string   // whose rules were applied, "6.18"
	Current   string   // the settings of the row now, as a policy spec
	NowFrom   string   // whose settings those are
	Sizes     mm.Sizes // base page and what follows from it
	Profile   string   // the machine profile that priced the work, with its source
	Preset    bool     // that profile is a preset, not measured on this machine
	Rows      []Row    // the first is Now
	Layouts   int      // address-space layouts that rows are the mean of; 0: as recorded
	Seed      uint64   // of the layouts
	Memory    string   // "fresh", or whose free memory was used
	Limit     mm.Bytes // memory cgroup limit, 0 for none
	Settle    time.Duration
	Notes     []string // what the reader must know: losses, what the method could not see
	Assumed   []string // the assumptions behind the numbers
	Programs  []string // what programs like the recorded one read themselves
	Best      *Recommendation
	Times     SystemTime   // what the recorded run tells of system time; see System
	Mappings  []MappingUse // with ByMapping: one a mapping, the busiest first

	rules    mm.Rules // that Kernel names
	runtimes Runtimes // that the recording shows
}

// Now is the name of the row for the settings of this host.
const Now = "now"

// Now is the row of the settings in force, nil when there is none.
func (p *Prediction) Now() *Row { return p.Row(Now) }

// Row finds a row by its policy's name, nil when there is none.
func (p *Prediction) Row(name string) *Row {
	for i := range p.Rows {
		if p.Rows[i].Name == name {
			return &p.Rows[i]
		}
	}
	return nil
}

// Recording is what was recorded.
type Recording struct {
	Command  []string
	Method   trace.Method
	Attached bool
	Kernel   string
	Faults   uint64 // hardware faults in it
	Lost     uint64 // events that the recording lost
	Wall     time.Duration
	CPU      time.Duration // user and system time of the command; 0 when not known
	Example  bool          // the recording that comes with the program

	AnonShare float64  // faults on private anonymous memory, as a share of all
	AnonBytes mm.Bytes // private anonymous memory that it touched, at its peak
	FileBytes mm.Bytes // files and shared memory that it touched, at most
}

// Whole is the time that shares "of the run" refer to: processor time where
// the recording has it, else its wall time.
func (r *Recording) Whole() time.Duration {
	if r.CPU > 0 {
		return r.CPU
	}
	return r.Wall
}

// Row is one policy's prediction. With layouts, numbers are means over them.
type Row struct {
	Named

	Faults     uint64 // hardware page faults, as perf counts them
	SoftFaults uint64 // faults without an exception (populate, mlock)

	// Kernel is the priced work that the program itself does in the kernel
	// for its memory: faults, clearing, copying, unmapping, and the memory
	// calls, fork, exec and exit. Background is khugepaged's, on another
	// processor if there is one.
	Kernel     time.Duration
	Background time.Duration
	// Elapsed is the processor time of the same work, a hypervisor's with it; 0
	// when the profile has none. Backing is the part of Kernel and of Elapsed
	// in which a hypervisor finds memory for fresh blocks.
	Elapsed    time.Duration
	Backing    time.Duration
	WorstFault time.Duration // the costliest single fault
	Work       mm.WorkSum    // what Kernel is the price of, summed over the layouts

	PeakAnon  mm.Bytes // memory held by anonymous folios, at most
	EndAnon   mm.Bytes // the same just before the last process left
	MeanAnon  float64  // its mean over time, bytes
	Untouched mm.Bytes // of PeakAnon: pages that the program is not known to have accessed

	// Folios counts the large folios that faults and collapses made, by
	// order.
	Folios [mm.NumOrders]uint64

	// Coverage is the share of anonymous memory that large folios held, as
	// a mean over time weighted by memory; CoverageBy has it by order.
	Coverage   float64
	CoverageBy [mm.NumOrders]float64

	Fallbacks uint64 // large allocations that failed
	OOM       uint64 // above 0: a fault found no memory, and the program would be killed

	// KilledAt is when that was. The row ends there: its numbers say what the
	// program did until then, and compare with no other row's.
	KilledAt time.Duration
	Kills    int // layouts in which it was killed

	Timeline []Sample // memory over time, evenly spaced
	Spread   *Spread  // with more than one layout
}

// Killed says that the program would not have survived under this policy.
func (r *Row) Killed() bool { return r.OOM > 0 }

// Sample is memory at one moment.
type Sample struct {
	When  mm.Nanos
	Anon  mm.Bytes
	Large mm.Bytes // of Anon: in large folios
}

// Spread is the range of a row's numbers over the layouts.
type Spread struct {
	FaultsMin, FaultsMax uint64
	KernelMin, KernelMax time.Duration
	PeakMin, PeakMax     mm.Bytes
}

// MappingUse is what a policy does to the mappings of one name, against Now.
type MappingUse struct {
	Mapping string
	By      []RegionUse // one a row, in the order of Rows
}

// RegionUse is one mapping's cost under one policy.
type RegionUse struct {
	Faults    uint64
	Allocated mm.Bytes // anonymous memory ever allocated for it
	Wasted    mm.Bytes // of it, never known to be accessed
}
