package difftest

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// A machine with path= takes another way through a fault than the classic one.
// What then is mapped must be the same: a second model goes the classic way, and
// the two are compared after every step.
var pathNames = []string{"classic", "speculative", "vma-lock", "hits", "steps"}

const (
	pathClassic = iota
	pathSpeculative
	pathVMALock
	pathHits
	pathSteps
)

// access does one touch by the machine's path.
func (x *Model) access(sp mm.Space, at mm.VA, acc mm.Access) mm.Outcome {
	f := mm.Fault{Space: sp, Addr: at, Access: acc}
	switch x.path {
	case pathSpeculative:
		out, _, _ := x.m.BeginSpeculative(&x.c, &f)
		if out == mm.Pending {
			out = x.m.CommitSpeculative(&x.c, &f)
		}
		if out != mm.Retry {
			return out
		}
	case pathVMALock:
		out := x.m.BeginVMALocked(&x.c, &f, true)
		if out == mm.Retry {
			break
		}
		if x.m.LockOf(&f); out == mm.Pending {
			out = x.m.Commit(&x.c, &f)
		}
		x.m.UnlockVMA(&f)
		return out
	case pathHits:
		if x.m.Hits(&f, pageSize, 1) == 1 {
			return mm.Hit
		}
	}
	return x.m.Touch(&x.c, sp, at, acc)
}

// written is around a call: faults without mmap_lock must see its marks, and after
// it no longer.
func (x *Model) written(op *mm.Op, call func() error) error {
	if x.path != pathSpeculative && x.path != pathVMALock {
		return call()
	}
	if x.m.BeginWrite(op); x.m.WriteHeld(op) != 0 {
		return fmt.Errorf("a fault that is over still holds a VMA")
	}
	err := call()
	for i, alive := range x.procs {
		if sp := spaceOf(i); alive && (op.Kind != mm.OpExit || op.Space != sp) {
			x.m.EndWrite(sp)
		}
	}
	return err
}

// agrees does the action on the model that goes the classic way.
func (x *Model) agrees(a *action, s *Seen) error {
	if x.twin == nil {
		return nil
	}
	x.twinSeen.reset()
	if err := x.twin.Do(a, &x.twinSeen); err != nil {
		return err
	}
	if d := Compare(s, &x.twinSeen); d != nil {
		return fmt.Errorf("faults by way of %s and by the classic one differ: %s%s: %s, %s", pathNames[x.path],
			d.Where, d.What, d.Model, d.Host)
	}
	return nil
}

// comparable says whether the path must come to what the classic one does.
// Speculative faults make small pages only, so no size between may be on.
func comparablePath(path int, policy *mm.Policy) bool {
	if path != pathSpeculative {
		return path != pathClassic
	}
	for _, o := range programSizes().Orders() {
		if o != programSizes().PMD && policy.Effective(o) != mm.Never {
			return false
		}
	}
	return true
}

// cleared holds the steps of a touch to what the order of clearing promises: each
// page of a folio once, and struct pages where memory has them.
func (x *Model) cleared() error {
	for i := range x.c.Steps {
		s := &x.c.Steps[i]
		if s.Prim.String() == "" {
			return fmt.Errorf("step %d has no name", s.Prim)
		}
		if s.Prim != mm.PrimClearPMD {
			continue
		}
		n := uint32(s.Order.Pages())
		for _, o := range []mm.ClearOrder{mm.ClearTowards, mm.ClearAscending, mm.ClearNear} {
			x.order = o.AppendOrder(x.order[:0], n, s.N)
			seen := make([]bool, n)
			for _, k := range x.order {
				seen[k] = true
			}
			if len(x.order) != int(n) || strings.Contains(fmt.Sprint(seen), "false") {
				return fmt.Errorf("clearing order %d of %d pages towards %d leaves some out", o, n, s.N)
			}
			if last := x.order[n-1]; o == mm.ClearTowards && last != s.N && last != s.N+1 {
				return fmt.Errorf("clearing %d pages towards %d ends at %d", n, s.N, last)
			}
		}
		if off, _, _ := x.m.StructPage(s.PFN); off != uint64(s.PFN)*64 {
			return fmt.Errorf("the struct page of frame %d is at %d", s.PFN, off)
		}
	}
	x.c.Steps = x.c.Steps[:0]
	return nil
}

// settled holds sums of the machine together.
func (x *Model) settled() error {
	mem := x.m.Memory()
	var free mm.Pages
	for i := range mem.Zones {
		free += mem.Zones[i].Free
		for _, u := range mem.Zones[i].Unusable {
			if u < 0 || u > 1000 {
				return fmt.Errorf("memory: unusable index %d", u)
			}
		}
	}
	if free != mem.Free || mem.Free > mem.Total {
		return fmt.Errorf("memory: zones have %d pages free of %d, all together %d", free, mem.Total, mem.Free)
	}
	faults := uint64(0)
	x.m.Regions(func(_ mm.Region, u mm.RegionUsage) { faults += u.Faults })
	if faults > x.m.Usage.Faults {
		return fmt.Errorf("usage: %d faults in regions, %d altogether", faults, x.m.Usage.Faults)
	}
	return nil
}
