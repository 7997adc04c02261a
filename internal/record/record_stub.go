package record

// Stubs of the recorder. The real files replace this one.

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/hugelab/hugelab/trace"
)

// ErrNotHere is wrapped by every error that says this machine cannot record.
var ErrNotHere = errors.New("not possible here")

// CommandError says that COMMAND could not be started.
type CommandError struct {
	Name string
	Code int
	Err  error
}

func (e *CommandError) Error() string { return fmt.Sprintf("record: %s: %v", e.Name, e.Err) }

// Unwrap gives the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// Stub must be the first call of main.
func Stub() {}

// Choose names the best method here, or says why there is none.
func Choose() (trace.Method, string) { return "", "the recorder is not built yet" }

// Header describes a recording about to be made.
func Header(o Options, m trace.Method) trace.Header {
	return trace.Header{Command: o.Command, Method: m, Attached: o.PID != 0, Arch: runtime.GOARCH}
}

// Run records.
func Run(context.Context, Options) (trace.Footer, error) {
	_, why := Choose()
	return trace.Footer{}, fmt.Errorf("record: %w: %s", ErrNotHere, why)
}
