package repro

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
)

// No system call pins memory and lets it go, and does nothing else, but
// io_uring's registration of buffers comes near: it takes longterm pins of a
// buffer's pages in one call, and unregistering releases them.
//
//	mixed   | 2 MB page | 2 MB in 4 kB pages | 510 pages of 2 MB |   1 GiB
//	even    |                                | 510 pages of 2 MB |
//
// Since Linux 6.12 io_uring keeps one pin a huge page where all of a buffer's
// are of one size, and then releases that alone. The small pages amid a
// mixed buffer prevent it: each page's pin is released by itself.
// Linux: io_uring/rsrc.c:io_sqe_buffer_register, io_check_coalesce_buffer (v6.18).
const (
	gupBytes  = 1 << 30 // the most that a buffer may have
	gupRounds = 5
)

// gupTimes are medians for one buffer, in nanoseconds.
type gupTimes struct{ get, put float64 }

// gupHost pins and unpins 1 GiB of 2 MB pages on this host, with their struct
// pages and without.
func gupHost(ctx context.Context) (Values, error) {
	return withSettings(ctx, "gup-1g", func(s *kernel.Session) (Values, error) {
		p, err := newHostPool(s)
		if err != nil {
			return nil, err
		}
		ring, err := newRing()
		if err != nil {
			return nil, err
		}
		defer ring.close()
		var mixed, even [2]gupTimes
		for i, on := range []bool{false, true} {
			if err := p.optimise(on); err != nil {
				return nil, err
			}
			if _, err := p.resize(poolPages); err != nil {
				return nil, err
			}
			if mixed[i], even[i], err = ring.measure(); err != nil {
				return nil, err
			}
			if _, err := p.resize(0); err != nil {
				return nil, err
			}
		}
		var v Values
		v.Add("get_ratio", mixed[0].get/mixed[1].get)
		v.Add("unpin_ratio_single", mixed[0].put/mixed[1].put)
		v.Add("host_get_us_off", mixed[0].get/1000)
		v.Add("host_get_us_on", mixed[1].get/1000)
		v.Add("host_unpin_single_us_off", mixed[0].put/1000)
		v.Add("host_unpin_single_us_on", mixed[1].put/1000)
		v.Add("host_register_ratio", even[0].get/even[1].get)
		v.Add("host_unregister_ratio", even[0].put/even[1].put)
		return v, nil
	})
}

// ring is an io_uring whose buffers are registered and nothing else.
type ring int

// newRing makes one.
func newRing() (ring, error) {
	var params [30]uint32 // struct io_uring_params, 120 bytes
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	switch errno {
	case 0:
		return ring(fd), nil
	case unix.ENOSYS:
		return 0, errors.New("this kernel has no io_uring")
	case unix.EPERM:
		return 0, errors.New("io_uring is switched off on this host (/proc/sys/kernel/io_uring_disabled)")
	}
	return 0, fmt.Errorf("io_uring_setup: %w", errno)
}

func (r ring) close() { unix.Close(int(r)) }

// Operations of io_uring_register.
// Linux: include/uapi/linux/io_uring.h (v6.18).
const (
	registerBuffers   = 0
	unregisterBuffers = 1
)

// pin registers memory as a buffer and unregisters it, and is the thread's time
// for each.
func (r ring) pin(b []byte) (get, put float64, err error) {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	t0 := cpuTime()
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r), registerBuffers,
		uintptr(unsafe.Pointer(&iov)), 1, 0, 0)
	t1 := cpuTime()
	if errno != 0 {
		return 0, 0, fmt.Errorf("io_uring_register: %w", errno)
	}
	t2 := cpuTime()
	_, _, errno = unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r), unregisterBuffers, 0, 0, 0, 0)
	t3 := cpuTime()
	if errno != 0 {
		return 0, 0, fmt.Errorf("io_uring_register: %w", errno)
	}
	return t1 - t0, t3 - t2, nil
}

// measure maps the pool's pages and takes the times of both buffers.
func (r ring) measure() (mixed, even gupTimes, err error) {
	b, unmap, err := mapMixed()
	if err != nil {
		return mixed, even, err
	}
	defer unmap()
	if mixed, err = r.times(b); err != nil {
		return mixed, even, err
	}
	even, err = r.times(b[2*hugeBytes:])
	return mixed, even, err
}

func (r ring) times(b []byte) (gupTimes, error) {
	var get, put []float64
	for range gupRounds {
		g, p, err := r.pin(b)
		if err != nil {
			return gupTimes{}, err
		}
		get, put = append(get, g), append(put, p)
	}
	return gupTimes{median(get), median(put)}, nil
}

// mapMixed maps and touches the mixed buffer.
func mapMixed() (b []byte, unmap func(), err error) {
	const access = unix.PROT_READ | unix.PROT_WRITE
	room, err := unix.MmapPtr(-1, 0, nil, gupBytes+hugeBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap: %w", err)
	}
	unmap = func() { unix.MunmapPtr(room, gupBytes+hugeBytes) }
	start := unsafe.Add(room, -uintptr(room)&(hugeBytes-1))
	for _, part := range []struct {
		at, size uintptr
		flags    int
	}{
		{0, hugeBytes, unix.MAP_SHARED | unix.MAP_HUGETLB | 21<<unix.MAP_HUGE_SHIFT},
		{hugeBytes, hugeBytes, unix.MAP_PRIVATE},
		{2 * hugeBytes, gupBytes - 2*hugeBytes, unix.MAP_SHARED | unix.MAP_HUGETLB | 21<<unix.MAP_HUGE_SHIFT},
	} {
		_, err := unix.MmapPtr(-1, 0, unsafe.Add(start, part.at), part.size, access,
			part.flags|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
		if err != nil {
			unmap()
			return nil, nil, fmt.Errorf("mmap of the pool's pages: %w", err)
		}
	}
	b = unsafe.Slice((*byte)(start), gupBytes)
	for at := 0; at < len(b); at += baseBytes {
		b[at] = 1
	}
	return b, unmap, nil
}
