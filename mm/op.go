package mm

// Op is one memory operation on one address space. Addresses are
// (Region, Page), never absolute. A range may run past the end of its region
// into whatever lies behind it, exactly as a system call's range may. One
// Touch covers a run. 64 bytes: one cache line.
type Op struct {
	Kind   OpKind
	Access Access // Touch: what was done. Map, Protect: the protection.
	Flags  OpFlags
	CPU    CPU
	_      uint16
	Space  Space
	Thread Thread
	Region Region
	Stride int32  // Touch: pages between two touches of the run, may be negative
	Page   uint64 // offset in Region, in pages
	N      Pages  // length, or number of touches
	Arg    uint64 // by Kind
	Aux    uint64 // by Kind
	When   Nanos  // recorded or virtual time; khugepaged runs between two operations
}

// OpKind says what an Op does and how its fields are read.
type OpKind uint8

// The kinds of operation.
const (
	OpNone OpKind = iota

	// OpTouch accesses N pages (Page, Page+Stride, ...) with Access. Region 0
	// is an address no known mapping holds: it counts as one fault that no
	// policy changes.
	OpTouch

	// OpMap makes Region, N pages long, protection Access, Flags as Map flags.
	// With MapAtExec Aux is an Area; a heap registers itself with N == 0.
	// Arg is the recorded address of its first page, 0 if none. With
	// MapFixed, and Aux != 0, it lies Page pages into the region Aux; with
	// MapFixed and Aux == 0 it lies at Arg. With MapHint Arg was the hint's
	// result. With MapGrowsDown (a main stack) the region is the whole span
	// that the stack may grow into, and the VMA starts Page pages into it:
	// the region's base is Arg - Page.
	OpMap

	// OpUnmap unmaps N pages.
	OpUnmap

	// OpRemap moves or resizes: old range is (Region, Page, N). Arg is the
	// new length in pages. Aux is the region that names the result (may
	// equal Region when nothing moved). Stride is unused. RemapFixed: the
	// recorded new address stands in the OpNote that follows.
	OpRemap

	// OpNote carries a recorded address for the Op before it: Arg. Where it
	// lies in a known region, Region and Page say so; Region 0 is none.
	OpNote

	// OpProtect sets the protection of N pages to Access.
	OpProtect

	// OpAdvise gives N pages the advice Arg (an Advice).
	OpAdvise

	// OpBrk sets the heap's length: Region is the heap (its base is the
	// start of the heap, rounded up to a page), N its new length in pages.
	OpBrk

	// OpLock and OpUnlock are mlock and munlock of N pages; LockOnFault in
	// Flags. OpLockAll: Arg is the MCL_ flags, 0 is munlockall.
	OpLock
	OpUnlock
	OpLockAll

	// OpFork makes the space Arg a copy of Space.
	OpFork

	// OpExec begins Space anew as an empty address space; the maps present
	// at exec follow as OpMap with MapAtExec. Arg is the space that the
	// thread left, 0 if none (its last user leaves it by OpExit).
	// Aux bit 0 says the program is a 32-bit one.
	OpExec

	// OpExit ends Space: its last user left it.
	OpExit

	// OpTHPDisable is prctl(PR_SET_THP_DISABLE): Arg is a THPDisable.
	OpTHPDisable

	// OpPopulate faults in N pages as mlock or MAP_POPULATE do.
	OpPopulate

	// OpUffd registers N pages with userfaultfd (Arg 1) or ends it (0).
	OpUffd

	// OpPolicyNode is mbind of N pages: Arg is a policy identity, only
	// compared for equality by the merge rules.
	OpPolicyNode

	// OpUnknown marks N pages whose content the recording method could not
	// see. Arg is an UnknownKind. It changes nothing in the model; whoever
	// reads the stream counts it.
	OpUnknown

	// OpResident says that N pages were present at the start (an attached
	// recording). Access says written or only read; Arg is the order of the
	// folio that held them, 0 for small ones.
	OpResident

	NumOpKinds
)

// OpFlags are flags of an Op; which ones apply depends on its Kind.
type OpFlags uint16

