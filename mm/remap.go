package mm

// moveReq is one mremap: [from, from+old) becomes want pages long, at to if
// fixed.
type moveReq struct {
	from, old, want VA
	to              VA
	fixed           bool
	mayMove, keep   bool // MREMAP_MAYMOVE, MREMAP_DONTUNMAP
	region          Region
}

// opRemap does mremap. note is where the recording had the result, 0 if it
// does not say.
func (m *Machine) opRemap(c *Current, sp *space, op *Op, from, note VA) (VA, Errno) {
	c.Work.Add(PrimMremap, 1)
	c.Work.Add(PrimMmapWrite, 1)
	q := moveReq{
		from: from, old: m.bytes(op.N), want: m.bytes(Pages(op.Arg)), region: Region(op.Aux),
		mayMove: op.Flags&RemapMayMove != 0, keep: op.Flags&RemapDontUnmap != 0,
	}
	if note != 0 && (m.cfg.AsRecorded && note != from || op.Flags&RemapFixed != 0) {
		q.to, q.fixed, q.mayMove = note, true, true
	}
	at, e := m.remap(c, sp, &q)
	if e != OK {
		return 0, e
	}
	switch {
	case Region(op.Aux) != op.Region:
		sp.regions.set(Region(op.Aux), at, Pages(op.Arg))
		if at != from && !q.keep && op.Page == 0 {
			sp.regions.forget(op.Region, op.N)
		}
	case op.Page == 0:
		sp.regions.set(op.Region, at, Pages(op.Arg))
	case at != from: // moved here, not in the recording: the region follows its tail
		sp.regions.set(op.Region, at-m.bytes(Pages(op.Page)), Pages(op.Page)+Pages(op.Arg))
	}
	return at, OK
}

// remap is mm/mremap.c:do_mremap, mremap_to (v6.18).
func (m *Machine) remap(c *Current, sp *space, q *moveReq) (VA, Errno) {
	limit := sp.limitOf()
	if q.want == 0 || q.old == 0 || q.want > limit || q.from > limit || q.old > limit-q.from ||
		q.keep && (q.old != q.want || !q.mayMove) {
		return 0, EINVAL
	}
	if q.fixed && (q.to > limit-q.want || q.to < q.from+q.old && q.from < q.to+q.want) {
		return 0, EINVAL
	}
	if q.fixed && q.old == q.want && m.rules.MoveSeveral {
		return m.moveSeveral(c, sp, q)
	}
	return m.remapOne(c, sp, q)
}

// remapOne is an mremap within one VMA, or a shrink in place.
func (m *Machine) remapOne(c *Current, sp *space, q *moveReq) (VA, Errno) {
	v := sp.at(q.from)
	if v != nil && v.huge != nil && !m.alignHuge(v, q) {
		return 0, EINVAL
	}
	maps := q.fixed || q.keep || q.want > q.old
	switch {
	case v == nil:
		return 0, EFAULT
	case maps && min(q.old, q.want) > v.end-q.from && (m.rules.MoveSeveral || !q.fixed):
		return 0, EFAULT // what shrinks first may cross VMAs
	case q.keep && v.flags&vmSpecials != 0:
		return 0, EINVAL
	case q.want > q.old && v.flags&vmSpecials != 0:
		return 0, EFAULT
	}
	if q.fixed {
		if e := m.unmapRange(c, sp, q.to, q.to+q.want); e != OK {
			return 0, e
		}
	}
	if q.want < q.old {
		if e := m.unmapRange(c, sp, q.from+q.want, q.from+q.old); e != OK {
			return 0, e
		}
		q.old = q.want
	}
	if !q.fixed && !q.keep && q.old == q.want {
		return q.from, OK
	}
	if v = sp.at(q.from); v == nil || q.old > v.end-q.from {
		return 0, EFAULT
	}
	if !q.fixed && !q.keep && m.growInPlace(c, v, q) {
		return q.from, OK
	}
	if !q.mayMove {
		return 0, ENOMEM
	}
	if !q.fixed {
		r := placeReq{length: q.want}
		if v.anonymous() && m.alignedMap(q.want) {
			r.align = m.pmdSize()
		}
		at, e := m.place(sp, r)
		if v.shm != nil {
			at, e = m.alignShm(sp, r, at, e, v.anonIndex(q.from, m.pageShift), m.shmAlign(false))
		}
		if e != OK {
			return 0, e
		}
		q.to = at
	}
	return q.to, m.moveVMA(c, v, q)
}

// alignHuge rounds the lengths of a hugetlb mremap up to whole pages; false:
// addresses do not fit, or it would grow. Linux: mm/mremap.c:align_hugetlb (v6.18).
func (m *Machine) alignHuge(v *vma, q *moveReq) bool {
	mask := m.hugeLen(v) - 1
	q.old, q.want = (q.old+mask)&^mask, (q.want+mask)&^mask
	return q.from&mask == 0 && (!q.fixed || q.to&mask == 0) && q.want <= q.old
}

