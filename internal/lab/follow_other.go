//go:build !linux

package lab

import (
	"context"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// Run is one run of the command.
type Run struct {
	Exit               int
	Faults             uint64
	Real, User, System time.Duration
	Peak, Bound        mm.Bytes
	Execs              []Bases
	Thread             int
}

// PeakBy says how Run.Peak is measured.
const PeakBy = "not at all"

func runOnce(context.Context, kernel.StartOptions) (*Run, error) { return nil, kernel.CanChange() }

type decoy struct{}

// Decoy does nothing here.
func Decoy() {}

const quiet = 0 * time.Second

func startDecoy() (*decoy, error) { return nil, kernel.CanChange() }

func (*decoy) stop() {}
