package trace

import "github.com/hugelab/hugelab/mm"

// Event is one raw event of a recording, in the order in which the calls held
// the address space. Fields that a Kind does not use are zero.
type Event struct {
	Kind       Kind
	Access     mm.Access // Fault: what was done
	CPU        mm.CPU
	TID        int32    // thread that did it
	PID        int32    // its thread group
	When       mm.Nanos // since the recording's start
	A, B, C, D uint64   // by Kind
	Ret        int64    // the call's result; negative errno when refused
	Name       string   // Exec: the program; MapAt: the file, or [stack], [heap], [vdso]
}

// Kind says what an Event is and how A to D are read. Addresses and lengths
// are in bytes as the program gave them.
//
// A KindFault whose Access is mm.AccessUnknown alone is one that nothing tells
// more of: on a file's page, or a page that was gone at the next look. With
// mm.Write too it is a page that holds memory of its own, most likely written.
//
// KindResident pages were there at the start of a recording with
// Header.Attached. In any other each is one fault that no event told, mm.Read
// then mm.Write of a page are two, and the order within the run is unknown.
type Kind uint8

// The kinds. A refused call (Ret < 0) may be recorded; Replay passes it on only
// where it may have done part of its work before it was refused.
const (
	KindNone Kind = iota

	KindFault       // A address, B instruction pointer (0 if not kept)
	KindMmap        // A address asked, B length, C prot | flags<<32, D fd (int32) | 1<<32 when file-backed is certain. Ret the address
	KindMunmap      // A address, B length
	KindMremap      // A old address, B old length, C new length, D flags | new address (page aligned, low 12 bits are the flags). Ret the address
	KindMprotect    // A address, B length, C prot, D pkey+1 (0: none)
	KindBrk         // A asked, Ret the new end of the heap
	KindMadvise     // A address, B length, C advice. For process_madvise D is the target pid
	KindMlock       // A address, B length, C flags (MLOCK_ONFAULT 1)
	KindMunlock     // A address, B length
	KindMlockall    // A flags (MCL_*); munlockall is A = 0
	KindShmat       // A address asked, B length (0 unknown), Ret the address
	KindShmdt       // A address
	KindMbind       // A address, B length, C mode, D hash of the node mask
	KindUffd        // userfaultfd registered or created; A address, B length, C 1 armed, 0 disarmed; A=B=0: created, ranges unknown
	KindPrctlTHP    // A arg2, B flags
	KindNewTask     // A child tid, B clone flags, C child pid (thread group). TID/PID the parent
	KindExec        // TID/PID after the exec; A old tid; B stack pointer at start (0 unknown); C 1 for a 32-bit program; Name the file
	KindExit        // the thread TID is gone; A 1 when it was the last of its group (0: unknown or no)
	KindMapAt       // a map present at exec or attach. A start, B end, C prot | flags<<32 (MAP_SHARED/PRIVATE, GROWSDOWN), D identity of the file, 0 anonymous. Name
	KindBrkAt       // A start of the heap, B its end now, known at exec or attach
	KindResident    // attach or a page map: pages present. A start, B pages, C access (mm.Access), D order. When is an upper bound
	KindUnknown     // A start, B length, C an mm.UnknownKind
	KindLost        // A events lost on CPU, before When
	KindNote        // Name: a sentence for whoever reads the recording (setuid program, tracer, 32-bit ...)
	KindOtherFaults // A faults of process PID that the kernel counted and no event or page map explains; no policy changes them

	NumKinds int = iota
)
