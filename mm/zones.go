package mm

import (
	"fmt"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// Where memory lies. With 4 kB pages it is as on a PC: zone DMA ends at 16 MB,
// 3 GB lie below 4 GB, the rest from 4 GB on. With larger pages it is as on an
// arm64 server: memory begins at 1 GB, and zone DMA ends at 4 GB. Frame 0 is
// never used. There are no holes inside a zone.
const (
	dmaEnd    Bytes = 16 << 20
	dmaSize   Bytes = 15 << 20 // what a PC's firmware leaves of it
	lowSize   Bytes = 3 << 30  // memory below lowEnd
	lowEnd    Bytes = 4 << 30
	armStart  Bytes = 1 << 30
	dmaLeast        = 8 // a machine with less than this times dmaSize has no zone DMA
	maxPagesN       = 1 << 31
)

// memoryConfig is the memory that cfg describes, for the buddy allocator.
func (m *Machine) memoryConfig() (buddy.Config, error) {
	cfg := &m.cfg
	b := buddy.Config{CPUs: cfg.CPUs, PageShift: m.pageShift, PMDOrder: uint8(m.pmdOrder),
		MaxOrder: max(uint8(m.pmdOrder), uint8(BuddyMaxOrder)), THP: m.policy.Effective(m.pmdOrder) != Never}
	if len(cfg.Nodes) == 0 {
		return b, fmt.Errorf("mm: config: no memory: give at least one node")
	}
	var err error
	if b.CPUNode, err = cpuNodes(cfg); err != nil {
		return b, err
	}
	lay := layout{m: m, align: uint64(1) << b.MaxOrder}
	for n, node := range cfg.Nodes {
		pages := uint64(node.Mem) >> m.pageShift
		if pages == 0 || pages > maxPagesN {
			return b, fmt.Errorf("mm: config: node %d: %d bytes of memory: give 1 to %d pages", n, node.Mem, maxPagesN)
		}
		lay.node(n, pages)
	}
	if cfg.Free != nil {
		return b, lay.host(&b, cfg.Free)
	}
	b.Zones = lay.zones
	return b, nil
}

// cpuNodes is the node of each CPU. The first node that names none gets those
// that no node names.
func cpuNodes(cfg *Config) ([]int, error) {
	rest := 0
	for n := len(cfg.Nodes) - 1; n >= 0; n-- {
		if cfg.Nodes[n].CPUs == nil {
			rest = n
		}
	}
	of := make([]int, cfg.CPUs)
	for i := range of {
		of[i] = rest
	}
	for n, node := range cfg.Nodes {
		for _, c := range node.CPUs {
			if int(c) >= len(of) {
				return nil, fmt.Errorf("mm: config: node %d has CPU %d of %d", n, c, len(of))
			}
			of[c] = n
		}
	}
	return of, nil
}

// layout places zones one after another.
type layout struct {
	m     *Machine
	align uint64 // frames in the largest block: zones never share one
	next  uint64 // first frame not used yet
	zones []buddy.Zone
}

// node splits a node's memory into zones. Only the first node has low memory.
func (l *layout) node(n int, pages uint64) {
	frames := func(b Bytes) uint64 { return uint64(b) >> l.m.pageShift }
	low := "DMA"
	if n == 0 && l.m.pageShift == 12 {
		low = "DMA32"
		if dma := frames(dmaSize); pages >= dmaLeast*dma {
			l.add(n, "DMA", dma)
			pages -= dma
		}
	}
	if n == 0 {
		size := min(pages, frames(lowSize))
		l.add(n, low, size)
		pages -= size
	}
	if pages > 0 {
		l.add(n, "Normal", pages)
	}
}

// add places a zone where its kind begins, or behind the one before it.
func (l *layout) add(n int, name string, pages uint64) {
	frames := func(b Bytes) uint64 { return uint64(b) >> l.m.pageShift }
	start := l.next
	pc := l.m.pageShift == 12
	switch {
	case name == "DMA" && pc && pages < frames(dmaEnd):
		start = frames(dmaEnd) - pages // aligned at its end
	case name == "DMA" && !pc:
		start = max(start, frames(armStart))
	case name == "DMA32" || name == "DMA":
		start = max(start, frames(dmaEnd))
	default:
		start = max(start, frames(lowEnd))
	}
	l.zones = append(l.zones, buddy.Zone{Node: n, Name: name, Start: start, Pages: pages})
	l.next = (start + pages + l.align - 1) &^ (l.align - 1)
}

// host places the zones of a host and their free blocks. A zone whose managed
// pages are not known is as large as the machine's own layout makes it.
func (l *layout) host(b *buddy.Config, free *FreeState) error {
	own := l.zones
	l.zones, l.next = nil, 0
	for _, f := range free.Zones {
		pages, held := uint64(f.Managed), uint64(0)
		for o, n := range f.Blocks {
			if o > int(MaxOrder) || n > maxPagesN {
				return fmt.Errorf("mm: free memory of node %d zone %s: %d blocks of order %d", f.Node, f.Name, n, o)
			}
			held += n << o
		}
		for _, z := range own {
			if pages == 0 && z.Node == int(f.Node) && z.Name == f.Name {
				pages = z.Pages
			}
		}
		if pages = max(pages, held); pages == 0 {
			continue
		}
		l.add(int(f.Node), f.Name, pages)
		z := &l.zones[len(l.zones)-1]
		z.Free = append([]uint64{}, f.Blocks...)
	}
	b.Zones = l.zones
	return nil
}
