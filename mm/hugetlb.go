package mm

// This file holds the structures of hugetlb: pools of huge pages set aside,
// mappings whose pages come from a pool, and the reservations between them.
//
//	             grow                      dequeue                 map
//	buddy ------------------> free (LIFO) ----------> in use <-------------> mapped
//	  ^      shrink, demote     |   ^                   |         unmap
//	  |<------------------------+   |   node without    |
//	  |                             +-------------------+
//	  |            node with surplus pages              |
//	  +-------------------------------------------------+
//
// A reservation is a promise to a mapping that a page will be there: pool.resv
// pages of the free ones are promised, and only the others are for whoever has
// no promise. Linux: mm/hugetlb.c (v6.18).

// hugeSizes is how many sizes of hugetlb pages there are: the PMD's and, with
// 4 kB pages, the PUD's.
const hugeSizes = 2

// HugePool says how large an administrator wants a pool of hugetlb pages.
type HugePool struct {
	Pages      uint64 // nr_hugepages
	Overcommit uint64 // nr_overcommit_hugepages: surplus pages allowed; the PMD's size only
}

// hugeState is all that a machine knows of hugetlb.
type hugeState struct {
	pools  []hugePool
	pages  []hugePage // by slot; slot 0 is never used
	spare  []uint32   // slots not in use
	cpu    []int      // node of each CPU
	gather []uint32   // unmapped pages that are freed when the unmapping is done (mmu_gather)
	dead   []*hugeFile
	ranged uint64 // base pages ever taken as ranges, which Linux counts in pgfree and not in pgalloc
}

// hugePool is the pool of one size (struct hstate).
type hugePool struct {
	order      Order
	nr         uint64 // pages, free or in use
	free       uint64
	resv       uint64 // promised and not allocated; may pass below zero for a while, as in Linux
	surplus    uint64 // of nr: pages above the size that was asked for
	overcommit uint64
	leaked     uint64 // promises that no mapping keeps any more (a part of a mapping was moved)
	node       []hugeNode
	nextAlloc  int // node that the next page is taken from
	nextFree   int // node that the next page is given back to
}

// hugeNode is a node's part of a pool.
type hugeNode struct {
	nr, free, surplus uint64
	head              uint32 // slot of the first free page; the last freed is the first taken
}

// hugePage is one page of a pool.
type hugePage struct {
	head  PFN
	next  uint32 // slot of the next free page of the node
	maps  uint32 // entries that map it
	pool  uint8
	node  uint8
	flags hugeFlags
}

type hugeFlags uint8

const (
	hugeLive      hugeFlags = 1 << iota // the slot is in use
	hugeFree                            // on its node's free list
	hugeAnon                            // in use by private mappings
	hugeCached                          // in a file's page cache
	hugeRestore                         // freeing it makes a reservation anew (HPageRestoreReserve)
	hugeOptimised                       // its struct pages are given back (HPageVmemmapOptimized)
)

// hugeFile is the nameless file behind one mmap(MAP_HUGETLB), as long as any
// mapping of it lives.
type hugeFile struct {
	pool  uint8
	n     uint64   // length in huge pages
	cache []uint32 // shared: slot of each page, 0 for none
	resv  hugeBits // shared: pages for which a reservation was made, used or not
	vmas  []*vma
}

// hugeVMA is what a hugetlb mapping has beside a vma's fields.
type hugeVMA struct {
	pool     uint8
	owner    bool // made the private mapping, and holds its reservation (HPAGE_RESV_OWNER)
	unmapped bool // lost a page to the owner: what is not mapped stays so (HPAGE_RESV_UNMAPPED)
	file     *hugeFile
	used     *hugeBits // owner: pages whose reservation was used; parts of a split mapping share it
}

// hugeBits is a set of page numbers, of a file or of the vmemmap.
type hugeBits []uint64

func newHugeBits(n uint64) hugeBits { return make(hugeBits, (n+63)/64) }

func (b hugeBits) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b hugeBits) set(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b hugeBits) unset(i uint64)    { b[i/64] &^= 1 << (i % 64) }