// growInPlace lengthens v when [from, from+old) ends it and what follows is
// free. The grown VMA may meet, and swallow, the next.
// Linux: mm/mremap.c:expand_vma_in_place, vma_expandable (v6.18).
func (m *Machine) growInPlace(c *Current, v *vma, q *moveReq) bool {
	end := q.from + q.want
	if q.from+q.old != v.end || end > v.sp.limitOf() {
		return false
	}
	next := v.next()
	if next != nil && next.start < end {
		return false
	}
	g := mergeReq{
		sp: v.sp, prev: v, next: next, start: v.end, end: end, pgoff: v.anonIndex(v.end, m.pageShift),
		flags: v.flags, file: v.file, node: v.node, anon: v.anon,
	}
	if m.mergeNew(c, &g) == nil {
		return false
	}
	if v.flags&vmLockMask == vmLocked {
		m.populateAll(c, v.sp, q.from+q.old, end)
	}
	return true
}

// moveVMA moves [from, from+old) of v to q.to, want bytes long there.
// Linux: mm/mremap.c:move_vma, mm/vma.c:copy_vma (v6.18).
func (m *Machine) moveVMA(c *Current, v *vma, q *moveReq) Errno {
	sp := v.sp
	if sp.vmas.Len() >= maxMapCount-3 {
		return ENOMEM
	}
	pgoff := v.anonIndex(q.from, m.pageShift)
	if v.anonymous() && v.anon == nil {
		pgoff = uint64(q.to >> m.pageShift)
	}
	n := m.copyVMA(c, v, q, pgoff)
	// A merge may have swallowed the source; it is then found anew.
	src := sp.at(q.from)
	m.movePages(c, src, n, q.from, q.to, m.span(0, q.old))
	locked := src.flags&vmLockMask == vmLocked
	if q.keep {
		m.keepSource(c, src, n, q)
	} else if e := m.unmapRange(c, sp, q.from, q.from+q.old); e != OK {
		return e
	}
	if locked && q.want > q.old {
		m.populateAll(c, sp, q.to+q.old, q.to+q.want)
	}
	return OK
}

// copyVMA makes the destination of a move, by a merge if it can.
func (m *Machine) copyVMA(c *Current, v *vma, q *moveReq, pgoff uint64) *vma {
	sp, end := v.sp, q.to+q.want
	g := mergeReq{
		sp: sp, prev: sp.before(q.to), next: sp.lookupQuiet(q.to), start: q.to, end: end, pgoff: pgoff,
		flags: v.flags, file: v.file, node: v.node, anon: v.anon, copiedFrom: v,
	}
	if t := m.mergeNew(c, &g); t != nil {
		return t
	}
	n := *v
	n.start, n.end, n.pgoff, n.place, n.chain = q.to, end, pgoff, nil, nil
	if q.region != 0 {
		n.region = q.region
	}
	m.anonClone(&n, v)
	m.openHuge(&n, v)
	n.openShm()
	m.addVMA(c, &n)
	return &n
}

// keepSource ends a MREMAP_DONTUNMAP: the source stays mapped, empty and not
// locked. Linux: mm/mremap.c:dontunmap_complete (v6.18).
func (m *Machine) keepSource(c *Current, src, n *vma, q *moveReq) {
	switch {
	case src.flags&vmLockMask == 0:
	case !m.rules.KeepUnlocksAll:
		if t, e := m.modify(c, src, q.from, q.from+q.old, src.flags&^vmLockMask, src.node); e == OK {
			src = t
		}
	default:
		src.setFlags(src.flags &^ vmLockMask)
		src.sp.loose = true // it may be like its neighbours now, and stays apart
	}
	if src != n && src.start == q.from && src.end == q.from+q.old {
		m.anonUnlink(src)
		src.sp.loose = true
	}
}

// moveSeveral moves a range of any number of VMAs, each by itself, with the
// holes between them. Each clears only its own part of the destination.
// Linux: mm/mremap.c:remap_move (v6.18).
func (m *Machine) moveSeveral(c *Current, sp *space, q *moveReq) (VA, Errno) {
	end := q.from + q.old
	if sp.at(q.from) == nil {
		return 0, EFAULT
	}
	for at := q.from; at < end; {
		v := sp.find(at)
		if v == nil || v.start >= end {
			break
		}
		at = max(at, v.start)
		stop := min(v.end, end)
		part := *q
		part.from, part.old, part.want, part.to = at, stop-at, stop-at, q.to+(at-q.from)
		if _, e := m.remapOne(c, sp, &part); e != OK {
			return 0, e
		}
		at = stop
	}
	return q.to, OK
}
