//go:build amd64

package difftest

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

/*
Counters are the whole machine's. While they are read, the step is done and they
are read again, alone keeps everybody else from running: on every other CPU a
process of ours spins, and all of ours come before ordinary ones.

	CPU 0   we: read | the program's process: step | we: read
	CPU 1.. spin ------------------------------------------ end

No window is longer than the rounds take: what waits for another CPU's work, as
MADV_COLLAPSE does when it drains the lists of all CPUs, goes on then.
*/
type alone struct {
	hogs  []*puppet
	words []uint32 // two a hog: end, begun; shared with them
	mem   []byte
	tid   int
	was   unix.CPUSet
}

const (
	mostHeld  = 31        // CPUs that are held at most; where there are more, there is no alone
	shortHold = 100_000   // rounds of a PAUSE: some 5 ms
	longHold  = 4_000_000 // long enough for any run of touches, far below what real-time tasks may take
	wordsAt   = uint64(0x600000)
	fifo      = 1
)

// newAlone prepares to hold the other CPUs. It belongs to the thread that calls
// it.
func (h *Host) newAlone() (*alone, error) {
	if runtime.NumCPU() > mostHeld+1 {
		return nil, fmt.Errorf("alone: more than %d CPUs", mostHeld+1)
	}
	fd, err := unix.MemfdCreate("hugelab-alone", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, pageSize); err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	a := &alone{tid: unix.Gettid()}
	if a.mem, err = unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	a.words = unsafe.Slice((*uint32)(unsafe.Pointer(&a.mem[0])), pageSize/4)
	path := fmt.Sprintf("/proc/%d/fd/%d\x00", os.Getpid(), fd)
	for cpu := 1; cpu < runtime.NumCPU(); cpu++ {
		p, err := h.hog(cpu, path)
		if err != nil {
			a.close()
			return nil, fmt.Errorf("alone: %w", err)
		}
		a.hogs = append(a.hogs, p)
	}
	return a, unix.SchedGetaffinity(0, &a.was)
}

// hog starts a process that can spin on a CPU.
func (h *Host) hog(cpu int, words string) (*puppet, error) {
	p, _, err := h.puppets.first().fork()
	if err != nil {
		return nil, err
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(p.pid, &set); err != nil {
		return p, err
	}
	if err := setFIFO(p.pid, true); err != nil {
		return p, err
	}
	fd, err := p.open(words)
	if err != nil {
		return p, err
	}
	r, err := p.do(doSyscall, unix.SYS_MMAP, wordsAt, pageSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_FIXED|unix.MAP_POPULATE, fd, 0)
	if err == nil && r.errno() != mm.OK {
		err = r.errno()
	}
	return p, err
}

// open makes a process open a file; the name ends with a zero byte.
func (p *puppet) open(name string) (uint64, error) {
	for i := 0; i < len(name); i += 8 {
		var word uint64
		for k := 0; k < 8 && i+k < len(name); k++ {
			word |= uint64(name[i+k]) << (8 * k)
		}
		if _, err := p.do(doPoke, p.set.at.pokes()+uint64(i), word); err != nil {
			return 0, err
		}
	}
	r, err := p.do(doSyscall, unix.SYS_OPEN, p.set.at.pokes(), unix.O_RDWR, 0)
	if err == nil && r.errno() != mm.OK {
		err = r.errno()
	}
	return uint64(r.Result), err
}

// setFIFO puts a thread before all ordinary ones, or among them.
func setFIFO(tid int, on bool) error {
	policy, param := uintptr(0), struct{ priority int32 }{}
	if on {
		policy, param.priority = fifo, 1
	}
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), policy, uintptr(unsafe.Pointer(&param)))
	if errno != 0 {
		return fmt.Errorf("priority: %w", errno)
	}
	return nil
}

// begin holds the other CPUs until end, or for so many rounds.
func (a *alone) begin(rounds uint64) error {
	if err := setFIFO(a.tid, true); err != nil {
		return err
	}
	for i, p := range a.hogs {
		atomic.StoreUint32(&a.words[2*i], 0)
		atomic.StoreUint32(&a.words[2*i+1], 0)
		if err := p.send(doSpin, wordsAt+8*uint64(i), rounds); err != nil {
			return err
		}
	}
	limit := time.Now().Add(5 * time.Millisecond)
	for i := range a.hogs {
		for atomic.LoadUint32(&a.words[2*i+1]) == 0 && time.Now().Before(limit) {
		}
	}
	return nil
}

// end lets go.
func (a *alone) end() error {
	for i := range a.hogs {
		atomic.StoreUint32(&a.words[2*i], 1)
	}
	for _, p := range a.hogs {
		if _, err := p.receive(); err != nil {
			return err
		}
	}
	return setFIFO(a.tid, false)
}

// pin keeps this thread on the programs' CPU, which no window holds; unpin lets
// it go.
func (a *alone) pin() error {
	var set unix.CPUSet
	set.Set(0)
	return unix.SchedSetaffinity(a.tid, &set)
}

func (a *alone) unpin() error { return unix.SchedSetaffinity(a.tid, &a.was) }

func (a *alone) close() {
	unix.Munmap(a.mem)
}
