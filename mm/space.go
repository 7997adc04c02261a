package mm

import "fmt"

// regionPage is how many regions share one piece of a regionMap.
const regionPage = 128

// regionMap holds where each region of a space begins. Regions are numbered in
// the order in which a recording makes them, so the live ones lie together: the
// map is an array of pieces, and a fork shares the pieces until one side
// writes.
type regionMap struct {
	first  Region // number of the first piece that pieces holds
	pieces []*regionPiece
	owner  *byte // pieces with another owner are shared: copy before a write
}

type regionPiece struct {
	owner *byte
	used  int
	entry [regionPage]regionEntry
}

// regionEntry is a region's base, with bit 0 set when the region is in use,
// and its length.
type regionEntry struct {
	base VA
	n    Pages
}

// base is where r begins.
func (t *regionMap) base(r Region) (VA, bool) {
	i := r/regionPage - t.first
	if int(i) >= len(t.pieces) || t.pieces[i] == nil {
		return 0, false
	}
	e := t.pieces[i].entry[r%regionPage].base
	return e &^ 1, e&1 != 0
}

// set makes r n pages from base.
func (t *regionMap) set(r Region, base VA, n Pages) {
	p := t.writable(r)
	e := &p.entry[r%regionPage]
	if e.base == 0 {
		p.used++
	}
	*e = regionEntry{base | 1, n}
}

// forget drops r if n pages are all of it.
func (t *regionMap) forget(r Region, n Pages) {
	i := r/regionPage - t.first
	if int(i) >= len(t.pieces) || t.pieces[i] == nil {
		return
	}
	if e := t.pieces[i].entry[r%regionPage]; e.base == 0 || e.n > n {
		return
	}
	p := t.writable(r)
	p.entry[r%regionPage] = regionEntry{}
	if p.used--; p.used == 0 {
		t.pieces[i] = nil
		t.trim()
	}
}

// writable is r's piece, made or copied if need be.
func (t *regionMap) writable(r Region) *regionPiece {
	if t.owner == nil {
		t.owner = new(byte)
	}
	at := r / regionPage
	switch {
	case len(t.pieces) == 0:
		t.first = at
	case at < t.first:
		t.pieces = append(make([]*regionPiece, t.first-at, int(t.first-at)+len(t.pieces)), t.pieces...)
		t.first = at
	}
	i := at - t.first
	for int(i) >= len(t.pieces) {
		t.pieces = append(t.pieces, nil)
	}
	p := t.pieces[i]
	if p == nil {
		p = &regionPiece{owner: t.owner}
	} else if p.owner != t.owner {
		q := *p
		p, q.owner = &q, t.owner
	}
	t.pieces[i] = p
	return p
}

// trim drops empty pieces at the front, so that a fork copies little.
func (t *regionMap) trim() {
	n := 0
	for n < len(t.pieces) && t.pieces[n] == nil {
		n++
	}
	t.pieces = t.pieces[n:]
	t.first += Region(n)
}

// fork shares t's pieces with a new map.
func (t *regionMap) fork() regionMap {
	t.owner = new(byte)
	pieces := append([]*regionPiece(nil), t.pieces...)
	return regionMap{first: t.first, pieces: pieces, owner: new(byte)}
}

// defaultMmapBase is the top of the mmap area without randomisation and with
// the usual stack limit. Linux: arch/x86/mm/mmap.c:mmap_base (v6.18).
const defaultMmapBase = taskSize - 128<<20

// newSpace makes an empty address space under the number id.
func (m *Machine) newSpace(id Space) *space {
	for int(id) >= len(m.spaces) {
		m.spaces = append(m.spaces, nil)
	}
	sp := &space{id: id, mmapBase: defaultMmapBase, mark: 1}
	m.spaces[id] = sp
	return sp
}

