package difftest

import "github.com/hugelab/hugelab/mm"

// Program is a policy, and what processes then do under it.
type Program struct {
	Name    string // where it came from, for messages
	Policy  string // a policy spec applied to NeverPolicy, "" for that itself
	Machine string // what machine the model alone is, "" for the kernel's
	Steps   []Step
}

// Verb is what a step does.
type Verb uint8

// The verbs of the text form.
const (
	VerbMap Verb = iota + 1
	VerbTouch
	VerbAdvise
	VerbUnmap
	VerbProtect
	VerbRemap
	VerbLock
	VerbUnlock
	VerbBrk
	VerbPrctl
	VerbFork
	VerbIn
	VerbExit
	VerbExpect
	VerbResult
	VerbDropCaches
	VerbLockAll
	VerbUnlockAll
	VerbSplit
	VerbKhugepaged
	VerbPool
	VerbOvercommit
	VerbExpectPool

	// Of the model alone, from here on.
	VerbMigrate
	VerbBind
	VerbOffline
	VerbPin
	VerbUnpin
	VerbUserfault
	VerbResident
	VerbPopulate
	VerbDemote
	VerbExec
	numVerbs
)

var verbNames = [numVerbs]string{
	VerbMap: "map", VerbTouch: "touch", VerbAdvise: "advise", VerbUnmap: "unmap", VerbProtect: "protect",
	VerbRemap: "remap", VerbLock: "lock", VerbUnlock: "unlock", VerbBrk: "brk", VerbPrctl: "prctl",
	VerbFork: "fork", VerbIn: "in", VerbExit: "exit", VerbExpect: "expect", VerbResult: "result",
	VerbDropCaches: "drop-caches", VerbLockAll: "lock-all", VerbUnlockAll: "unlock-all", VerbSplit: "split",
	VerbKhugepaged: "khugepaged", VerbPool: "pool", VerbOvercommit: "overcommit", VerbExpectPool: "expect-pool",
	VerbMigrate: "migrate", VerbBind: "bind", VerbOffline: "offline", VerbPin: "pin", VerbUnpin: "unpin",
	VerbUserfault: "userfault", VerbResident: "resident", VerbPopulate: "populate", VerbDemote: "demote",
	VerbExec: "exec",
}

// String is the word that begins the step's line.
func (v Verb) String() string { return verbNames[v] }

// Step is one line of a program.
type Step struct {
	Verb   Verb
	Line   int  // of the file it came from, 0 if none
	Area   Area // what it is about; Map: Region, and To is the length
	Access mm.Access
	Flags  mm.OpFlags
	Advice mm.Advice
	Step   int64    // Touch: bytes from one touch to the next, 0 for one page
	Place  Place    // Map, Remap: where the result lies
	Size   mm.Bytes // Remap: new length, 0 for the old; Brk: the heap's new length, or by how much
	Change int8     // Brk: +1 grows by Size, -1 shrinks by it, 0 sets it
	Second bool     // Touch: by the process's second thread
	Free   bool     // Map, Remap: the kernel chooses where; with a Place, that is a hint
	How    uint8    // LockAll: bits of lockAllNames; Userfault: 1 for on
	Name   string   // Fork, In: the process
	Prctl  uint8    // an mm.THPDisable
	Expect Expected // Expect
	Errno  mm.Errno // Result: of the step before

	// Of hugetlb.
	Bus  int64     // Result: 1 claims that the last step's touches were refused, all by SIGBUS
	Pool poolClaim // Pool, Overcommit, Demote: the first number; ExpectPool

	// Of the model alone.
	Node mm.NodeID // Migrate, Bind
}

// Area is a part of a region: bytes [From, To) from its start, where the
// region was last mapped.
type Area struct {
	Region   string
	From, To mm.Bytes
	Whole    bool // all of the region
	Single   bool // the page at From
}

// Place says where a mapping lies: At bytes into the region In, or, where In is
// empty, into the slot of the region that the step makes.
type Place struct {
	In string
	At mm.Bytes
}

// Expected is what a program claims of every page of an area.
type Expected struct {
	Absent bool // nothing is mapped
	Order  mm.Order
	PMD    int8 // 1: by a PMD, -1: by page tables, 0: either
	Zero   bool // the shared zero page
	Shared bool // mapped more than once
}

// Where regions lie. Each has a slot of its own, numbered by first appearance,
// far from whatever else a process maps.
const (
	pageSize           = 4096
	anchorAt  mm.VA    = 0x10000  // a page below everything
	heapAt    mm.VA    = 0x805000 // behind the helper's code, randomisation off
	arenaAt   mm.VA    = 0x100000000000
	slotSize  mm.Bytes = 256 << 20
	maxSlots           = 64
	arenaEnd           = arenaAt + (maxSlots+2)*mm.VA(slotSize)
	maxLen    mm.Bytes = 128 << 20
	mainName           = "main"
	heapName           = "heap"
	stackName          = "stack"
	stackSpan          = 8 << 20 // what a stack may grow to, the usual RLIMIT_STACK
	pmdSize   mm.Bytes = 2 << 20
)

// Where the kernel places mappings: 128 MB below the end of what a program can
// map, randomisation off and stacks bound; a hint may lie above that.
const (
	mapTop mm.VA = 1<<47 - pageSize
	mapLow       = mapTop - 2<<30
)
