package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelFaults keeps out what the kernel faults on above user memory.
const kernelFaults = "address < 0x100000000000000"

// perfEvent is one event to open on every CPU.
type perfEvent struct {
	name   string
	id     uint16
	filter string
	sp     bool // keep the user stack pointer
	side   bool // the dummy event that carries MMAP2, COMM and EXIT
}

// events are all that method root opens. Few, because a fork copies and a
// context switch walks each of them for every CPU.
func (f *formats) events() []perfEvent {
	list := []perfEvent{
		{name: "side band", side: true},
		{name: "page_fault_user", id: f.faultUser},
		{name: "page_fault_kernel", id: f.faultKernel, filter: kernelFaults},
		{name: "sys_enter", id: f.enter, filter: idFilter(memoryCalls)},
		{name: "sys_exit", id: f.exit, filter: idFilter(memoryCalls, execCalls), sp: true},
		{name: "task_newtask", id: f.newtask},
		{name: "sched_process_exec", id: f.exec},
	}
	if f.lock != 0 {
		held := perfEvent{name: "mmap_lock_acquire_returned", id: f.lock, filter: "write==1&&success==1"}
		list = append(list, held)
	}
	return list
}

// attr is the event's perf_event_attr; ring is the bytes of a CPU's ring.
func (p *perfEvent) attr(ring int, onExec bool) unix.PerfEventAttr {
	a := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_TRACEPOINT,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config:      uint64(p.id),
		Sample:      1,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_RAW,
		Read_format: unix.PERF_FORMAT_LOST,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitWatermark | unix.PerfBitSampleIDAll |
			unix.PerfBitUseClockID,
		Wakeup:  uint32(ring / 2),
		Clockid: unix.CLOCK_MONOTONIC,
	}
	if onExec {
		a.Bits |= unix.PerfBitEnableOnExec
	}
	if p.side {
		a.Type, a.Config, a.Sample = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_DUMMY, 0
		a.Bits |= unix.PerfBitMmap | unix.PerfBitMmapData | unix.PerfBitMmap2 | unix.PerfBitComm |
			unix.PerfBitCommExec | unix.PerfBitTask
	}
	if p.sp {
		a.Sample_type |= unix.PERF_SAMPLE_REGS_USER
		a.Sample_regs_user = userSP
	}
	return a
}

// perfSet is the open events and rings of one recording.
type perfSet struct {
	fds   []int
	rings []*ring
	byCPU map[int]*ring
	size  int
}

// onlineCPUs reads the kernel's list of CPUs that run.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("cpus: %w", err)
	}
	return parseCPUList(strings.TrimSpace(string(text)))
}

// parseCPUList reads "0-3,7".
func parseCPUList(s string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || a < 0 || b < a || b >= 1<<16 {
			return nil, fmt.Errorf("cpus: %q is no list of processors", s)
		}
		for ; a <= b; a++ {
			cpus = append(cpus, a)
		}
	}
	return cpus, nil
}

// open adds the events of thread tid on every CPU. All events of a CPU share
// one ring, so that their records come in order.
func (p *perfSet) open(f *formats, tid int, onExec bool) error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		for _, ev := range f.events() {
			if err := p.openOne(&ev, tid, cpu, onExec); err != nil {
				return fmt.Errorf("perf event %s of thread %d on CPU %d: %w", ev.name, tid, cpu, err)
			}
		}
	}
	return nil
}

func (p *perfSet) openOne(ev *perfEvent, tid, cpu int, onExec bool) error {
	a := ev.attr(p.size, onExec)
	fd, err := unix.PerfEventOpen(&a, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EINVAL) {
		a.Read_format = 0 // before 6.0 an event did not count what it lost
		fd, err = unix.PerfEventOpen(&a, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	if err != nil {
		return err
	}
	p.fds = append(p.fds, fd)
	if ev.filter != "" {
		if err := setFilter(fd, ev.filter); err != nil {
			return fmt.Errorf("filter %q: %w", ev.filter, err)
		}
	}
	if r := p.byCPU[cpu]; r != nil {
		return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd)
	}
	r, err := mapRing(fd, cpu, p.size)
	if err != nil {
		return err
	}
	if p.byCPU == nil {
		p.byCPU = map[int]*ring{}
	}
	p.byCPU[cpu] = r
	p.rings = append(p.rings, r)
	return nil
}

func setFilter(fd int, filter string) error {
	b, err := unix.BytePtrFromString(filter)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall(
		unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER, uintptr(unsafe.Pointer(b)))
	if errno != 0 {
		return errno
	}
	return nil
}

// all does one ioctl (enable, disable) on every event.
func (p *perfSet) all(req uint) error {
	for _, fd := range p.fds {
		if err := unix.IoctlSetInt(fd, req, 0); err != nil {
			return fmt.Errorf("perf events: %w", err)
		}
	}
	return nil
}

// lost is how many records the kernel counted as lost, children's included;
// false where it does not count.
func (p *perfSet) lost() (uint64, bool) {
	var sum uint64
	var b [16]byte
	for _, fd := range p.fds {
		n, err := unix.Read(fd, b[:])
		if err != nil || n < 16 {
			return sum, false
		}
		sum += le.Uint64(b[8:])
	}
	return sum, true
}

func (p *perfSet) close() {
	for _, r := range p.rings {
		r.unmap()
	}
	if len(p.fds) > 0 {
		closeElsewhere(p.fds)
	}
	*p = perfSet{size: p.size}
}

// threads lists the threads of a process.
func threads(pid int) ([]int, error) {
	dirs, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("record: process %d: %w", pid, os.ErrNotExist)
	}
	var tids []int
	for _, d := range dirs {
		if tid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}
