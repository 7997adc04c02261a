package record

import (
	"fmt"
	"unsafe"

	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// Choose says which method works best here, and why not a better one.
func Choose() (trace.Method, string) {
	err := rootWorks()
	if err == nil {
		return trace.MethodRoot, "perf tracepoints can be opened: every fault and every memory call is seen"
	}
	why := fmt.Sprintf("no perf tracepoints (%v)", err)
	if err := softwareFaultsWork(); err != nil {
		return trace.MethodPagemap, fmt.Sprintf("%s and no page-fault event (%v): page maps alone", why, err)
	}
	return trace.MethodPerf, why + ": the page-fault event, seccomp stops and page maps"
}

// rootWorks tries what method root does, on this thread: one tracepoint, because
// the kernel asks the same rights for each and waits for all CPUs at the close.
func rootWorks() error {
	f, err := readFormats()
	if err != nil {
		return err
	}
	fd, err := f.tryOpen()
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func (f *formats) tryOpen() (fd int, err error) {
	ev := perfEvent{name: "page_fault_user", id: f.faultUser}
	a := ev.attr(ringBytes, true)
	a.Read_format = 0
	if fd, err = unix.PerfEventOpen(&a, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		return -1, fmt.Errorf("perf event %s: %w", ev.name, err)
	}
	return fd, nil
}

func softwareFaultsWork() error {
	a := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Sample: 1,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&a, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
