// Package mm is Linux's huge-page memory management for private anonymous
// memory: the buddy allocator, folios, VMAs, page tables, the anonymous fault
// with its choice of order, copy-on-write, unmapping, splitting, khugepaged,
// and every transparent-huge-page knob, counted under the kernel's own names.
//
// It is pure: no clock, no input or output, no goroutine, no global variable.
// The same calls give the same state, to the last page. It knows no
// nanosecond: each call adds named primitives to the caller's Work, which
// package hw prices. File-backed and shared memory is carried through because
// it decides where anonymous memory lies, but no policy here changes it.
//
// # Order of events in one fault
//
//	Begin:  find the VMA -> grow the stack -> choose the order -> allocate -> clear
//	Commit: recheck the table -> map, or give the folio back
//
// The cut between the two is where Linux takes the page-table lock. Touch does
// both with nothing in between.
//
// # Linux files mirrored
//
// mm/memory.c, mm/huge_memory.c, mm/khugepaged.c, mm/vma.c, mm/mmap.c,
// mm/mremap.c, mm/mprotect.c, mm/madvise.c, mm/mlock.c, mm/rmap.c,
// mm/page_alloc.c (v6.18 unless a comment says otherwise).
package mm