// count is how many of [from, to) are in the set.
func (b hugeBits) count(from, to uint64) (n uint64) {
	for i := from; i < to; i++ {
		if b.has(i) {
			n++
		}
	}
	return n
}

// newHuge makes empty pools.
func (m *Machine) newHuge() error {
	h := &m.huge
	var err error
	if h.cpu, err = cpuNodes(&m.cfg); err != nil {
		return err
	}
	orders := []Order{m.pmdOrder}
	if m.pageShift == 12 {
		orders = append(orders, 2*m.pmdOrder)
	}
	h.pages = make([]hugePage, 1)
	for _, o := range orders {
		h.pools = append(h.pools, hugePool{order: o, node: make([]hugeNode, len(m.cfg.Nodes))})
	}
	return nil
}

// hugePolicy makes the pools as large as p asks.
func (m *Machine) hugePolicy(was, p *Policy) {
	m.policy.HVO = p.HVO // before the pools grow
	for i := range m.huge.pools {
		pool := &m.huge.pools[i]
		if pool.order == m.pmdOrder {
			pool.overcommit = p.Pools[i].Overcommit
		}
		if want := p.Pools[i].Pages; want != was.Pools[i].Pages {
			var c Current // an administrator's work, not a program's
			m.ResizePool(&c, pool.order, AnyNode, want)
		}
	}
}

// poolOf is the pool of an order, nil if there is none.
func (m *Machine) poolOf(o Order) *hugePool {
	for i := range m.huge.pools {
		if m.huge.pools[i].order == o {
			return &m.huge.pools[i]
		}
	}
	return nil
}

func (m *Machine) hugeVMAPool(v *vma) *hugePool { return &m.huge.pools[v.huge.pool] }

// hugeLen is the length of a page of v.
func (m *Machine) hugeLen(v *vma) VA { return m.bytes(m.hugeVMAPool(v).order.Pages()) }

// hugeIndex is the number of the page of v's file that a lies in.
func (m *Machine) hugeIndex(v *vma, a VA) uint64 {
	return v.anonIndex(a, m.pageShift) >> m.hugeVMAPool(v).order
}

// hugeUnaligned says whether a cut of v at a would go through a page.
// Linux: mm/hugetlb.c:hugetlb_vm_op_split (v6.18).
func (m *Machine) hugeUnaligned(v *vma, a VA) bool {
	return v.huge != nil && a&(m.hugeLen(v)-1) != 0
}

// hugeAt is the page that a present entry maps, and its slot.
func (m *Machine) hugeAt(e uint64) (*hugePage, uint32) {
	slot := m.pages.frame(ePFN(e)).ref
	return &m.huge.pages[slot], slot
}

// hugeEntry is the entry that maps a page of order o at a; nil where there is
// no table for it.
func (m *Machine) hugeEntry(sp *space, a VA, o Order) *uint64 {
	if o == m.pmdOrder {
		if pmd := m.pmdTable(sp, a); pmd != 0 {
			return &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		}
		return nil
	}
	slot := sp.root.top
	for l := m.pages.top; l > 2 && slot != 0; l-- {
		slot = eSlot(m.pages.tables.at(slot)[m.levelIndex(a, l)])
	}
	if slot == 0 {
		return nil
	}
	return &m.pages.tables.at(slot)[m.levelIndex(a, 2)]
}

// makeHugeEntry is hugeEntry, making what tables are missing; nil means no
// memory.
func (m *Machine) makeHugeEntry(c *Current, sp *space, a VA, o Order) *uint64 {
	if o == m.pmdOrder {
		if pmd := m.makePMDTable(c, sp, a); pmd != 0 {
			return &m.pages.tables.at(pmd)[m.pmdIndex(a)]
		}
		return nil
	}
	slot := m.makeLevel(c, sp, a, 2)
	if slot == 0 {
		return nil
	}
	return &m.pages.tables.at(slot)[m.levelIndex(a, 2)]
}
