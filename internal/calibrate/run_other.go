//go:build !linux

package calibrate

import (
	"context"
	"fmt"
	"runtime"
)

// Helper returns at once: there is nothing to execute here.
func Helper() {}

// Run says that there is no Linux kernel to measure.
func Run(context.Context, Options) (*Result, error) {
	return nil, fmt.Errorf("calibrate: %w: it measures a Linux kernel, and this is %s", ErrNotHere, runtime.GOOS)
}
