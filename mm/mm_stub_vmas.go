package mm

// Stubs of the VMA side. The real files replace this one.

type regionMap struct{}

type anonState struct{ n uint32 }

// anonVMA is the identity under which anonymous pages are known to rmap.
type anonVMA struct{ id uint32 }

// vmaTree is the VMAs of a space in address order.
type vmaTree struct{ list []*vma }

func (t *vmaTree) insert(v *vma) {
	i := 0
	for i < len(t.list) && t.list[i].start < v.start {
		i++
	}
	t.list = append(t.list[:i], append([]*vma{v}, t.list[i:]...)...)
}

func (sp *space) find(a VA) *vma {
	for _, v := range sp.vmas.list {
		if v.end > a {
			return v
		}
	}
	return nil
}

func (m *Machine) expandStack(c *Current, sp *space, a VA) *vma { return nil }

func (m *Machine) anonPrepare(c *Current, v *vma) {
	if v.anon == nil {
		m.anons.n++
		v.anon = &anonVMA{id: m.anons.n}
	}
}

func (m *Machine) rmapVMAs(a *anonVMA, index uint64, n Pages, f func(v *vma, at VA) bool) {
	for _, sp := range m.spaces {
		if sp == nil {
			continue
		}
		for _, v := range sp.vmas.list {
			last := v.pgoff + uint64(v.end-v.start)>>m.pageShift
			if v.anon != nil && v.pgoff < index+uint64(n) && last > index && !f(v, v.start) {
				return
			}
		}
	}
}

func (m *Machine) checkVMAs() error { return nil }

func (m *Machine) programWork() *WorkSum { return &WorkSum{} }

func (m *Machine) pmdSize() VA { return 1 << (m.pageShift + uint(m.pmdOrder)) }

func (m *Machine) newSpace(id Space) *space {
	for int(id) >= len(m.spaces) {
		m.spaces = append(m.spaces, nil)
	}
	sp := &space{id: id}
	m.spaces[id] = sp
	return sp
}

func (m *Machine) addVMA(c *Current, v *vma) { v.sp.vmas.insert(v) }

func (v *vma) place() int {
	for i, w := range v.sp.vmas.list {
		if w == v {
			return i
		}
	}
	return -1
}

func (m *Machine) dropVMA(c *Current, v *vma) {
	i, l := v.place(), v.sp.vmas.list
	v.sp.vmas.list = append(l[:i:i], l[i+1:]...)
	v.seq++
	v.anon = nil
}

func (v *vma) prev() *vma {
	if i := v.place(); i > 0 {
		return v.sp.vmas.list[i-1]
	}
	return nil
}

func (v *vma) next() *vma {
	if i := v.place(); i+1 < len(v.sp.vmas.list) {
		return v.sp.vmas.list[i+1]
	}
	return nil
}

func (v *vma) setRange(start, end VA, pgoff uint64) {
	v.start, v.end, v.pgoff = start, end, pgoff
	v.seq++
}

func (m *Machine) anonClone(dst, src *vma) { dst.anon = src.anon }

func (m *Machine) forkVMA(c *Current, child *space, v *vma) {
	n := *v
	n.sp = child
	if v.anon != nil {
		m.anons.n++
		n.anon = &anonVMA{id: m.anons.n}
	}
	m.addVMA(c, &n)
	m.copyRange(c, &n, v)
}

func (m *Machine) endSpace(c *Current, sp *space) {
	for _, v := range sp.vmas.list {
		m.zapRange(c, v, v.start, v.end, zapUnmap)
	}
	sp.vmas.list = nil
	m.freeTables(c, sp, 0, 1<<47, 0, 0)
	m.spaceGone(c, sp)
	m.spaces[sp.id] = nil
}