// Flags of OpMap.
const (
	MapShared OpFlags = 1 << iota
	MapFile           // backed by a file (Aux of a MapFile region is free); not changed by policy
	MapFixed
	MapPopulate
	MapLocked
	MapStack
	MapGrowsDown
	MapNoReserve
	MapHint
	MapAtExec   // made by the kernel at exec, or present when a recording attached
	MapHugetlb  // carried through, its pages are huge already; with MapPool they come from a pool
	MapSpecial  // vdso and the like
	MapReplaces // MapFixed over existing mappings (not NOREPLACE)
	MapDroppable
	MapPool    // with MapHugetlb: from the machine's pool of pages of the PMD's size; see MapShmem
	MapPoolPUD // with MapHugetlb: of the PUD's size, 1 GB
)

// MapShmem is shared anonymous memory whose pages the machine has, as policy
// (Shmem, ShmemSize) makes them. With MapShared alone they are carried through:
// a recording does not say what other processes did with them.
const MapShmem = MapShared | MapPool

// Flags of other kinds.
const (
	RemapFixed     OpFlags = 1 << 0 // OpRemap: MREMAP_FIXED
	RemapMayMove   OpFlags = 1 << 1 // OpRemap: MREMAP_MAYMOVE
	RemapDontUnmap OpFlags = 1 << 2 // OpRemap: MREMAP_DONTUNMAP
	LockOnFault    OpFlags = 1 << 0 // OpLock
)

// Access is what a touch did or a mapping permits, as bits.
type Access uint8

// Access bits.
const (
	Read Access = 1 << iota
	Write
	Exec
	KernelMode    // the access came from kernel mode (copy to user and the like)
	WasPresent    // the recorded fault found a present entry (copy-on-write, spurious)
	AccessUnknown // the recording method could not see what kind of access it was
	NoFault       // found by a page map, not by a fault: the time is an upper bound
	ZeroData      // a write that stores only zeros (splitting looks at content)
)

// Prot is the protection part of an Access.
const Prot = Read | Write | Exec

// THPDisable is a process's prctl(PR_SET_THP_DISABLE) state.
type THPDisable uint8

// The three states. Linux: kernel/sys.c:prctl_set_thp_disable (v6.18).
const (
	THPEnabled       THPDisable = iota
	THPDisabled                 // completely, even where advised
	THPExceptAdvised            // only advised mappings; since 6.18
)

// UnknownKind says what a recording method could not see.
type UnknownKind uint8

// Kinds of unknown.
const (
	UnknownOrder     UnknownKind = iota + 1 // the order of touches within the range
	UnknownReadFirst                        // whether a page was read before it was written
	UnknownInHuge                           // touches inside folios that were huge already
	UnknownContent                          // what the range held
)

// Advice is a madvise value under its Linux number.
type Advice uint16

// Advice values. Linux: include/uapi/asm-generic/mman-common.h (v6.18).
const (
	AdviseNormal         Advice = 0
	AdviseDontNeed       Advice = 4
	AdviseFree           Advice = 8
	AdviseRemove         Advice = 9
	AdviseDontFork       Advice = 10
	AdviseDoFork         Advice = 11
	AdviseMergeable      Advice = 12
	AdviseUnmergeable    Advice = 13
	AdviseHugePage       Advice = 14
	AdviseNoHugePage     Advice = 15
	AdviseDontDump       Advice = 16
	AdviseDoDump         Advice = 17
	AdviseWipeOnFork     Advice = 18
	AdviseKeepOnFork     Advice = 19
	AdviseCold           Advice = 20
	AdvisePageOut        Advice = 21
	AdvisePopulateRead   Advice = 22
	AdvisePopulateWrite  Advice = 23
	AdviseDontNeedLocked Advice = 24
	AdviseCollapse       Advice = 25
	AdviseGuardInstall   Advice = 102
	AdviseGuardRemove    Advice = 103
)

// Result is what an executor says of one Op.
type Result struct {
	Addr   VA     // where a Map or Remap landed
	Faults uint32 // hardware page faults that the operation took
	Errno  Errno  // the kernel's refusal
}

// Stream yields operations in batches; io.EOF ends it. A recording's reader, a
// test program and every named workload implement it.
type Stream interface {
	// Next fills buf from its start and returns how many it filled.
	Next(buf []Op) (int, error)
}
