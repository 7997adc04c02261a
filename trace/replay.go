package trace

import (
	"io"

	"github.com/hugelab/hugelab/mm"
)

// Replay is an mm.Stream over a Reader: it follows each address space, so that
// operations come out relative to regions.
type Replay struct{ r *Reader }

// NewReplay makes a Replay of r from where r stands.
func NewReplay(r *Reader) *Replay { return &Replay{r} }

// Next implements mm.Stream.
func (p *Replay) Next(buf []mm.Op) (int, error) { return 0, io.EOF }

// Stats is what the replay has learnt so far.
type Stats struct {
	Faults       uint64 // hardware faults in the recording
	KernelMode   uint64 // of them
	AnonFaults   uint64 // on private anonymous memory
	FileFaults   uint64
	Unknown      uint64 // at addresses in no known mapping
	Lost         uint64
	Spaces       int // address spaces seen
	UnknownPages map[mm.UnknownKind]uint64
	Notes        []string
}

// Stats returns what the replay has learnt so far.
func (p *Replay) Stats() Stats { return Stats{} }

// RegionName says what a region is: "[heap]", "[stack]", a file, or "anonymous".
func (p *Replay) RegionName(r mm.Region) string { return "" }
