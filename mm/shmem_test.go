package mm

import (
	"math/rand/v2"
	"testing"
)

// shmemPolicy is policyOff with sizes of shared memory.
func shmemPolicy(all ShmemMode, size map[Order]ShmemMode) Policy {
	p := policyOff()
	p.Shmem = all
	for o, mode := range size {
		p.ShmemSize[o] = mode
	}
	return p
}

// shared maps shared anonymous memory at a place.
func (r *rig) shared(at VA, n Bytes) {
	r.t.Helper()
	r.op(Op{Kind: OpMap, Space: r.sp.id, Region: r.fresh(), Flags: MapShmem | MapFixed | MapReplaces, Arg: uint64(at),
		N: Pages(n / 4096), Access: Read | Write})
}

var testRegion Region = 100

func (r *rig) fresh() Region { testRegion++; return testRegion }

// op does an operation, which must not be refused, and checks the machine.
func (r *rig) op(op Op) {
	r.t.Helper()
	if e := r.try(op); e != OK {
		r.t.Fatalf("operation %d: %s", op.Kind, e)
	}
}

func (r *rig) try(op Op) Errno {
	r.t.Helper()
	res, err := r.m.Do(&r.c, &op)
	if err != nil {
		r.t.Fatal(err)
	}
	r.check()
	return res.Errno
}

// onRange is an operation on n bytes at a place.
func (r *rig) onRange(kind OpKind, at VA, n Bytes, arg uint64, acc Access) Errno {
	r.t.Helper()
	r.sp.regions.set(99, at, Pages(n/4096))
	return r.try(Op{Kind: kind, Space: r.sp.id, Region: 99, N: Pages(n / 4096), Arg: arg, Access: acc})
}

func (r *rig) page(a VA) PageInfo { return r.m.PageInfo(r.sp.id, a) }

func TestShmemSmall(t *testing.T) {
	r := newRig(t, shmemPolicy(ShmemNever, nil))
	r.shared(base, 1*mB)
	eq(t, "first touch", r.touch(base, Read), Done)
	eq(t, "write after read", r.touch(base, Write), Hit)
	eq(t, "rss", r.m.RSS(r.sp.id), 0)
	eq(t, "shared rss", r.sp.rssShmem, 1)
	r.op(Op{Kind: OpFork, Space: r.sp.id, Arg: 7})
	child := r.m.spaceOf(7)
	eq(t, "child's rss", child.rssShmem, 0)
	eq(t, "child's touch", r.m.touch(&r.c, child, base, Write), Done)
	eq(t, "one page", r.page(base).PFN, r.m.PageInfo(7, base).PFN)
	eq(t, "mapped twice", r.page(base).Maps, 2)
	eq(t, "nr_shmem", r.m.Counters.VM[NrShmem], 1)
	eq(t, "dontneed", r.onRange(OpAdvise, base, 1*mB, uint64(AdviseDontNeed), 0), OK)
	eq(t, "still cached", r.m.Counters.VM[NrShmem], 1)
	eq(t, "faulted again", r.touch(base, Read), Done)
	r.op(Op{Kind: OpExit, Space: 7})
	eq(t, "unmap", r.onRange(OpUnmap, base, 1*mB, 0, 0), OK)
	eq(t, "nothing left", r.m.Usage.Shmem, 0)
}

func TestShmemFaultAround(t *testing.T) {
	r := newRig(t, shmemPolicy(ShmemNever, nil))
	r.shared(base, 1*mB)
	for i := range VA(20) {
		r.touch(base+i*4096, Write)
	}
	r.onRange(OpAdvise, base, 1*mB, uint64(AdviseDontNeed), 0)
	r.touch(base+3*4096, Read) // maps its 16
	eq(t, "around a read", r.sp.rssShmem, 16)
	r.touch(base+17*4096, Write) // alone
	eq(t, "a write is alone", r.sp.rssShmem, 17)
	r.touch(base+40*4096, Read) // new; nothing else is cached around
	eq(t, "a new page", r.sp.rssShmem, 18)
	r.touch(base+21*4096, Read) // new, and pages 16, 18, 19 come along
	eq(t, "a new page with others around", r.sp.rssShmem, 22)
}

