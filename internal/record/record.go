package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/hugelab/hugelab/trace"
)

// ErrNotHere is wrapped by every error that says this machine, or this user on
// it, cannot record (exit code 3).
var ErrNotHere = errors.New("not possible here")

// CommandError says that COMMAND could not be started.
type CommandError struct {
	Name string // as the user gave it
	Code int    // the shell's exit code for it: 127 not found, 126 not executable
	Err  error
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }

// Unwrap gives the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// Run records o.Command from its exec to its end, or o.PID for o.For, and
// writes the events to o.Out. The footer is valid, and worth writing, even when
// ctx ended the recording (Interrupted) or an error stopped it.
//
// Errors wrap ErrNotHere where the machine does not allow it, or are a
// *CommandError where COMMAND could not be started. A COMMAND that fails is no
// error: its exit code is in the footer.
func Run(ctx context.Context, o Options) (trace.Footer, error) {
	switch {
	case len(o.Command) == 0 && o.PID == 0:
		return trace.Footer{}, errors.New("record: nothing to record: give a command or a process id")
	case len(o.Command) > 0 && o.PID != 0:
		return trace.Footer{}, errors.New("record: a command and a process id: give one of them")
	case o.PID != 0 && o.For <= 0:
		return trace.Footer{}, errors.New("record: attaching needs a duration above zero")
	}
	return run(ctx, o)
}
