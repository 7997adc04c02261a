//go:build !linux

package kernel

import "os"

// StartError says that a command could not be started.
type StartError struct {
	Name string
	Code int
	Err  error
}

func (e *StartError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// StartOptions say how a command is started.
type StartOptions struct {
	Command        []string
	Stdin          *os.File
	Stdout, Stderr *os.File
	FixedAddresses bool
}

// Started is a command that waits for Release; there is none here.
type Started struct{ PID int }

// Start is not possible here.
func Start(StartOptions) (*Started, error) { return nil, CanChange() }

// Release is not possible here.
func (*Started) Release() error { return CanChange() }

// Wait is not possible here.
func (*Started) Wait() (*os.ProcessState, error) { return nil, CanChange() }

// Signal is not possible here.
func (*Started) Signal(os.Signal) error { return CanChange() }
