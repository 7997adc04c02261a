//go:build amd64

package difftest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// puppetPlace is where a puppet's two segments lie: the code, and the area for
// commands, replies and the signal stack of each of two threads.
type puppetPlace struct{ area, code uint64 }

// programPlace is that of programs' puppets: the heap begins behind the code.
var programPlace = puppetPlace{area: puppetAreaAt, code: uint64(heapAt) - pageSize}

const (
	puppetAreaAt  = 0x400000      // as puppet_amd64.s has it
	puppetAreaLen = 16 * pageSize // of one thread; two threads have one each
)

// stack is the first thread's signal stack, pokes room for arguments in memory.
func (at puppetPlace) stack() uint64 { return at.area + 2*pageSize }
func (at puppetPlace) pokes() uint64 { return at.area + 1024 }

// holds says whether a range meets what the puppet itself has.
func (at puppetPlace) holds(from, to uint64) bool {
	return from < at.area+2*puppetAreaLen && to > at.area || from < at.code+pageSize && to > at.code
}

// maxPuppets is how many threads there may be beside the first process: two in
// each of a program's and of the decoy, and one for each CPU that is to be held.
func maxPuppets() int { return 2*(maxProcs+1) + min(runtime.NumCPU()-1, mostHeld) }

// puppets are one first process, which only forks, and the sockets of those
// that it and they fork. The first keeps huge pages off for itself.
type puppets struct {
	at   puppetPlace
	most int // how many there may be beside the first
	cmd  *exec.Cmd
	file *os.File
	ours []int // our ends; 0 is the first process's
	free []int // sockets that no process uses
}

// puppet is one process.
type puppet struct {
	set    *puppets
	socket int // index in set.ours
	pid    int
	pidfd  int
	second *puppet // the other thread, nil until a step asks for it
}

// reply is what a puppet says of one command.
type reply struct {
	Result          int64
	Refused         uint64
	MinorBefore     uint64
	MinorAfter      uint64
	MajorBefore     uint64
	MajorAfter      uint64
	Unused, Unused2 uint64
}

func (r *reply) errno() mm.Errno {
	if r.Result < 0 && r.Result > -4096 {
		return mm.Errno(-r.Result)
	}
	return mm.OK
}

// refused and bus are how many touches were refused, and got SIGBUS: the
// signal handler counts the one in the low half, the other in the high half.
func (r *reply) refused() uint64 { return r.Refused & (1<<32 - 1) }
func (r *reply) bus() uint64     { return r.Refused >> 32 }

func (r *reply) faults() uint64 {
	return r.MinorAfter - r.MinorBefore + r.MajorAfter - r.MajorBefore
}

// Commands of a puppet.
const (
	doSyscall = iota
	doTouch
	doFork
	doPoke
	doThread
	doSpin
)

// elf builds the program: one segment of code, one of zeroes.
func (at puppetPlace) elf() []byte {
	codeAt, signalAt := puppetText()
	code, signal := at.move(machineCode(codeAt)), machineCode(signalAt)
	const headers = 64 + 2*56
	var b bytes.Buffer
	w := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	total := uint64(headers + len(code) + len(signal))
	b.WriteString("\x7fELF\x02\x01\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	w(uint16(2), uint16(62), uint32(1), at.code+headers, uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(2), uint16(64), uint16(0), uint16(0))
	w(uint32(1), uint32(5), uint64(0), at.code, at.code, total, total, uint64(pageSize))
	w(uint32(1), uint32(6), uint64(0), at.area, at.area, uint64(0),
		uint64(2*puppetAreaLen), uint64(pageSize))
	b.Write(code)
	b.Write(signal)
	return b.Bytes()
}

// move puts the area's address into the code, instead of the one that the
// assembler knows.
func (at puppetPlace) move(code []byte) []byte {
	var was, is [4]byte
	binary.LittleEndian.PutUint32(was[:], puppetAreaAt)
	binary.LittleEndian.PutUint32(is[:], uint32(at.area))
	return bytes.ReplaceAll(code, was[:], is[:])
}

// signalAt is where the signal handler lies in the program.
func (at puppetPlace) signalAt() uint64 {
	codeAt, _ := puppetText()
	return at.code + 64 + 2*56 + uint64(len(machineCode(codeAt)))
}

// machineCode reads a function's instructions, up to the mark that ends it.
func machineCode(at uintptr) []byte {
	const most = 2048
	text := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), most)
	n := bytes.Index(text, []byte("\x0f\x0b\x0f\x0bend1"))
	return bytes.Clone(text[:n+4])
}

