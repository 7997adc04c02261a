//go:build !linux

package kernel

import (
	"errors"
	"fmt"
	"runtime"
)

// errNotLinux is what every Try answers here.
var errNotLinux = fmt.Errorf("this is %s, not Linux: %w", runtime.GOOS, errors.ErrUnsupported)

// TracepointID is not possible here.
func TracepointID(string) (uint64, error) { return 0, errNotLinux }

// TryTracepoint is not possible here.
func TryTracepoint(uint64) error { return errNotLinux }

// TryFaultEvent is not possible here.
func TryFaultEvent(bool) error { return errNotLinux }

// TryPageMap is not possible here.
func TryPageMap() (bool, error) { return false, errNotLinux }

// TryPageMapScan is not possible here.
func TryPageMapScan() error { return errNotLinux }

// Writable is not possible here.
func Writable(string) error { return errNotLinux }

// TryKVM is not possible here.
func TryKVM() error { return errNotLinux }
