package record

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringBytes is one CPU's ring: 130 thousand faults, an eighth of a second at
// a million faults a second.
const ringBytes = 8 << 20

// ring is the memory in which the kernel leaves the records of one CPU.
type ring struct {
	cpu     int
	fd      int
	mem     []byte
	meta    *unix.PerfEventMmapPage
	data    []byte
	head    uint64 // as of the last look
	tail    uint64 // what was read; given back to the kernel by release
	scratch []byte // a record that wraps around the ring's end
	bad     uint64 // records that made no sense
	rec     record // the record at tail, valid if has
	has     bool
}

func mapRing(fd, cpu, size int) (*ring, error) {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("perf ring of CPU %d, %d bytes: %w", cpu, size, err)
	}
	return &ring{
		cpu: cpu, fd: fd, mem: mem, data: mem[page:],
		meta:    (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0])),
		scratch: make([]byte, 1<<16),
	}, nil
}

func (r *ring) unmap() { _ = unix.Munmap(r.mem) }

// look learns how far the kernel has written.
func (r *ring) look() {
	r.head = atomic.LoadUint64(&r.meta.Data_head)
	r.peek()
}

// peek reads the record at tail.
func (r *ring) peek() {
	for r.tail < r.head {
		b := recordAt(r.data, r.tail, r.head, r.scratch)
		if b == nil { // nothing can be trusted up to head
			r.bad++
			r.tail = r.head
			break
		}
		if parseRecord(b, &r.rec) {
			r.has = true
			return
		}
		r.bad++
		r.tail += uint64(len(b))
	}
	r.has = false
}

// step goes past the record at tail.
func (r *ring) step() {
	size := uint64(u16(r.data, int(r.tail%uint64(len(r.data)))+6))
	r.tail += size
	r.peek()
}

// release gives what was read back to the kernel.
func (r *ring) release() { atomic.StoreUint64(&r.meta.Data_tail, r.tail) }
