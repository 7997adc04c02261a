package record

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// events keeps a recording in memory.
type events struct {
	list []trace.Event
	fail int // fail at this many, 0 never
}

func (s *events) Write(e *trace.Event) error {
	if s.fail > 0 && len(s.list) >= s.fail {
		return errors.New("disk full")
	}
	s.list = append(s.list, *e)
	return nil
}

// inArena are the events on the test program's own memory, in order.
func (s *events) inArena() (out []trace.Event) {
	for _, e := range s.list {
		if e.A >= arena && e.A < arenaEnd && e.Kind != trace.KindNewTask && e.Kind != trace.KindMapAt {
			out = append(out, e)
		}
	}
	return out
}

func (s *events) count(k trace.Kind) (n int) {
	for i := range s.list {
		if s.list[i].Kind == k {
			n++
		}
	}
	return n
}

func needRoot(t *testing.T) {
	t.Helper()
	if why := rootHere(); why != "" {
		t.Skipf("method root does not work here: %s", why)
	}
}

// rootHere says once why method root does not work here. It keeps the tracepoints
// in use until the tests end: the kernel waits for every CPU when the last user
// of one goes, which would be most of the tests' time.
var rootHere = sync.OnceValue(func() (why string) {
	if m, why := Choose(); m != trace.MethodRoot {
		return why
	}
	f, err := readFormats()
	if err != nil {
		return err.Error()
	}
	for _, ev := range f.events() {
		a := ev.attr(ringBytes, true)
		if _, err := unix.PerfEventOpen(&a, os.Getpid(), -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
			return err.Error()
		}
	}
	return ""
})

// recordProgram records one of the test programs by method root.
func recordProgram(t *testing.T, ctx context.Context, name string, o Options) (*events, trace.Footer) {
	t.Helper()
	needRoot(t)
	t.Setenv("RECORD_TEST_PROGRAM", name)
	out := &events{}
	o.Command, o.Method, o.sink = []string{"/proc/self/exe"}, trace.MethodRoot, out
	o.Stderr = os.Stderr
	foot, err := Run(ctx, o)
	if err != nil {
		t.Fatalf("record %s: %v", name, err)
	}
	if foot.Events != uint64(len(out.list)) {
		t.Errorf("footer counts %d events, the sink got %d", foot.Events, len(out.list))
	}
	return out, foot
}

// plain strips what differs from run to run.
func plain(list []trace.Event) []trace.Event {
	out := slices.Clone(list)
	for i := range out {
		e := &out[i]
		e.CPU, e.TID, e.PID, e.When = 0, 0, 0, 0
		if e.Kind == trace.KindFault {
			e.B = 0
		}
	}
	return out
}

func fault(page uint64, a mm.Access) trace.Event {
	return trace.Event{Kind: trace.KindFault, A: arena + page*pg, Access: a}
}

