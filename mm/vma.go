package mm

import "github.com/hugelab/hugelab/mm/internal/itree"

// vmaTree is the VMAs of a space in address order.
type vmaTree struct{ itree.Tree[*vma] }

const (
	// taskSize is the first address no program can map: one page below the
	// end of the lower half. Linux: arch/x86/include/asm/page_64_types.h (v6.18).
	taskSize VA = 1<<47 - 4096
	// taskSizeCompat is the same for a 32-bit program.
	taskSizeCompat VA = 1<<32 - 4096
	// tablesEnd is the ceiling of the page tables of the last VMA.
	tablesEnd VA = 1 << 47
	// mmapMinAddr is vm.mmap_min_addr's usual value.
	mmapMinAddr VA = 65536
	// maxMapCount is vm.max_map_count's default.
	maxMapCount = 65530
	// guardPages is stack_guard_gap: pages kept free below a stack.
	guardPages Pages = 256

	// vmSpecials never merge (VM_SPECIAL; hugetlb carries VM_DONTEXPAND).
	vmSpecials = vmSpecial | vmHugetlb
	// vmLockMask is VM_LOCKED_MASK.
	vmLockMask = vmLocked | vmLockOnFault
	// vmAccess is VM_ACCESS_FLAGS.
	vmAccess = vmRead | vmWrite | vmExec
)

func (t *vmaTree) insert(v *vma) { v.place = t.Insert(uint64(v.start), uint64(v.end), v) }

// find returns the first VMA that ends above a, nil if there is none; it may
// begin above a. Every fault calls it.
func (sp *space) find(a VA) *vma {
	if v := sp.hit; v != nil && a-v.start < v.end-v.start {
		return v
	}
	return sp.lookup(a)
}

func (sp *space) lookup(a VA) *vma {
	n := sp.vmas.Find(uint64(a))
	if n == nil {
		return nil
	}
	if n.Val.start <= a {
		sp.hit = n.Val
	}
	return n.Val
}

// at returns the VMA that holds a, nil if none does.
func (sp *space) at(a VA) *vma {
	if v := sp.find(a); v != nil && v.start <= a {
		return v
	}
	return nil
}

// before returns the last VMA that begins below a, nil if there is none.
func (sp *space) before(a VA) *vma {
	if a == 0 {
		return nil
	}
	n := sp.vmas.Find(uint64(a) - 1)
	if n == nil {
		n = sp.vmas.Last()
	} else if n.Val.start >= a {
		n = n.Prev()
	}
	if n == nil {
		return nil
	}
	return n.Val
}

func (v *vma) next() *vma {
	if n := v.place.Next(); n != nil {
		return n.Val
	}
	return nil
}

func (v *vma) prev() *vma {
	if n := v.place.Prev(); n != nil {
		return n.Val
	}
	return nil
}

// setRange moves v's ends without touching its pages.
func (v *vma) setRange(start, end VA, pgoff uint64) {
	v.start, v.end, v.pgoff = start, end, pgoff
	v.sp.vmas.Resize(v.place, uint64(start), uint64(end))
	v.changed()
}

func (v *vma) setFlags(flags vmFlags) {
	v.flags = flags
	v.changed()
}

// addVMA puts v into its space.
func (m *Machine) addVMA(c *Current, v *vma) {
	m.vmasMade++
	v.serial, v.holders, v.mark = m.vmasMade, 0, v.sp.mark
	v.sp.vmas.insert(v)
	c.Work.Add(PrimVMAAlloc, 1)
}

// dropVMA takes v, whose pages are gone or belong to a neighbour, out of its
// space and off every anonVMA.
func (m *Machine) dropVMA(c *Current, v *vma) {
	v.detach()
	m.closeHuge(c, v)
	m.closeShm(c, v)
	m.anonUnlink(v)
	c.Work.Add(PrimVMAFree, 1)
}

// detach takes v out of its space's tree only.
func (v *vma) detach() {
	if v.sp.hit == v {
		v.sp.hit = nil
	}
	v.sp.vmas.Remove(v.place)
	v.place = nil
	v.changed()
}

// splitVMA cuts v at a. The new VMA is the part below when newBelow, the part
// above otherwise; v keeps the other.
// Linux: mm/vma.c:__split_vma (v6.18).
func (m *Machine) splitVMA(c *Current, v *vma, a VA, newBelow bool) *vma {
	n := *v
	n.place, n.chain = nil, nil
	off := v.anonIndex(a, m.pageShift)
	m.splitPMDAt(c, v.sp, a)
	if newBelow {
		n.end = a
		v.setRange(a, v.end, off)
	} else {
		n.start, n.pgoff = a, off
		v.setRange(v.start, a, v.pgoff)
	}
	m.anonClone(&n, v)
	m.openHuge(&n, v)
	n.openShm()
	m.addVMA(c, &n)
	c.Work.Add(PrimVMASplit, 1)
	return &n
}

// span is how many pages [from, to) holds.
func (m *Machine) span(from, to VA) Pages { return Pages(to-from) >> m.pageShift }

// bytes is the length of n pages.
func (m *Machine) bytes(n Pages) VA { return VA(n) << m.pageShift }

// pmdSize is the length that one PMD entry maps.
func (m *Machine) pmdSize() VA { return m.bytes(m.pmdOrder.Pages()) }

// startGap is where v begins for whoever looks for room below it: a stack
// keeps its guard gap. Linux: include/linux/mm.h:vm_start_gap (v6.18).
func (m *Machine) startGap(v *vma) VA {
	if v.flags&vmGrowsDown == 0 {
		return v.start
	}
	if gap := m.bytes(guardPages); v.start > gap {
		return v.start - gap
	}
	return 0
}

// protFlags turns a protection into VMA flags.
func protFlags(a Access) vmFlags {
	var f vmFlags
	if a&Read != 0 {
		f |= vmRead
	}
	if a&Write != 0 {
		f |= vmWrite
	}
	if a&Exec != 0 {
		f |= vmExec
	}
	return f
}
