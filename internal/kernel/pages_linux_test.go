package kernel

import (
	"os"
	"testing"
	"unsafe"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// TestPagesTellFolios looks at a region that a huge page was asked for, and at
// small pages.
func TestPagesTellFolios(t *testing.T) {
	const huge = 2 << 20
	size := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	skip := (huge - int(uintptr(unsafe.Pointer(&mem[0]))%huge)) % huge
	m := mem[skip:]
	if err := unix.Madvise(m[:huge], unix.MADV_HUGEPAGE); err != nil {
		t.Skip("no huge-page advice here: ", err)
	}
	if err := unix.Madvise(m[huge:huge+2*size], unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	m[5*size], m[huge] = 1, 1
	p, err := OpenPages()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out := make([]kstat.PageInfo, huge/size+2)
	base := mm.VA(uintptr(unsafe.Pointer(&m[0])))
	n, err := p.Pages(os.Getpid(), base, out)
	if err != nil || n != len(out) {
		t.Fatalf("%d pages, %v", n, err)
	}
	if small := out[huge/size]; !small.Present || small.Order != 0 || small.PMD || small.File {
		t.Errorf("small page: %+v", small)
	}
	if hole := out[huge/size+1]; hole.Present {
		t.Errorf("hole: %+v", hole)
	}
	if !out[100].Present {
		t.Skip("the kernel gave no huge page")
	}
	if !out[100].PMD {
		t.Errorf("page of a huge page: %+v, want PMD", out[100])
	}
	if !p.Exact() {
		t.Skip("frame numbers are hidden: orders not compared")
	}
	for i := range huge / size {
		if o := out[i]; o.Order != 9 || o.Index != uint32(i) || !o.Exclusive {
			t.Fatalf("page %d of a huge page: %+v", i, o)
		}
	}
	if c, ok := p.MapCount(out[huge/size].PFN); !ok || c != 1 {
		t.Errorf("map count %d, %v", c, ok)
	}
}