func TestShmemOrders(t *testing.T) {
	inherit := map[Order]ShmemMode{4: ShmemInherit, 9: ShmemInherit}
	for _, c := range []struct {
		name  string
		p     Policy
		flags vmFlags
		size  Bytes
		at    VA
		want  Order
	}{
		{"never", shmemPolicy(ShmemNever, inherit), vmHuge, 4 * mB, 0, 0},
		{"always", shmemPolicy(ShmemAlways, inherit), 0, 4 * mB, 0, 9},
		{"always, nohuge", shmemPolicy(ShmemAlways, inherit), vmNoHuge, 4 * mB, 0, 0},
		{"advise", shmemPolicy(ShmemAdvise, inherit), 0, 4 * mB, 0, 0},
		{"advise, advised", shmemPolicy(ShmemAdvise, inherit), vmHuge, 4 * mB, 0, 9},
		{"deny", shmemPolicy(ShmemDeny, map[Order]ShmemMode{4: ShmemAlways}), vmHuge, 4 * mB, 0, 0},
		{"force", shmemPolicy(ShmemForce, map[Order]ShmemMode{4: ShmemAlways, 9: ShmemInherit}), 0, 4 * mB, 0, 9},
		{"order 1", shmemPolicy(ShmemNever, map[Order]ShmemMode{1: ShmemAlways}), 0, 4 * mB, 0, 1},
		{"no room for 2 MB", shmemPolicy(ShmemAlways, inherit), 0, 1 * mB, 0, 4},
		// What inherits within_size asks for a block of 2 MB within the file.
		{"within_size", shmemPolicy(ShmemWithinSize, inherit), 0, 1 * mB, 0, 0},
		{"size within_size", shmemPolicy(ShmemNever, map[Order]ShmemMode{4: ShmemWithinSize}), 0, 1 * mB, 0, 4},
		{"size within_size, end", shmemPolicy(ShmemNever, map[Order]ShmemMode{4: ShmemWithinSize, 2: ShmemWithinSize}), 0,
			16 * kB, 0, 2},
	} {
		r := newRig(t, c.p)
		r.shared(base+c.at, c.size)
		r.sp.at(base + c.at).flags |= c.flags
		r.touch(base+c.at, Write)
		if got := r.orderAt(base + c.at); got != c.want {
			t.Errorf("%s: order %d, want %d", c.name, got, c.want)
		}
	}
}

// TestShmemCacheInTheWay: a block that has a small page already is not made.
func TestShmemCacheInTheWay(t *testing.T) {
	r := newRig(t, shmemPolicy(ShmemNever, nil))
	r.shared(base, 4*mB)
	r.touch(base, Write)
	r.m.SetPolicy(shmemPolicy(ShmemNever, map[Order]ShmemMode{4: ShmemAlways, 9: ShmemAlways}))
	r.touch(base+64*4096, Write)
	eq(t, "next best", r.orderAt(base+64*4096), 4)
	eq(t, "all of it is mapped", r.sp.rssShmem, 17)
	r.touch(base+2<<20, Write)
	eq(t, "free block", r.page(base+2<<20).PMD, true)
	eq(t, "thp_file_alloc", r.m.Counters.VM[THPFileAlloc], 1)
	eq(t, "thp_file_mapped", r.m.Counters.VM[THPFileMapped], 1)
	eq(t, "shmem_alloc", r.m.Counters.Size[4].ShmemAlloc, 1)
}

// TestShmemPMD: a huge entry is emptied when a part of it goes.
func TestShmemPMD(t *testing.T) {
	r := newRig(t, shmemPolicy(ShmemAlways, map[Order]ShmemMode{9: ShmemInherit}))
	r.shared(base, 4*mB)
	r.touch(base, Read)
	tables := r.m.Usage.Tables
	eq(t, "mapped by a PMD", r.page(base+100*4096).PMD, true)
	r.onRange(OpAdvise, base, 4096, uint64(AdviseDontNeed), 0)
	eq(t, "all of it went", r.sp.rssShmem, 0)
	eq(t, "thp_split_pmd", r.m.Counters.VM[THPSplitPMD], 1)
	eq(t, "no table came", r.m.Usage.Tables, tables)
	r.touch(base+4096, Read)
	eq(t, "back by a PMD", r.page(base).PMD, true)
	r.onRange(OpProtect, base, 8192, 0, Read)
	r.touch(base, Read)
	eq(t, "by page", r.page(base).PMD, false)
	eq(t, "what the part holds", r.sp.rssShmem, 2)
	r.touch(base+2*4096, Write)
	eq(t, "one folio", r.page(base+2*4096).Order, 9)
	r.onRange(OpAdvise, base+2*4096, 4096, uint64(AdviseCold), 0)
	eq(t, "thp_split_page", r.m.Counters.VM[THPSplitPage], 1)
	eq(t, "its mappings went", r.sp.rssShmem, 0)
	r.touch(base, Read)
	eq(t, "small", r.orderAt(base), 0)
}

// TestShmemEnd: past the end of the file there is nothing, though a mapping grew.
func TestShmemEnd(t *testing.T) {
	r := newRig(t, shmemPolicy(ShmemNever, nil))
	r.shared(base, 64*kB)
	r.sp.regions.set(99, base, 16)
	r.op(Op{Kind: OpRemap, Space: r.sp.id, Region: 99, N: 16, Arg: 32, Aux: 99})
	eq(t, "in the file", r.touch(base+15*4096, Write), Done)
	eq(t, "past its end", r.touch(base+16*4096, Write), Bus)
	eq(t, "past its end", r.touch(base+16*4096, Read), Bus)
}

