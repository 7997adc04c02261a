package mm

import (
	"math/rand/v2"
	"testing"
)

// TestRandom does random things to a few spaces under random policies and
// holds the machine to Check after each; at the end nothing may be left.
func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		randomRun(t, seed, Config{BasePage: 4096})
	}
	randomRun(t, 1000, Config{BasePage: 16384})
	randomRun(t, 1001, Config{BasePage: 65536})
}

// seen is what a machine shows after a step.
type seen struct {
	usage    Usage
	counters Counters
	work     Work
	worst    [NumOrders]Work
	frames   uint64
}

// TestQuickChangesNothing holds what quick leaves behind to what the long way
// leaves, after each of many random steps.
func TestQuickChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		long := randomRun(t, seed, Config{BasePage: 4096, ByRegion: true}, func(r *rig) { r.m.pages.noQuick = true })
		short := randomRun(t, seed, Config{BasePage: 4096, ByRegion: true})
		for i := range long {
			if long[i] != short[i] {
				t.Fatalf("seed %d step %d: the long way\n%+v\nquick\n%+v", seed, i, long[i], short[i])
			}
		}
	}
}

// see sums all frames up, so that a bit that differs anywhere shows.
func (r *rig) see() seen {
	s := seen{usage: r.m.Usage, counters: r.m.Counters, work: r.c.Work, worst: *r.m.WorstFaults()}
	_ = r.m.pages.eachSlab(func(first PFN, slab *frameSlab) error {
		for k := range slab {
			f := &slab[k]
			s.frames = s.frames*0x9e3779b97f4a7c15 + uint64(first) + uint64(k)
			s.frames = s.frames*0x9e3779b97f4a7c15 + uint64(f.flags)<<56 + uint64(f.order)<<48 + f.index()
			s.frames = s.frames*0x9e3779b97f4a7c15 + uint64(f.maps)<<32 + uint64(f.ref)
		}
		return nil
	})
	r.m.Regions(func(n Region, u RegionUsage) {
		s.frames = s.frames*31 + uint64(n) + u.Faults<<40 + uint64(u.Allocated)<<20 + uint64(u.Touched)
	})
	return s
}

// randomRun returns what the machine showed after each step if cfg counts by
// region.
func randomRun(t *testing.T, seed uint64, cfg Config, change ...func(*rig)) (steps []seen) {
	t.Helper()
	x := rand.New(rand.NewPCG(seed, 1))
	r := newRig(t, randomPolicy(x), func(c *Config) {
		c.BasePage, c.ByRegion = cfg.BasePage, cfg.ByRegion
		if seed%3 == 0 {
			c.Limit = 1500
		}
		if cfg.BasePage != 4096 {
			c.Nodes[0].Mem = 16 * gB
		}
		c.Rules.PTReclaim = x.IntN(2) == 0
		c.Rules.MMIDs = x.IntN(4) > 0
		c.Rules.BatchedZap = x.IntN(4) > 0
		c.Rules.CowSplitsPMD = x.IntN(4) > 0
		c.Rules.PerVMALock = x.IntN(4) > 0
		c.Rules.ZeroOnSplit = x.IntN(4) > 0
	})
	for _, f := range change {
		f(r)
	}
	page := r.m.pageSize()
	n := Bytes(r.m.pmdSize()) * 3 / 2
	vmas := []*vma{r.mmap(base+5*page, n), r.mmap(base+4*r.m.pmdSize(), n, vmHuge)}
	for step := range 120 {
		v := vmas[x.IntN(len(vmas))]
		a := v.start + VA(x.Uint64N(uint64(v.end-v.start)))&^(page-1)
		b := min(v.end, a+page<<x.IntN(int(r.m.pmdOrder)+2))
		switch k := x.IntN(24); {
		case k < 10:
			acc := []Access{Read, Write, Write | ZeroData, Write | KernelMode}[x.IntN(4)]
			for ; a < b && k < 5; a += page * 3 {
				r.m.touch(&r.c, v.sp, a, acc)
			}
			r.m.touch(&r.c, v.sp, a, acc)
		case k < 12:
			r.m.zapRange(&r.c, v, a, b, zapDontNeed)
		case k == 12 && len(vmas) < 8:
			vmas = append(vmas, r.fork(v))
		case k == 13:
			r.m.freeRange(&r.c, v, a, b)
		case k == 14:
			r.m.coldRange(&r.c, v, a, b, x.IntN(2) == 0)
		case k == 15:
			r.m.Shrink(&r.c)
		case k == 16:
			r.m.collapse(&r.c, v, v.start, v.end)
		case k == 17:
			r.m.tick(r.m.Usage.Last + Nanos(x.Int64N(15e9)))
		case k == 18:
			r.m.SetPolicy(randomPolicy(x))
		case k == 19:
			r.m.guardInstall(&r.c, v, a, min(b, a+3*page))
		case k == 20:
			r.m.guardRemove(&r.c, v, a, b)
		case k == 21:
			v.flags ^= vmWrite
			r.m.protectRange(&r.c, v, v.start, v.end)
		case k == 22:
			r.m.populate(&r.c, v, a, b, v.flags&vmWrite != 0)
		case k == 23:
			vmas = moveRandom(r, x, vmas, v)
		}
		if err := r.m.Check(); err != nil {
			t.Fatalf("seed %d step %d: %v", seed, step, err)
		}
		if cfg.ByRegion {
			steps = append(steps, r.see())
		}
	}
	for _, sp := range r.m.spaces[1:] {
		r.m.endSpace(&r.c, sp)
	}
	r.m.Shrink(&r.c)
	r.check()
	eq(t, "left", r.m.physUsed(), 0)
	return steps
}

// moveRandom moves a VMA of its own to a place that nothing uses.
func moveRandom(r *rig, x *rand.Rand, vmas []*vma, v *vma) []*vma {
	at := base + VA(1+x.IntN(1<<10))<<33 + VA(x.IntN(3))*64*r.m.pageSize()
	if o := v.sp.find(at); o != nil && o.start < at+v.end-v.start {
		return vmas
	}
	to := r.moveVMA(v, v.start, at, Pages(v.end-v.start)>>r.m.pageShift)
	r.munmap(v)
	for i := range vmas {
		if vmas[i] == v {
			vmas[i] = to
		}
	}
	return vmas
}

func randomPolicy(x *rand.Rand) Policy {
	p := policyOff()
	p.Enabled = Mode(x.IntN(3))
	for o := range p.Size {
		if x.IntN(2) == 0 {
			p.Size[o] = Mode(x.IntN(4))
		}
	}
	p.UseZeroPage = x.IntN(2) == 0
	p.Khugepaged.MaxPTEsNone = uint32(x.IntN(512))
	p.Khugepaged.ScanSleep = Nanos(x.Int64N(2e9))
	return p
}
