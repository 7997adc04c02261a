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

func randomRun(t *testing.T, seed uint64, cfg Config) {
	t.Helper()
	x := rand.New(rand.NewPCG(seed, 1))
	r := newRig(t, randomPolicy(x), func(c *Config) {
		c.BasePage = cfg.BasePage
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
		c.Rules.ZeroOnSplit = x.IntN(4) > 0
	})
	page := r.m.pageSize()
	n := Bytes(r.m.pmdSize()) * 3 / 2
	vmas := []*vma{r.mmap(base+5*page, n), r.mmap(base+4*r.m.pmdSize(), n, vmHuge)}
	for step := range 120 {
		v := vmas[x.IntN(len(vmas))]
		a := v.start + VA(x.Uint64N(uint64(v.end-v.start)))&^(page-1)
		b := min(v.end, a+page<<x.IntN(int(r.m.pmdOrder)+2))
		switch k := x.IntN(24); {
		case k < 10:
			acc := []Access{Read, Write, Write | ZeroData}[x.IntN(3)]
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
	}
	for _, sp := range r.m.spaces[1:] {
		r.m.endSpace(&r.c, sp)
	}
	r.m.Shrink(&r.c)
	r.check()
	eq(t, "left", r.m.physUsed(), 0)
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
