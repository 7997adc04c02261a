package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// userFaults is the software page-fault event of one process and its
// descendants: one ring per processor. It sees faults from user mode only, with
// address and time; what kind of access it was it does not say.
type userFaults struct {
	rings []*faultRing
	poll  []unix.PollFd
	base  mm.Nanos // the monotonic clock at the recording's start
}

type faultRing struct {
	fd   int
	cpu  int
	mem  []byte
	page *unix.PerfEventMmapPage
	data []byte
	tmp  []byte
}

// userRingBytes is each ring's size: with its control page, what an
// unprivileged user may lock per processor by default
// (/proc/sys/kernel/perf_event_mlock_kb is 516).
const userRingBytes = 512 << 10

// faultAttr describes the event. CLOCK_MONOTONIC lets samples and stops share
// one time line.
func faultAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_PAGE_FAULTS,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1,
		Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME |
			unix.PERF_SAMPLE_ADDR | unix.PERF_SAMPLE_CPU,
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv |
			unix.PerfBitUseClockID | unix.PerfBitWatermark,
		Wakeup:  userRingBytes / 4,
		Clockid: unix.CLOCK_MONOTONIC,
	}
}

// openUserFaults starts the event on process pid, whose descendants inherit it.
func openUserFaults(pid int, base mm.Nanos) (*userFaults, error) {
	u := &userFaults{base: base}
	for cpu := range runtime.NumCPU() {
		r, err := openFaultRing(pid, cpu)
		if errors.Is(err, unix.ENODEV) {
			continue // the processor is off
		}
		if err != nil {
			u.close()
			return nil, err
		}
		u.rings = append(u.rings, r)
	}
	if len(u.rings) == 0 {
		return nil, errors.New("perf: page-fault event: no processor is on")
	}
	return u, nil
}

func openFaultRing(pid, cpu int) (*faultRing, error) {
	attr := faultAttr()
	fd, err := unix.PerfEventOpen(&attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("perf: page-fault event on CPU %d: %w", cpu, err)
	}
	pageSize := os.Getpagesize()
	for size := userRingBytes; size >= 4*pageSize; size /= 2 {
		var mem []byte
		mem, err = unix.Mmap(fd, 0, pageSize+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			return &faultRing{
				fd: fd, cpu: cpu, mem: mem, data: mem[pageSize:], tmp: make([]byte, 1<<16),
				page: (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0])),
			}, nil
		}
	}
	unix.Close(fd)
	return nil, fmt.Errorf("perf: ring of CPU %d: %w; see /proc/sys/kernel/perf_event_mlock_kb", cpu, err)
}

// wait blocks until a ring is a quarter full, or for most. The rings must stay
// open meanwhile.
func (u *userFaults) wait(most time.Duration) {
	if u.poll == nil {
		for _, r := range u.rings {
			u.poll = append(u.poll, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
		}
	}
	n, err := unix.Poll(u.poll, int(most.Milliseconds()))
	if err != nil || n == 0 {
		return
	}
	for i := range u.poll {
		if u.poll[i].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			u.poll[i].Fd = -1 // its last task has ended
		}
	}
}

func (u *userFaults) close() {
	for _, r := range u.rings {
		unix.Munmap(r.mem)
		unix.Close(r.fd)
	}
	u.rings = nil
}

// drain appends what the rings hold to out, in no order between rings, and
// calls lost for records that the kernel dropped.
func (u *userFaults) drain(out []userFault, lost func(cpu int, n uint64)) []userFault {
	for _, r := range u.rings {
		head := atomic.LoadUint64(&r.page.Data_head)
		tail := r.page.Data_tail
		for tail < head {
			rec := recordAt(r.data, tail, head, r.tmp)
			if rec == nil { // cannot be: the kernel writes whole records
				tail = head
				break
			}
			tail += uint64(len(rec))
			switch binary.NativeEndian.Uint32(rec) {
			case unix.PERF_RECORD_SAMPLE:
				if f, ok := parseFault(rec[8:], u.base); ok {
					out = append(out, f)
				}
			case unix.PERF_RECORD_LOST:
				if len(rec) >= 24 {
					lost(r.cpu, binary.NativeEndian.Uint64(rec[16:]))
				}
			}
		}
		atomic.StoreUint64(&r.page.Data_tail, tail)
	}
	return out
}

// parseFault reads a sample's body: ip, pid, tid, time, addr, cpu, reserved.
func parseFault(b []byte, base mm.Nanos) (f userFault, ok bool) {
	if len(b) < 40 {
		return f, false
	}
	e := binary.NativeEndian
	f.ip = e.Uint64(b)
	f.pid = int32(e.Uint32(b[8:]))
	f.tid = int32(e.Uint32(b[12:]))
	f.when = mm.Nanos(e.Uint64(b[16:])) - base
	f.addr = e.Uint64(b[24:])
	f.cpu = mm.CPU(e.Uint32(b[32:]))
	return f, true
}
