package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// ptrace makes a request whose data is a number; the first address is unused by
// all that are asked here.
func ptrace(request, pid, data int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// countFaults opens a counter of a process's page faults and its children's,
// from its exec on.
func countFaults(pid int) (int, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("count its page faults: perf_event_open: %w", err)
	}
	return fd, nil
}

func nativeUint64(b [8]byte) uint64 { return binary.NativeEndian.Uint64(b[:]) }

// execBases reads where a process that stands at its exec has its areas.
func execBases(pid int) (Bases, error) {
	maps, err := kstat.ReadMaps(kernel.LiveTree().FS, pid)
	if err != nil {
		return Bases{}, fmt.Errorf("verify: maps of process %d: %w", pid, err)
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return Bases{}, fmt.Errorf("verify: program of process %d: %w", pid, err)
	}
	b := Bases{Program: exe}
	var exeEnd, stack mm.VA
	for _, m := range maps {
		if m.Name == "[stack]" {
			stack = m.Start
		}
	}
	for _, m := range maps {
		switch {
		case m.Name == "[stack]":
			b.note(mm.AreaStack, m.Start, m.End)
		case m.Name == "[vdso]" && m.Start < stack:
			// Of a program without a loader it is all there is in the mmap area.
			b.note(mm.AreaMmap, m.Start, m.End)
		case strings.HasPrefix(m.Name, "["):
		case m.Name == exe:
			b.note(mm.AreaExe, m.Start, m.End)
			exeEnd = m.End
		case m.Start != exeEnd: // not the program's bss
			b.note(mm.AreaMmap, m.Start, m.End)
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return b, fmt.Errorf("verify: process %d: %w", pid, err)
	}
	// Field 47 is the start of the heap; the name in field 2 may hold anything.
	text := string(stat)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) > 47-3 {
		heap, _ := strconv.ParseUint(f[47-3], 10, 64)
		b.note(mm.AreaHeap, (mm.VA(heap)+mm.VA(os.Getpagesize())-1)&^mm.VA(os.Getpagesize()-1), 0)
	}
	return b, nil
}

// cpuTimes are the processor times of a process so far, 0 where not known.
// Linux: include/linux/posix-timers_types.h, CPUCLOCK_PROF and CPUCLOCK_VIRT
// (v6.18).
func cpuTimes(pid int) (user, system time.Duration) {
	const prof, virt = 0, 1
	var all, usr unix.Timespec
	err := errors.Join(unix.ClockGettime(int32(^pid<<3|prof), &all),
		unix.ClockGettime(int32(^pid<<3|virt), &usr))
	if err != nil {
		return 0, 0
	}
	return time.Duration(usr.Nano()), time.Duration(all.Nano() - usr.Nano())
}
