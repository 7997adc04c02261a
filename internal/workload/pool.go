package workload

import (
	"fmt"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// Pool is a machine whose hugetlb pools are made larger and smaller.
type Pool struct{ m *mm.Machine }

// NewPool makes a machine of so many base pages that keeps its struct pages in
// its own memory, with vmemmap optimisation on or off.
func NewPool(version string, hvo bool, pages mm.Pages) (*Pool, error) {
	rules, err := mm.RulesFor(version)
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	pol := mm.NeverPolicy(mm.Sizes{Base: 4096, PMD: 9})
	pol.HVO = hvo
	mem := mm.Bytes(pages) * 4096 * 66 / 64 // struct pages are a 64th of it
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: mem + 4<<30}}, Rules: rules, Policy: pol, Vmemmap: true})
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	return &Pool{m}, nil
}

// Resize writes n to nr_hugepages of the pool of that order, and returns the
// work. It is an error if the pool has another length then.
func (p *Pool) Resize(o mm.Order, n uint64) (*mm.Work, error) {
	var c mm.Current
	if e := p.m.ResizePool(&c, o, mm.AnyNode, n); e != mm.OK {
		return nil, fmt.Errorf("pool of order %d: %v", o, e)
	}
	for _, in := range p.m.Pools() {
		if in.Order == o && in.Pages != n {
			return nil, fmt.Errorf("pool of order %d: %d pages, want %d: the machine has too little memory", o, in.Pages, n)
		}
	}
	return &c.Work, nil
}

// Saved is how many pages of struct pages are given back.
func (p *Pool) Saved() mm.Pages { return p.m.StructPagesSaved() }

// PoolNanos prices the resizing of a pool: the work of the machine's prices, the
// lines of struct pages that are written, and flushes that interrupt every
// other processor.
func PoolNanos(mach *hw.Machine, w *mm.Work) float64 {
	rest := *w // what the machine's other numbers price is no matter of the preset
	rest[mm.PrimStructInit], rest[mm.PrimVmemmapCopy], rest[mm.PrimFlushKernel] = 0, 0, 0
	t := float64(mach.Costs().Price(&rest))
	line := mach.Get("memory.latency") / mach.Get("cpu.queue")
	perPage := 4096 / mach.Get("line")
	t += line * float64(w[mm.PrimStructInit])
	t += line * perPage * 2 * float64(w[mm.PrimVmemmapCopy]) // read and written
	cpus := mach.Get("cpu.sockets") * mach.Get("cpu.cores") * mach.Get("cpu.threads")
	if cpus > 1 {
		t += (mach.Get("ipi.wait") + mach.Get("ipi.send")*(cpus-1)) * float64(w[mm.PrimFlushKernel])
	}
	return t
}
