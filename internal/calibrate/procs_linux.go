package calibrate

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// procs makes the child processes of workloads. A child shares no lock with
// the runtime it is a copy of: it does system calls and nothing else.
type procs struct {
	held  int    // a child that waits for release, 0 for none
	gate  [2]int // it reads a byte from here
	exe   int    // the program that ends at once
	path  []byte
	argv  []*byte
	envp  []*byte
	empty []byte
}

func newProcs() (*procs, error) {
	p := &procs{}
	if err := unix.Pipe2(p.gate[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	var err error
	if p.exe, err = tinyProgram(); err != nil {
		return nil, fmt.Errorf("a program to run: %w", err)
	}
	p.path = append([]byte("/proc/self/fd/"+strconv.Itoa(p.exe)), 0)
	p.argv, p.envp, p.empty = []*byte{&p.path[0], nil}, []*byte{nil}, []byte{0}
	return p, nil
}

func (p *procs) close() {
	unix.Close(p.gate[0])
	unix.Close(p.gate[1])
	unix.Close(p.exe)
}

// fork makes a child that waits for release.
//
//go:norace
//go:noinline
func (p *procs) fork() error {
	var b byte
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_CLOSE, uintptr(p.gate[1]), 0, 0)
		unix.RawSyscall(unix.SYS_READ, uintptr(p.gate[0]), uintptr(unsafe.Pointer(&b)), 1)
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	p.held = int(pid)
	return nil
}

// release lets the child end and waits for it.
func (p *procs) release() error {
	b := byte(1)
	if _, err := call(unix.SYS_WRITE, uintptr(p.gate[1]), uintptr(unsafe.Pointer(&b)), 1, 0, 0); err != nil {
		return err
	}
	pid := p.held
	p.held = 0
	return await(pid)
}

// await waits for a child and takes another exit code than 0 for an error.
func await(pid int) error {
	var status uint32
	for {
		_, err := call(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&status)), 0, 0, 0)
		if err == unix.EINTR {
			continue
		}
		if err == nil && status != 0 {
			err = fmt.Errorf("child: wait status %#x", status)
		}
		return err
	}
}

// runProgram forks, lets the child become the program, and waits for its end.
//
//go:norace
//go:noinline
func (p *procs) runProgram() error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&p.path[0])), uintptr(unsafe.Pointer(&p.argv[0])),
			uintptr(unsafe.Pointer(&p.envp[0])))
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 99, 0, 0)
		}
	}
	return await(int(pid))
}

// exits are the instructions of exit_group(0).
var exits = map[string][]byte{
	"amd64": {0x31, 0xff, 0xb8, 0xe7, 0x00, 0x00, 0x00, 0x0f, 0x05},
	"arm64": {0xc8, 0x0b, 0x80, 0xd2, 0x00, 0x00, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
}

var machines = map[string]uint16{"amd64": 62, "arm64": 183} // ELF's numbers

// tinyProgram makes a static ELF program of one page that ends at once, and
// opens it.
func tinyProgram() (int, error) {
	code, ok := exits[runtime.GOARCH]
	if !ok {
		return 0, fmt.Errorf("none for %s", runtime.GOARCH)
	}
	fd, err := unix.MemfdCreate("hugelab-exit", 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, elf(machines[runtime.GOARCH], code)); err != nil {
		return 0, err
	}
	if err := unix.Fchmod(fd, 0o700); err != nil {
		return 0, err
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY, 0)
}

// elf is the file of a program with one segment: header, program header, code.
func elf(machine uint16, code []byte) []byte {
	const load, head = 0x400000, 64 + 56
	le := binary.LittleEndian
	b := append([]byte{}, 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint16(b, 2) // an executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, load+head) // entry
	b = le.AppendUint64(b, 64)        // program headers
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // load
	b = le.AppendUint32(b, 5) // read and execute
	size := uint64(head + len(code))
	for _, v := range []uint64{0, load, load, size, size, uint64(os.Getpagesize())} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}
