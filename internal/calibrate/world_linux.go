package calibrate

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// world executes operations on the real kernel, in this process, at the
// addresses that the operations carry.
type world struct {
	sizes   mm.Sizes
	page    uintptr
	at      map[mm.Region]uintptr
	heap    uintptr // where the heap ends without operations
	file    int     // as long as a workload's file map, cached
	iov     []unix.Iovec
	zero    int // /dev/zero
	procs   *procs
	sampler *sampler
	tracer  *sampler // of faults, as recordings take them; nil: not allowed
	empty   int64    // what timing nothing shows
	own     []byte   // memory that the program uses between faults
	far     []byte   // memory larger than the caches, that no fork copies
}

// ownBytes is as much as the nearer caches of a server's processor hold.
const ownBytes = 2 << 20

// farBytes is more than a processor's share of the farthest cache.
const farBytes = 48 << 20

func newWorld() (*world, error) {
	page := os.Getpagesize()
	sizes, err := mm.SizesOf(mm.Bytes(page))
	if err != nil {
		return nil, err
	}
	w := &world{sizes: sizes, page: uintptr(page), at: map[mm.Region]uintptr{}, iov: make([]unix.Iovec, 1024),
		own: make([]byte, ownBytes)}
	for i := range w.own {
		w.own[i] = 1
	}
	if w.far, err = farMemory(); err != nil {
		return nil, fmt.Errorf("memory to empty the caches: %w", err)
	}
	if w.heap, err = call(unix.SYS_BRK, 0, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("brk: %w", err)
	}
	if w.zero, err = unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("/dev/zero: %w", err)
	}
	if w.file, err = cachedFile(int(newMaker(sizes).n) * page); err != nil {
		return nil, err
	}
	if w.procs, err = newProcs(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *world) close() {
	_ = unix.Munmap(w.far)
	unix.Close(w.zero)
	unix.Close(w.file)
	w.procs.close()
}

