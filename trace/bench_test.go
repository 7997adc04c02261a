package trace

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

// compile makes n faults like those of a compiler's run, one thread: five
// regions each touched upwards with gaps, code pages and the stack in between,
// offsets as the fixture of a real program has them (testdata/perf-script.txt),
// a microsecond or several between two faults. Instruction pointers are as in a
// recording of cc1: some hundred sites, most faults from a few of them, and
// each mostly at an offset of its own.
func compile(n int) []Event {
	rng := rand.New(rand.NewPCG(1, 2))
	offsets := []uint64{0, 0, 0, 0x10, 0x8, 0x40, 0xff8, 0x20, 0x110, 0x749, 0xb70, 0xe06, 0xa80, 0xd40, 0x910, 0x4b0}
	next := [5]uint64{0x1d3f000, 0x7f7c00000000, 0x7f7c80000000, 0x7f7d00000000, 0x7f7d40000000}
	events := []Event{{Kind: KindExec, TID: 100, PID: 100, A: 100, Name: "/usr/lib/gcc/cc1"}}
	for _, a := range next {
		events = append(events, Event{Kind: KindMapAt, TID: 100, PID: 100, A: a, B: a + 1<<30, C: 3 | 2<<32})
	}
	var at mm.Nanos
	region := 0
	ips := make([]uint64, 800)
	for i := range ips {
		ips[i] = 0x400000 + rng.Uint64N(20<<20)
	}
	for len(events) < n {
		at += mm.Nanos(500 + rng.ExpFloat64()*8000)
		e := Event{Kind: KindFault, TID: 100, PID: 100, When: at, Access: mm.Write}
		switch p := rng.IntN(100); {
		case p < 3:
			e.A, e.Access = 0x400000+uint64(rng.IntN(5000))<<12+uint64(rng.IntN(4096)), mm.Read|mm.Exec
		case p < 5:
			e.A, e.Access = 0x500000+uint64(rng.IntN(5000))<<12+uint64(rng.IntN(4096)), mm.Read
		default:
			if p < 30 {
				region = rng.IntN(len(next))
			}
			if rng.IntN(40) == 0 {
				next[region] += uint64(rng.IntN(20)) << 12
			}
			site := min(int(rng.ExpFloat64()*3)+region*6, len(ips)-1)
			if rng.IntN(50) == 0 {
				site = rng.IntN(len(ips))
			}
			e.B = ips[site]
			if rng.IntN(8) == 0 {
				site = rng.IntN(len(ips))
			}
			e.A = next[region] | offsets[site%len(offsets)]
			next[region] += 4096
			if p == 99 {
				e.Access |= mm.KernelMode
			}
		}
		events = append(events, e)
	}
	return events
}

// TestThreeBytes holds a fault of a compiler's run to three bytes.
func TestThreeBytes(t *testing.T) {
	events := compile(94000)
	b := record(t, Header{}, events)
	per := float64(len(b)) / float64(len(events))
	t.Logf("%.2f bytes a fault", per)
	if per > 3 {
		t.Errorf("%.2f bytes a fault", per)
	}
}

func BenchmarkWrite(b *testing.B) {
	events := compile(1 << 17)
	w, _ := NewWriter(io.Discard, Header{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for i := range events {
			if err := w.Write(&events[i]); err != nil {
				b.Fatal(err)
			}
		}
		n += len(events)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(w.Bytes())/float64(n), "bytes/fault")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkRead(b *testing.B) {
	events := compile(1 << 20)
	file := record(b, Header{}, events)
	b.ReportAllocs()
	n := 0
	var e Event
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		for r.Next(&e) == nil {
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkReplay(b *testing.B) {
	file := record(b, Header{}, compile(1<<20))
	b.ReportAllocs()
	n, ops := 0, 0
	buf := make([]mm.Op, 512)
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		p := NewReplay(r)
		for {
			k, err := p.Next(buf)
			if err != nil {
				break
			}
			ops += k
		}
		n += int(r.Events())
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(ops)/float64(n), "ops/event")
	b.ReportMetric(0, "ns/op")
}

// endless is a recording of n events that is made while it is read: mmap,
// touches of each page, munmap, over and over, in four processes.
func endless(n int) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		w, err := NewWriter(pw, Header{})
		if err != nil {
			pw.CloseWithError(err)
			return
		}
		for pid := int32(1); pid <= 4; pid++ {
			_ = w.Write(&Event{Kind: KindExec, TID: pid, PID: pid, Name: "a"})
		}
		const pages = 64
		for i := 0; i < n; i += pages + 2 {
			base := 0x7f0000000000 + uint64(i/7%50)<<20
			e := Event{TID: int32(i%4) + 1, PID: int32(i%4) + 1, When: mm.Nanos(i) * 1000}
			m := e
			m.Kind, m.B, m.C, m.D, m.Ret = KindMmap, pages<<12, 3|0x22<<32, 1<<32-1, int64(base)
			_ = w.Write(&m)
			for k := range uint64(pages) {
				f := e
				f.Kind, f.A, f.Access = KindFault, base+k<<12, mm.Write
				_ = w.Write(&f)
			}
			m.Kind, m.A, m.B, m.C, m.D, m.Ret = KindMunmap, base, pages<<12, 0, 0, 0
			_ = w.Write(&m)
		}
		pw.CloseWithError(w.Close(Footer{}))
	}()
	return pr
}

// TestStreams replays millions of events in a bounded heap.
func TestStreams(t *testing.T) {
	const events = 4_000_000
	r, err := NewReader(endless(events))
	if err != nil {
		t.Fatal(err)
	}
	p := NewReplay(r)
	buf := make([]mm.Op, 256)
	var stats runtime.MemStats
	var most uint64
	for i := 0; ; i++ {
		_, err := p.Next(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%2000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc)
		}
	}
	if s := p.Stats(); s.Faults < events*9/10 || s.Unknown != 0 || s.AnonFaults != s.Faults {
		t.Errorf("stats %+v", s)
	}
	if most > 24<<20 {
		t.Errorf("the heap grew to %d MiB", most>>20)
	}
	t.Logf("heap at most %.1f MiB", float64(most)/(1<<20))
}

// TestTouchAllocatesNothing holds reading and replaying a fault to no allocation.
func TestTouchAllocatesNothing(t *testing.T) {
	r, err := NewReader(bytes.NewReader(record(t, Header{}, compile(1<<16-1))))
	if err != nil {
		t.Fatal(err)
	}
	p := NewReplay(r)
	buf := make([]mm.Op, 256)
	if _, err := p.Next(buf); err != nil { // opens the only block
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50, func() {
		if _, err := p.Next(buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations in 256 operations", n)
	}
}
