//go:build !linux

package lab

import (
	"context"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

func runOnce(context.Context, kernel.StartOptions, ...mm.Order) (*Run, error) {
	return nil, kernel.CanChange()
}

func (*verifier) replay(context.Context, *predict.Named) (*Run, error) {
	return nil, kernel.CanChange()
}

type decoy struct{}

// Decoy does nothing here.
func Decoy() {}

const quiet = 0 * time.Second

func startDecoy() (*decoy, error) { return nil, kernel.CanChange() }

func (*decoy) stop() {}

var errLow = kernel.CanChange()

func warm(context.Context, mm.Bytes) (time.Duration, error) { return 0, kernel.CanChange() }
