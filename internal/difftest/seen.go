package difftest

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Executor does a program's actions one by one and shows what it then has.
type Executor interface {
	// Do does one action that is not none and shows what there is then in s,
	// which is reset.
	Do(a *action, s *Seen) error
	// Close ends every process of the program.
	Close() error
}

// Seen is what one side shows after a step.
type Seen struct {
	Errno    mm.Errno  // of the step's call
	Faults   uint64    // that the step completed, hardware and soft ones
	Refused  uint64    // touches that were refused
	Addr     mm.VA     // where a map or a remap landed, 0 if it was refused
	Bus      uint64    // of the refused ones, those that got SIGBUS
	Pool     *PoolSeen // nil where the program has nothing to do with hugetlb
	Procs    []ProcSeen
	Counters []int64 // by CounterNames, since the program began
}

// reset empties s and keeps its memory.
func (s *Seen) reset() {
	*s = Seen{Procs: s.Procs[:0], Counters: s.Counters[:0]}
}

// process adds an empty process to s.
func (s *Seen) process() *ProcSeen {
	if n := len(s.Procs); n < cap(s.Procs) {
		s.Procs = s.Procs[:n+1]
		p := &s.Procs[n]
		p.VMAs, p.Pages = p.VMAs[:0], p.Pages[:0]
		return p
	}
	s.Procs = append(s.Procs, ProcSeen{})
	return &s.Procs[len(s.Procs)-1]
}

// ProcSeen is one process; an ended one is empty.
type ProcSeen struct {
	VMAs  []mm.VMAInfo // in the arena, merged neighbours apart
	Pages []PageSeen   // present pages and guard markers, in address order
}

// PageSeen is what is behind one page.
type PageSeen struct {
	At    mm.VA
	PFN   mm.PFN // means something within one Seen only
	Index uint32
	Order mm.Order
	PMD   bool
	Zero  bool
	Maps  uint32 // how often it is mapped, the zero page apart
	Guard bool
}

// String is the page without its frame: "2m[5] pmd x2".
func (p PageSeen) String() string {
	if p.Guard {
		return "guard"
	}
	t := sizeText(pageSize << p.Order)
	if p.Order > 0 {
		t += fmt.Sprintf("[%d]", p.Index)
	}
	if p.PMD {
		t += " pmd"
	}
	if p.Zero {
		return t + " zero"
	}
	if p.Maps != 1 {
		t += fmt.Sprintf(" x%d", p.Maps)
	}
	return t
}

// vmCounters are the counters of /proc/vmstat that are compared: those that
// only huge pages move, so that programs elsewhere leave them alone.
var vmCounters = []mm.Counter{
	mm.THPFaultAlloc, mm.THPFaultFallback, mm.THPFaultFallbackCharge, mm.THPCollapseAlloc,
	mm.THPCollapseAllocFailed, mm.THPZeroPageAllocFailed, mm.THPSplitPage, mm.THPSplitPageFailed,
	mm.THPDeferredSplitPage, mm.THPUnderusedSplitPage, mm.THPSplitPMD, mm.THPScanExceedNonePTE,
	mm.THPScanExceedSwapPTE, mm.THPScanExceedSharePTE, mm.THPFileAlloc, mm.THPFileFallback,
	mm.THPFileFallbackCharge, mm.THPFileMapped,
}

// sizeCounters are the files of hugepages-<k>kB/stats that are compared.
var sizeCounters = []struct {
	file string
	get  func(*mm.SizeStats) uint64
}{
	{"anon_fault_alloc", func(s *mm.SizeStats) uint64 { return s.AnonFaultAlloc }},
	{"anon_fault_fallback", func(s *mm.SizeStats) uint64 { return s.AnonFaultFallback }},
	{"anon_fault_fallback_charge", func(s *mm.SizeStats) uint64 { return s.AnonFaultFallbackCharge }},
	{"split", func(s *mm.SizeStats) uint64 { return s.Split }},
	{"split_failed", func(s *mm.SizeStats) uint64 { return s.SplitFailed }},
	{"split_deferred", func(s *mm.SizeStats) uint64 { return s.SplitDeferred }},
	{"nr_anon", func(s *mm.SizeStats) uint64 { return s.NrAnon }},
	{"nr_anon_partially_mapped", func(s *mm.SizeStats) uint64 { return s.NrAnonPartiallyMapped }},
	{"shmem_alloc", func(s *mm.SizeStats) uint64 { return s.ShmemAlloc }},
	{"shmem_fallback", func(s *mm.SizeStats) uint64 { return s.ShmemFallback }},
	{"shmem_fallback_charge", func(s *mm.SizeStats) uint64 { return s.ShmemFallbackCharge }},
}

// programSizes are the sizes of the machine that programs are written for.
func programSizes() mm.Sizes { return mm.Sizes{Base: pageSize, PMD: 9} }

// CounterNames names Seen.Counters: vmstat's, then size by size.
func CounterNames() []string {
	var all []string
	for _, c := range vmCounters {
		all = append(all, c.String())
	}
	s := programSizes()
	for _, f := range sizeFiles {
		all = append(all, s.Dir(f.order)+"/"+f.file)
	}
	return all
}

// sizeFile is one counter of one size.
type sizeFile struct {
	order  mm.Order
	file   string
	get    func(*mm.SizeStats) uint64
	shared bool // only shared memory moves it
}

// sizeFiles are all of them, size by size; the smallest is shared memory's alone.
var sizeFiles = func() (all []sizeFile) {
	for _, o := range programSizes().ShmemOrders() {
		for _, f := range sizeCounters {
			shared := strings.HasPrefix(f.file, "shmem_")
			if small := o < mm.MinTHPOrder; !small || shared || f.file == "split" || f.file == "split_failed" {
				all = append(all, sizeFile{o, f.file, f.get, shared || small})
			}
		}
	}
	return all
}()
