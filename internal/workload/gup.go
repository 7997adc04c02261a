package workload

import (
	"fmt"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// GUP is gup_test: it takes references to all pages of a range, so many a
// call, and gives them back, and tells how long each took. The options are
// those of the kernel's tools/testing/selftests/mm/gup_test.c.
type GUP struct {
	Machine *hw.Machine
	Rules   mm.Rules
	Size    mm.Bytes // -m
	Page    mm.Bytes // of the mapping: 1 GB or 2 MB pages of a pool (-H), 4 kB without
	PerCall int      // -n: pages a call
	How     mm.GUP   // -L, -a, -b, -u, -U
	HVO     bool     // the pool's struct pages are given back
	GetOnly bool     // what is taken is not given back
}

// GUPTimes is what it took.
type GUPTimes struct {
	Get, Put mm.Nanos
	GetLines GUPLines // of Get
	PutLines GUPLines
}

// GUPLines says where the struct pages were found that were looked at.
type GUPLines struct {
	Looked   uint64 // struct pages
	Level    [hw.Skipped]uint64
	Walks    uint64 // translations that no TLB had
	Atomics  uint64
	Overlaid mm.Nanos // time that the lines took and that the rest did not hide
}

// Run does it once.
func (g *GUP) Run() (GUPTimes, error) {
	var t GUPTimes
	m, s, a, err := g.prepare()
	if err != nil {
		return t, err
	}
	p, err := newGUPPricer(g.Machine, m)
	if err != nil {
		return t, err
	}
	pages := make([]mm.PFN, g.Size/4096)
	c := mm.Current{WantSteps: true}
	// What a first round leaves in the caches, the one that counts finds there.
	for range 2 {
		t = GUPTimes{}
		if err := g.get(m, s, a, p, pages, &t); err != nil {
			return t, err
		}
		c.Steps = c.Steps[:0]
		m.PutPages(&c, g.How, pages)
	}
	if !g.GetOnly {
		t.Put = p.call(c.Steps, 0, &t.PutLines)
	}
	return t, m.Check()
}

// get takes all pages once.
func (g *GUP) get(m *mm.Machine, s mm.Space, a mm.VA, p *gupPricer, pages []mm.PFN, t *GUPTimes) error {
	c := mm.Current{WantSteps: true}
	for at := 0; at < len(pages); at += g.PerCall {
		end := min(at+g.PerCall, len(pages))
		c.Steps = c.Steps[:0]
		n, e := m.GetPages(&c, s, a+mm.VA(at)*4096, g.How, pages[at:end])
		if n < end-at {
			return fmt.Errorf("gup: page %d: %v", at+n, e)
		}
		t.Get += p.call(c.Steps, at, &t.GetLines)
	}
	return nil
}

// prepare makes the machine with its pool, maps the range and touches it.
func (g *GUP) prepare() (*mm.Machine, mm.Space, mm.VA, error) {
	fail := func(err error) (*mm.Machine, mm.Space, mm.VA, error) { return nil, 0, 0, fmt.Errorf("gup: %w", err) }
	sizes := mm.Sizes{Base: 4096, PMD: 9}
	pol := mm.NeverPolicy(sizes)
	op := mm.Op{Kind: mm.OpMap, Space: 1, Region: 1, N: mm.Pages(g.Size / 4096), Access: mm.Read | mm.Write}
	switch g.Page {
	case 1 << 30:
		pol.Pools[1].Pages = uint64(g.Size / g.Page)
		op.Flags = mm.MapShared | mm.MapHugetlb | mm.MapPoolPUD
	case 2 << 20:
		pol.Pools[0].Pages = uint64(g.Size / g.Page)
		op.Flags = mm.MapShared | mm.MapHugetlb | mm.MapPool
	case 4096:
	default:
		return fail(fmt.Errorf("pages of %d bytes: want 4 kB, 2 MB or 1 GB", g.Page))
	}
	pol.HVO = g.HVO
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 2*g.Size + 8<<30}}, Rules: g.Rules, Policy: pol, Vmemmap: true})
	if err != nil {
		return fail(err)
	}
	ops := []mm.Op{{Kind: mm.OpExec, Space: 1}, op}
	for i, step := mm.Bytes(0), g.Page; i < g.Size; i += step {
		ops = append(ops, mm.Op{Kind: mm.OpTouch, Space: 1, Region: 1, Page: uint64(i / 4096), N: 1, Access: mm.Write})
	}
	out := make([]mm.Result, len(ops))
	if _, err := m.Exec(ops, out); err != nil {
		return fail(err)
	}
	for i := range out {
		if out[i].Errno != mm.OK {
			return fail(fmt.Errorf("step %d: %v", i, out[i].Errno))
		}
	}
	a, ok := m.Addr(1, 1, 0)
	if !ok {
		return fail(fmt.Errorf("the range is not mapped"))
	}
	return m, 1, a, nil
}

