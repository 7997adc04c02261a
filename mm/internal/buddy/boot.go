package buddy

import (
	"fmt"
	"math/bits"
)

// chunkFrames is how many frames' metadata are made at a time, at least.
const chunkFrames = 1 << 16

// New makes the memory of cfg. It refuses zones that overlap, that share a
// block of the largest order, or whose free blocks do not fit.
func New(cfg Config) (*Allocator, error) {
	if err := validate(&cfg); err != nil {
		return nil, err
	}
	a := &Allocator{cfg: cfg, maxOrder: cfg.MaxOrder, pbOrder: cfg.PMDOrder, cpuNode: cfg.CPUNode}
	a.pbMask = 1<<(cfg.MaxOrder-cfg.PMDOrder) - 1
	if a.cpuNode == nil {
		a.cpuNode = make([]int, cfg.CPUs)
	}
	first, last := ^uint64(0), uint64(0)
	for _, z := range cfg.Zones {
		first, last = min(first, z.Start), max(last, z.Start+z.Pages-1)
	}
	a.blockBase = uint32(first >> a.maxOrder)
	a.blocks = make([]block, last>>a.maxOrder-first>>a.maxOrder+1)
	a.perLog = 0
	if want := min(uint64(chunkFrames)>>a.maxOrder, uint64(len(a.blocks))); want > 1 {
		a.perLog = uint8(bits.Len64(want) - 1)
	}
	for i := range a.blocks {
		a.blocks[i] = block{mt: [2]MigrateType{Movable, Movable}, zone: noZone}
	}
	a.zones = make([]zone, len(cfg.Zones))
	for i := range cfg.Zones {
		if err := a.bootZone(uint8(i), &cfg.Zones[i]); err != nil {
			return nil, err
		}
	}
	a.buildLists()
	a.setReserves()
	a.SetTHP(false)
	if cfg.THP {
		a.SetTHP(true)
	}
	a.Events = Events{}
	return a, nil
}

func validate(cfg *Config) error {
	switch {
	case len(cfg.Zones) == 0 || len(cfg.Zones) >= int(noZone):
		return fmt.Errorf("buddy: config: %d zones: give between 1 and %d", len(cfg.Zones), noZone-1)
	case cfg.CPUs < 1:
		return fmt.Errorf("buddy: config: %d CPUs: give at least 1", cfg.CPUs)
	case cfg.CPUNode != nil && len(cfg.CPUNode) != cfg.CPUs:
		return fmt.Errorf("buddy: config: nodes given for %d of %d CPUs", len(cfg.CPUNode), cfg.CPUs)
	case cfg.PageShift < 10 || cfg.PageShift > 16:
		return fmt.Errorf("buddy: config: page shift %d: give 12, 14 or 16", cfg.PageShift)
	case cfg.MaxOrder >= maxOrders || cfg.PMDOrder > cfg.MaxOrder || cfg.MaxOrder > cfg.PMDOrder+1:
		return fmt.Errorf("buddy: config: largest order %d with PMD order %d: it must be the PMD's or one more, "+
			"at most %d", cfg.MaxOrder, cfg.PMDOrder, maxOrders-1)
	}
	for i := range cfg.Zones {
		if err := validateZone(cfg, i); err != nil {
			return err
		}
	}
	for cpu, n := range cfg.CPUNode {
		if n < 0 || n > maxNode(cfg) {
			return fmt.Errorf("buddy: config: CPU %d on node %d, which has no memory", cpu, n)
		}
	}
	return nil
}

func validateZone(cfg *Config, i int) error {
	z := &cfg.Zones[i]
	bad := func(format string, v ...any) error {
		return fmt.Errorf("buddy: node %d zone %s: "+format, append([]any{z.Node, z.Name}, v...)...)
	}
	if _, ok := kindOf(z.Name); !ok {
		return bad("no such zone: give DMA, DMA32, Normal or Movable")
	}
	if z.Node < 0 || z.Node > 1023 {
		return bad("node out of range 0 to 1023")
	}
	// The last number ends lists, so no frame may have it.
	if z.Pages == 0 || z.Pages >= uint64(none) || z.Start >= uint64(none)-z.Pages {
		return bad("%d pages from frame %d: give 1 or more, below frame %d", z.Pages, z.Start, none)
	}
	if len(z.Free) > int(cfg.MaxOrder)+1 {
		return bad("free blocks of order %d: the largest order is %d", len(z.Free)-1, cfg.MaxOrder)
	}
	for j := range cfg.Zones[:i] {
		o := &cfg.Zones[j]
		if o.Node == z.Node && o.Name == z.Name {
			return bad("given twice")
		}
		if z.Start>>cfg.MaxOrder <= (o.Start+o.Pages-1)>>cfg.MaxOrder &&
			o.Start>>cfg.MaxOrder <= (z.Start+z.Pages-1)>>cfg.MaxOrder {
			return bad("shares a block of order %d with node %d zone %s: align their borders", cfg.MaxOrder, o.Node,
				o.Name)
		}
	}
	return nil
}

func maxNode(cfg *Config) (n int) {
	for _, z := range cfg.Zones {
		n = max(n, z.Node)
	}
	return n
}

func kindOf(name string) (zoneKind, bool) {
	for k, n := range kindNames {
		if n == name {
			return zoneKind(k), true
		}
	}
	return 0, false
}

// bootZone makes a zone and its free lists, in ascending order of address.
func (a *Allocator) bootZone(id uint8, c *Zone) error {
	z := &a.zones[id]
	k, _ := kindOf(c.Name)
	*z = zone{node: c.Node, kind: k, id: id, start: uint32(c.Start), managed: c.Pages}
	for o := range z.area {
		for t := range z.area[o] {
			z.area[o][t] = list{head: none, tail: none}
		}
	}
	z.pcp = make([]pcp, a.cfg.CPUs)
	for b := c.Start >> a.maxOrder; b <= (c.Start+c.Pages-1)>>a.maxOrder; b++ {
		a.blocks[uint32(b)-a.blockBase].zone = id
	}
	if c.Free != nil {
		return a.bootFragmented(z, c)
	}
	a.pieces(z, func(pfn uint32, order uint8) { a.addTail(z, pfn, order, Movable) })
	return nil
}

// pieces calls f for the largest aligned blocks that make up a zone, in order.
func (a *Allocator) pieces(z *zone, f func(pfn uint32, order uint8)) {
	end := uint64(z.start) + z.managed
	for at := uint64(z.start); at < end; {
		order := a.maxOrder
		if at != 0 {
			order = min(order, uint8(bits.TrailingZeros64(at)))
		}
		for at+1<<order > end {
			order--
		}
		f(uint32(at), order)
		at += 1 << order
	}
}

// buildLists fixes the order in which allocations visit zones.
func (a *Allocator) buildLists() {
	a.nodes = make([]nodeLists, maxNode(&a.cfg)+1)
	for n := range a.nodes {
		for k := int(numKinds) - 1; k >= 0; k-- {
			for i := range a.zones {
				if z := &a.zones[i]; z.node == n && z.kind == zoneKind(k) {
					a.nodes[n].own = append(a.nodes[n].own, z)
				}
			}
		}
	}
	for n := range a.nodes {
		if len(a.nodes[n].own) > 0 {
			a.nodes[n].first = a.nodes[n].own[0]
		}
		for d := range a.nodes {
			a.nodes[n].all = append(a.nodes[n].all, a.nodes[(n+d)%len(a.nodes)].own...)
		}
	}
}
