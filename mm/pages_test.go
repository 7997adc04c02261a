package mm

import "testing"

// rules618 is what a 6.18 kernel does.
func rules618() Rules {
	r, err := RulesFor("6.18")
	if err != nil {
		panic(err)
	}
	return r
}

// policyOff has every size off and the kernel's defaults elsewhere.
func policyOff() Policy {
	return Policy{
		Defrag: DefragMadvise, UseZeroPage: true, ShrinkUnderused: true,
		Khugepaged: Khugepaged{
			Defrag: true, PagesToScan: 4096, ScanSleep: 10e9, AllocSleep: 60e9,
			MaxPTEsNone: 511, MaxPTEsSwap: 64, MaxPTEsShared: 256,
		},
	}
}

// sizes is policyOff with the given orders set to always.
func sizes(orders ...Order) Policy {
	p := policyOff()
	for _, o := range orders {
		p.Size[o] = Always
	}
	return p
}

// rig is a machine with one space, and a test to fail.
type rig struct {
	t  testing.TB
	m  *Machine
	c  Current
	sp *space
}

const (
	kB = Bytes(1) << 10
	mB = kB << 10
	gB = mB << 10
)

func newRig(t testing.TB, p Policy, change ...func(*Config)) *rig {
	t.Helper()
	cfg := Config{Nodes: []Node{{Mem: 1 * gB}}, Rules: rules618(), Policy: p}
	for _, f := range change {
		f(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, m: m}
	r.sp = r.newSpace()
	return r
}

func (r *rig) newSpace() *space {
	return r.m.newSpace(Space(len(r.m.spaces)))
}

// mmap inserts an anonymous VMA by hand.
func (r *rig) mmap(at VA, n Bytes, more ...vmFlags) *vma {
	v := &vma{start: at, end: at + VA(n), flags: vmRead | vmWrite, sp: r.sp, region: 1}
	v.pgoff = uint64(at) >> r.m.pageShift
	for _, f := range more {
		v.flags |= f
	}
	if v.flags&vmFile != 0 {
		v.file = uint64(at)
	}
	r.m.addVMA(&r.c, v)
	return v
}

// touch accesses one page and checks the machine afterwards.
func (r *rig) touch(a VA, acc Access) Outcome {
	r.t.Helper()
	out := r.m.touch(&r.c, r.sp, a, acc)
	r.check()
	return out
}

func (r *rig) check() {
	r.t.Helper()
	if err := r.m.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// fill writes every page of a range and checks once.
func (r *rig) fill(v *vma, from VA, n Bytes, acc Access) {
	r.t.Helper()
	for a := from; a < from+VA(n); a += r.m.pageSize() {
		r.m.touch(&r.c, v.sp, a, acc)
	}
	r.check()
}

func (r *rig) orderAt(a VA) Order {
	r.t.Helper()
	in := r.m.PageInfo(r.sp.id, a)
	if !in.Present {
		r.t.Fatalf("nothing at %#x", a)
	}
	return in.Order
}

// eq compares counters and usage by name.
func eq[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
