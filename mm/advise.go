package mm

// opAdvise does madvise. Holes are passed over, and the call then ends with
// ENOMEM. Linux: mm/madvise.c:do_madvise, madvise_walk_vmas (v6.18).
func (m *Machine) opAdvise(c *Current, sp *space, op *Op, from VA) Errno {
	c.Work.Add(PrimMadvise, 1)
	adv := Advice(op.Arg)
	if !m.knowsAdvice(adv) {
		return EINVAL
	}
	to, ok := m.rangeEnd(sp, from, op.N)
	if !ok {
		return EINVAL
	}
	if from == to {
		return OK
	}
	if adv.changesFlags() {
		c.Work.Add(PrimMmapWrite, 1)
	} else {
		c.Work.Add(PrimMmapRead, 1)
	}
	if adv == AdvisePopulateRead || adv == AdvisePopulateWrite {
		return m.advisePopulate(c, sp, from, to, adv == AdvisePopulateWrite)
	}
	hole := OK
	for at := from; at < to; {
		v := sp.find(at)
		if v == nil || v.start >= to {
			return ENOMEM
		}
		if v.start > at {
			hole = ENOMEM
			at = v.start
		}
		end := min(v.end, to)
		if e := m.adviseVMA(c, v, at, end, adv); e != OK {
			return e
		}
		at = end
	}
	return hole
}

// knowsAdvice is mm/madvise.c:madvise_behavior_valid for this kernel.
func (m *Machine) knowsAdvice(a Advice) bool {
	switch a {
	case AdviseGuardInstall, AdviseGuardRemove:
		return m.rules.GuardRegions
	case AdviseCollapse:
		return m.rules.Collapse
	case 5, 6, 7: // no advice has these numbers
		return false
	}
	return a <= AdviseCollapse
}

// changesFlags says whether an advice is a flag of the VMA.
func (a Advice) changesFlags() bool {
	switch a {
	case AdviseNormal, AdviseDontFork, AdviseDoFork, AdviseMergeable, AdviseUnmergeable, AdviseHugePage,
		AdviseNoHugePage, AdviseDontDump, AdviseDoDump, AdviseWipeOnFork, AdviseKeepOnFork:
		return true
	}
	return false
}

// adviseVMA is mm/madvise.c:madvise_vma_behavior (v6.18).
func (m *Machine) adviseVMA(c *Current, v *vma, from, to VA, adv Advice) Errno {
	if adv.changesFlags() {
		return m.adviseFlags(c, v, from, to, adv)
	}
	pinned := v.flags&(vmLocked|vmSpecials) != 0
	switch adv {
	case AdviseDontNeed, AdviseDontNeedLocked:
		if v.huge != nil {
			return m.dontNeedHuge(c, v, from, to)
		}
		if v.flags&vmSpecial != 0 || adv == AdviseDontNeed && v.flags&vmLocked != 0 {
			return EINVAL
		}
		m.zapRange(c, v, from, to, zapDontNeed)
	case AdviseFree:
		if !v.anonymous() || v.flags&vmLocked != 0 {
			return EINVAL
		}
		return m.freeRange(c, v, from, to)
	case AdviseRemove:
		if v.flags&vmShared == 0 || v.flags&vmLocked != 0 {
			return EINVAL
		}
	case AdviseCold, AdvisePageOut:
		if pinned {
			return EINVAL
		}
		if v.anonymous() {
			return m.coldRange(c, v, from, to, adv == AdvisePageOut)
		}
		if v.shm != nil {
			m.coldShm(c, v, from, to)
		}
	case AdviseCollapse:
		if !v.anonymous() {
			return EINVAL
		}
		return m.collapse(c, v, from, to)
	case AdviseGuardInstall:
		if pinned || !v.anonymous() && (v.shm == nil || !m.rules.GuardFiles) {
			return EINVAL
		}
		m.anonPrepare(c, v)
		return m.guardInstall(c, v, from, to)
	case AdviseGuardRemove:
		if v.flags&vmSpecials != 0 || !v.anonymous() && (v.shm == nil || !m.rules.GuardFiles) {
			return EINVAL
		}
		return m.guardRemove(c, v, from, to)
	}
	return OK
}

