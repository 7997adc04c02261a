package mm

import "github.com/hugelab/hugelab/mm/internal/buddy"

// Memory is the state of physical memory at one moment, as /proc/buddyinfo,
// /proc/pagetypeinfo and /proc/zoneinfo show it.
type Memory struct {
	Zones   []ZoneMemory // by node, then by address
	Total   Pages        // managed pages of all zones (MemTotal)
	Free    Pages        // on free lists (nr_free_pages)
	MinFree Bytes        // vm.min_free_kbytes, in bytes
}

// ZoneMemory is one zone.
type ZoneMemory struct {
	Node          NodeID
	Name          string // DMA, DMA32, Normal, Movable
	Start         PFN
	Managed, Free Pages

	Min, Low, High, Promo Pages    // watermarks
	Protection            [4]Pages // lowmem_reserve against requests up to DMA, DMA32, Normal, Movable

	Blocks     []uint64           // free blocks by order
	ByType     [NumTypes][]uint64 // of them, by migrate type and order
	Pageblocks [NumTypes]uint64   // pageblocks of each migrate type
	PageSets   []PageSet          // per-CPU lists, by CPU

	Unusable   []int // unusable free index by order, in thousandths (semantics 1.6)
	FragReason []int // fragmentation index by order, in thousandths
}

// PageSet is one CPU's lists of free pages of a zone.
type PageSet struct{ Count, High, Batch, HighMin, HighMax Pages }

// NumTypes is the number of migrate types: unmovable, movable, reclaimable.
const NumTypes = buddy.NumTypes

// Memory takes stock of physical memory. It is slow: it allocates.
func (m *Machine) Memory() Memory {
	if m.alloc == nil {
		return Memory{}
	}
	mem := Memory{Free: Pages(m.alloc.FreePages()), Total: Pages(m.alloc.ManagedPages()),
		MinFree: Bytes(m.alloc.MinFree()) << 10}
	for _, z := range m.alloc.BuddyInfo() {
		out := ZoneMemory{Node: NodeID(z.Node), Name: z.Name, Start: PFN(z.Start), Managed: Pages(z.Managed),
			Free: Pages(z.Free), Min: Pages(z.Min), Low: Pages(z.Low), High: Pages(z.High), Promo: Pages(z.Promo),
			Blocks: z.Blocks, ByType: z.ByType, Pageblocks: z.Pageblocks}
		for i, p := range z.Protection {
			out.Protection[i] = Pages(p)
		}
		for _, p := range z.PCP {
			out.PageSets = append(out.PageSets, PageSet{Count: Pages(p.Count), High: Pages(p.High),
				Batch: Pages(p.Batch), HighMin: Pages(p.HighMin), HighMax: Pages(p.HighMax)})
		}
		for o := range z.Blocks {
			out.Unusable = append(out.Unusable, buddy.UnusableIndex(z.Blocks, uint8(o)))
			out.FragReason = append(out.FragReason, buddy.FragmentationIndex(z.Blocks, uint8(o)))
		}
		mem.Zones = append(mem.Zones, out)
	}
	return mem
}

// Policy is the policy in force.
func (m *Machine) Policy() Policy { return m.policy }

// Rules are the rules that the machine's kernel follows.
func (m *Machine) Rules() Rules { return m.rules }

// Sizes are the machine's base page and what follows from it.
func (m *Machine) Sizes() Sizes { return Sizes{Base: 1 << m.pageShift, PMD: m.pmdOrder} }
