//go:build !linux

package repro

import (
	"context"
	"errors"
)

func folioHost(context.Context) (Values, error) { return nil, errors.New("this is no Linux host") }
