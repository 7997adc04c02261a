package kernel

import (
	"os"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// TestScanTellsPages holds both readers to a mapping whose pages are known.
func TestScanTellsPages(t *testing.T) {
	size := os.Getpagesize()
	m, err := unix.Mmap(-1, 0, 8*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	if err := unix.Madvise(m, unix.MADV_NOHUGEPAGE); err != nil {
		t.Skip("no huge-page advice here: ", err)
	}
	m[0], m[size], m[4*size] = 1, 1, 1
	if m[2*size]+m[6*size] != 0 {
		t.Fatal("fresh memory is not zero")
	}
	base := mm.VA(uintptr(unsafe.Pointer(&m[0])))
	at := func(page int) mm.VA { return base + mm.VA(page*size) }
	for _, bits := range []bool{false, true} {
		pm, err := OpenPageMap(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if bits {
			pm.UseBits()
		}
		got, err := pm.Scan(at(0), at(8), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		zero := RunKind{Zero: true, Shared: bits || !pm.Scans()}
		want := []Run{
			{Start: at(0), Pages: 2}, {Start: at(2), Pages: 1, RunKind: zero},
			{Start: at(4), Pages: 1}, {Start: at(6), Pages: 1, RunKind: zero},
		}
		if !ZeroPageTold() {
			t.Log("this kernel has no zero page: reads look like writes")
			want = []Run{{Start: at(0), Pages: 3}, {Start: at(4), Pages: 1}, {Start: at(6), Pages: 1}}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("bits %v (-want +got):\n%s", bits, d)
		}
		pm.Close()
	}
}