func TestShmemFallback(t *testing.T) {
	p := shmemPolicy(ShmemNever, map[Order]ShmemMode{4: ShmemAlways, 9: ShmemAlways})
	r := newRig(t, p, func(c *Config) { c.Limit = 64 })
	r.shared(base, 4*mB)
	r.touch(base, Write)
	eq(t, "a refused charge leads to a small page", r.orderAt(base), 0)
	eq(t, "thp_file_fallback_charge", r.m.Counters.VM[THPFileFallbackCharge], 1)
	eq(t, "shmem_fallback", r.m.Counters.Size[9].ShmemFallback, 1)
	eq(t, "smaller sizes are not tried", r.m.Counters.Size[4].ShmemFallback, 0)
}

// TestShmemRandom does random things to shared memory in a few processes; at the
// end nothing may be left.
func TestShmemRandom(t *testing.T) {
	for seed := range uint64(60) {
		x := rand.New(rand.NewPCG(seed, 2))
		draw := func() Policy {
			p := shmemPolicy(ShmemMode(x.IntN(7)), nil)
			if p.Shmem == ShmemInherit {
				p.Shmem = ShmemAlways
			}
			for o := 1; o <= 9; o++ {
				p.ShmemSize[o] = ShmemMode(x.IntN(5)) * ShmemMode(x.IntN(2))
			}
			return p
		}
		r := newRig(t, draw(), func(c *Config) {
			if seed%3 == 0 {
				c.Limit = 1500
			}
			c.Rules.PTReclaim, c.Rules.MMIDs = x.IntN(2) == 0, x.IntN(4) > 0
			c.Rules.ShmemMTHP = x.IntN(4) > 0
		})
		first := r.sp
		next := Space(10)
		for range 150 {
			r.sp = pickSpace(r, x)
			at := base + VA(x.IntN(2000))*4096
			n := Bytes(1+x.IntN(1<<x.IntN(11))) * 4096
			r.shmemStep(x, at, n, &next, draw)
		}
		for _, sp := range r.m.spaces {
			if sp != nil {
				r.op(Op{Kind: OpExit, Space: sp.id})
			}
		}
		r.sp = first
		eq(t, "pages left", r.m.Usage.Shmem, 0)
		eq(t, "frames left", r.m.physUsed(), 0)
	}
}

func pickSpace(r *rig, x *rand.Rand) *space {
	for {
		if sp := r.m.spaces[x.IntN(len(r.m.spaces))]; sp != nil {
			return sp
		}
	}
}

func (r *rig) shmemStep(x *rand.Rand, at VA, n Bytes, next *Space, draw func() Policy) {
	r.t.Helper()
	switch k := x.IntN(24); {
	case k < 8:
		step := VA(1+x.IntN(20)) * 4096
		for a := at; a < at+VA(n) && a < at+100*step; a += step {
			r.m.touch(&r.c, r.sp, a, []Access{Read, Write}[x.IntN(2)])
		}
		r.check()
	case k < 11:
		r.shared(at&^VA(x.IntN(2)*(2<<20-1)), n)
	case k < 14:
		adv := []Advice{AdviseDontNeed, AdviseCold, AdviseHugePage, AdviseNoHugePage, AdviseGuardInstall,
			AdviseGuardRemove, AdvisePopulateRead, AdvisePopulateWrite, AdviseDontFork, AdviseDoFork}
		r.onRange(OpAdvise, at, n, uint64(adv[x.IntN(len(adv))]), 0)
	case k < 16:
		r.onRange(OpUnmap, at, n, 0, 0)
	case k < 18:
		r.onRange(OpProtect, at, n, 0, []Access{0, Read, Read | Write}[x.IntN(3)])
	case k == 18:
		r.onRange([]OpKind{OpLock, OpUnlock}[x.IntN(2)], at, n, 0, 0)
	case k == 19 && *next < 14:
		r.op(Op{Kind: OpFork, Space: r.sp.id, Arg: uint64(*next)})
		*next++
	case k < 22:
		r.shmemMove(x, at, n)
	case k == 22:
		r.m.SetPolicy(draw())
	case k == 23:
		r.m.SplitPages(&r.c, r.sp.id, at, Pages(n/4096))
		r.check()
	}
}

func (r *rig) shmemMove(x *rand.Rand, at VA, n Bytes) {
	r.t.Helper()
	to := base + 64<<20 + VA(x.IntN(2000))*4096
	if x.IntN(2) == 0 {
		to = to&^(2<<20-1) + at&(2<<20-1)
	}
	if x.IntN(2) == 0 {
		at, to = to, at
	}
	q := moveReq{from: at, old: VA(n), want: VA(n), to: to, fixed: true, mayMove: true, keep: x.IntN(3) == 0}
	if x.IntN(3) == 0 {
		q.fixed, q.keep, q.want = false, false, q.want+VA(x.IntN(600))*4096
	}
	r.m.remap(&r.c, r.sp, &q)
	r.check()
}