// advisedFlags is what an advice makes of flags.
func advisedFlags(v *vma, adv Advice) (vmFlags, Errno) {
	f := v.flags
	switch adv {
	case AdviseDontFork:
		return f | vmDontFork, OK
	case AdviseDoFork:
		if f&vmSpecial != 0 {
			return f, EINVAL
		}
		return f &^ vmDontFork, OK
	case AdviseWipeOnFork:
		if f&(vmFile|vmShared) != 0 {
			return f, EINVAL
		}
		return f | vmWipeFork, OK
	case AdviseKeepOnFork:
		if f&vmDroppable != 0 {
			return f, EINVAL
		}
		return f &^ vmWipeFork, OK
	case AdviseDontDump:
		return f | vmDontDump, OK
	case AdviseDoDump:
		if f&(vmSpecial|vmDroppable) != 0 {
			return f, EINVAL
		}
		return f &^ vmDontDump, OK
	case AdviseMergeable:
		if f&(vmShared|vmSpecials|vmDroppable) != 0 {
			return f, OK
		}
		return f | vmMergeable, OK
	case AdviseUnmergeable:
		return f &^ vmMergeable, OK
	case AdviseHugePage:
		return f&^vmNoHuge | vmHuge, OK
	case AdviseNoHugePage:
		return f&^vmHuge | vmNoHuge, OK
	}
	return f, OK
}

// adviseFlags changes flags of a part of v.
// Linux: mm/madvise.c:madvise_update_vma, mm/khugepaged.c:hugepage_madvise (v6.18).
func (m *Machine) adviseFlags(c *Current, v *vma, from, to VA, adv Advice) Errno {
	flags, e := advisedFlags(v, adv)
	if e != OK {
		return e
	}
	if flags != v.flags {
		if v, e = m.modify(c, v, from, to, flags, v.node); e == ENOMEM {
			return EAGAIN
		} else if e != OK {
			return e
		}
	}
	if adv == AdviseHugePage {
		m.khugepagedEnter(v.sp, v)
	}
	return OK
}

// advisePopulate is mm/madvise.c:madvise_populate (v6.18): the first hole or
// refusal ends it.
func (m *Machine) advisePopulate(c *Current, sp *space, from, to VA, write bool) Errno {
	for at := from; at < to; {
		v := sp.at(at)
		if v == nil {
			return ENOMEM
		}
		need := vmRead
		if write {
			need = vmWrite
		}
		if v.flags&vmSpecial != 0 {
			return EINVAL
		}
		if v.flags&need == 0 {
			return EINVAL // EFAULT is for guard regions and the like
		}
		end := min(v.end, to)
		if v.anonymous() || v.huge != nil || v.shm != nil {
			if e := m.populate(c, v, at, end, write); e != OK {
				return e
			}
		}
		at = end
	}
	return OK
}

// opUffd arms or disarms userfaultfd, opPolicyNode sets a memory policy: both
// are VMA attributes that the merge rules compare.
func (m *Machine) opUffd(c *Current, sp *space, op *Op, from VA) Errno {
	return m.eachPart(c, sp, op, from, func(v *vma) (vmFlags, uint32) {
		if op.Arg != 0 {
			return v.flags | vmUffd, v.node
		}
		return v.flags &^ vmUffd, v.node
	})
}

func (m *Machine) opPolicyNode(c *Current, sp *space, op *Op, from VA) Errno {
	return m.eachPart(c, sp, op, from, func(v *vma) (vmFlags, uint32) { return v.flags, uint32(op.Arg) })
}

// eachPart modifies every part of VMAs in op's range.
func (m *Machine) eachPart(c *Current, sp *space, op *Op, from VA, to func(*vma) (vmFlags, uint32)) Errno {
	c.Work.Add(PrimMmapWrite, 1)
	end, ok := m.rangeEnd(sp, from, op.N)
	if !ok {
		return EINVAL
	}
	at := from
	for v := sp.find(at); v != nil && at < end && v.start < end; {
		at = max(at, v.start)
		stop := min(v.end, end)
		if flags, node := to(v); flags != v.flags || node != v.node {
			t, e := m.modify(c, v, at, stop, flags, node)
			if e != OK {
				return e
			}
			v = t
		}
		at = stop
		if v.end <= at {
			v = v.next()
		}
	}
	return OK
}
