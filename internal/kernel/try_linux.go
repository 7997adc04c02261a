package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each Try asks the kernel for something, lets go of it at once and changes
// nothing. The error is the kernel's refusal.

// TracepointID finds a tracepoint ("exceptions/page_fault_user") in tracefs,
// mounted or not.
func TracepointID(name string) (uint64, error) {
	var first error
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		b, err := os.ReadFile(dir + "/events/" + name + "/id")
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	}
	if b, err := readTracefs("events/" + name + "/id"); err == nil {
		return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	}
	if errors.Is(first, fs.ErrPermission) {
		return 0, fs.ErrPermission
	}
	return 0, first
}

// TryTracepoint opens a tracepoint for perf on every task of CPU 0, as a
// recording does on all of them.
func TryTracepoint(id uint64) error {
	return tryPerf(unix.PerfEventAttr{
		Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Sample: 1,
		Sample_type: unix.PERF_SAMPLE_RAW | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_TID,
		Bits:        unix.PerfBitDisabled,
	}, -1, 0)
}

// TryFaultEvent opens perf's page-fault event for this process. Without
// withKernel only faults from user mode are asked for, which needs fewer
// rights.
func TryFaultEvent(withKernel bool) error {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Sample: 1,
		Sample_type: unix.PERF_SAMPLE_ADDR | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_TID,
		Bits:        unix.PerfBitDisabled,
	}
	if !withKernel {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return tryPerf(attr, 0, -1)
}

func tryPerf(attr unix.PerfEventAttr, pid, cpu int) error {
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("perf_event_open: %w", err)
	}
	return unix.Close(fd)
}

// TryPageMap reads one entry of this process's page map; frames says whether
// it holds a frame number.
func TryPageMap() (frames bool, err error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return false, err
	}
	defer f.Close()
	page := make([]byte, os.Getpagesize())
	page[0] = 1 // it must be present
	var entry [8]byte
	at := uintptr(unsafe.Pointer(&page[0])) / uintptr(len(page)) * 8
	if _, err := f.ReadAt(entry[:], int64(at)); err != nil {
		return false, err
	}
	runtime.KeepAlive(page)
	return binary.NativeEndian.Uint64(entry[:])&(1<<55-1) != 0, nil
}

// TryPageMapScan asks for one page by the ioctl PAGEMAP_SCAN.
// Linux: include/uapi/linux/fs.h:struct pm_scan_arg (v6.18).
func TryPageMapScan() error {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return err
	}
	defer f.Close()
	size := uintptr(os.Getpagesize())
	page := make([]byte, size)
	page[0] = 1
	start := uintptr(unsafe.Pointer(&page[0])) / size * size
	var region struct{ start, end, categories uint64 }
	arg := struct {
		size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
		inverted, mask, anyOf, returned                         uint64
	}{start: uint64(start), end: uint64(start + size), vec: uint64(uintptr(unsafe.Pointer(&region))), vecLen: 1, returned: 1 << 3}
	arg.size = uint64(unsafe.Sizeof(arg))
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), 0xc0606610, uintptr(unsafe.Pointer(&arg)))
	runtime.KeepAlive(page)
	runtime.KeepAlive(&region)
	if errno != 0 {
		return fmt.Errorf("PAGEMAP_SCAN: %w", errno)
	}
	return nil
}

// Writable says whether this user could write a file, without opening it.
func Writable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// TryKVM opens /dev/kvm and asks for its version and for a virtual machine: a
// device that is there need not work.
func TryKVM() error {
	fd, err := unix.Open("/dev/kvm", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: "/dev/kvm", Err: err}
	}
	defer unix.Close(fd)
	const getVersion, createVM = 0xae00, 0xae01
	if v, err := unix.IoctlRetInt(fd, getVersion); err != nil || v != 12 {
		return fmt.Errorf("/dev/kvm: version %d: %w", v, errors.Join(err, errors.ErrUnsupported))
	}
	vm, err := unix.IoctlRetInt(fd, createVM)
	if err != nil {
		return fmt.Errorf("/dev/kvm: make a virtual machine: %w", err)
	}
	return unix.Close(vm)
}
