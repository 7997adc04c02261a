package mm

// opMap does an OpMap: mmap, or a map that the kernel made at exec.
func (m *Machine) opMap(c *Current, sp *space, op *Op) (VA, Errno, error) {
	if op.N == 0 {
		return m.mapEmpty(sp, op)
	}
	if op.N > m.span(0, sp.limitOf()) {
		return 0, ENOMEM, nil
	}
	if op.Flags&(MapPool|MapPoolPUD) != 0 && !op.isShmem() {
		return m.opMapHuge(c, sp, op)
	}
	return m.mapAt(c, sp, op)
}

// opMapHuge is opMap for hugetlb: lengths are rounded up to whole pages.
// Linux: mm/mmap.c:ksys_mmap_pgoff, fs/hugetlbfs/inode.c:hugetlb_get_unmapped_area (v6.18).
func (m *Machine) opMapHuge(c *Current, sp *space, op *Op) (VA, Errno, error) {
	p, ok := m.opPool(op)
	if !ok {
		return 0, EINVAL, nil
	}
	whole := *op
	n := m.huge.pools[p].order.Pages()
	whole.N = (op.N + n - 1) &^ (n - 1)
	if op.Flags&MapFixed != 0 {
		at, e, err := m.whereMap(sp, op)
		if err != nil || e != OK {
			return 0, e, err
		}
		if at&(m.bytes(n)-1) != 0 {
			return 0, EINVAL, nil
		}
	}
	return m.mapAt(c, sp, &whole)
}

// opPool is the pool that an OpMap's pages come from.
func (m *Machine) opPool(op *Op) (uint8, bool) {
	p := 0
	if op.Flags&MapPoolPUD != 0 {
		p = 1
	}
	return uint8(p), p < len(m.huge.pools) && op.Flags&MapHugetlb != 0
}

// mapAt finds the place of a map, and makes it.
func (m *Machine) mapAt(c *Current, sp *space, op *Op) (VA, Errno, error) {
	start, e, err := m.whereMap(sp, op)
	if err != nil || e != OK {
		return 0, e, err
	}
	base, end := start, start+m.bytes(op.N)
	if op.Flags&MapGrowsDown != 0 && op.Flags&MapAtExec != 0 {
		base = start - m.bytes(Pages(op.Page))
		end = base + m.bytes(op.N)
		if op.Page != 0 {
			sp.stackLow, sp.stackHigh = base, end
		}
	}
	if end <= start || end > sp.limitOf() {
		return 0, ENOMEM, nil
	}
	if op.Flags&MapAtExec == 0 {
		c.Work.Add(PrimMmap, 1)
		c.Work.Add(PrimMmapWrite, 1)
	}
	v, e := m.mmapRegion(c, sp, op, start, end)
	if e != OK {
		return 0, e, nil
	}
	if op.Flags&MapAtExec != 0 {
		m.noteArea(sp, op, start, end)
	}
	sp.regions.set(op.Region, base, op.N)
	if m.policy.Advise.wants(v, m.bytes(op.N), op) {
		m.adviseHuge(v, start, end)
		v = sp.find(start)
	}
	locks := op.Flags&MapLocked != 0 || sp.defFlags&vmLocked != 0
	if op.Flags&MapPopulate != 0 || v.flags&vmLockMask == vmLocked || v.huge != nil && locks {
		m.populateAll(c, sp, start, end)
	}
	return start, OK, nil
}

// mapEmpty registers where the heap will start; every other empty map is
// refused.
func (m *Machine) mapEmpty(sp *space, op *Op) (VA, Errno, error) {
	if op.Flags&MapAtExec == 0 || Area(op.Aux) != AreaHeap {
		return 0, EINVAL, nil
	}
	at := m.shifted(sp, VA(op.Arg), AreaHeap)
	sp.brkStart, sp.brkEnd = at, at
	sp.regions.set(op.Region, at, 0)
	return at, OK, nil
}

