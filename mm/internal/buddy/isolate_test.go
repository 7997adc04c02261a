package buddy

import (
	"math/rand/v2"
	"testing"
)

// TestTakeFree takes blocks by their place: what begins there, no more, and
// nothing below the watermark.
func TestTakeFree(t *testing.T) {
	a := tiny(t, false)
	if o, ok := a.TakeFree(4); ok {
		t.Fatalf("took order %d out of the middle of a block", o)
	}
	if pfn, ok := a.Alloc(0, 0, 0, Movable, 0); !ok || pfn != 0 {
		t.Fatal("page 0 is not the first")
	}
	for _, tc := range []struct {
		pfn   uint64
		order uint8
		ok    bool
	}{{0, 0, false}, {1, 0, true}, {2, 1, true}, {3, 0, false}, {4, 2, true}, {4, 0, false}} {
		has, is := a.FreeAt(tc.pfn)
		if tc.pfn != 4 && (is != tc.ok || is && has != tc.order) {
			t.Errorf("free at %d: order %d, %v", tc.pfn, has, is)
		}
		a.SetMinFree(0)
		want := tc.ok && a.FreePages() > 1<<tc.order
		if o, ok := a.TakeFree(tc.pfn); ok != want || ok && o != tc.order {
			t.Errorf("TakeFree(%d) = %d, %v, want %d, %v", tc.pfn, o, ok, tc.order, want)
		}
		check(t, a)
	}
	for _, b := range []uint64{0, 1, 2, 3} {
		a.Free(0, b, 0, Movable)
	}
	check(t, a)
	if o, ok := a.FreeAt(0); !ok || o != 3 || a.FreePages() != 8 {
		t.Errorf("given back: order %d, %d pages free", o, a.FreePages())
	}
}

// TestTakeFreeWatermark: the min watermark stays.
func TestTakeFreeWatermark(t *testing.T) {
	a := machine(t, 64, 1)
	low := a.zones[0].wmark[wmarkMin]
	for pfn := uint64(0); pfn < 64<<8; pfn += 1 << 10 {
		a.TakeFree(pfn)
		check(t, a)
	}
	if f := a.FreePages(); f <= low || f > low+1<<10 {
		t.Errorf("%d pages stay free, the watermark is %d", f, low)
	}
}

// TestTakeFreeRandom takes, splits and gives back among ordinary use.
func TestTakeFreeRandom(t *testing.T) {
	a := machine(t, 16, 2)
	x := rand.New(rand.NewPCG(5, 5))
	var live []held
	for step := range 3000 {
		pfn := x.Uint64N(16 << 8)
		switch k := x.IntN(4); {
		case k == 0:
			if o, ok := a.TakeFree(pfn); ok {
				live = append(live, held{pfn, o, Movable})
			}
		case k == 1:
			mt, o := MigrateType(x.IntN(3)), uint8(x.IntN(7))
			if pfn, ok := a.Alloc(x.IntN(2), 0, o, mt, 0); ok {
				live = append(live, held{pfn, o, mt})
			}
		case len(live) > 0:
			i := x.IntN(len(live))
			h := live[i]
			live[i], live = live[len(live)-1], live[:len(live)-1]
			for p := range uint64(1) << h.order {
				a.Free(x.IntN(2), h.pfn+p, 0, h.t)
			}
		}
		if step%50 == 0 {
			check(t, a)
		}
	}
	for _, h := range live {
		a.Free(0, h.pfn, h.order, h.t)
	}
	a.DrainAll()
	check(t, a)
	if a.InUse() != 0 {
		t.Errorf("%d pages are left", a.InUse())
	}
}
