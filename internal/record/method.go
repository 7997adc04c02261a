package record

import (
	"context"
	"os"
	"time"

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

// session is one recording under way: the child and where events go.
type session struct {
	opts    Options
	start   time.Time // events' When counts from here
	child   *child    // nil when attached to opts.PID
	footer  trace.Footer
	emitErr error
}

// emit writes one event; the first failure is kept and ends the recording.
func (s *session) emit(e *trace.Event) {
	if s.emitErr == nil {
		s.emitErr = s.opts.Out.Write(e)
	}
}

// child is the program under record, started through the stub.
type child struct {
	pid     int
	release func() error // lets the stub exec COMMAND
	// releaseStops lets the stub call InstallStops, then exec COMMAND.
	releaseStops func() error
	wait         func() (*os.ProcessState, error) // reaps it
}