// whereMap decides where a map lands.
func (m *Machine) whereMap(sp *space, op *Op) (VA, Errno, error) {
	length := m.bytes(op.N)
	switch {
	case op.Flags&MapAtExec != 0:
		return m.shifted(sp, VA(op.Arg), Area(op.Aux)), OK, nil
	case m.cfg.AsRecorded && op.Arg != 0:
		return VA(op.Arg), m.mayReplace(sp, op, VA(op.Arg)), nil
	case op.Flags&MapFixed != 0:
		at := VA(op.Arg)
		if op.Aux != 0 {
			base, ok := sp.regions.base(Region(op.Aux))
			if !ok {
				return 0, OK, errUnknownRegion(op, Region(op.Aux))
			}
			at = base + m.bytes(Pages(op.Page))
		}
		if at < mmapMinAddr {
			return 0, EPERM, nil
		}
		return at, m.mayReplace(sp, op, at), nil
	}
	if op.isShmem() {
		at, e := m.placeShm(sp, length, op)
		return at, e, nil
	}
	q := placeReq{length: length}
	if op.Flags&MapHint != 0 {
		q.hint = m.movedHint(sp, VA(op.Arg))
	} else {
		q.align = m.alignOf(op, length)
	}
	at, e := m.place(sp, q)
	return at, e, nil
}

// mayReplace refuses a MAP_FIXED_NOREPLACE over existing mappings.
func (m *Machine) mayReplace(sp *space, op *Op, at VA) Errno {
	if op.Flags&(MapFixed|MapReplaces) == MapFixed && !m.cfg.AsRecorded {
		if v := sp.find(at); v != nil && v.start < at+m.bytes(op.N) {
			return EEXIST
		}
	}
	return OK
}

// alignOf is the alignment that the kernel looks for, 0 for none.
func (m *Machine) alignOf(op *Op, length VA) VA {
	switch p, ok := m.opPool(op); {
	case ok && op.Flags&MapPoolPUD != 0:
		return m.bytes(m.huge.pools[p].order.Pages())
	case m.wantsAlign(op, length):
		return m.pmdSize()
	}
	return 0
}

// wantsAlign says whether the kernel aligned this map, or would. For a file or
// shared memory that is its filesystem's choice, which a recording shows only
// by the address.
func (m *Machine) wantsAlign(op *Op, length VA) bool {
	if op.Flags&(MapFile|MapShared|MapHugetlb|MapSpecial) == 0 {
		return m.alignedMap(length)
	}
	mask := m.pmdSize() - 1
	return op.Flags&MapHugetlb != 0 || length > mask && op.Arg != 0 && VA(op.Arg)&mask == 0
}

// movedHint is where a hint points in an address space that lies elsewhere
// than the recorded one: hints near the mmap area follow it (they were taken
// from earlier maps), all others are absolute.
func (m *Machine) movedHint(sp *space, hint VA) VA {
	const near = 1 << 40 // randomisation moves the area by less than this
	shift := m.bytes(Pages(sp.shift.Mmap))
	if top := sp.mmapBase - shift; shift != 0 && hint < top && top-hint < near {
		return hint + shift
	}
	return hint
}

// shifted is where an address of area a of the recording lies in sp.
func (m *Machine) shifted(sp *space, at VA, a Area) VA {
	var by int64
	switch a {
	case AreaExe:
		by = sp.shift.Exe
	case AreaHeap:
		by = sp.shift.Heap
	case AreaMmap:
		by = sp.shift.Mmap
	case AreaStack:
		by = sp.shift.Stack
	}
	return at + m.bytes(Pages(by))
}

// noteArea keeps what a map present at exec tells of the space: the highest
// one of the mmap area ends at its top, because the kernel filled the area
// from there.
func (m *Machine) noteArea(sp *space, op *Op, start, end VA) {
	switch Area(op.Aux) {
	case AreaHeap:
		sp.brkStart, sp.brkEnd = start, end
	case AreaMmap:
		if !sp.baseKnown || end > sp.mmapBase {
			sp.mmapBase, sp.baseKnown = end, true
		}
	}
}

