package predict

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// script writes a recording of made-up events; time runs by a microsecond an
// event.
type script struct {
	t   *testing.T
	w   *trace.Writer
	buf bytes.Buffer
	now mm.Nanos
}

// The addresses of the made-up program.
const (
	exeAt    = 0x555555554000
	heapAt   = 0x555555600000
	stackAt  = 0x7ffffffde000
	loaderAt = 0x7ffff7fc7000
	mapAt    = 0x7ffff0000000 // of 16 MiB, aligned to 2 MiB
	mapLen   = 16 << 20
)

func newScript(t *testing.T, h trace.Header) *script {
	t.Helper()
	s := &script{t: t}
	var err error
	if s.w, err = trace.NewWriter(&s.buf, h); err != nil {
		t.Fatal(err)
	}
	return s
}

func header() trace.Header {
	return trace.Header{Version: 1, Tool: "test", Command: []string{"made-up"}, Method: trace.MethodRoot, Kernel: "6.18.1",
		Arch: "x86_64", PageSize: 4096, CPUs: 2, MemTotal: 4 << 30, Start: "2026-01-01T00:00:00Z"}
}

func (s *script) event(e trace.Event) {
	s.t.Helper()
	if e.PID == 0 {
		e.PID, e.TID = 100, 100
	}
	if e.When == 0 {
		s.now += 1000
		e.When = s.now
	}
	s.now = e.When
	if err := s.w.Write(&e); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) exec() {
	s.event(trace.Event{Kind: trace.KindExec, A: 100, B: stackAt + 0x20000, Name: "/bin/made-up"})
	private := uint64(2) << 32
	s.event(trace.Event{Kind: trace.KindMapAt, A: exeAt, B: exeAt + 0x10000, C: 5 | private, D: 77, Name: "/bin/made-up"})
	s.event(trace.Event{Kind: trace.KindMapAt, A: loaderAt, B: loaderAt + 0x26000, C: 5 | private, D: 78, Name: "/lib/ld.so"})
	s.event(trace.Event{Kind: trace.KindMapAt, A: stackAt, B: stackAt + 0x21000, C: 3 | private | 0x100<<32, Name: "[stack]"})
	s.event(trace.Event{Kind: trace.KindBrkAt, A: heapAt, B: heapAt})
}

// touch writes n pages from at on.
func (s *script) touch(at uint64, n int) {
	for i := range n {
		s.event(trace.Event{Kind: trace.KindFault, Access: mm.Write, A: at + uint64(i)<<12})
	}
}

func (s *script) mmap(at, length uint64) {
	s.event(trace.Event{Kind: trace.KindMmap, B: length, C: 3 | 0x22<<32, D: 0xffffffff, Ret: int64(at)})
}

// done ends the recording after seconds of run time.
func (s *script) done(f trace.Footer) func() (io.ReadCloser, error) {
	s.t.Helper()
	if err := s.w.Close(f); err != nil {
		s.t.Fatal(err)
	}
	data := bytes.Clone(s.buf.Bytes())
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

// program is the made-up program: it maps 16 MiB, writes all of it, unmaps it
// and exits a little later.
func program(t *testing.T) func() (io.ReadCloser, error) {
	s := newScript(t, header())
	s.exec()
	s.mmap(mapAt, mapLen)
	s.touch(mapAt, mapLen>>12)
	s.event(trace.Event{Kind: trace.KindMadvise, A: mapAt, B: mapLen / 2, C: uint64(mm.AdviseDontNeed)})
	s.event(trace.Event{Kind: trace.KindExit, A: 1, When: s.now + 10e6})
	return s.done(trace.Footer{Faults: mapLen >> 12, Wall: 20e6, User: 10e6, System: 8e6})
}

func input(t testing.TB, open func() (io.ReadCloser, error), specs ...string) Input {
	t.Helper()
	now, r, s := fixture(t, "6.18", 4096)
	rows, err := ParsePolicies(specs, now, now, r, s)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Open: open, Policies: rows, MaxMemory: -1, Timeline: true, ByMapping: true, Seed: 1}
}

