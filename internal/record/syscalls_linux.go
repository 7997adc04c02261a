package record

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// memoryCall makes an event of a memory system call's number and arguments;
// KindNone when it is none, or when it changes nothing. Kind KindNewTask stands
// for a call of the fork family, whose event is made at task_newtask.
func memoryCall(nr int64, a *[6]uint64) (e trace.Event) {
	switch nr {
	case unix.SYS_MMAP:
		e = trace.Event{Kind: trace.KindMmap, A: a[0], B: a[1], C: a[2]&0xffffffff | a[3]<<32, D: a[4] & 0xffffffff}
	case unix.SYS_MUNMAP:
		e = trace.Event{Kind: trace.KindMunmap, A: a[0], B: a[1]}
	case unix.SYS_MREMAP:
		e = trace.Event{Kind: trace.KindMremap, A: a[0], B: a[1], C: a[2], D: a[3] & 0xfff}
		if a[3]&(unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP) != 0 {
			e.D |= a[4] &^ 0xfff // A misaligned new address is refused, so its low bits tell nothing.
		}
	case unix.SYS_MPROTECT:
		e = trace.Event{Kind: trace.KindMprotect, A: a[0], B: a[1], C: a[2]}
	case unix.SYS_PKEY_MPROTECT:
		e = trace.Event{Kind: trace.KindMprotect, A: a[0], B: a[1], C: a[2], D: uint64(uint32(a[3]) + 1)}
	case unix.SYS_BRK:
		e = trace.Event{Kind: trace.KindBrk, A: a[0]}
	case unix.SYS_MADVISE:
		e = trace.Event{Kind: trace.KindMadvise, A: a[0], B: a[1], C: a[2] & 0xffffffff}
	case unix.SYS_PROCESS_MADVISE:
		e = trace.Event{Kind: trace.KindMadvise, C: a[3] & 0xffffffff}
	case unix.SYS_MLOCK:
		e = trace.Event{Kind: trace.KindMlock, A: a[0], B: a[1]}
	case unix.SYS_MLOCK2:
		e = trace.Event{Kind: trace.KindMlock, A: a[0], B: a[1], C: a[2]}
	case unix.SYS_MUNLOCK:
		e = trace.Event{Kind: trace.KindMunlock, A: a[0], B: a[1]}
	case unix.SYS_MLOCKALL:
		e = trace.Event{Kind: trace.KindMlockall, A: a[0]}
	case unix.SYS_MUNLOCKALL:
		e = trace.Event{Kind: trace.KindMlockall}
	case unix.SYS_SHMAT:
		e = trace.Event{Kind: trace.KindShmat, A: a[1]}
	case unix.SYS_SHMDT:
		e = trace.Event{Kind: trace.KindShmdt, A: a[0]}
	case unix.SYS_MBIND:
		// The node mask itself cannot be read; its address stands for it, so
		// that a program that binds with one mask keeps one identity.
		e = trace.Event{Kind: trace.KindMbind, A: a[0], B: a[1], C: a[2], D: a[3]*0x9e3779b97f4a7c15 ^ a[4]}
	case unix.SYS_USERFAULTFD:
		e = trace.Event{Kind: trace.KindUffd, C: 1}
	case unix.SYS_PRCTL:
		if a[0] == unix.PR_SET_THP_DISABLE {
			e = trace.Event{Kind: trace.KindPrctlTHP, A: a[1], B: a[2]}
		}
	default:
		if forkCall(nr) {
			e.Kind = trace.KindNewTask
		}
	}
	return e
}

// placedAtExit says that without the lock's time a call stands at its exit:
// those that take addresses. Those that give addresses back stand at their
// entry, so that another thread's call that gets the same addresses comes later.
func placedAtExit(e *trace.Event) bool {
	switch e.Kind {
	case trace.KindMmap, trace.KindMremap, trace.KindShmat, trace.KindBrk:
		return true
	}
	return false
}

// memoryCalls are the system calls that memoryCall knows, fork family included.
var memoryCalls = append([]int64{
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_BRK,
	unix.SYS_MADVISE, unix.SYS_PROCESS_MADVISE, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK,
	unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_MBIND, unix.SYS_USERFAULTFD, unix.SYS_PRCTL,
}, forkCalls...)

// execCalls end in a new program; only their exits are looked at.
var execCalls = []int64{unix.SYS_EXECVE, unix.SYS_EXECVEAT}

func forkCall(nr int64) bool {
	return slices.Contains(forkCalls, nr)
}

// idFilter is a tracepoint filter that passes the system calls of the lists.
func idFilter(lists ...[]int64) string {
	var b strings.Builder
	for _, list := range lists {
		for _, n := range list {
			if b.Len() > 0 {
				b.WriteString("||")
			}
			b.WriteString("id==" + strconv.FormatInt(n, 10))
		}
	}
	return b.String()
}
