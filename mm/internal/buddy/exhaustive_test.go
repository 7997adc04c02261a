package buddy

import "testing"

// held is a block in use in the oracle.
type held struct {
	pfn   uint64
	order uint8
	t     MigrateType
}

// oracle knows only which pages are in use.
type oracle struct {
	used uint16
	held []held
}

func (o *oracle) fits(order uint8) bool {
	for at := 0; at < 8; at += 1 << order {
		if o.used>>at&(1<<(1<<order)-1) == 0 {
			return true
		}
	}
	return false
}

// TestExhaustive runs every sequence of up to six allocations and frees on a
// zone of eight pages. Without per-CPU lists an allocation succeeds exactly
// when an aligned range is free and one page is left over (the watermark), for
// whole merging is the buddy system's promise.
func TestExhaustive(t *testing.T) {
	for _, pcps := range []bool{false, true} {
		sequences := 0
		var walk func(path []int)
		walk = func(path []int) {
			a, o := tiny(t, pcps), &oracle{}
			for _, op := range path {
				step(t, a, o, op, pcps, path)
			}
			sequences++
			if len(path) == 6 {
				return
			}
			for op := range 5 + len(o.held) {
				walk(append(path, op))
			}
		}
		walk(make([]int, 0, 6))
		if sequences < 50000 {
			t.Errorf("only %d sequences", sequences)
		}
	}
}

// step does one operation: 0 to 3 allocate that order as movable, 4 one page
// as unmovable, 5 and up free a block in use.
func step(t *testing.T, a *Allocator, o *oracle, op int, pcps bool, path []int) {
	t.Helper()
	if op >= 5 {
		h := o.held[op-5]
		a.Free(0, h.pfn, h.order, h.t)
		o.held = append(append([]held(nil), o.held[:op-5]...), o.held[op-4:]...)
		o.used &^= (1<<(1<<h.order) - 1) << h.pfn
	} else {
		order, mt := uint8(op), Movable
		if op == 4 {
			order, mt = 0, Unmovable
		}
		want := o.fits(order) && a.FreePages() > 1<<order-1
		pfn, ok := a.Alloc(0, 0, order, mt, 0)
		if !pcps && ok != want {
			t.Fatalf("%v: Alloc(order %d) = %v with pages %08b in use", path, order, ok, o.used)
		}
		if ok {
			m := uint16(1<<(1<<order)-1) << pfn
			if pfn&(1<<order-1) != 0 || o.used&m != 0 || pfn+1<<order > 8 {
				t.Fatalf("%v: block %d of order %d: pages %08b are in use", path, pfn, order, o.used)
			}
			o.used |= m
			o.held = append(o.held, held{pfn, order, mt})
		}
	}
	if err := a.Check(); err != nil {
		t.Fatalf("%v: %v", path, err)
	}
	inUse := uint64(0)
	for _, h := range o.held {
		inUse += 1 << h.order
	}
	if got := a.FreePages() + a.PCPPages() + inUse; got != 8 {
		t.Fatalf("%v: %d pages in all", path, got)
	}
}
