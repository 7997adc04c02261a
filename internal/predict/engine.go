package predict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hugelab/hugelab/mm"
)

// batchOps is how many operations go to every machine at a time: enough that
// waiting for the slowest machine is rare, few enough to stay in the cache.
const batchOps = 4096

// track is one machine and what is observed of it on the way.
type track struct {
	machine *mm.Machine
	samples timeline
	end     mm.Usage // before the last process left; see feed
	settled bool
	before  mm.Usage // when settle began, or at the end
	killed  mm.Nanos // when the program found no memory; the track ends there
	err     error
}

// batch is operations with the points at which machines are observed.
type batch struct {
	ops   []mm.Op
	stops []stop // in order of at
}

// stop is an observation before ops[at].
type stop struct {
	at   int
	kind stopKind
	when mm.Nanos
	thin bool // sample: drop every second one
}

type stopKind uint8

const (
	stopSample stopKind = iota
	stopEnd             // the last process is about to leave
)

/*
feed runs a stream through every machine.

	reader --batch--> [machine 0 | machine 1 | ...] on GOMAXPROCS workers --barrier--> next batch

While the workers run one batch the reader fills the other; there are two. A
machine is one worker's for the length of a batch and nobody's between. Where
machines are observed is decided by the reader, from the operations alone.
*/
type feed struct {
	stream mm.Stream
	tracks []*track
	settle mm.Nanos

	clock clock
	live  map[mm.Space]bool
	last  mm.Nanos
	ended bool // a stopEnd was given
	files fileUse
}

// run feeds until the stream ends, ctx is done or something breaks.
func (f *feed) run(ctx context.Context) error {
	f.clock, f.live = newClock(), map[mm.Space]bool{}
	free, full := make(chan *batch, 2), make(chan *batch, 1)
	for range 2 {
		free <- &batch{ops: make([]mm.Op, batchOps)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var readErr error
	go func() {
		defer close(full)
		for {
			var b *batch
			select {
			case b = <-free:
			case <-ctx.Done():
				return
			}
			if readErr = f.fill(b); readErr != nil && len(b.ops) == 0 {
				return
			}
			select {
			case full <- b:
			case <-ctx.Done():
				return
			}
			if readErr != nil {
				return
			}
		}
	}()
	for b := range full {
		if err := f.exec(b); err != nil {
			cancel()
			for range full {
			}
			return err
		}
		free <- b
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !errors.Is(readErr, io.EOF) {
		return readErr
	}
	return f.finish()
}

// fill reads one batch and finds its stops. A batch may come with io.EOF.
func (f *feed) fill(b *batch) error {
	b.ops, b.stops = b.ops[:cap(b.ops)], b.stops[:0]
	n, err := f.stream.Next(b.ops)
	b.ops = b.ops[:n]
	for i := range b.ops {
		f.watch(b, i)
	}
	if err == nil && n == 0 {
		return io.ErrNoProgress
	}
	return err
}

// watch follows time and processes through one operation.
func (f *feed) watch(b *batch, i int) {
	op := &b.ops[i]
	f.files.watch(op)
	if op.When > f.last {
		f.last = op.When
	}
	// A gap needs one sample for each interval in it; thinning keeps their
	// number below maxSamples times the logarithm of the gap.
	for f.clock.due(op.When) {
		when := f.clock.next
		b.stops = append(b.stops, stop{at: i, kind: stopSample, when: when, thin: f.clock.tick()})
	}
	switch op.Kind {
	case mm.OpExec:
		f.live[op.Space] = true
	case mm.OpFork:
		f.live[mm.Space(op.Arg)] = true
	case mm.OpExit:
		had := f.live[op.Space]
		delete(f.live, op.Space)
		if had && len(f.live) == 0 {
			b.stops = append(b.stops, stop{at: i, kind: stopEnd, when: op.When})
			f.ended = true
		}
	}
}

// exec runs a batch on all machines and waits for them.
func (f *feed) exec(b *batch) error {
	workers := min(runtime.GOMAXPROCS(0), len(f.tracks))
	var next atomic.Int32
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(f.tracks) {
					return
				}
				f.tracks[i].exec(b, f.settle)
			}
		})
	}
	wg.Wait()
	for _, t := range f.tracks {
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// exec runs a batch on one machine, with its stops.
func (t *track) exec(b *batch, settle mm.Nanos) {
	from := 0
	for _, s := range b.stops {
		if t.ops(b.ops[from:s.at]); t.err != nil || t.dead() {
			return
		}
		from = s.at
		switch s.kind {
		case stopSample:
			t.machine.Advance(s.when)
			t.samples.take(s.when, &t.machine.Usage, s.thin)
		case stopEnd:
			t.settleAt(s.when, settle)
			t.end = t.machine.Usage
		}
	}
	t.ops(b.ops[from:])
}

// dead says that the program was killed and nothing of it follows.
func (t *track) dead() bool { return t.machine.Usage.OOM > 0 }

// settleAt gives khugepaged its time after the program's end, once.
func (t *track) settleAt(when, settle mm.Nanos) {
	if t.settled {
		return
	}
	t.before = t.machine.Usage
	if settle > 0 {
		t.machine.Advance(when)
		t.before = t.machine.Usage
		t.machine.Advance(when + settle)
		t.settled = true
	}
}

func (t *track) ops(ops []mm.Op) {
	if len(ops) == 0 || t.dead() {
		return
	}
	switch n, err := t.machine.Exec(ops, nil); {
	case errors.Is(err, mm.ErrOOM):
		t.killed, t.end = ops[n-1].When, t.machine.Usage
		t.before, t.settled = t.end, true
	case err != nil:
		bad := &ops[min(n, len(ops)-1)]
		t.err = fmt.Errorf("model: operation of kind %d at %d ns: %w", bad.Kind, bad.When, err)
	}
}

// finish closes every timeline. A recording that ends with processes alive (an
// attached one) ends here.
func (f *feed) finish() error {
	for _, t := range f.tracks {
		if !t.dead() && (!f.ended || len(f.live) > 0) {
			t.settleAt(f.last, f.settle)
			t.end = t.machine.Usage
		}
		if len(t.samples) == 0 {
			t.samples.take(f.last, &t.end, false)
		}
	}
	return nil
}
