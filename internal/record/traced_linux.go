package record

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// traced is the two unprivileged methods. The recorder is the ptrace tracer of
// COMMAND's whole tree; a seccomp filter stops it at the calls of stoppedCalls
// alone. Pages come from the page map, looked at before a call takes them away
// or changes what lies around them, at every end, and every lookEvery; with
// usePerf, from the page-fault event first.
//
// Two goroutines share it under mu: the tracer, bound to its thread, and a
// ticker that looks at running programs without stopping them.
type traced struct {
	usePerf  bool
	s        *session
	pageSize uint64
	zeroTold bool // the page map tells pages that were only read

	mu     sync.Mutex
	tasks  map[int]*tracedTask // by thread id
	procs  map[int]*tracedProc
	early  map[int]bool // stopped before the event that announces them
	faults *userFaults  // nil without perf
	notes  map[string]bool

	pushed        int    // how hard an interrupted program was asked to end
	explainedMore uint64 // events beyond what their process's counter says, owed by the next ones

	// Reused by every look.
	runs      []kernel.Run
	samples   []userFault
	lastFault map[uint64]int
	unheard   uint64 // samples of processes not (yet) known
}

// tracedTask is one thread under trace.
//
//	running --seccomp stop--> in call --exit stop--> running
//	running, in call --exit event--> gone
type tracedTask struct {
	tid  int
	proc *tracedProc
	call *stoppedCall // between entry and exit of a stopped call
}

// tracedProc is one process (thread group).
type tracedProc struct {
	pid       int
	space     *userSpace // nil until its exec, or its parent's, was seen
	threads   int
	counted   uint64 // the kernel's fault counter when explained was last settled
	explained uint64 // faults written, or done within calls, since then
}

// lookEvery is the time between two looks at a running program. A look finds
// pages in order of address: a shorter time would tell more of their order and
// cost more.
const lookEvery = 50 * time.Millisecond

// newTraced is the perf method (usePerf) or the pagemap method.
func newTraced(usePerf bool) method {
	return &traced{
		usePerf: usePerf, pageSize: uint64(os.Getpagesize()), zeroTold: kernel.ZeroPageTold(),
		tasks: map[int]*tracedTask{}, procs: map[int]*tracedProc{}, early: map[int]bool{},
		notes: map[string]bool{}, lastFault: map[uint64]int{},
	}
}

func (t *traced) now() mm.Nanos { return mm.Nanos(time.Since(t.s.start)) }

func (t *traced) emit(e *trace.Event) { t.s.emit(e) }

// note tells the reader of the recording something once.
func (t *traced) note(text string) {
	if !t.notes[text] {
		t.notes[text] = true
		t.s.note(text)
		t.emit(&trace.Event{Kind: trace.KindNote, When: t.now(), Name: text})
	}
}