func mustRun(t *testing.T, in Input) *Prediction {
	t.Helper()
	p, err := Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRunCounts holds rows to what the kernel's rules give for a program that
// is simple enough to count by hand.
func TestRunCounts(t *testing.T) {
	p := mustRun(t, input(t, program(t)))
	const pages = mapLen >> 12
	tests := []struct {
		row    string
		faults uint64
		order  mm.Order
		folios uint64
	}{
		{Now, pages, 0, 0}, // madvise, and nobody advised
		{"never", pages, 0, 0},
		{"16k", pages / 4, 2, pages / 4},
		{"64k", pages / 16, 4, pages / 16},
		{"1m", pages / 256, 8, pages / 256},
		{"thp", pages / 512, 9, pages / 512},
		{"thp+64k", pages / 512, 9, pages / 512},
	}
	for _, tt := range tests {
		r := p.Row(tt.row)
		if r == nil {
			t.Fatalf("no row %s", tt.row)
		}
		if r.Faults != tt.faults || r.Folios[tt.order] != tt.folios {
			t.Errorf("%s: %d faults and %d folios, want %d and %d", tt.row, r.Faults, r.Folios[tt.order], tt.faults, tt.folios)
		}
		if r.PeakAnon != mapLen || r.EndAnon != mapLen/2 || r.Untouched > mapLen {
			t.Errorf("%s: peak %d, end %d", tt.row, r.PeakAnon, r.EndAnon)
		}
		if want := 0.0; tt.order > 0 {
			want = 1
			if r.Coverage != want || r.CoverageBy[tt.order] != want {
				t.Errorf("%s: coverage %v", tt.row, r.Coverage)
			}
		} else if r.Coverage != want {
			t.Errorf("%s: coverage %v", tt.row, r.Coverage)
		}
		if r.Kernel <= 0 || r.WorstFault <= 0 || r.MeanAnon <= 0 || r.MeanAnon >= mapLen || r.Killed() {
			t.Errorf("%s: kernel %v, worst %v, mean %v", tt.row, r.Kernel, r.WorstFault, r.MeanAnon)
		}
	}
	if a, b := p.Row("thp"), p.Row(Now); a.Kernel >= b.Kernel || a.WorstFault <= b.WorstFault {
		t.Errorf("thp takes %v (worst %v), now %v (worst %v)", a.Kernel, a.WorstFault, b.Kernel, b.WorstFault)
	}
	if p.Layouts != 0 || p.Recording.Faults != pages || p.Recording.AnonShare != 1 || p.Recording.CPU != 18*time.Millisecond {
		t.Errorf("recording %+v, layouts %d", p.Recording, p.Layouts)
	}
	if len(p.Mappings) == 0 || p.Mappings[0].By[0].Faults != pages {
		t.Errorf("mappings %+v", p.Mappings)
	}
	if p.Best == nil || p.Best.Policy == Now {
		t.Errorf("best %+v", p.Best)
	}
}

// TestRunRepeats: the same answer every time and on any number of processors.
func TestRunRepeats(t *testing.T) {
	open := program(t)
	first := mustRun(t, input(t, open))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	second := mustRun(t, input(t, open))
	if d := cmp.Diff(first, second, cmpopts.IgnoreUnexported(Prediction{})); d != "" {
		t.Errorf("two runs differ:\n%s", d)
	}
}

// TestLayouts: with maps that huge pages fit into only by luck, layouts differ;
// small pages never do.
func TestLayouts(t *testing.T) {
	s := newScript(t, header())
	s.exec()
	const length = 3 << 20 // no multiple of 2 MiB: not aligned
	s.mmap(mapAt, length)
	s.touch(mapAt, length>>12)
	s.event(trace.Event{Kind: trace.KindExit, A: 1})
	in := input(t, s.done(trace.Footer{Wall: 1e9}), "never", "thp")
	in.Layouts = 12
	p := mustRun(t, in)
	never, thp := p.Row("never"), p.Row("thp")
	if never.Spread == nil || never.Spread.FaultsMin != never.Faults || never.Spread.FaultsMax != never.Faults {
		t.Errorf("never: %d faults, %+v", never.Faults, never.Spread)
	}
	if thp.Spread.FaultsMin >= thp.Spread.FaultsMax || thp.Faults < thp.Spread.FaultsMin || thp.Faults > thp.Spread.FaultsMax {
		t.Errorf("thp: %d faults, %+v", thp.Faults, thp.Spread)
	}
	again := mustRun(t, in)
	if d := cmp.Diff(p.Rows, again.Rows); d != "" {
		t.Errorf("the same seed, another answer:\n%s", d)
	}
}

// TestOtherKernel: rules that place maps elsewhere need a layout of their own.
func TestOtherKernel(t *testing.T) {
	in := input(t, program(t), "thp")
	var err error
	if in.Rules, err = mm.RulesFor("6.6"); err != nil {
		t.Fatal(err)
	}
	if p := mustRun(t, in); p.Layouts != 1 || p.Kernel != "6.6" {
		t.Errorf("layouts %d, kernel %s", p.Layouts, p.Kernel)
	}
}

// TestLimit: a program larger than its limit is killed, and no row that kills it is
// recommended.
func TestLimit(t *testing.T) {
	in := input(t, program(t), "never", "thp")
	in.Limit = mapLen / 2
	p := mustRun(t, in)
	for i := range p.Rows {
		if !p.Rows[i].Killed() {
			t.Errorf("%s survives %d bytes with %d", p.Rows[i].Name, mapLen, in.Limit)
		}
		// The row ends there: half the memory was written, one fault found none left.
		r := &p.Rows[i]
		order := mm.Order(0)
		if r.Name == "thp" {
			order = 9
		}
		if want := uint64(in.Limit>>12)>>order + 1; r.Faults != want || r.PeakAnon != in.Limit || r.EndAnon != in.Limit {
			t.Errorf("%s: %d faults, want %d; peak %d, end %d", r.Name, r.Faults, want, r.PeakAnon, r.EndAnon)
		}
		if r.KilledAt <= 0 || r.KilledAt > 20*time.Millisecond {
			t.Errorf("%s: killed at %v", r.Name, r.KilledAt)
		}
	}
	if p.Best.Policy != Now {
		t.Errorf("recommended %s", p.Best.Policy)
	}
}

func TestRunRefuses(t *testing.T) {
	odd := header()
	odd.PageSize = 5000
	noKernel := header()
	noKernel.Kernel = "unknown"
	ok := program(t)
	data, err := ok()
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := io.ReadAll(data)
	reader := func(b []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	}
	tests := []struct {
		name string
		open func() (io.ReadCloser, error)
		want string
	}{
		{"page size", newScript(t, odd).done(trace.Footer{}), "page"},
		{"kernel", newScript(t, noKernel).done(trace.Footer{}), "--kernel"},
		{"not a recording", reader([]byte("hello")), ""},
		{"damaged", reader(append(append(bytes.Clone(whole[:len(whole)/2]), 0xff, 0xff, 0xff), whole[len(whole)/2:]...)), ""},
		{"cannot open", func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }, "closed pipe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(context.Background(), input(t, tt.open, "thp"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, input(t, ok, "thp")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Run(context.Background(), Input{Open: ok}); err == nil {
		t.Error("ran without a policy")
	}
}

// TestCutOff: a recording without its end is predicted as far as it goes, and
// says so.
func TestCutOff(t *testing.T) {
	s := newScript(t, header())
	s.exec()
	s.mmap(mapAt, mapLen)
	s.touch(mapAt, 1000)
	open := s.done(trace.Footer{})
	r, _ := open()
	data, _ := io.ReadAll(r)
	p := mustRun(t, input(t, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data[:len(data)-40])), nil
	}, "never"))
	if p.Rows[0].Faults == 0 || p.Rows[0].EndAnon == 0 {
		t.Errorf("row %+v", p.Rows[0])
	}
	if len(p.Notes) == 0 || !strings.Contains(strings.Join(p.Notes, "\n"), "cut off") {
		t.Errorf("notes %q", p.Notes)
	}
}

func BenchmarkRun(b *testing.B) {
	t := &testing.T{}
	open := program(t)
	now, r, s := fixture(t, "6.18", 4096)
	in := Input{Open: open, Policies: Defaults(now, now, r, s), MaxMemory: -1}
	for b.Loop() {
		if _, err := Run(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(mapLen>>12)/float64(len(in.Policies)), "ns/fault/policy")
}
