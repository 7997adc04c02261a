package mm

import "testing"

// benchRig is a 16 GiB machine with one 8 GiB VMA and every size off.
func benchRig(b *testing.B) (*rig, *vma) {
	r := newRig(b, policyOff(), func(c *Config) { c.Nodes[0].Mem = 16 * gB })
	return r, r.mmap(1<<40, 8*gB)
}

const benchPages = int(8 * gB >> 12)

// BenchmarkFirstTouch4K touches 8 GiB in order, one call a page.
func BenchmarkFirstTouch4K(b *testing.B) {
	b.ReportAllocs()
	r, v := benchRig(b)
	n := 0
	for b.Loop() {
		if n == benchPages {
			b.StopTimer()
			r, v = benchRig(b)
			n = 0
			b.StartTimer()
		}
		if r.m.Touch(&r.c, r.sp.id, v.start+VA(n)<<12, Write) != Done {
			b.Fatal("not a fault")
		}
		n++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "faults/s")
}

// BenchmarkFirstTouchRandom touches 8 GiB in a scattered order that meets
// every page once (an odd multiplier permutes a power of two).
func BenchmarkFirstTouchRandom(b *testing.B) {
	b.ReportAllocs()
	r, v := benchRig(b)
	n := 0
	for b.Loop() {
		if n == benchPages {
			b.StopTimer()
			r, v = benchRig(b)
			n = 0
			b.StartTimer()
		}
		p := uint64(n) * 0x9e3779b1 & uint64(benchPages-1)
		if r.m.Touch(&r.c, r.sp.id, v.start+VA(p)<<12, Write) != Done {
			b.Fatal("not a fault")
		}
		n++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "faults/s")
}

// BenchmarkHit accesses pages that are there.
func BenchmarkHit(b *testing.B) {
	b.ReportAllocs()
	r, v := benchRig(b)
	for a := v.start; a < v.start+VA(64*mB); a += 4096 {
		r.m.Touch(&r.c, r.sp.id, a, Write)
	}
	n := 0
	for b.Loop() {
		if r.m.Touch(&r.c, r.sp.id, v.start+VA(n&16383)<<12, Write) != Hit {
			b.Fatal("not a hit")
		}
		n++
	}
}
