package record

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stoppedCalls are the calls that change an address space. Each of them stops
// for the recorder; every other call runs at full speed.
var stoppedCalls = []uint32{
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_BRK,
	unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT,
	unix.SYS_MADVISE, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK, unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL,
	unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_MBIND, unix.SYS_USERFAULTFD,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE,
}

// prSetTHPDisable is the one prctl that stops.
const prSetTHPDisable = unix.PR_SET_THP_DISABLE

// auditArchs are the machines whose calls the filter knows.
var auditArchs = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets in struct seccomp_data. Linux: include/uapi/linux/seccomp.h (v6.18).
const (
	dataNr   = 0
	dataArch = 4
	dataArg0 = 16 // low half on a little-endian machine
)

func bpfLoad(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func bpfReturn(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// bpfIfEqual skips yes instructions when the loaded word is k, else no.
func bpfIfEqual(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// stopFilter is the seccomp program: stop at stoppedCalls and at
// prctl(PR_SET_THP_DISABLE), allow everything else and every foreign
// architecture's calls.
//
//	arch not ours -> allow
//	nr in stoppedCalls -> trace
//	nr is prctl and its first argument is PR_SET_THP_DISABLE -> trace
//	-> allow
func stopFilter(arch uint32) []unix.SockFilter {
	n := len(stoppedCalls)
	// Behind the tests of calls: prctl's two, allow, trace.
	prog := []unix.SockFilter{
		bpfLoad(dataArch), bpfIfEqual(arch, 0, uint8(1+n+3)),
		bpfLoad(dataNr),
	}
	for i, nr := range stoppedCalls {
		prog = append(prog, bpfIfEqual(nr, uint8(n-i-1+4), 0))
	}
	return append(prog,
		bpfIfEqual(unix.SYS_PRCTL, 0, 2),
		bpfLoad(dataArg0),
		bpfIfEqual(prSetTHPDisable, 1, 0),
		bpfReturn(unix.SECCOMP_RET_ALLOW),
		bpfReturn(unix.SECCOMP_RET_TRACE),
	)
}

// InstallStops gives up new privileges and installs the filter for the calling
// thread. The stub calls it just before its exec, on the thread that the
// recorder has seized: from then on a stopped call without a tracer fails with
// ENOSYS.
func InstallStops() error {
	arch, ok := auditArchs[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("seccomp: no filter for %s; the root method needs none", runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("seccomp: no_new_privs: %w", err)
	}
	prog := stopFilter(arch)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
	runtime.KeepAlive(prog)
	if err != nil {
		return fmt.Errorf("seccomp: filter: %w; a container may forbid it", err)
	}
	return nil
}
