package mm

import "testing"

// benchRig is a 16 GiB machine with one 8 GiB VMA and every size off. One pass
// over it is done and undone first: otherwise the figure is mostly what the
// host takes to give this process its own memory, 33 bytes a modelled page.
func benchRig(b *testing.B) (*rig, *vma) {
	r := newRig(b, policyOff(), func(c *Config) { c.Nodes[0].Mem = 16 * gB })
	v := r.mmap(1<<40, 8*gB)
	for a := v.start; a < v.end; a += 4096 {
		r.m.Touch(&r.c, r.sp.id, a, Write)
	}
	b.ResetTimer()
	return r, r.again(v)
}

// again unmaps the VMA and maps it anew.
func (r *rig) again(v *vma) *vma {
	r.m.zapRange(&r.c, v, v.start, v.end, zapUnmap)
	r.m.freeTables(&r.c, r.sp, v.start, v.end, 0, 0)
	return v
}

const benchPages = int(8 * gB >> 12)

// firstTouch times one call of Touch a page, in the order that place gives.
func firstTouch(b *testing.B, place func(n int) uint64) {
	b.ReportAllocs()
	r, v := benchRig(b)
	n := 0
	for b.Loop() {
		if n == benchPages {
			b.StopTimer()
			r.again(v)
			n = 0
			b.StartTimer()
		}
		if r.m.Touch(&r.c, r.sp.id, v.start+VA(place(n))<<12, Write) != Done {
			b.Fatal("not a fault")
		}
		n++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "faults/s")
}

// BenchmarkFirstTouch4K touches 8 GiB in order.
func BenchmarkFirstTouch4K(b *testing.B) {
	firstTouch(b, func(n int) uint64 { return uint64(n) })
}

// BenchmarkFirstTouchRandom touches 8 GiB in a scattered order that meets
// every page once (an odd multiplier permutes a power of two).
func BenchmarkFirstTouchRandom(b *testing.B) {
	firstTouch(b, func(n int) uint64 { return uint64(n) * 0x9e3779b1 & uint64(benchPages-1) })
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
