package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/hugelab/hugelab/internal/difftest"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// peakByReplay says how the peak of a replay is measured.
const peakByReplay = "the highest charge of a memory cgroup of the helpers' own, " +
	"less kernel memory, page cache and what helpers themselves take then"

// replay has helper processes do what was recorded, under the settings now.
func (w *verifier) replay(ctx context.Context, row *predict.Named) (*Run, error) {
	o, src, err := replayOf(w.Input, row)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	cage := replayCage{orders: ordersOf(&row.Policy, w.v.Sizes)}
	defer cage.close()
	began := time.Now()
	o.Started, o.Sample = cage.started, cage.sample
	got, err := difftest.Replay(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row.Name, err)
	}
	for _, n := range got.Notes {
		w.v.note("under %s: %s", row.Name, n)
	}
	if d := got.Difference; d != nil {
		return nil, fmt.Errorf("replay: under %s the kernel answers otherwise than the model: %s", row.Name, d)
	}
	if n := got.FileGap; n != 0 {
		w.v.note("under %s %d more faults on files and shared memory are predicted than were replayed: "+
			"where a file system watches first writes, each is a fault of its own; the stand-in does not", row.Name, n)
	}
	if n := got.Elsewhere; n > 0 {
		w.v.note("%d recorded faults at addresses in no known mapping were not replayed; "+
			"they count on both sides", n)
	}
	run := &Run{Faults: got.Faults + got.Elsewhere, Real: time.Since(began), PeakBy: peakByReplay,
		Exit: w.rec.exit, Ends: w.rec.ends}
	return run, cage.read(run)
}

// replayCage is what counts for the helpers alone.
type replayCage struct {
	orders []mm.Order
	group  *group
	folios folioCounters
	known  bool     // folios are
	own    mm.Bytes // what the helpers themselves had at the highest sample
}

func (c *replayCage) started(pid int) (err error) {
	if c.group, err = newGroup("/sys/fs/cgroup"); err != nil {
		return fmt.Errorf("replay: measure the peak: %w", err)
	}
	if err := c.group.add(pid); err != nil {
		return fmt.Errorf("replay: memory cgroup: %w", err)
	}
	if len(c.orders) > 0 {
		c.folios, err = countFoliosNow(pid, c.orders)
		c.known = err == nil
	}
	return nil
}

func (c *replayCage) sample(processes int) {
	top := c.group.top
	if c.group.sample(); c.group.top > top {
		c.own = mm.Bytes(processes) * difftest.HelperBytes
	}
}

func (c *replayCage) read(run *Run) (err error) {
	peak, err := c.group.peak()
	if err != nil {
		return err
	}
	run.Peak = peak - min(peak, c.own)
	if run.OwnFolios = c.known; c.known {
		run.Folios, err = c.folios.read()
	}
	return err
}

func (c *replayCage) close() {
	c.folios.close()
	if c.group != nil {
		c.group.remove()
	}
}
