package mm

import (
	"fmt"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// newPhys lays out the machine's memory: nodes one after the other from frame
// 0, without holes, divided into zones as on x86-64 (semantics 1.1) or, with
// larger base pages, as on arm64; or exactly the zones of a real host.
func (m *Machine) newPhys() error {
	cfg := buddy.Config{
		CPUs: m.cfg.CPUs, CPUNode: make([]int, m.cfg.CPUs), PageShift: m.pageShift,
		MaxOrder: uint8(max(BuddyMaxOrder, m.pmdOrder)), PMDOrder: uint8(m.pmdOrder),
	}
	for n := range m.cfg.Nodes {
		for _, cpu := range m.cfg.Nodes[n].CPUs {
			if int(cpu) >= m.cfg.CPUs {
				return fmt.Errorf("mm: config: node %d: CPU %d of %d: raise CPUs", n, cpu, m.cfg.CPUs)
			}
			cfg.CPUNode[cpu] = n
		}
	}
	if m.cfg.Free != nil {
		cfg.Zones = m.hostZones(cfg.MaxOrder)
	} else {
		cfg.Zones = m.freshZones(cfg.MaxOrder)
	}
	a, err := buddy.New(cfg)
	if err != nil {
		return fmt.Errorf("mm: memory: %w", err)
	}
	m.alloc = a
	m.pages.free0 = a.FreePages() + a.PCPPages()
	last := uint64(0)
	for _, z := range cfg.Zones {
		last = max(last, z.Start+z.Pages)
	}
	m.pages.slabs = make([]*frameSlab, last>>slabShift+1)
	return nil
}

// freshZones divides memory of which nothing is in use.
func (m *Machine) freshZones(maxOrder uint8) (zones []buddy.Zone) {
	limits := []struct {
		name string
		end  uint64
	}{{"DMA", 16 << 20}, {"DMA32", 4 << 30}, {"Normal", 1 << 62}}
	if m.pageShift != 12 {
		limits = limits[1:]
		limits[0].name = "DMA"
	}
	block := uint64(1) << maxOrder
	at := uint64(0)
	for n := range m.cfg.Nodes {
		end := at + uint64(m.cfg.Nodes[n].Mem)>>m.pageShift
		for _, l := range limits {
			to := min(end, l.end>>m.pageShift)
			if to > at {
				zones = append(zones, buddy.Zone{Node: n, Name: l.name, Start: at, Pages: to - at})
				at = to
			}
		}
		at = (at + block - 1) &^ (block - 1)
	}
	return zones
}

// hostZones places the zones of a host, each from the start of a block.
func (m *Machine) hostZones(maxOrder uint8) (zones []buddy.Zone) {
	block := uint64(1) << maxOrder
	at := uint64(0)
	for _, z := range m.cfg.Free.Zones {
		n := uint64(0)
		for o, k := range z.Blocks {
			n += k << o
		}
		n = max(n, uint64(z.Managed))
		if n == 0 {
			continue
		}
		zones = append(zones, buddy.Zone{Node: int(z.Node), Name: z.Name, Start: at, Pages: n, Free: z.Blocks})
		at = (at + n + block - 1) &^ (block - 1)
	}
	return zones
}

// physAlloc takes a block from the allocator and counts what that took.
func (m *Machine) physAlloc(c *Current, o Order, t buddy.MigrateType, f buddy.Flags) (PFN, bool) {
	pfn, ok := m.alloc.Alloc(m.cpu(c), -1, uint8(o), t, f)
	m.takeEvents(c, ok)
	return PFN(pfn), ok
}

func (m *Machine) physFree(c *Current, pfn PFN, o Order, t buddy.MigrateType) {
	m.alloc.Free(m.cpu(c), uint64(pfn), uint8(o), t)
	m.takeEvents(c, true)
}

// cpu is the caller's processor; one that this machine does not have runs on
// one that it has.
func (m *Machine) cpu(c *Current) int {
	if int(c.CPU) < m.cfg.CPUs {
		return int(c.CPU)
	}
	return int(c.CPU) % m.cfg.CPUs
}

// takeEvents moves what the allocator did into the caller's Work.
func (m *Machine) takeEvents(c *Current, ok bool) {
	ev, w := &m.alloc.Events, &c.Work
	if ev.PCPHit|ev.PCPFree == 1 && ev.Refill|ev.Zone|ev.Fail|ev.Compact|ev.ZoneFree == 0 { // nearly always
		w[PrimAllocPCP] += ev.PCPHit
		w[PrimFreePCP] += ev.PCPFree
		ev.PCPHit, ev.PCPFree = 0, 0
		return
	}
	w[PrimAllocPCP] += ev.PCPHit
	w[PrimAllocRefill] += ev.Refill
	w[PrimAllocBuddy] += ev.Zone
	w[PrimZoneLock] += ev.Zone + ev.ZoneFree
	w[PrimAllocFail] += ev.Fail
	w[PrimExpand] += ev.Expand
	w[PrimFreePCP] += ev.PCPFree
	w[PrimFreeBuddy] += ev.ZoneFree
	w[PrimMerge] += ev.Merge
	if ev.Compact > 0 {
		w[PrimCompact] += ev.Compact
		m.Counters.VM[CompactStall] += uint64(ev.Compact)
		if ok {
			m.Counters.VM[CompactSuccess] += uint64(ev.Compact)
		} else {
			m.Counters.VM[CompactFail] += uint64(ev.Compact)
		}
	}
	*ev = buddy.Events{}
}

func (m *Machine) physCheck() error { return m.alloc.Check() }

// physUsed is the pages taken from the allocator since New.
func (m *Machine) physUsed() uint64 {
	return m.pages.free0 - m.alloc.FreePages() - m.alloc.PCPPages()
}
