package kstat

import (
	"io/fs"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// Tree is what one kernel says about itself: a live host, a saved directory, a
// guest or the model.
type Tree struct {
	FS    fs.FS      // text files, "proc/..." and "sys/..."; a missing file means not known, never zero
	Pages PageSource // nil when refused: say so, fall back to smaps
	When  time.Time
}

// PageInfo is what is known of one virtual page.
type PageInfo struct {
	Present   bool
	Zero      bool // the shared zero page, small or huge
	File      bool // file page or shared anonymous
	Exclusive bool // mapped once
	Swapped   bool
	Guard     bool
	PMD       bool     // mapped by a PMD entry, where known
	Order     mm.Order // of the folio, where frame numbers are readable
	Index     uint32   // place in the folio, in pages
	PFN       mm.PFN   // 0 when not readable
	Maps      uint32   // how often the page is mapped, 0 where not known
}

// PageSource tells the pages of a process.
type PageSource interface {
	// Pages fills out from the page that holds from, and returns how many.
	Pages(pid int, from mm.VA, out []PageInfo) (int, error)
	// Exact is false when frame numbers are hidden; sizes then come from smaps.
	Exact() bool
}
