package kernel

import "github.com/hugelab/hugelab/mm"

// Run is a run of neighbouring pages of one kind in a process's page map.
type Run struct {
	Start mm.VA
	Pages mm.Pages
	RunKind
}

// RunKind is what the page map says of every page of a Run.
type RunKind struct {
	// Zero marks the shared zero page, small or huge: read, never written.
	Zero bool
	// File marks page-cache pages, shared anonymous ones among them.
	File bool
	// Swapped marks pages that are not in memory, their content elsewhere.
	Swapped bool
	// Huge marks pages that a PMD entry maps, where known.
	Huge bool
	// Shared says that the page is mapped more than once, as after fork. Only
	// the reader of bits can tell, and it takes such a page for the zero page.
	Shared bool
}

// End is the address behind the run, with pages of size pageSize.
func (r Run) End(pageSize uint64) mm.VA { return r.Start + mm.VA(uint64(r.Pages)*pageSize) }

// Bits of an entry of /proc/PID/pagemap. Linux: fs/proc/task_mmu.c:pagemap_read
// (v6.18). Without CAP_SYS_ADMIN the frame number reads as 0, the bits do not.
const (
	pmFrame     = 1<<55 - 1
	pmExclusive = 1 << 56
	pmGuard     = 1 << 58
	pmFile      = 1 << 61
	pmSwapped   = 1 << 62
	pmPresent   = 1 << 63
)

// entryKind reads one entry; ok is false where there is no page.
//
// An exclusive page is never the zero page. Of the others an unprivileged
// reader cannot tell the zero page from an anonymous page that a fork shares;
// Zero and Shared are then both set.
func entryKind(e uint64) (k RunKind, ok bool) {
	switch {
	case e&pmGuard != 0:
		return k, false
	case e&pmSwapped != 0:
		return RunKind{Swapped: true}, true
	case e&pmPresent == 0:
		return k, false
	case e&pmFile != 0:
		return RunKind{File: true}, true
	}
	shared := e&pmExclusive == 0
	return RunKind{Zero: shared, Shared: shared}, true
}

// addPage appends one page to runs, growing the last run where it fits.
func addPage(runs []Run, at mm.VA, k RunKind, pageSize uint64) []Run {
	if n := len(runs); n > 0 && runs[n-1].RunKind == k && runs[n-1].End(pageSize) == at {
		runs[n-1].Pages++
		return runs
	}
	return append(runs, Run{Start: at, Pages: 1, RunKind: k})
}
