//go:build !linux || !amd64

package difftest

import (
	"context"
	"errors"
)

var errNoHost = errors.New("difftest: the kernel side runs on Linux on amd64 only: use --model")

// Available says why the kernel side cannot run here.
func Available() error { return errNoHost }

// Check runs programs on the model and on the running kernel.
func Check(context.Context, Options) (*Report, error) { return nil, errNoHost }

// Replay performs a recording's operations on the model and on the running kernel.
func Replay(context.Context, ReplayOptions) (*ReplayResult, error) { return nil, errNoHost }

// CanSplit says why programs cannot split folios here.
func CanSplit() error { return errNoHost }
