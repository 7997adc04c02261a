package buddy

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

func terabyte() Config {
	return Config{Zones: []Zone{{Name: "DMA", Start: 1, Pages: 4095},
		{Name: "DMA32", Start: 4096, Pages: 1044480},
		{Name: "Normal", Start: 1 << 20, Pages: 1<<28 - 1<<20}}, CPUs: 88, PageShift: 12, MaxOrder: 10, PMDOrder: 9,
		THP: true}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryBound: memory never allocated costs at most 12 bytes for each
// block of 4 MB, measured on the heap.
func TestMemoryBound(t *testing.T) {
	if n := unsafe.Sizeof(block{}); n != 12 {
		t.Errorf("a block has %d bytes", n)
	}
	size := func(pages uint64) (uint64, *Allocator) {
		before := heap()
		a, err := New(Config{Zones: []Zone{{Name: "Normal", Pages: pages}}, CPUs: 8, PageShift: 12, MaxOrder: 10,
			PMDOrder: 9})
		if err != nil {
			t.Fatal(err)
		}
		return heap() - before, a
	}
	small, a := size(1 << 20)
	large, b := size(1 << 28)
	blocks := uint64(1<<28-1<<20) >> 10
	// Go rounds a large allocation up to its page of 8 KiB.
	if grew := large - small; grew > 12*blocks+16<<10 {
		t.Errorf("%d blocks more cost %d bytes, %.2f each", blocks, grew, float64(grew)/float64(blocks))
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func BenchmarkBoot1TiB(b *testing.B) {
	before := heap()
	start := time.Now()
	var a *Allocator
	for b.Loop() {
		a, _ = New(terabyte())
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/1e3/float64(b.N), "ms")
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	runtime.KeepAlive(a)
}

func BenchmarkAllocFree(b *testing.B) {
	for _, c := range []struct {
		name  string
		order uint8
	}{{"order0", 0}, {"order2", 2}, {"order4", 4}, {"order9", 9}} {
		b.Run(c.name, func(b *testing.B) {
			a := machine(b, 8192, 1)
			b.ReportAllocs()
			for b.Loop() {
				pfn, _ := a.Alloc(0, 0, c.order, Movable, 0)
				a.Free(0, pfn, c.order, Movable)
			}
		})
	}
}

// BenchmarkFirstTouch8GiB allocates fresh memory page by page: slabs are made
// on the way.
func BenchmarkFirstTouch8GiB(b *testing.B) {
	n := 0
	for b.Loop() {
		b.StopTimer()
		a := machine(b, 9000, 1)
		b.StartTimer()
		for range 8 << 18 {
			a.Alloc(0, -1, 0, Movable, DirectReclaim)
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/page")
}
