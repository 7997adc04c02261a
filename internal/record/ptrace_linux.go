package record

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traceOptions make every new thread and process a tracee too, and kill all of
// them should the recorder die: a stopped call without its tracer would fail.
const traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACEFORK |
	unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEEXIT |
	unix.PTRACE_O_EXITKILL

func ptraceCall(req, tid int, addr, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func seize(tid int, options uintptr) error {
	return ptraceCall(unix.PTRACE_SEIZE, tid, 0, options)
}

// resumeTo lets a stopped tracee run; request is PTRACE_CONT, PTRACE_SYSCALL,
// PTRACE_LISTEN or PTRACE_DETACH. A tracee that was killed meanwhile is no
// error: its end will be reported.
func resumeTo(request, tid int, sig unix.Signal) error {
	err := ptraceCall(request, tid, 0, uintptr(sig))
	if err == unix.ESRCH {
		return nil
	}
	return err
}

// callInfo is what PTRACE_GET_SYSCALL_INFO tells at a stop. Linux:
// include/uapi/linux/ptrace.h:struct ptrace_syscall_info (v6.18).
type callInfo struct {
	Op     uint8
	_      [3]byte
	Arch   uint32
	IP, SP uint64
	U      [8]uint64 // entry: nr and six arguments; exit: result, then one byte is-error
}

const (
	infoEntry   = 1
	infoExit    = 2
	infoSeccomp = 3
)

func getCallInfo(tid int) (c callInfo, err error) {
	err = ptraceCall(unix.PTRACE_GET_SYSCALL_INFO, tid, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
	return c, err
}

// stop is one report of wait: a tracee stopped, or it has gone.
type stop struct {
	tid    int
	gone   bool
	status unix.WaitStatus
}

// event is the PTRACE_EVENT of the stop, 0 for none.
func (s stop) event() int { return int(uint32(s.status)>>16) & 0xff }

// siginfo of waitid: si_signo, si_errno, si_code, padding, then pid, uid, status.
type waitInfo struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [100]byte
}

const (
	cldExited = 1
	cldDumped = 3
)

// waitTracee blocks until a tracee of this thread stops or ends. keep is a
// child that somebody else reaps: its end is reported, not taken.
func waitTracee(keep int) (stop, error) {
	const which = unix.WEXITED | unix.WSTOPPED | unix.WALL | unix.WNOTHREAD
	for {
		var info waitInfo
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)),
			which|unix.WNOWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return stop{}, errno
		}
		tid := int(info.pid)
		if info.code >= cldExited && info.code <= cldDumped && tid == keep {
			return stop{tid: tid, gone: true}, nil
		}
		var ws unix.WaitStatus
		got, err := unix.Wait4(tid, &ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil)
		if err == unix.EINTR || err == unix.ECHILD || got == 0 {
			continue
		}
		if err != nil {
			return stop{}, err
		}
		return stop{tid: tid, gone: ws.Exited() || ws.Signaled(), status: ws}, nil
	}
}

// readWords reads n 8-byte words of a tracee's memory; fewer when it cannot.
func readWords(pid int, at uint64, n int) []uint64 {
	buf := make([]byte, 8*n)
	got, err := unix.ProcessVMReadv(pid,
		[]unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}},
		[]unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
	if err != nil {
		return nil
	}
	words := make([]uint64, got/8)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(buf[8*i:])
	}
	return words
}

// sameMemory says whether two tracees share their address space; ok is false
// when the kernel does not tell.
func sameMemory(a, b int) (same, ok bool) {
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return r == 0, errno == 0
}
