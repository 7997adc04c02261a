package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

/*
The kernel's counts of large folios are the whole machine's. The allocator's
tracepoint tells of each block; counted for the command's processes alone, by
order and by a flag that only anonymous huge pages are asked for with, it gives
the command's own. One block is one folio, so that counting costs a run little:

	kmem:mm_page_alloc, order == 4 && gfp_flags & __GFP_NOMEMALLOC

Linux: mm/huge_memory.c:vma_thp_gfp_mask, include/linux/gfp_types.h:
GFP_TRANSHUGE_LIGHT (v6.18). Folios that were had and not mapped count too.
*/
type folioCounters struct {
	order []mm.Order
	fd    []int
}

const allocEvent = "kmem/mm_page_alloc"

// countFolios opens a counter for each order, of a process and its children,
// from its exec on.
func countFolios(pid int, orders []mm.Order) (folioCounters, error) {
	return openFolioCounters(pid, orders, unix.PerfBitDisabled|unix.PerfBitEnableOnExec)
}

// countFoliosNow is countFolios from now on.
func countFoliosNow(pid int, orders []mm.Order) (folioCounters, error) {
	return openFolioCounters(pid, orders, 0)
}

func openFolioCounters(pid int, orders []mm.Order, begin uint64) (c folioCounters, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if len(orders) == 0 {
		return c, nil
	}
	id, err := kernel.TracepointID(allocEvent)
	if err != nil {
		return c, fmt.Errorf("count its folios: %w", err)
	}
	bit, err := noMemallocBit()
	if err != nil {
		return c, fmt.Errorf("count its folios: %w", err)
	}
	for _, o := range orders {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_TRACEPOINT, Config: id,
			Bits: unix.PerfBitInherit | begin,
		}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return c, fmt.Errorf("count its folios: perf_event_open: %w", err)
		}
		c.order, c.fd = append(c.order, o), append(c.fd, fd)
		filter := append([]byte(fmt.Sprintf("order == %d && gfp_flags & %d", o, bit)), 0)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER,
			uintptr(unsafe.Pointer(&filter[0])))
		if errno != 0 {
			return c, fmt.Errorf("count its folios: filter: %w", errno)
		}
	}
	return c, nil
}

func (c *folioCounters) close() {
	for _, fd := range c.fd {
		unix.Close(fd)
	}
	c.fd = nil
}

// read is how many there were, by order.
func (c *folioCounters) read() (n [mm.NumOrders]uint64, err error) {
	for i, fd := range c.fd {
		var buf [8]byte
		if k, err := unix.Read(fd, buf[:]); err != nil || k != 8 {
			return n, fmt.Errorf("verify: read a folio counter: %w", err)
		}
		n[c.order[i]] = nativeUint64(buf)
	}
	return n, nil
}

// noMemallocBit is the flag's value on this kernel, from the tracepoint's own
// description: it has moved between versions.
func noMemallocBit() (uint64, error) {
	var first error
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		b, err := os.ReadFile(dir + "/events/" + allocEvent + "/format")
		if err == nil {
			return flagValue(string(b), "__GFP_NOMEMALLOC")
		}
		first = err
	}
	return 0, first
}

// flagValue finds a flag in a tracepoint's format: "(1UL) << (19)" or "0x80000u"
// stands before its name.
func flagValue(format, name string) (uint64, error) {
	before, _, ok := strings.Cut(format, `, "`+name+`"`)
	if !ok {
		return 0, fmt.Errorf("the tracepoint does not name %s", name)
	}
	before = before[strings.LastIndexByte(before, '{')+1:]
	before = strings.TrimRight(before, ") ")
	i := strings.LastIndexAny(before, "() ")
	n, err := strconv.ParseUint(strings.TrimRight(before[i+1:], "uUlL"), 0, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the tracepoint's value of %s: %w", name, err)
	case strings.HasSuffix(strings.TrimRight(before[:max(i, 0)], "( "), "<<"):
		if n > 63 {
			return 0, fmt.Errorf("the tracepoint's value of %s: bit %d", name, n)
		}
		return 1 << n, nil
	}
	return n, nil
}