// startPuppets starts the first process.
func startPuppets() (*puppets, error) {
	return startPuppetsAt(programPlace, maxPuppets(), stackSpan)
}

// startPuppetsAt starts the first process at a place of its own, with a bound
// for stacks. Files that follow the sockets are its descriptors from 4+most on.
func startPuppetsAt(at puppetPlace, most int, stack uint64, files ...*os.File) (*puppets, error) {
	s := &puppets{at: at, most: most}
	if err := s.start(stack, files); err != nil {
		s.close()
		return nil, fmt.Errorf("helper process: %w", err)
	}
	return s, nil
}

func (s *puppets) start(stack uint64, files []*os.File) error {
	path, err := s.program()
	if err != nil {
		return err
	}
	s.cmd = exec.Command(path)
	s.cmd.Args, s.cmd.Env = []string{"hugelab-difftest"}, []string{}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	for i := range s.most + 1 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		s.ours = append(s.ours, pair[0])
		theirs := os.NewFile(uintptr(pair[1]), "helper's socket")
		defer theirs.Close()
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, theirs)
		timeout := unix.Timeval{Sec: 20}
		if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return err
		}
		if i > 0 {
			s.free = append(s.free, i)
		}
	}
	s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, files...)
	if err := startUnshuffled(s.cmd, stack); err != nil {
		return err
	}
	first := s.first()
	if _, err := first.receive(); err != nil {
		return err
	}
	return first.prepare()
}

// startUnshuffled starts a process with address randomisation off: the heap
// begins right behind the program.
func startUnshuffled(cmd *exec.Cmd, stack uint64) error {
	const addrNoRandomize, ask = 0x0040000, 0xffffffff
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, ask, 0, 0)
	if errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	unix.RawSyscall(unix.SYS_PERSONALITY, was|addrNoRandomize, 0, 0)
	defer unix.RawSyscall(unix.SYS_PERSONALITY, was, 0, 0)
	// Where mappings go depends on how far the stack may grow, too.
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_STACK, nil, &limit); err != nil {
		return fmt.Errorf("stack limit: %w", err)
	}
	bound := unix.Rlimit{Cur: min(stack, limit.Max), Max: limit.Max}
	if err := unix.Prlimit(0, unix.RLIMIT_STACK, &bound, nil); err != nil {
		return fmt.Errorf("stack limit: %w", err)
	}
	defer unix.Prlimit(0, unix.RLIMIT_STACK, &limit, nil)
	return cmd.Start()
}

// program writes the ELF file where only this process can reach it.
func (s *puppets) program() (string, error) {
	fd, err := unix.MemfdCreate("hugelab-difftest", unix.MFD_CLOEXEC)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "helper")
	defer f.Close()
	if _, err := f.Write(s.at.elf()); err != nil {
		return "", err
	}
	// A file that is open for writing cannot be executed.
	if s.file, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.file.Fd()), nil
}

func (s *puppets) first() *puppet { return &puppet{set: s, pid: s.cmd.Process.Pid} }

// close ends all processes: each ends when its socket does.
func (s *puppets) close() {
	for _, fd := range s.ours {
		unix.Close(fd)
	}
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
	if s.file != nil {
		s.file.Close()
	}
}

