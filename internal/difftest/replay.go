package difftest

import (
	"errors"
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// ReplayOptions say what Replay does.
type ReplayOptions struct {
	Stream mm.Stream // a recording's operations (trace.Replay)
	Config mm.Config // the model's machine; its policy is what the caller has set
	Stack  mm.Bytes  // how far a main stack may grow, 0: the usual 8 MiB

	// Every is after how many operations page maps are compared, beside the end
	// of each process; 0: never, not even there.
	Every int
	// From and To have them compared after each operation from one up to the
	// other, to find the operation at which two sides part.
	From, To int

	Started func(pid int) error // told the process that all others descend from
	Sample  func(processes int) // called now and then, with how many there are
}

// ReplayResult is what came of a replay.
type ReplayResult struct {
	Ops        int
	Faults     uint64 // hardware page faults of the touches on the kernel
	Model      uint64 // the same on the model, without Elsewhere
	Elsewhere  uint64 // recorded at addresses that no known mapping holds: in neither
	SoftFaults uint64 // that system calls took: populating, locking
	FileGap    int64  // of the faults, how many more the model has on files and shared memory
	Spaces     int
	Pages      int // compared
	Checks     int // page maps compared
	Difference *ReplayDifference
	Notes      []string
}

// ReplayDifference is the first thing found in which the two sides do not agree.
type ReplayDifference struct {
	After, Op int    // they agreed after the one operation, not any more after the other; from 0
	What      string // the other one, at its addresses
	Difference
}

func (d *ReplayDifference) String() string {
	where := d.Where
	if where != "" {
		where += " "
	}
	return fmt.Sprintf("operation %d, %s: %s%s: model %s, kernel %s",
		d.Op, d.What, where, d.Difference.What, d.Model, d.Host)
}

// note adds a sentence once.
func (r *ReplayResult) note(s string) {
	for _, n := range r.Notes {
		if n == s {
			return
		}
	}
	r.Notes = append(r.Notes, s)
}

// pairs reads a stream one operation at a time, each with the note that
// belongs to it.
type pairs struct {
	stream mm.Stream
	buf    []mm.Op
	ops    []mm.Op // not yet handed out
	err    error
}

// next is one operation, or a remap and its note; nil at the end or with an
// error. What it returns is good until the next call.
func (p *pairs) next() ([]mm.Op, error) {
	for p.err == nil && (len(p.ops) == 0 || len(p.ops) == 1 && p.ops[0].Kind == mm.OpRemap) {
		if p.buf == nil {
			p.buf = make([]mm.Op, 1024)
		}
		kept := copy(p.buf, p.ops)
		var n int
		n, p.err = p.stream.Next(p.buf[kept:])
		p.ops = p.buf[:kept+n]
	}
	if len(p.ops) == 0 {
		return nil, p.err
	}
	n := 1
	if len(p.ops) > 1 && p.ops[1].Kind == mm.OpNote {
		n = 2
	}
	one := p.ops[:n]
	p.ops = p.ops[n:]
	return one, nil
}

// HelperBytes is the memory that a helper of a replay itself has written.
const HelperBytes mm.Bytes = 32 * pageSize

// errStop ends a replay at its first difference.
var errStop = errors.New("the two sides differ")
