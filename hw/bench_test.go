//go:build unix

package hw

import (
	"syscall"
	"testing"
)

// cpu is the processor time that the test has used: other programs of the
// machine do not count.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}

// rate reports millions of accesses a second of processor time since from.
func rate(b *testing.B, from float64, n uint64, unit string) {
	if d := cpu(b) - from; d > 0 {
		b.ReportMetric(float64(n)/d/1e6, unit)
	}
}

func benchHierarchy(b *testing.B, sample uint) {
	m, err := LoadMachine("xeon-e5-2699v4")
	if err != nil {
		b.Fatal(err)
	}
	h, err := NewHierarchy(m, sample)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	from := cpu(b)
	// 44 streams of 2 MB pages, each cleared and then written; one access a line.
	for i := 0; i < b.N; i++ {
		stream, at := uint64(i>>6)%44, uint64(i>>6)/44*64+uint64(i)&63
		page, in := at>>16, at&0xffff
		a := AccessClaim
		if in >= 1<<15 {
			a, in = AccessWrite, 0xffff-in
		}
		h.Access(int(stream/2), stream<<30|page<<15|in&(1<<15-1), a)
	}
	rate(b, from, uint64(b.N), "Maccesses/s")
	a := h.Counts().Accesses
	rate(b, from, a[0]+a[1]+a[2]+a[3], "Msimulated/s")
}

// BenchmarkHierarchy simulates every access; most miss all caches.
func BenchmarkHierarchy(b *testing.B) { benchHierarchy(b, 0) }

// BenchmarkHierarchySampled simulates one line in 64; Maccesses/s counts those
// that are left out, Msimulated/s does not.
func BenchmarkHierarchySampled(b *testing.B) { benchHierarchy(b, 6) }

// BenchmarkHierarchyHits has lines in the first cache: what words of a line cost.
func BenchmarkHierarchyHits(b *testing.B) {
	m, _ := LoadMachine("xeon-e5-2699v4")
	h, err := NewHierarchy(m, 0)
	if err != nil {
		b.Fatal(err)
	}
	from := cpu(b)
	for i := 0; i < b.N; i++ {
		h.Access(0, uint64(i>>3)&255, AccessWrite)
	}
	rate(b, from, uint64(b.N), "Maccesses/s")
}

func BenchmarkTLB(b *testing.B) {
	tlb := newTLB(b, "xeon-e5-2699v4")
	b.ReportAllocs()
	from := cpu(b)
	for i := 0; i < b.N; i++ {
		tlb.Access(uint64(i)*hashBy>>24&^4095, PageBase)
	}
	rate(b, from, uint64(b.N), "Maccesses/s")
}
