package lab

import (
	"time"

	"github.com/hugelab/hugelab/mm"
)

// Run is one run of the command.
type Run struct {
	Exit   int           // its exit code, 128+n by a signal
	Faults uint64        // hardware page faults of the tree from its first exec on, as perf counts them
	Real   time.Duration // from the first exec to the command's end
	User   time.Duration // of the command and what it waited for
	System time.Duration
	Peak   mm.Bytes // anonymous memory at most
	PeakBy string   // how Peak was measured, in a clause
	Bound  mm.Bytes // what one process can have had at most: VmHWM less its file pages at the end
	Execs  []Bases
	Ends   []End
	Thread int // threads and processes that were made

	Folios    [mm.NumOrders]uint64 // large folios of anonymous memory that were had for it
	OwnFolios bool                 // Folios is known; else there are only the whole machine's

	Events Events        // of the whole machine meanwhile
	Warmed mm.Bytes      // memory touched right before it, 0 for none
	Warm   time.Duration // how long that took
}

// End is what a process was at its end.
type End struct {
	Program string   // the file
	Size    mm.Bytes // of its address space
}

// How a peak is measured.
const (
	peakByGroup   = "the highest charge of a memory cgroup of its own, less kernel memory and page cache then"
	peakByProcess = "RssAnon of all its processes every 2 ms and at their ends; " +
		"a peak between two looks is missed"
)

// PeakBy says how the peaks were measured, in a clause.
func (v *Verification) PeakBy() string {
	for i := range v.Cells {
		for k := range v.Cells[i].Pairs {
			return v.Cells[i].Pairs[k].Measured.PeakBy
		}
	}
	return "not measured"
}
