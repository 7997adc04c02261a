package kernel

import (
	"os"
	"runtime"
	"unsafe"

	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// ZeroPageTold says whether a page that was only read shows as the zero page in
// this process's page map. It does not on kernels that give every reader a page
// of its own (some paravirtualised ones: pvm_no_zero_page=1), nor where the
// page map may not be read: reads and writes then look alike.
func ZeroPageTold() bool {
	size := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(mem)
	if mem[0] != 0 {
		return false
	}
	pm, err := OpenPageMap(os.Getpid())
	if err != nil {
		return false
	}
	defer pm.Close()
	at := mm.VA(uintptr(unsafe.Pointer(&mem[0])))
	runs, err := pm.Scan(at, at+mm.VA(size), true, nil)
	return err == nil && len(runs) == 1 && runs[0].Zero
}

// NoZeroPage says whether this kernel gives every reader a page of its own. It
// reads a fresh page and then writes it: with a zero page the write is a
// second fault.
func NoZeroPage() bool {
	mem, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(mem)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 { // an unrelated fault of this thread may add to one try, not to all
		if unix.Madvise(mem, unix.MADV_DONTNEED) != nil {
			return false
		}
		var before, after unix.Rusage
		sum := mem[0]
		if unix.Getrusage(unix.RUSAGE_THREAD, &before) != nil {
			return false
		}
		mem[0] = sum + 1
		if unix.Getrusage(unix.RUSAGE_THREAD, &after) != nil {
			return false
		}
		if after.Minflt == before.Minflt {
			return true
		}
	}
	return false
}

func addressOf(b *byte) uint64 { return uint64(uintptr(unsafe.Pointer(b))) }
