package predict

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// cycle writes a recording of about n faults of a program that maps 16 MiB,
// touches every page and unmaps it, over and over: it never holds more. It
// calls look about thirty times on the way.
func cycle(w io.Writer, n int, look func()) error {
	const pages = 4096
	out, err := trace.NewWriter(w, header())
	if err != nil {
		return err
	}
	when, at := mm.Nanos(0), uint64(0x7f0000000000)
	put := func(e trace.Event) {
		when += 700
		e.TID, e.PID, e.When = 1, 1, when
		if werr := out.Write(&e); err == nil {
			err = werr
		}
	}
	put(trace.Event{Kind: trace.KindExec, A: 1, Name: "/bin/cycle"})
	for done := 0; done < n && err == nil; done += pages {
		put(trace.Event{Kind: trace.KindMmap, B: pages << 12, C: 3 | 0x22<<32, D: 1<<32 - 1, Ret: int64(at)})
		for p := range uint64(pages) {
			put(trace.Event{Kind: trace.KindFault, Access: mm.Write, A: at + p<<12, B: 0x401000 + p%3*16})
		}
		if done/pages%(n/pages/30+1) == 0 {
			look()
		}
		put(trace.Event{Kind: trace.KindMunmap, A: at, B: pages << 12})
	}
	put(trace.Event{Kind: trace.KindExit, A: 1})
	if err != nil {
		return err
	}
	return out.Close(trace.Footer{Wall: when})
}

// heapSeen is the largest live heap of those looked at.
type heapSeen uint64

func (h *heapSeen) look() {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	*h = max(*h, heapSeen(s.HeapAlloc))
}

// TestStreamsInBoundedMemory predicts from a recording that lies nowhere: what
// is held follows what the program held, times the policies, not the length of
// its run. HUGELAB_STREAM_FAULTS sets how many faults, 2 million otherwise; it
// was run with 100 million.
func TestStreamsInBoundedMemory(t *testing.T) {
	faults := 2_000_000
	if s := os.Getenv("HUGELAB_STREAM_FAULTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		faults = n
	}
	var heap heapSeen
	in := input(t, nil, "never", "64k", "thp")
	in.Open = func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(cycle(w, faults, heap.look)) }()
		return r, nil
	}
	from := time.Now()
	p := mustRun(t, in)
	t.Logf("%d faults in %v, heap at most %.1f MiB", faults, time.Since(from).Round(time.Millisecond),
		float64(heap)/(1<<20))
	if r := p.Row("never"); r.Faults < uint64(faults) || r.PeakAnon != 16<<20 {
		t.Errorf("never: %d faults, peak %d", r.Faults, r.PeakAnon)
	}
	if heap == 0 || heap > 32<<20 {
		t.Errorf("the heap grew to %d MiB", heap>>20)
	}
}

// BenchmarkReplay runs a recording through the reader, the replay and one
// machine on one goroutine. The program holds 16 MiB at a time.
func BenchmarkReplay(b *testing.B) {
	var file bytes.Buffer
	if err := cycle(&file, 1<<20, func() {}); err != nil {
		b.Fatal(err)
	}
	benchReplay(b, file.Bytes())
}

// BenchmarkReplayReal does the same with the recording that
// HUGELAB_RECORDING names.
func BenchmarkReplayReal(b *testing.B) { benchReplay(b, realRecording(b)) }

// opener opens a recording in memory.
func opener(file []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }
}

func realRecording(b *testing.B) []byte {
	path := os.Getenv("HUGELAB_RECORDING")
	if path == "" {
		b.Skip("HUGELAB_RECORDING names no recording")
	}
	file, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return file
}

func benchReplay(b *testing.B, file []byte) {
	for _, name := range []string{"never", "64k"} {
		b.Run(name, func(b *testing.B) {
			in := input(b, opener(file), name)
			b.ReportAllocs()
			events, cpu := uint64(0), cpuTime()
			buf := make([]mm.Op, batchOps)
			for b.Loop() {
				r, err := trace.NewReader(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
				cfg, _, err := in.machine(&Prediction{}, &r.Header, 0)
				if err != nil {
					b.Fatal(err)
				}
				cfg.Policy = in.Policies[1].Policy
				m, err := mm.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				replay := trace.NewReplay(r)
				for {
					n, err := replay.Next(buf)
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if _, err := m.Exec(buf[:n], nil); err != nil {
						b.Fatal(err)
					}
				}
				events += r.Events()
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			if used := cpuTime() - cpu; used > 0 {
				b.ReportMetric(float64(events)/used.Seconds(), "events/cpu-s")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPredict is a whole prediction with every default policy, of the
// recording that HUGELAB_RECORDING names or of 86,000 made-up faults.
func BenchmarkPredict(b *testing.B) {
	var file bytes.Buffer
	if os.Getenv("HUGELAB_RECORDING") != "" {
		file.Write(realRecording(b))
	} else if err := cycle(&file, 86_000, func() {}); err != nil {
		b.Fatal(err)
	}
	in := input(b, opener(file.Bytes()))
	for b.Loop() {
		if _, err := Run(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N), "ms")
	b.ReportMetric(float64(len(in.Policies)), "policies")
	b.ReportMetric(0, "ns/op")
}