// run implements method.
func (t *traced) run(ctx context.Context, s *session) error {
	t.s = s
	done := make(chan error, 1)
	go func() {
		// Every ptrace call must come from one thread. It is not unlocked, so
		// that the thread, whose end would end the trace, is not reused.
		runtime.LockOSThread()
		done <- t.traceAll()
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var interrupted time.Time
	ended := ctx.Done()
	for {
		select {
		case err := <-done:
			if err == nil {
				err = s.emitErr
			}
			return err
		case <-ended:
			ended, interrupted = nil, time.Now()
		case <-tick.C:
			broken := t.lookAll()
			if !interrupted.IsZero() {
				t.push(time.Since(interrupted))
			} else if broken {
				t.signalAll(unix.SIGKILL)
			}
		}
	}
}

// When an interrupted program is asked to end, how, and whether its descendants
// are asked too. A terminal's interrupt has reached them already: they get a
// moment.
const (
	askAfter  = 300 * time.Millisecond // SIGINT to COMMAND
	tellAfter = 2 * time.Second        // SIGTERM to all, at once when COMMAND has gone
	killAfter = 4 * time.Second        // SIGKILL to all
)

// push ends what is under record: without its tracer every stopped call would
// fail, so a program cannot be left running.
func (t *traced) push(since time.Duration) {
	command := t.s.child.pid
	t.mu.Lock()
	gone := t.procs[command] == nil
	if !gone && t.pushed < 1 && since >= askAfter {
		t.pushed = 1
		_ = unix.Kill(command, unix.SIGINT) // under mu: it is not reaped meanwhile
	}
	t.mu.Unlock()
	switch {
	case since < askAfter:
	case since >= killAfter:
		t.signalAll(unix.SIGKILL)
	case t.pushed < 2 && (gone || since >= tellAfter):
		t.pushed = 2
		t.signalAll(unix.SIGTERM)
		t.signalAll(unix.SIGCONT)
	}
}

// signalAll sends sig to every process under record.
func (t *traced) signalAll(sig unix.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid := range t.procs {
		_ = unix.Kill(pid, sig) // it may have ended meanwhile
	}
}

// drainRings empties the rings whenever one fills up, until stop is closed.
func (t *traced) drainRings(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	for {
		select {
		case <-stop:
			return
		default:
			t.faults.wait(lookEvery)
			t.mu.Lock()
			t.drain()
			t.mu.Unlock()
		}
	}
}

// lookAll is the ticker's look at every space that no call is changing. It says
// whether events can no longer be written.
func (t *traced) lookAll() (broken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	for _, p := range t.procs {
		if sp := p.space; sp != nil && sp.owner == p.pid && sp.inCall == 0 {
			t.settle(sp, p.pid, p.pid)
		}
	}
	t.s.progress()
	return t.s.emitErr != nil
}

// drain takes the samples out of the rings to their spaces.
func (t *traced) drain() {
	if t.faults == nil {
		return
	}
	t.samples = t.faults.drain(t.samples[:0], func(cpu int, n uint64) {
		t.emit(&trace.Event{Kind: trace.KindLost, CPU: mm.CPU(cpu), When: t.now(), A: n})
	})
	slices.SortStableFunc(t.samples, func(a, b userFault) int { return cmp.Compare(a.when, b.when) })
	for _, f := range t.samples {
		p := t.procs[int(f.pid)]
		if p == nil || p.space == nil {
			t.unheard++
			continue
		}
		p.space.pending = append(p.space.pending, f)
	}
}

// explain counts n faults of the space's owner as told by the recording.
func (t *traced) explain(sp *userSpace, n uint64) {
	if p := t.procs[sp.owner]; p != nil {
		p.explained += n
	}
}

// traceAll seizes the stub, lets it go and handles every stop until the tree
// has gone.
func (t *traced) traceAll() error {
	c := t.s.child
	if err := seize(c.pid, traceOptions); err != nil {
		return fmt.Errorf("record: %w: trace process %d: %w; see /proc/sys/kernel/yama/ptrace_scope",
			ErrNotHere, c.pid, err)
	}
	if t.usePerf {
		var err error
		base := mm.Nanos(now()) - t.now()
		if t.faults, err = openUserFaults(c.pid, base); err != nil {
			return fmt.Errorf("record: %w: %w; see /proc/sys/kernel/perf_event_paranoid", ErrNotHere, err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go t.drainRings(stop, stopped)
		defer func() {
			close(stop)
			<-stopped
			t.mu.Lock()
			t.faults.close()
			t.faults = nil
			t.mu.Unlock()
		}()
	}
	if !t.zeroTold {
		t.note("this kernel shows no zero page: whether a page was read or written at first is unknown")
	}
	p := &tracedProc{pid: c.pid, threads: 1}
	t.procs[c.pid] = p
	t.tasks[c.pid] = &tracedTask{tid: c.pid, proc: p}
	if err := c.stops(); err != nil {
		return fmt.Errorf("record: release: %w", err)
	}
	for {
		st, err := waitTracee(c.pid)
		if err == unix.ECHILD {
			return nil
		}
		if err != nil {
			return fmt.Errorf("record: wait: %w", err)
		}
		if err := t.handle(st); err != nil {
			return err
		}
	}
}

// handle deals with one report and lets the tracee go on.
func (t *traced) handle(st stop) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st.gone {
		t.gone(st.tid)
		return nil
	}
	k := t.tasks[st.tid]
	if k == nil && st.event() == unix.PTRACE_EVENT_EXIT {
		// Killed with its parent, whose event will not come: a first thread's end
		// is not reported before it has gone.
		k = t.adoptOne(st.tid)
	} else if k == nil {
		t.early[st.tid] = true // stays stopped until its parent's event
		return nil
	}
	request, sig := unix.PTRACE_CONT, unix.Signal(0)
	switch ev, stopSig := st.event(), st.status.StopSignal(); {
	case k == nil: // it has gone meanwhile
	case ev == unix.PTRACE_EVENT_SECCOMP:
		t.enter(k)
	case ev == unix.PTRACE_EVENT_FORK, ev == unix.PTRACE_EVENT_VFORK, ev == unix.PTRACE_EVENT_CLONE:
		if err := t.born(k, ev); err != nil {
			return err
		}
	case ev == unix.PTRACE_EVENT_EXEC:
		k = t.execed(st.tid)
	case ev == unix.PTRACE_EVENT_EXIT:
		t.exiting(k)
	case ev == unix.PTRACE_EVENT_STOP:
		switch stopSig {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
			request = unix.PTRACE_LISTEN // a group stop: stopped until SIGCONT
		}
	case stopSig == unix.SIGTRAP|0x80:
		t.leave(k)
	default:
		sig = stopSig
	}
	if k != nil && k.call != nil && request == unix.PTRACE_CONT {
		request = unix.PTRACE_SYSCALL
	}
	if err := resumeTo(request, st.tid, sig); err != nil {
		return fmt.Errorf("record: resume thread %d: %w", st.tid, err)
	}
	return nil
}
