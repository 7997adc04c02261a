package mm

// anonState numbers the anonVMAs that a machine ever made.
type anonState struct{ made uint32 }

// anonVMA is the identity under which anonymous pages are known to the reverse
// map (struct anon_vma). A VMA's own is v.anon; after a fork the child's VMA
// links to its parent's too, because it may map pages of it.
type anonVMA struct {
	id     uint32
	parent *anonVMA // itself for a root
	kids   int      // anonVMAs whose parent this is; a root counts itself
	active int      // VMAs whose own this is
	links  []*anonLink
}

// anonLink ties one VMA to one anonVMA (struct anon_vma_chain).
type anonLink struct {
	v    *vma
	anon *anonVMA
	at   int // index in anon.links
}

func (m *Machine) newAnon(parent *anonVMA) *anonVMA {
	m.anons.made++
	a := &anonVMA{id: m.anons.made, parent: parent}
	if parent == nil {
		a.parent = a
	}
	a.parent.kids++
	return a
}

func (v *vma) link(a *anonVMA) {
	l := &anonLink{v: v, anon: a, at: len(a.links)}
	a.links = append(a.links, l)
	v.chain = append(v.chain, l)
}

// anonUnlink takes v off every anonVMA. One that no VMA links to any more no
// longer counts as its parent's child.
// Linux: mm/rmap.c:unlink_anon_vmas (v6.18).
func (m *Machine) anonUnlink(v *vma) {
	for _, l := range v.chain {
		links := l.anon.links
		last := links[len(links)-1]
		links[l.at] = last
		last.at = l.at
		links[len(links)-1] = nil
		l.anon.links = links[:len(links)-1]
		if len(l.anon.links) == 0 {
			l.anon.parent.kids--
		}
	}
	v.chain = nil
	if v.anon != nil {
		v.anon.active--
		v.anon = nil
	}
}

// anonClone links dst to all that src links to. A fork's dst (no own anonVMA
// yet) may take over one of them that no VMA uses as its own any more.
// Linux: mm/rmap.c:anon_vma_clone (v6.18).
func (m *Machine) anonClone(dst, src *vma) {
	for i := len(src.chain) - 1; i >= 0; i-- {
		a := src.chain[i].anon
		dst.link(a)
		if dst.anon == nil && src.anon != nil && a.kids < 2 && a.active == 0 {
			dst.anon = a
		}
	}
	if dst.anon != nil {
		dst.anon.active++
	}
}

// anonDup gives dst what src has, if dst has nothing: dst is about to take
// over src's pages. Linux: mm/vma.c:dup_anon_vma (v6.18).
func (m *Machine) anonDup(dst, src *vma) {
	if src.anon == nil || dst.anon != nil {
		return
	}
	dst.anon = src.anon
	m.anonClone(dst, src)
	dst.changed()
}

// anonFork links a child's VMA to the parent's anonVMAs and gives it one of
// its own below the parent's. Linux: mm/rmap.c:anon_vma_fork (v6.18).
func (m *Machine) anonFork(child, parent *vma) {
	if parent.anon == nil {
		return
	}
	m.anonClone(child, parent)
	if child.anon != nil {
		return // took over an unused one
	}
	child.anon = m.newAnon(parent.anon)
	child.anon.active++
	child.link(child.anon)
}

// anonPrepare gives v an anonVMA before its first anonymous page: that of a
// neighbour with which it could merge one day but for its protection, else a
// new one. Linux: mm/rmap.c:__anon_vma_prepare (v6.18).
func (m *Machine) anonPrepare(c *Current, v *vma) {
	if v.anon != nil {
		return
	}
	a := m.reusableAnon(v)
	if a == nil {
		a = m.newAnon(nil)
	}
	v.anon = a
	a.active++
	v.link(a)
}

// reusableAnon is mm/vma.c:find_mergeable_anon_vma (v6.18): above first.
func (m *Machine) reusableAnon(v *vma) *anonVMA {
	if n := v.next(); n != nil && m.anonCompatible(v, n) && n.anon != nil && len(n.chain) == 1 {
		return n.anon
	}
	if p := v.prev(); p != nil && m.anonCompatible(p, v) && p.anon != nil && len(p.chain) == 1 {
		return p.anon
	}
	return nil
}

// anonCompatible says whether b follows a in everything but protection.
// Linux: mm/vma.c:anon_vma_compatible (v6.18).
func (m *Machine) anonCompatible(a, b *vma) bool {
	return a.end == b.start && a.node == b.node && a.file == b.file &&
		(a.flags^b.flags)&^(vmAccess|vmUnmerged) == 0 && b.pgoff == a.anonIndex(a.end, m.pageShift)
}

// rmapVMAs calls f for every VMA that may map pages [index, index+n) of a,
// with the address of index (or of the first page after it that the VMA
// holds), until f returns false. f must not map or unmap VMAs.
func (m *Machine) rmapVMAs(a *anonVMA, index uint64, n Pages, f func(v *vma, at VA) bool) {
	for _, l := range a.links {
		v := l.v
		if index+uint64(n) <= v.pgoff || index >= v.anonIndex(v.end, m.pageShift) {
			continue
		}
		at := v.start
		if index > v.pgoff {
			at += VA(index-v.pgoff) << m.pageShift
		}
		if !f(v, at) {
			return
		}
	}
}

// forkChild says whether v may hold pages of a parent process, which keeps it
// from giving or getting an anonVMA by a merge.
// Linux: mm/vma.c:vma_is_fork_child (v6.18.6).
func (v *vma) forkChild() bool { return v != nil && v.anon != nil && len(v.chain) != 1 }
