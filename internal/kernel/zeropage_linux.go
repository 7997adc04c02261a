package kernel

import (
	"os"
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

func addressOf(b *byte) uint64 { return uint64(uintptr(unsafe.Pointer(b))) }
