package mm

import "fmt"

// PFN is the number of a physical page frame; frame 0 is at physical address 0.
type PFN uint64

// VA is a virtual address in bytes.
type VA uint64

// Order is the binary logarithm of a block's length in base pages: order 0 is
// one page, order 4 is 64 kB with 4 kB pages.
type Order uint8

// Pages counts base pages.
type Pages uint64

// Bytes counts bytes.
type Bytes uint64

// Nanos is a time or a duration in nanoseconds. Times count from the start of
// the recording or of the model's life.
type Nanos int64

// CPU numbers a processor, from 0.
type CPU uint16

// NodeID numbers a NUMA node, from 0.
type NodeID uint8

// Space names one address space (what Linux calls an mm) within a stream of
// operations. Threads share one; fork and exec make new ones. 0 is no space.
type Space uint32

// Region names one mapping within a stream of operations. Addresses of
// operations are (Region, page), so that a stream stays valid when another
// kernel, policy or randomisation places the region elsewhere. 0 is no region.
type Region uint32

// Thread names a thread within a stream of operations.
type Thread uint32

const (
	// MaxOrder is the largest order any base page size can map by one PMD
	// entry: 13, a 512 MB block of 64 kB pages.
	MaxOrder Order = 13
	// NumOrders is the length of tables indexed by Order.
	NumOrders = int(MaxOrder) + 1
	// BuddyMaxOrder is the largest block of the buddy allocator with 4 kB
	// pages. Linux: include/linux/mmzone.h:MAX_PAGE_ORDER (v6.18).
	BuddyMaxOrder Order = 10
)

// Pages is the number of base pages in a block of this order.
func (o Order) Pages() Pages { return 1 << o }

// Errno is a system call's refusal under its Linux number; 0 is success.
type Errno uint16

// The refusals that the model can give.
const (
	OK     Errno = 0
	EPERM  Errno = 1
	ENOENT Errno = 2
	ESRCH  Errno = 3
	EAGAIN Errno = 11
	ENOMEM Errno = 12
	EACCES Errno = 13
	EFAULT Errno = 14
	EBUSY  Errno = 16
	EEXIST Errno = 17
	ENODEV Errno = 19
	EINVAL Errno = 22
	ENOSYS Errno = 38
)

var errnoNames = map[Errno]string{
	OK: "ok", EPERM: "EPERM", ENOENT: "ENOENT", ESRCH: "ESRCH", EACCES: "EACCES", ENODEV: "ENODEV", EAGAIN: "EAGAIN", ENOMEM: "ENOMEM", EFAULT: "EFAULT",
	EBUSY: "EBUSY", EEXIST: "EEXIST", EINVAL: "EINVAL", ENOSYS: "ENOSYS",
}

func (e Errno) String() string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return fmt.Sprintf("errno %d", uint16(e))
}

// Error makes an Errno an error; OK is never used as one.
func (e Errno) Error() string { return e.String() }
