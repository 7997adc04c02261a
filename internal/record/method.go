package record

import (
	"context"
	"os"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// Options say what to record and how.
type Options struct {
	Command []string      // program and arguments; empty with PID
	PID     int           // attach to this process instead
	For     time.Duration // how long to stay attached
	Method  trace.Method  // "" chooses the best this machine allows
	Out     *trace.Writer // where events go
	Quiet   bool          // COMMAND's stdout goes nowhere instead of stderr
	Stdin   *os.File      // COMMAND's stdin; nil for none
	Stderr  *os.File      // COMMAND's stderr, and its stdout unless Quiet

	// Progress is called a few times a second from the recording's own
	// goroutine; nil for none.
	Progress func(Progress)

	sink sink // tests: where events go instead of Out
	ring int  // tests: bytes of one CPU's ring, 0 for ringBytes
}

// Progress is how far a recording is.
type Progress struct {
	Events, Faults, Lost uint64
	Elapsed              time.Duration
}

// method makes events of a running child. Each of the three implements it.
//
// The child stands in the stub, huge pages off, waiting to exec; run lets it go
// and returns when the last process of its tree has gone or ctx is done. Events
// reach s.emit in the order in which calls held the address space. run must
// leave no tracee stopped and no perf event open.
type method interface {
	run(ctx context.Context, s *session) error
}

// sink takes a recording's events; trace.Writer is one. The event is the
// caller's again when Write returns.
type sink interface{ Write(e *trace.Event) error }

// session is one recording under way: the child and where events go.
type session struct {
	opts    Options
	start   time.Time // events' When counts from here
	child   *child    // nil when attached to opts.PID
	out     sink      // nil: opts.Out
	footer  trace.Footer
	emitErr error
}

// emit writes one event and counts it; the first failure is kept and ends the
// recording.
func (s *session) emit(e *trace.Event) {
	if s.emitErr != nil {
		return
	}
	s.footer.Events++
	switch e.Kind {
	case trace.KindFault:
		s.footer.Faults++
	case trace.KindResident:
		if s.opts.PID == 0 { // else it was there before
			s.footer.Faults += e.B
		}
	case trace.KindOtherFaults:
		s.footer.Faults += e.A
	case trace.KindLost:
		s.footer.Lost += e.A
	}
	if s.out != nil {
		s.emitErr = s.out.Write(e)
	} else {
		s.emitErr = s.opts.Out.Write(e)
	}
}

// note adds a sentence to the recording's footer, once.
func (s *session) note(sentence string) {
	for _, n := range s.footer.Notes {
		if n == sentence {
			return
		}
	}
	s.footer.Notes = append(s.footer.Notes, sentence)
}

// progress tells the caller how far the recording is.
func (s *session) progress() {
	if s.opts.Progress != nil {
		s.opts.Progress(Progress{s.footer.Events, s.footer.Faults, s.footer.Lost, time.Since(s.start)})
	}
}

// child is the program under record, started through the stub.
type child struct {
	pid     int
	release func() error                     // lets the stub exec COMMAND; does not wait for the exec
	stops   func() error                     // the same, but the stub calls InstallStops first
	wait    func() (*os.ProcessState, error) // reaps it; may be called again and returns the same
	signal  func(os.Signal) error            // fails once it was reaped: never reaches another process
	started func() (stubUse, error)          // or why the exec failed; call after it or after the end
}

// stubUse is what the stub used until its exec: the kernel counts it as COMMAND's.
type stubUse struct {
	user, system mm.Nanos
	maxRSS       uint64 // KiB
}
