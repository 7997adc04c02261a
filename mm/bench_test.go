package mm

import (
	"testing"
	"time"
)

// benchRig is a 16 GiB machine with one 8 GiB VMA and every size off. One pass
// over it is done and undone first: otherwise the figure is mostly what the
// host takes to give this process its own memory, 33 bytes a modelled page.
func benchRig(b *testing.B) (*rig, *vma) {
	r := newRig(b, policyOff(), func(c *Config) { c.Nodes[0].Mem = 16 * gB })
	v := r.mmap(1<<40, 8*gB)
	for a := v.start; a < v.end; a += 4096 {
		r.m.Touch(&r.c, r.sp.id, a, Write)
	}
	return r, r.again(v)
}

// again unmaps the VMA and maps it anew.
func (r *rig) again(v *vma) *vma {
	r.m.zapRange(&r.c, v, v.start, v.end, zapUnmap)
	r.m.freeTables(&r.c, r.sp, v.start, v.end, 0, 0)
	return v
}

const benchPages = int(8 * gB >> 12)

// stopwatch is the CPU time between start and stop, added up: faults/s says
// what a user waits for, faults/cpu-s what one core does, whoever else runs.
type stopwatch struct{ from, sum time.Duration }

func (s *stopwatch) start() { s.from = cpuTime() }
func (s *stopwatch) stop()  { s.sum += cpuTime() - s.from }

// report gives both rates; the benchmark's own iterations are the faults.
func (s *stopwatch) report(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "faults/s")
	if s.sum > 0 {
		b.ReportMetric(float64(b.N)/s.sum.Seconds(), "faults/cpu-s")
	}
}

// firstTouch times one call of Touch a page, in the order that place gives.
// again undoes a full round.
func firstTouch(b *testing.B, r *rig, v *vma, pages int, place func(n int) uint64, again func()) {
	b.ReportAllocs()
	b.ResetTimer()
	var clock stopwatch
	clock.start()
	n := 0
	for b.Loop() {
		if n == pages {
			b.StopTimer()
			clock.stop()
			again()
			n = 0
			clock.start()
			b.StartTimer()
		}
		if r.m.Touch(&r.c, r.sp.id, v.start+VA(place(n))<<12, Write) != Done {
			b.Fatal("not a fault")
		}
		n++
	}
	clock.stop()
	clock.report(b)
}

// scatter is an order that meets every page once: an odd multiplier permutes a
// power of two.
func scatter(n int) uint64 { return uint64(n) * 0x9e3779b1 & uint64(benchPages-1) }

// BenchmarkFirstTouch4K touches 8 GiB in order.
func BenchmarkFirstTouch4K(b *testing.B) {
	r, v := benchRig(b)
	firstTouch(b, r, v, benchPages, func(n int) uint64 { return uint64(n) }, func() { r.again(v) })
}

// BenchmarkFirstTouchRandom touches 8 GiB in a scattered order. A round is
// undone page by page in that order, so that each begins as the first one did,
// with free memory in order. BenchmarkFirstTouchRandomWorn is what becomes of
// it otherwise.
func BenchmarkFirstTouchRandom(b *testing.B) {
	r, v := benchRig(b)
	firstTouch(b, r, v, benchPages, scatter, func() {
		r.giveScattered(v, 1)
		r.again(v)
	})
}

// giveScattered gives back each page of v whose place in the scattered order
// is a multiple of step, one by one and in that order.
func (r *rig) giveScattered(v *vma, step int) {
	for n := 0; n < benchPages; n += step {
		a := v.start + VA(scatter(n))<<12
		r.m.zapRange(&r.c, v, a, a+4096, zapDontNeed)
	}
}

// BenchmarkFirstTouchRandomWorn is BenchmarkFirstTouchRandom where each round
// finds free memory as the unmapping of the one before left it:
// the frames come in an order as scattered as the addresses, and in small
// blocks, because the CPU's list keeps some of every large one.
func BenchmarkFirstTouchRandomWorn(b *testing.B) {
	r, v := benchRig(b)
	for n := range benchPages {
		r.m.Touch(&r.c, r.sp.id, v.start+VA(scatter(n))<<12, Write)
	}
	r.again(v)
	firstTouch(b, r, v, benchPages, scatter, func() { r.again(v) })
}

// BenchmarkFirstTouchRandomAgain touches a scattered half of 8 GiB whose pages
// were given back one by one while the other half stayed: the tables are there,
// and no two free frames are neighbours.
func BenchmarkFirstTouchRandomAgain(b *testing.B) {
	r, v := benchRig(b)
	for n := range benchPages {
		r.m.Touch(&r.c, r.sp.id, v.start+VA(scatter(n))<<12, Write)
	}
	give := func() { r.giveScattered(v, 2) }
	give()
	firstTouch(b, r, v, benchPages/2, func(n int) uint64 { return scatter(n * 2) }, give)
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
