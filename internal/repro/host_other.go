//go:build !linux

package repro

import (
	"context"
	"errors"
)

var errNoLinux = errors.New("this is no Linux host")

func folioHost(context.Context) (Values, error)     { return nil, errNoLinux }
func hvoHost(context.Context) (Values, error)       { return nil, errNoLinux }
func gupHost(context.Context) (Values, error)       { return nil, errNoLinux }
func ebizzyTHPHost(context.Context) (Values, error) { return nil, errNoLinux }
func pageFaultHost(context.Context) (Values, error) { return nil, errNoLinux }
