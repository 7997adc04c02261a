package buddy

// ZoneInfo is a zone's state, as buddyinfo, pagetypeinfo and zoneinfo show it.
type ZoneInfo struct {
	Node       int
	Name       string
	Start      uint64
	Managed    uint64
	Free       uint64 // pages on free lists (nr_free_pages)
	Min        uint64
	Low        uint64
	High       uint64
	Promo      uint64
	Protection [4]uint64          // lowmem_reserve by highest zone: DMA, DMA32, Normal, Movable
	Blocks     []uint64           // free blocks by order
	ByType     [NumTypes][]uint64 // of them, by migrate type
	Pageblocks [NumTypes]uint64   // pageblocks of each type
	PCP        []PCPInfo          // by CPU
}

// PCPInfo is the state of one CPU's lists of a zone, in pages.
type PCPInfo struct{ Count, High, Batch, HighMin, HighMax int }

// BuddyInfo is the state of every zone, in the order of Config.Zones.
func (a *Allocator) BuddyInfo() []ZoneInfo {
	infos := make([]ZoneInfo, len(a.zones))
	for i := range a.zones {
		z := &a.zones[i]
		in := &infos[i]
		*in = ZoneInfo{Node: z.node, Name: kindNames[z.kind], Start: uint64(z.start), Managed: z.managed,
			Free: z.free, Min: z.wmark[wmarkMin], Low: z.wmark[wmarkLow], High: z.wmark[wmarkHigh],
			Promo: z.wmark[wmarkPromo], Protection: z.reserve}
		n := z.counts(a.maxOrder)
		in.Blocks = append(in.Blocks, n[:a.maxOrder+1]...)
		for t := range in.ByType {
			for o := range in.Blocks {
				in.ByType[t] = append(in.ByType[t], uint64(z.area[o][t].n))
			}
		}
		end := uint64(z.start) + z.managed
		for at := uint64(z.start) >> a.pbOrder << a.pbOrder; at < end; at += 1 << a.pbOrder {
			in.Pageblocks[a.typeOf(uint32(at))]++
		}
		for j := range z.pcp {
			p := &z.pcp[j]
			in.PCP = append(in.PCP, PCPInfo{int(p.count), int(p.high), int(p.batch), int(p.highMin), int(p.highMax)})
		}
	}
	return infos
}

// counts are the free blocks of a zone by order.
func (z *zone) counts(maxOrder uint8) (n [maxOrders]uint64) {
	for o := range n[:maxOrder+1] {
		for t := range z.area[o] {
			n[o] += uint64(z.area[o][t].n)
		}
	}
	return n
}

// FreePages is the number of pages on buddy lists (NR_FREE_PAGES).
func (a *Allocator) FreePages() (n uint64) {
	for i := range a.zones {
		n += a.zones[i].free
	}
	return n
}

// ManagedPages is the number of pages of all zones.
func (a *Allocator) ManagedPages() (n uint64) {
	for i := range a.zones {
		n += a.zones[i].managed
	}
	return n
}

// PCPPages is the number of pages on per-CPU lists.
func (a *Allocator) PCPPages() (n uint64) {
	for i := range a.zones {
		for j := range a.zones[i].pcp {
			n += uint64(a.zones[i].pcp[j].count)
		}
	}
	return n
}
