//go:build !linux

package record

import (
	"context"
	"fmt"
	"runtime"

	"github.com/hugelab/hugelab/trace"
)

// Stub does nothing here; on Linux it becomes the program under record.
func Stub() {}

// Choose says that no method works here.
func Choose() (trace.Method, string) { return "", "recording needs Linux, this is " + runtime.GOOS }

// LookUp leaves it to Choose to refuse.
func LookUp(string) error { return nil }

// CanAttach says that no process can be recorded here.
func CanAttach(int, trace.Method) error {
	_, why := Choose()
	return fmt.Errorf("record: %w: %s", ErrNotHere, why)
}

// Header describes a recording about to be made with o.
func Header(o Options, m trace.Method) trace.Header {
	return trace.Header{Command: o.Command, Method: m, Attached: o.PID != 0, Arch: runtime.GOARCH}
}

func run(context.Context, Options) (trace.Footer, error) {
	return trace.Footer{}, CanAttach(0, "")
}
