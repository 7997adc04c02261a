package mm

/*
A change of the address space first tries to merge with its neighbours.

	new range (mmap, brk, mremap)      change of [start, end) within middle

	prev |  new  | next                prev | middle | next
	pppppppppppppp nnnn  left          pppppppppppmmm nnnn  left, part
	pppp nnnnnnnnnnnnnn  right         pppppppppppppp nnnn  left, whole
	pppppppppppppppppp   both          pppp mmmnnnnnnnnnnn  right, part
	pppp xxxxxxx nnnn    none          pppp nnnnnnnnnnnnnn  right, whole
	                                   pppppppppppppppppp   both

Linux: mm/vma.c:vma_merge_new_range, vma_merge_existing_range (v6.18).
*/

// vmUnmerged are flags in which merging VMAs may differ.
const vmUnmerged = vmMaybeGuard

// mergeReq is what a range is to become (struct vma_merge_struct).
type mergeReq struct {
	sp         *space
	prev, next *vma
	middle     *vma // the VMA that holds the range; nil for a new range
	start, end VA
	pgoff      uint64
	flags      vmFlags
	file       uint64
	node       uint32
	anon       *anonVMA
	copiedFrom *vma // mremap: the VMA that moves
	justExpand bool // brk: only grow prev
}

// like says whether v has the wanted flags, file and policy.
func (q *mergeReq) like(v *vma) bool {
	return (v.flags^q.flags)&^vmUnmerged == 0 && v.file == q.file && v.node == q.node
}

// anonFits is mm/vma.c:is_mergeable_anon_vma (v6.18): t keeps or gets one of
// the two anonVMAs; if only one side has one, it must not stem from a fork.
// Before 6.16 a t without one was no fit for a range with one: its empty list
// failed the test for a fork. Linux: mm/vma.c:is_mergeable_anon_vma (v6.15).
func (q *mergeReq) anonFits(m *Machine, t *vma) bool {
	switch {
	case t.anon == nil && q.anon != nil && !m.rules.MergeFaulted:
		return false
	case t.anon == nil && q.anon != nil:
		return !q.middle.forkChild() && !q.copiedFrom.forkChild()
	case t.anon != nil && q.anon == nil:
		return !t.forkChild()
	}
	return t.anon == q.anon
}

func (q *mergeReq) canLeft(m *Machine) bool {
	p := q.prev
	return p != nil && p.end == q.start && q.like(p) && q.anonFits(m, p) &&
		p.anonIndex(p.end, m.pageShift) == q.pgoff
}

func (q *mergeReq) canRight(m *Machine, left bool) bool {
	n := q.next
	if n == nil || q.end != n.start || !q.like(n) || !q.anonFits(m, n) ||
		n.pgoff != q.pgoff+uint64(m.span(q.start, q.end)) {
		return false
	}
	return !left || q.prev.anon == nil || n.anon == nil || q.prev.anon == n.anon
}

// mergeNew makes an empty range part of a neighbour, which it returns; nil if
// none fits.
func (m *Machine) mergeNew(c *Current, q *mergeReq) *vma {
	if q.flags&vmSpecials != 0 {
		return nil
	}
	left := q.canLeft(m)
	right := !q.justExpand && q.canRight(m, left)
	var t *vma
	switch {
	case left && right:
		t = q.prev
		end := q.next.end
		m.anonDup(t, q.next)
		m.dropVMA(c, q.next)
		t.setRange(t.start, end, t.pgoff)
	case left:
		t = q.prev
		t.setRange(t.start, q.end, t.pgoff)
	case right:
		t = q.next
		t.setRange(q.start, t.end, q.pgoff)
	default:
		return nil
	}
	if q.copiedFrom != nil {
		m.anonDup(t, q.copiedFrom)
	}
	c.Work.Add(PrimVMAMerge, 1)
	m.khugepagedEnter(q.sp, t)
	return t
}

// mergeExisting makes [start, end) of middle part of a neighbour, which it
// returns; nil if none fits.
func (m *Machine) mergeExisting(c *Current, q *mergeReq) *vma {
	mid := q.middle
	first, last := mid.start == q.start, mid.end == q.end
	if q.flags&vmSpecials != 0 {
		return nil
	}
	left := first && q.canLeft(m)
	right := last && q.canRight(m, left)
	var t *vma
	switch {
	case left && right:
		t = q.prev
		end := q.next.end
		if q.next.anon != nil {
			m.anonDup(t, q.next)
		} else {
			m.anonDup(t, mid)
		}
		m.dropVMA(c, mid)
		m.dropVMA(c, q.next)
		t.setRange(t.start, end, t.pgoff)
	case left:
		t = q.prev
		m.anonDup(t, mid)
		m.giveBelow(c, mid, q.end)
		t.setRange(t.start, q.end, t.pgoff)
	case right:
		t = q.next
		m.anonDup(t, mid)
		off := mid.anonIndex(q.start, m.pageShift)
		m.giveAbove(c, mid, q.start)
		t.setRange(q.start, t.end, off)
	default:
		return nil
	}
	c.Work.Add(PrimVMAMerge, 1)
	m.khugepagedEnter(q.sp, t)
	return t
}

// giveBelow takes [v.start, a) away from v, or all of it.
func (m *Machine) giveBelow(c *Current, v *vma, a VA) {
	if a == v.end {
		m.dropVMA(c, v)
		return
	}
	m.splitPMDAt(c, v.sp, a)
	v.setRange(a, v.end, v.anonIndex(a, m.pageShift))
}

// giveAbove takes [a, v.end) away from v, or all of it.
func (m *Machine) giveAbove(c *Current, v *vma, a VA) {
	if a == v.start {
		m.dropVMA(c, v)
		return
	}
	m.splitPMDAt(c, v.sp, a)
	v.setRange(v.start, a, v.pgoff)
}

// modify gives [start, end) of v new flags and policy: by a merge, or by
// cutting it out of v. It returns the VMA that now holds the range.
// Linux: mm/vma.c:vma_modify (v6.18).
func (m *Machine) modify(c *Current, v *vma, start, end VA, flags vmFlags, node uint32) (*vma, Errno) {
	q := mergeReq{
		sp: v.sp, prev: v.prev(), middle: v, next: v.next(), start: start, end: end,
		pgoff: v.anonIndex(start, m.pageShift), flags: flags, file: v.file, node: node, anon: v.anon,
	}
	if t := m.mergeExisting(c, &q); t != nil {
		return t, OK
	}
	if v.flags&vmSpecial != 0 && (v.start < start || v.end > end) {
		return nil, EINVAL // a special mapping stays whole (mm/mmap.c:special_mapping_split)
	}
	if v.start < start {
		if v.sp.vmas.Len() >= maxMapCount {
			return nil, ENOMEM
		}
		if m.hugeUnaligned(v, start) {
			return nil, EINVAL
		}
		m.splitVMA(c, v, start, true)
	}
	if v.end > end {
		if v.sp.vmas.Len() >= maxMapCount {
			return nil, ENOMEM
		}
		if m.hugeUnaligned(v, end) {
			return nil, EINVAL // the cut at start stays
		}
		m.splitVMA(c, v, end, false)
	}
	v.node = node
	v.setFlags(flags)
	return v, OK
}