func TestEveryFaultAndCallInOrder(t *testing.T) {
	out, foot := recordProgram(t, context.Background(), "touch", Options{})
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	want := []trace.Event{
		{Kind: trace.KindMmap, A: arena, B: 64 * pg, C: 3 | flags<<32, D: 0xffffffff, Ret: arena},
		fault(5, mm.Write), fault(3, mm.Write), fault(60, mm.Write), fault(0, mm.Write),
		fault(7, mm.Read),
		{
			Kind: trace.KindMmap, A: arena + 256*pg, B: pg, C: 3 | (flags&^unix.MAP_ANONYMOUS)<<32, D: testFD | 1<<32,
			Ret: arena + 256*pg,
		},
		fault(256, mm.Read), fault(256, mm.Write|mm.WasPresent),
		{Kind: trace.KindMadvise, A: arena, B: 8 * pg, C: unix.MADV_DONTNEED},
		fault(5, mm.Write),
		{Kind: trace.KindMprotect, A: arena + 32*pg, B: 16 * pg, C: unix.PROT_READ},
		{Kind: trace.KindMremap, A: arena + 48*pg, B: 16 * pg, C: 16 * pg, D: 3 | arena + 128*pg, Ret: arena + 128*pg},
		fault(129, mm.Write),
		fault(8, mm.Write|mm.KernelMode),
		{Kind: trace.KindMunmap, A: arena, B: 48 * pg},
	}
	if diff := cmp.Diff(want, plain(out.inArena())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if foot.Lost != 0 || foot.Exit != 0 || foot.Faults == 0 || foot.Wall <= 0 {
		t.Errorf("footer %+v", foot)
	}
	execs(t, out, 1)
}

// execs checks that every exec is followed by its program's maps.
func execs(t *testing.T, out *events, want int) {
	t.Helper()
	n := 0
	for i, e := range out.list {
		if e.Kind != trace.KindExec {
			continue
		}
		n++
		var stack, exe bool
		for _, m := range out.list[i+1:] {
			if m.Kind != trace.KindMapAt {
				break
			}
			stack = stack || m.Name == "[stack]" && e.B > m.A && e.B < m.B
			exe = exe || m.D != 0 && m.C&4 != 0
		}
		if !stack || !exe || e.Name == "" || e.PID == 0 {
			t.Errorf("exec %+v: stack with its pointer inside %v, program text %v", e, stack, exe)
		}
	}
	if n != want {
		t.Errorf("%d execs, want %d", n, want)
	}
}

func TestForkAndExec(t *testing.T) {
	out, foot := recordProgram(t, context.Background(), "fork", Options{})
	execs(t, out, 2)
	var pids []int32
	for _, e := range out.inArena() {
		if e.Kind == trace.KindFault {
			pids = append(pids, e.PID)
			if e.A == arena+pg && e.PID == pids[0] || e.A == arena && e.PID != pids[0] {
				t.Errorf("fault %+v in the wrong process", e)
			}
		}
	}
	if len(pids) != 2 {
		t.Errorf("faults of %v, want one of each process", pids)
	}
	// Every task but the first was made, and every one has ended.
	born, died := map[uint64]bool{}, 0
	for _, e := range out.list {
		switch e.Kind {
		case trace.KindNewTask:
			born[e.A] = true
			if e.C == 0 || e.C != e.A && e.B&unix.CLONE_THREAD == 0 {
				t.Errorf("new task %+v: wrong group", e)
			}
		case trace.KindExit:
			died++
		}
	}
	// An exec ends the other threads of its group; each has its own exit.
	if died != len(born)+1 {
		t.Errorf("%d tasks made, %d ended (%v)", len(born)+1, died, foot.Notes)
	}
}

// TestExecOfAnotherThread: the thread takes its group's id.
func TestExecOfAnotherThread(t *testing.T) {
	out, foot := recordProgram(t, context.Background(), "threadexec", Options{})
	execs(t, out, 2)
	for _, e := range out.inArena() {
		if e.PID != e.TID && e.Kind == trace.KindExec {
			t.Errorf("exec %+v by a thread that is not the first", e)
		}
	}
	if len(foot.Notes) != 0 {
		t.Errorf("notes %q: tasks were taken for alive", foot.Notes)
	}
	if n := len(out.inArena()); n != 2 {
		t.Errorf("%d events in the new program's arena, want a map and a fault", n)
	}
}

// TestThreadsInLockOrder: two threads reuse the same addresses by turns, so any
// two events out of order show as a fault outside a mapping.
func TestThreadsInLockOrder(t *testing.T) {
	out, foot := recordProgram(t, context.Background(), "threads", Options{})
	mapped, faults := false, 0
	for _, e := range out.inArena() {
		switch e.Kind {
		case trace.KindMmap:
			if mapped {
				t.Fatalf("mapped twice at %+v", e)
			}
			mapped = true
		case trace.KindMunmap:
			mapped = false
		case trace.KindFault:
			faults++
			if !mapped {
				t.Fatalf("fault outside a mapping: %+v", e)
			}
		}
	}
	if faults != 400 || foot.Lost != 0 {
		t.Errorf("%d faults, %d lost; want 400 and none", faults, foot.Lost)
	}
}

func TestLostEventsAreCounted(t *testing.T) {
	out, foot := recordProgram(t, context.Background(), "flood", Options{ring: 4096 * 2})
	if foot.Lost == 0 || out.count(trace.KindLost) == 0 || len(foot.Notes) == 0 {
		t.Fatalf("a ring of two pages lost nothing: %+v", foot)
	}
	var sum uint64
	for _, e := range out.list {
		if e.Kind == trace.KindLost {
			sum += e.A
		}
	}
	seen := uint64(0)
	for _, e := range out.inArena() {
		if e.Kind == trace.KindFault {
			seen++
		}
	}
	if sum != foot.Lost || seen+sum < 20000 {
		t.Errorf("lost events say %d, the footer %d; %d of 20000 faults seen", sum, foot.Lost, seen)
	}
}

func TestExitCodes(t *testing.T) {
	for name, want := range map[string]int{"exit7": 7, "kill": 128 + 9} {
		if _, foot := recordProgram(t, context.Background(), name, Options{}); foot.Exit != want {
			t.Errorf("%s: exit %d, want %d", name, foot.Exit, want)
		}
	}
}

func TestInterruptEndsTheRecording(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	out, foot := recordProgram(t, ctx, "sleep", Options{})
	if !foot.Interrupted || foot.Exit != 130 || out.count(trace.KindFault) == 0 {
		t.Errorf("footer %+v", foot)
	}
}

func TestWhatCommandLeavesRunning(t *testing.T) {
	_, foot := recordProgram(t, context.Background(), "daemon", Options{})
	if foot.Wall > mm.Nanos(2500*time.Millisecond) || len(foot.Notes) == 0 {
		t.Errorf("the recording waited for a daemon, or does not say so: %+v", foot)
	}
}

func TestSinkFailureEndsTheRecording(t *testing.T) {
	needRoot(t)
	t.Setenv("RECORD_TEST_PROGRAM", "sleep")
	_, err := Run(context.Background(), Options{
		Command: []string{"/proc/self/exe"}, Method: trace.MethodRoot, sink: &events{fail: 100},
	})
	if err == nil || err.Error() != "disk full" {
		t.Errorf("error %v, want the sink's", err)
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	junk := dir + "/junk"
	if err := os.WriteFile(junk, []byte{0, 1, 2, 3}, 0o755); err != nil {
		t.Fatal(err)
	}
	noInterp := dir + "/script"
	if err := os.WriteFile(noInterp, []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		code int
	}{{"no-such-command-here", 127}, {dir + "/missing", 127}, {dir, 126}, {junk, 126}, {noInterp, 127}} {
		foot, err := Run(context.Background(), Options{Command: []string{c.name}, Method: trace.MethodRoot, sink: &events{}})
		var ce *CommandError
		if !errors.As(err, &ce) || ce.Code != c.code || ce.Name != c.name || foot.Exit != c.code {
			t.Errorf("%s: %v (footer exit %d), want code %d", c.name, err, foot.Exit, c.code)
		}
	}
}
