package record

import (
	"math"

	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// settle is how long a record may take from its time stamp to being seen in
// its ring. Younger ones stay in the ring for the next round.
const settle = 1_000_000 // ns

// now is the clock of the events, CLOCK_MONOTONIC.
func now() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

// drain decodes what the rings hold, all CPUs in one order of time. Unless
// last, only what is older than settle: whatever a ring gets after it was
// looked at is younger than that.
func drain(rings []*ring, d *decoder, last bool) {
	limit := now() - settle
	if last {
		limit = math.MaxUint64
	}
	for _, r := range rings {
		r.look()
	}
	for {
		first, second := earliest(rings)
		if first == nil || first.rec.time > limit {
			break
		}
		bound := min(second, limit)
		for first.has && first.rec.time <= bound {
			d.decode(&first.rec, mm.CPU(first.cpu))
			first.step()
		}
	}
	for _, r := range rings {
		r.release()
	}
}

// earliest is the ring with the oldest record, and the time of the oldest
// record of any other ring.
func earliest(rings []*ring) (first *ring, second uint64) {
	second = math.MaxUint64
	for _, r := range rings {
		switch {
		case !r.has:
		case first == nil:
			first = r
		case r.rec.time < first.rec.time:
			first, second = r, first.rec.time
		case r.rec.time < second:
			second = r.rec.time
		}
	}
	return first, second
}
