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
