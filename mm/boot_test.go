package mm

import (
	"runtime"
	"testing"
	"time"
)

// boot makes a machine and says how many bytes of heap it holds.
func boot(t testing.TB, mem Bytes) (m *Machine, held uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, err := New(Config{Nodes: []Node{{Mem: mem}}, Rules: rules618(), Policy: policyOff()})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return m, after.HeapAlloc - before.HeapAlloc
}

// TestBootIsSmall holds memory that nothing touched to 16 bytes for each block
// of 4 MiB: all that a machine of 1 TiB has beyond one of 512 GiB counts.
func TestBootIsSmall(t *testing.T) {
	half, less := boot(t, 1<<39)
	whole, more := boot(t, 1<<40)
	const blocks = (1<<40 - 1<<39) >> 22
	if per := float64(more-less) / blocks; per > 16 {
		t.Errorf("%.2f bytes for each block of 4 MiB that nothing touched", per)
	} else {
		t.Logf("%.2f bytes a block; 1 TiB holds %d bytes", per, more)
	}
	if more > 64<<20 {
		t.Errorf("1 TiB holds %d bytes", more)
	}
	if got := half.Memory().Total + whole.Memory().Total; got != 3<<39>>12 {
		t.Errorf("%d pages in both", got)
	}
}

// BenchmarkBoot1TiB makes a machine of 1 TiB.
func BenchmarkBoot1TiB(b *testing.B) {
	var sum time.Duration
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		from := time.Now()
		m, err := New(Config{Nodes: []Node{{Mem: 1 << 40}}, Rules: rules618(), Policy: policyOff()})
		sum += time.Since(from)
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(m)
	}
	m, held := boot(b, 1<<40)
	runtime.KeepAlive(m)
	b.ReportMetric(float64(sum.Microseconds())/1e3/float64(b.N), "ms")
	b.ReportMetric(float64(held)/(1<<20), "MiB")
}