// gupPricer plays the steps of GetPages and PutPages through one core's caches
// and TLBs. Instructions and atomic operations are one sum, the waiting for
// lines another: a core runs ahead of its misses, and its prefetcher ahead of
// what atomic operations hold back, so a call takes the longer of the two.
type gupPricer struct {
	m      *mm.Machine
	caches *hw.Hierarchy
	tlb    *hw.TLB

	lineBits          uint
	fill, head, call1 float64 // ns of instructions for an entry, a head, a call
	count             float64 // and for each change of a count
	atomic            float64
	miss              [hw.Skipped]float64 // ns for a line, by where it is found
	walkers           float64
	array             uint64 // physical address of the caller's array
	instrs, atomics   float64
	waits             float64
}

// gupSample: one in 2^gupSample lines is simulated, and stands for all of them.
const gupSample = 3

func newGUPPricer(mach *hw.Machine, m *mm.Machine) (*gupPricer, error) {
	h, err := hw.NewHierarchy(mach, gupSample)
	if err != nil {
		return nil, err
	}
	t, err := hw.NewTLB(mach)
	if err != nil {
		return nil, err
	}
	p := &gupPricer{m: m, caches: h, tlb: t, walkers: mach.Get("walk.walkers")}
	for 1<<p.lineBits < mach.Int("line") {
		p.lineBits++
	}
	instr := 1 / (mach.Get("cpu.width") * mach.Get("cpu.clock"))
	p.fill, p.head = mach.Get("gup.fill")*instr, mach.Get("gup.head")*instr
	p.count = mach.Get("gup.count") * instr
	p.call1, p.atomic = mach.Get("gup.call")*instr, mach.Get("line.own")
	queue := mach.Get("cpu.queue")
	p.miss[hw.InL2] = mach.Get("l2.latency") / mach.Get("cpu.fill_buffers")
	p.miss[hw.InLLC] = mach.Get("llc.latency") / queue
	p.miss[hw.InMemory] = mach.Get("memory.latency") / queue
	for i := range p.miss {
		p.miss[i] *= 1 << gupSample
	}
	p.array = 1 << 46 // apart from all frames
	return p, nil
}

// line is one access to memory.
func (p *gupPricer) line(physical uint64, how hw.Access) hw.Level {
	f := p.caches.Access(0, physical>>p.lineBits, how)
	if f.Level != hw.Skipped {
		p.waits += p.miss[f.Level]
	}
	return f.Level
}

// call prices the steps of one call whose array begins at entry at.
func (p *gupPricer) call(steps []mm.Step, at int, l *GUPLines) mm.Nanos {
	p.instrs, p.atomics, p.waits = p.call1, 0, 0
	entry := uint64(at)
	looked := uint64(at)
	for i := range steps {
		s := &steps[i]
		switch s.Prim {
		case mm.PrimGUPFill:
			p.instrs += p.fill * float64(s.N)
			p.entries(entry, s.N, hw.AccessWrite)
			entry += uint64(s.N)
		case mm.PrimGUPHead:
			p.instrs += p.head * float64(s.N)
			p.entries(looked, s.N, hw.AccessRead)
			p.structs(s, l)
			if looked += uint64(s.N); looked >= entry && entry > uint64(at) {
				looked = uint64(at)
			}
		case mm.PrimGUPAtomic:
			p.atomics += (p.atomic + p.count) * float64(s.N)
			l.Atomics += uint64(s.N)
		}
	}
	work := p.instrs + p.atomics
	if p.waits > work {
		l.Overlaid += mm.Nanos(p.waits - work)
		work = p.waits
	}
	return mm.Nanos(work)
}

// entries goes over n entries of the caller's array, 8 bytes each.
func (p *gupPricer) entries(from uint64, n uint32, how hw.Access) {
	a, end := p.array+from*8, p.array+(from+uint64(n))*8
	for a < end {
		p.line(a, how)
		a = (a>>p.lineBits + 1) << p.lineBits
	}
}

// structs looks at the struct pages of a step's frames.
func (p *gupPricer) structs(s *mm.Step, l *GUPLines) {
	const perPage = 4096 / structPage
	for at, end := s.PFN, s.PFN+mm.PFN(s.N); at < end; {
		offset, physical, size := p.m.StructPage(at)
		ps := hw.PageBase
		if size > 4096 {
			ps = hw.Page2M
		}
		// The struct pages of one page of the vmemmap lie side by side.
		n := min(end, at&^(perPage-1)+perPage) - at
		for i := range uint64(n) {
			if where, ns := p.tlb.Access(offset+i*structPage, ps); where == hw.Walked {
				p.waits += ns / p.walkers
				l.Walks++
			}
			if at := p.line(physical+i*structPage, hw.AccessRead); at != hw.Skipped {
				l.Level[at] += 1 << gupSample
			}
		}
		l.Looked += uint64(n)
		at += n
	}
}

// structPage is the length of a struct page.
const structPage = 64