// endSpace unmaps all of sp and forgets it. Linux: mm/mmap.c:exit_mmap (v6.18).
func (m *Machine) endSpace(c *Current, sp *space) {
	if first := sp.vmas.First(); first != nil {
		low, high := first.Val.start, sp.vmas.Last().Val.end
		for n := first; n != nil; n = n.Next() {
			m.zapRange(c, n.Val, n.Val.start, n.Val.end, zapUnmap)
		}
		m.flushHuge(c)
		for n := first; n != nil; {
			next := n.Next()
			m.dropVMA(c, n.Val)
			n = next
		}
		m.freeTables(c, sp, low, high, 0, tablesEnd)
	}
	m.spaceGone(c, sp)
	m.spaces[sp.id] = nil
}

// checkVMAs proves that every space's VMAs are in order, disjoint, merged
// where Linux would have merged them at the last change, and agree with the
// anonVMAs they link to.
func (m *Machine) checkVMAs() error {
	for _, sp := range m.spaces {
		if sp == nil {
			continue
		}
		if err := m.checkSpace(sp); err != nil {
			return fmt.Errorf("space %d: %w", sp.id, err)
		}
	}
	return nil
}

func (m *Machine) checkSpace(sp *space) error {
	if err := sp.vmas.Check(); err != nil {
		return err
	}
	page := VA(1)<<m.pageShift - 1
	for n := sp.vmas.First(); n != nil; n = n.Next() {
		v := n.Val
		at := func(what string) error { return fmt.Errorf("vma %#x-%#x: %s", v.start, v.end, what) }
		switch {
		case v.place != n || v.sp != sp || VA(n.Start()) != v.start || VA(n.End()) != v.end:
			return at("does not agree with the tree")
		case (v.start|v.end)&page != 0 || v.end > tablesEnd:
			return at("not page aligned, or too high")
		case v.flags&vmHuge != 0 && v.flags&vmNoHuge != 0:
			return at("both hinted and refused")
		case v.flags&vmShared != 0 && v.flags&vmFile == 0 || (v.file != 0) != (v.flags&vmFile != 0):
			return at("file and flags disagree")
		case v.flags&vmLockOnFault != 0 && v.flags&vmLocked == 0:
			return at("locked on fault but not locked")
		}
		if err := v.checkChain(); err != nil {
			return at(err.Error())
		}
		if p := v.prev(); p != nil && !sp.loose && m.alike(p, v) {
			return at("should have merged with the one below")
		}
	}
	if h := sp.hit; h != nil && h.place == nil {
		return fmt.Errorf("vma: the last hit %#x is no longer mapped", h.start)
	}
	return sp.regions.check()
}

// alike says whether two neighbours without pages must have been merged.
func (m *Machine) alike(p, v *vma) bool {
	q := mergeReq{
		prev: p, start: v.start, end: v.end, pgoff: v.pgoff, flags: v.flags, file: v.file, node: v.node,
	}
	return v.anon == nil && p.anon == nil && v.flags&vmSpecials == 0 && q.canLeft(m)
}

// checkChain proves v's links to anonVMAs.
func (v *vma) checkChain() error {
	own := v.anon == nil
	for _, l := range v.chain {
		if l.v != v || l.at >= len(l.anon.links) || l.anon.links[l.at] != l {
			return fmt.Errorf("anon_vma %d does not know this link", l.anon.id)
		}
		own = own || l.anon == v.anon
	}
	if !own || v.anon == nil && len(v.chain) != 0 {
		return fmt.Errorf("anon_vma and its links disagree")
	}
	if v.anon == nil {
		return nil
	}
	active := 0
	for _, l := range v.anon.links {
		if l.v.anon == v.anon {
			active++
		}
	}
	if active != v.anon.active {
		return fmt.Errorf("anon_vma %d counts %d users, has %d", v.anon.id, v.anon.active, active)
	}
	return nil
}

func (t *regionMap) check() error {
	for i, p := range t.pieces {
		if p == nil {
			continue
		}
		used := 0
		for _, e := range p.entry {
			used += int(e.base & 1)
		}
		if used != p.used || used == 0 {
			return fmt.Errorf("regions: piece %d counts %d, has %d", int(t.first)+i, p.used, used)
		}
	}
	return nil
}