// farMemory is what emptyCaches reads: the blocks' size if it may be, and not
// copied by forks.
func farMemory() ([]byte, error) {
	b, err := unix.Mmap(-1, 0, farBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // slower to read without
	if err := unix.Madvise(b, unix.MADV_DONTFORK); err != nil {
		return nil, err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return b, nil
}

// emptyCaches leaves nothing in the caches of what a step is about, neither
// the pages that it will be given nor what the kernel knows of them. A program
// comes back to memory that it gave away long ago, not just now.
func (w *world) emptyCaches() {
	var sum byte
	for i := 0; i < len(w.far); i += 64 {
		sum += w.far[i]
	}
	runtime.KeepAlive(sum)
}

// cachedFile is an unlinked temporary file of n bytes in the page cache.
func cachedFile(n int) (int, error) {
	f, err := os.CreateTemp("", "hugelab-calibrate-*")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(i)
	}
	for ; n > 0; n -= len(text) {
		if _, err := f.Write(text[:min(n, len(text))]); err != nil {
			return 0, err
		}
	}
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}

// call is a system call that the runtime's scheduler does not see: it takes no
// lock and no time of its own.
func call(nr, a, b, c, d, e uintptr) (uintptr, error) {
	r, _, errno := unix.RawSyscall6(nr, a, b, c, d, e, 0)
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// exec executes operations; those of a program that a child runs are the
// child's own doing.
func (w *world) exec(ops []mm.Op) error {
	for i := range ops {
		o := &ops[i]
		var err error
		switch {
		case o.Kind == mm.OpFork && i+1 < len(ops) && ops[i+1].Kind == mm.OpExec:
			err = w.procs.runProgram()
		case o.Kind == mm.OpFork:
			err = w.procs.fork()
		case o.Kind == mm.OpExit && o.Space == child && w.procs.held != 0:
			err = w.procs.release()
		case o.Space != self:
		case o.Kind == mm.OpTouch && o.Access&mm.KernelMode != 0:
			err = w.touchByKernel(o)
		case o.Kind == mm.OpTouch:
			touchPages(pointer(w.addr(o)), int(o.N), uintptr(o.Stride)*w.page, o.Access&mm.Write != 0)
		default:
			err = w.call(ops, i)
		}
		if err != nil {
			return fmt.Errorf("operation %d of kind %d: %w", i, o.Kind, err)
		}
	}
	return nil
}

func (w *world) addr(o *mm.Op) uintptr { return w.at[o.Region] + uintptr(o.Page)*w.page }

// call does the operations that are one system call each.
func (w *world) call(ops []mm.Op, i int) error {
	o := &ops[i]
	a, n := w.addr(o), uintptr(o.N)*w.page
	var err error
	switch o.Kind {
	case mm.OpMap:
		flags, fd := uintptr(unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE), ^uintptr(0)
		if o.Flags&mm.MapFile != 0 {
			fd = uintptr(w.file)
		} else {
			flags |= unix.MAP_ANONYMOUS
		}
		var got uintptr
		got, err = call(unix.SYS_MMAP, uintptr(o.Arg), n, prot(o.Access), flags, fd)
		if err == nil && got != uintptr(o.Arg) {
			err = errors.New("mmap landed elsewhere")
		}
		if err == nil {
			w.at[o.Region] = got
		}
	case mm.OpUnmap:
		_, err = call(unix.SYS_MUNMAP, a, n, 0, 0, 0)
	case mm.OpProtect:
		_, err = call(unix.SYS_MPROTECT, a, n, prot(o.Access), 0, 0)
	case mm.OpAdvise:
		_, err = call(unix.SYS_MADVISE, a, n, uintptr(o.Arg), 0, 0)
	case mm.OpPopulate:
		_, err = call(unix.SYS_MADVISE, a, n, unix.MADV_POPULATE_WRITE, 0, 0)
	case mm.OpLock:
		_, err = call(unix.SYS_MLOCK, a, n, 0, 0, 0)
	case mm.OpUnlock:
		_, err = call(unix.SYS_MUNLOCK, a, n, 0, 0, 0)
	case mm.OpBrk:
		want := w.heap + n
		var got uintptr
		if got, err = call(unix.SYS_BRK, want, 0, 0, 0, 0); err == nil && got != want {
			err = unix.ENOMEM
		}
	case mm.OpRemap:
		err = w.remap(ops, i)
	case mm.OpNote:
	default:
		err = errors.New("calibration does not do this kind")
	}
	return err
}

func (w *world) remap(ops []mm.Op, i int) error {
	o := &ops[i]
	flags, to := uintptr(0), uintptr(0)
	if o.Flags&mm.RemapFixed != 0 {
		flags, to = unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, uintptr(ops[i+1].Arg)
	}
	at, err := call(unix.SYS_MREMAP, w.addr(o), uintptr(o.N)*w.page, uintptr(o.Arg)*w.page, flags, to)
	if err == nil {
		w.at[mm.Region(o.Aux)] = at
	}
	return err
}

func prot(a mm.Access) uintptr {
	var p uintptr
	if a&mm.Read != 0 {
		p |= unix.PROT_READ
	}
	if a&mm.Write != 0 {
		p |= unix.PROT_WRITE
	}
	if a&mm.Exec != 0 {
		p |= unix.PROT_EXEC
	}
	return p
}

// pointer is an address of a map that Go's runtime does not know.
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

//go:noinline
func touchPages(p unsafe.Pointer, n int, stride uintptr, write bool) {
	if write {
		for ; n > 0; n-- {
			*(*byte)(p) = 1
			p = unsafe.Add(p, stride)
		}
		return
	}
	var sum byte
	for ; n > 0; n-- {
		sum += *(*byte)(p)
		p = unsafe.Add(p, stride)
	}
	runtime.KeepAlive(sum)
}

// touchByKernel lets the kernel store one byte into each page.
func (w *world) touchByKernel(o *mm.Op) error {
	a, stride := w.addr(o), uintptr(o.Stride)*w.page
	for left := int(o.N); left > 0; {
		n := min(left, len(w.iov))
		for i := range w.iov[:n] {
			w.iov[i].Base = (*byte)(pointer(a))
			w.iov[i].SetLen(1)
			a += stride
		}
		got, err := call(unix.SYS_READV, uintptr(w.zero), uintptr(unsafe.Pointer(&w.iov[0])), uintptr(n), 0, 0)
		if err != nil {
			return err
		}
		if int(got) != n {
			return fmt.Errorf("readv: %d of %d", got, n)
		}
		left -= n
	}
	return nil
}