// prepare gives the first process its signal handlers and one CPU, which the
// others inherit: pages wait on per-CPU lists before they reach the LRU, and
// whoever runs elsewhere would see a reference that is not its own.
func (p *puppet) prepare() error {
	const restorer, onStack, noDefer = 0x04000000, 0x08000000, 0x40000000
	handler, pokes := p.set.at.signalAt(), p.set.at.pokes()
	words := func(v ...uint64) error {
		for i, x := range v {
			if _, err := p.do(doPoke, pokes+8*uint64(i), x); err != nil {
				return err
			}
		}
		return nil
	}
	call := func(nr uintptr, a ...uint64) error {
		r, err := p.do(doSyscall, append([]uint64{uint64(nr)}, a...)...)
		if err == nil && r.errno() != mm.OK {
			err = fmt.Errorf("set up, call %d: %w", nr, r.errno())
		}
		return err
	}
	steps := []func() error{
		func() error { return words(p.set.at.stack(), 0, puppetAreaLen-2*pageSize) },
		func() error { return call(unix.SYS_SIGALTSTACK, pokes, 0) },
		func() error { return words(handler, restorer|onStack|noDefer, handler, 0) },
		func() error { return call(unix.SYS_RT_SIGACTION, uint64(unix.SIGSEGV), pokes, 0, 8) },
		func() error { return call(unix.SYS_RT_SIGACTION, uint64(unix.SIGBUS), pokes, 0, 8) },
		func() error { return words(1, restorer, handler, 0) }, // SIG_IGN: no zombies
		func() error { return call(unix.SYS_RT_SIGACTION, uint64(unix.SIGCHLD), pokes, 0, 8) },
		func() error { return p.unmapOthers(call) },
		func() error { return words(1) },
		func() error { return call(unix.SYS_SCHED_SETAFFINITY, 0, 8, pokes) },
	}
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// do sends a command and waits for the reply.
func (p *puppet) do(what uint64, args ...uint64) (reply, error) {
	if err := p.send(what, args...); err != nil {
		return reply{}, err
	}
	return p.receive()
}

func (p *puppet) send(what uint64, args ...uint64) error {
	var cmd [8]uint64
	cmd[0] = what
	copy(cmd[1:], args)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&cmd[0])), 64)
	for {
		_, err := unix.Write(p.set.ours[p.socket], b)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (p *puppet) receive() (r reply, err error) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&r)), 64)
	for {
		n, err := unix.Read(p.set.ours[p.socket], b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return r, fmt.Errorf("process %d does not answer: %w", p.pid, err)
		case n != 64:
			return r, fmt.Errorf("process %d has gone", p.pid)
		default:
			return r, nil
		}
	}
}

// fork makes p fork, and returns the child when it has said hello, and what
// the fork cost the parent.
func (p *puppet) fork() (*puppet, reply, error) {
	s := p.set
	if len(s.free) == 0 {
		return nil, reply{}, fmt.Errorf("more than %d processes at a time", s.most)
	}
	c := &puppet{set: s, socket: s.free[len(s.free)-1], pidfd: -1}
	r, err := p.do(doFork, uint64(3+c.socket))
	if err != nil {
		return nil, r, err
	}
	if e := r.errno(); e != mm.OK {
		return nil, r, fmt.Errorf("fork: %w", e)
	}
	s.free = s.free[:len(s.free)-1]
	c.pid = int(r.Result)
	if c.pidfd, err = unix.PidfdOpen(c.pid, 0); err != nil {
		return nil, r, fmt.Errorf("fork: %w", err)
	}
	_, err = c.receive()
	return c, r, err
}

// other is the process's second thread, which begins when it is first asked for.
func (p *puppet) other() (*puppet, error) {
	if p.second != nil {
		return p.second, nil
	}
	s := p.set
	if len(s.free) == 0 {
		return nil, fmt.Errorf("more than %d threads", len(s.ours)-1)
	}
	t := &puppet{set: s, socket: s.free[len(s.free)-1], pid: p.pid, pidfd: -1}
	area := s.at.area + puppetAreaLen
	r, err := p.do(doThread, uint64(3+t.socket), area)
	if err == nil && r.errno() != mm.OK {
		err = fmt.Errorf("thread: %w", r.errno())
	}
	if err != nil {
		return nil, err
	}
	s.free = s.free[:len(s.free)-1]
	if _, err := t.receive(); err != nil {
		return nil, err
	}
	for i, x := range []uint64{area + 2*pageSize, 0, puppetAreaLen - 2*pageSize} {
		if _, err := t.do(doPoke, area+1024+8*uint64(i), x); err != nil {
			return nil, err
		}
	}
	if r, err := t.do(doSyscall, unix.SYS_SIGALTSTACK, area+1024, 0); err != nil || r.errno() != mm.OK {
		return nil, fmt.Errorf("thread: signal stack: %s, %w", r.errno(), err)
	}
	p.second = t
	return t, nil
}

// exit ends the process and waits until its memory has gone.
func (p *puppet) exit() error {
	defer unix.Close(p.pidfd)
	if err := p.send(doSyscall, unix.SYS_EXIT_GROUP, 0); err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	end := time.Now().Add(20 * time.Second)
	for time.Now().Before(end) {
		n, err := unix.Poll(fds, 1000)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			p.set.free = append(p.set.free, p.socket)
			if p.second != nil {
				p.set.free = append(p.set.free, p.second.socket)
			}
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", p.pid)
}
