package record

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// root records with perf tracepoints: every fault and every memory call of the
// tree, one ring per CPU, one reader.
type root struct {
	s      *session
	perf   perfSet
	d      *decoder
	q      *queue
	ended  chan struct{} // closed when the child was reaped
	pollfd []unix.PollFd
	next   time.Time // when progress is told again
}

// pollEvery bounds how long records wait in a ring that is not half full.
const pollEvery = 200 * time.Millisecond

// stragglers is how long the rest of a tree may outlive COMMAND before the
// recording ends without it.
const stragglers = 200 * time.Millisecond

func newRoot() method { return &root{} }

func (m *root) run(ctx context.Context, s *session) error {
	// The reader keeps its thread: it sleeps in the kernel for most of the time.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.s = s
	f, err := readFormats()
	if err != nil {
		return fmt.Errorf("record: %w: %w", ErrNotHere, err)
	}
	m.perf.size = ringBytes
	if s.opts.ring != 0 {
		m.perf.size = s.opts.ring
	}
	defer m.perf.close()
	raiseFileLimit()
	m.q = newQueue(s.emit)
	m.d = newDecoder(f, m.q, s.note)
	if s.child == nil {
		return m.attach(ctx, f)
	}
	pid := s.child.pid
	if err := m.perf.open(f, pid, true); err != nil {
		return fmt.Errorf("record: %w: %w", ErrNotHere, err)
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("record: watch process %d: %w", pid, err)
	}
	defer unix.Close(pidfd)
	m.watch(pidfd)
	m.d.adopt(int32(pid), int32(pid))
	m.d.start = now()
	s.start = time.Now()
	if err := s.child.release(); err != nil {
		return err
	}
	m.ended = make(chan struct{})
	go func() {
		defer close(m.ended)
		_, _ = s.child.wait() // its result is kept for Run
	}()
	m.follow(ctx)
	return m.finish()
}

// watch lists what to sleep on: the process's end and the rings.
func (m *root) watch(pidfd int) {
	m.pollfd = append(m.pollfd, unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN})
	for _, r := range m.perf.rings {
		m.pollfd = append(m.pollfd, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
	}
}

// round sleeps until a ring is half full, the time is over or the process has
// ended (gone), and drains.
func (m *root) round(wait time.Duration) (gone bool) {
	for i := range m.pollfd {
		m.pollfd[i].Revents = 0
	}
	_, _ = unix.Poll(m.pollfd, int(wait.Milliseconds())) // an interrupted sleep is a short one
	gone = m.pollfd[0].Revents != 0
	for i := range m.pollfd[1:] {
		if m.pollfd[1+i].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			m.pollfd[1+i].Fd = -1 // its task has gone; poll would not sleep any more
		}
	}
	drain(m.perf.rings, m.d, false)
	if t := time.Now(); t.After(m.next) {
		m.next = t.Add(250 * time.Millisecond)
		m.s.progress()
	}
	return gone
}

// follow drains until the tree has gone.
func (m *root) follow(ctx context.Context) {
	stop := &stopper{child: m.s.child}
	for m.s.emitErr == nil {
		if ctx.Err() != nil {
			m.s.footer.Interrupted = true
			stop.push()
		}
		if m.round(pollEvery) {
			<-m.ended
			m.s.footer.Wall = mm.Nanos(time.Since(m.s.start))
			m.straggle(ctx)
			return
		}
	}
	stop.now()
	<-m.ended
}

// straggle waits a little for what COMMAND left running.
func (m *root) straggle(ctx context.Context) {
	deadline := time.Now().Add(stragglers)
	for {
		drain(m.perf.rings, m.d, false)
		if m.d.live <= 0 || ctx.Err() != nil || time.Now().After(deadline) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// finish drains the rest and accounts for what was lost.
func (m *root) finish() error {
	s := m.s
	if err := m.perf.all(unix.PERF_EVENT_IOC_DISABLE); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	drain(m.perf.rings, m.d, true)
	if n := m.d.live; n > 0 && s.child != nil && s.footer.Events > 0 {
		s.note(fmt.Sprintf("%d threads that the command started were still running at its end; "+
			"what they did later is not in the recording", n))
	}
	m.d.finish()
	if lost, ok := m.perf.lost(); ok && lost > s.footer.Lost {
		e := trace.Event{Kind: trace.KindLost, A: lost - s.footer.Lost, When: mm.Nanos(now() - m.d.start)}
		s.emit(&e)
	}
	var bad uint64
	for _, r := range m.perf.rings {
		bad += r.bad
	}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{s.footer.Lost, "events were lost: the reader did not keep up"},
		{bad, "records of the kernel's ring made no sense and were left out"},
		{m.d.late, "events came too late to be put into the order of time"},
		{m.q.forced, "calls took so long that they stand at their end in the recording"},
	} {
		if c.n > 0 {
			s.note(fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	s.progress()
	return s.emitErr
}

// raiseFileLimit makes room for one descriptor per event, CPU and thread. Go
// gives a child the limit that this process began with.
func raiseFileLimit() {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	}
}

// stopper ends COMMAND when the recording is interrupted, harder as time
// passes. A terminal sends its interrupt to COMMAND too, so it gets a moment.
type stopper struct {
	child *child
	since time.Time
	sent  int
}

func (p *stopper) push() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	steps := []struct {
		after time.Duration
		sig   unix.Signal
	}{{300 * time.Millisecond, unix.SIGINT}, {2 * time.Second, unix.SIGTERM}, {4 * time.Second, unix.SIGKILL}}
	if p.sent < len(steps) && time.Since(p.since) > steps[p.sent].after {
		_ = p.child.signal(steps[p.sent].sig) // it may have ended already
		p.sent++
	}
}

func (p *stopper) now() { _ = p.child.signal(unix.SIGKILL) }