// mapFlags turns an OpMap's flags into VMA flags. Linux: mm/mmap.c:do_mmap,
// include/linux/mman.h:calc_vm_flag_bits (v6.18).
func (m *Machine) mapFlags(sp *space, op *Op) vmFlags {
	f := protFlags(op.Access)
	set := func(has OpFlags, then vmFlags) {
		if op.Flags&has != 0 {
			f |= then
		}
	}
	set(MapShared, vmShared|vmFile)
	set(MapFile, vmFile)
	set(MapGrowsDown, vmGrowsDown)
	set(MapLocked, vmLocked)
	set(MapNoReserve, vmNoReserve)
	set(MapHugetlb, vmHugetlb|vmFile)
	set(MapSpecial, vmSpecial|vmFile)
	set(MapDroppable, vmDroppable|vmNoReserve|vmWipeFork|vmDontDump)
	if m.rules.StackNoHuge {
		set(MapStack, vmNoHuge)
	}
	if op.Flags&MapAtExec == 0 {
		f |= sp.defFlags
	}
	if f&vmSpecials != 0 {
		f &^= vmLockMask
	}
	if f&(vmNoReserve|vmShared|vmWrite|vmHugetlb) == vmWrite {
		f |= vmAccount
	}
	return f
}

// mmapRegion clears [start, end) and makes a mapping there.
// Linux: mm/vma.c:__mmap_region (v6.18).
func (m *Machine) mmapRegion(c *Current, sp *space, op *Op, start, end VA) (*vma, Errno) {
	if sp.vmas.Len() > maxMapCount {
		return nil, ENOMEM
	}
	if e := m.unmapRange(c, sp, start, end); e != OK {
		return nil, e
	}
	flags, file, pgoff := m.mapFlags(sp, op), uint64(0), uint64(start>>m.pageShift)
	if flags&vmFile != 0 {
		file, pgoff = uint64(op.Region), 0
	}
	v := m.newMapping(c, sp, start, end, flags, file, pgoff, op.Region)
	if p, ok := m.opPool(op); ok && op.Flags&(MapPool|MapPoolPUD) != 0 && !m.mapHuge(c, v, p) {
		m.dropVMA(c, v)
		return nil, ENOMEM
	}
	if op.isShmem() {
		m.mapShm(v)
	}
	return v, OK
}

// newMapping makes an empty range a mapping: a neighbour's, or a new VMA.
func (m *Machine) newMapping(c *Current, sp *space, start, end VA, flags vmFlags, file, pgoff uint64,
	r Region) *vma {
	q := mergeReq{sp: sp, prev: sp.before(start), next: sp.lookupQuiet(start), start: start, end: end,
		pgoff: pgoff, flags: flags, file: file}
	if v := m.mergeNew(c, &q); v != nil {
		return v
	}
	v := &vma{start: start, end: end, flags: flags, pgoff: pgoff, file: file, sp: sp, region: r}
	m.addVMA(c, v)
	if !v.anonymous() {
		m.khugepagedEnter(sp, v)
	}
	return v
}

// populateAll faults in what [from, to) maps, as MAP_POPULATE does: a mapping
// that refuses is left for the next. Linux: mm/gup.c:__mm_populate (v6.18).
func (m *Machine) populateAll(c *Current, sp *space, from, to VA) {
	for v := sp.find(from); v != nil && v.start < to; v = v.next() {
		m.populateVMA(c, v, max(from, v.start), min(to, v.end))
	}
}

// populateVMA faults in a part of v as its protection asks; memory that no
// access may reach refuses it.
func (m *Machine) populateVMA(c *Current, v *vma, from, to VA) Errno {
	switch {
	case !v.anonymous() && v.huge == nil && v.shm == nil || v.flags&vmLockMask == vmLockMask:
		return OK
	case v.flags&vmAccess == 0:
		return EFAULT
	}
	return m.populate(c, v, from, to, v.flags&(vmWrite|vmShared) == vmWrite)
}

// wants says whether the hypothetical program advises a fresh mapping.
func (r *AdviseRule) wants(v *vma, length VA, op *Op) bool {
	if !v.anonymous() || v.flags&(vmGrowsDown|vmSpecials) != 0 {
		return false
	}
	if op.Flags&MapAtExec != 0 && Area(op.Aux) == AreaHeap && r.Heap {
		return true
	}
	return r.All || r.AtLeast != 0 && Bytes(length) >= r.AtLeast
}

// adviseHuge does what MADV_HUGEPAGE by the program would have done, at no
// cost.
func (m *Machine) adviseHuge(v *vma, start, end VA) {
	var c Current
	flags := v.flags&^vmNoHuge | vmHuge
	if flags == v.flags {
		return
	}
	if t, e := m.modify(&c, v, start, end, flags, v.node); e == OK {
		m.khugepagedEnter(t.sp, t)
	}
}
