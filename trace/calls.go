package trace

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// up rounds an address up to a page's number.
func (p *Replay) up(a uint64) uint64 {
	mask := uint64(1)<<p.shift - 1
	n := a >> p.shift
	if a&mask != 0 {
		n++
	}
	return n
}

// pages is the range of pages that a call on length bytes at a covers.
func (p *Replay) pages(a, length uint64) (start, end uint64) {
	start = a >> p.shift
	if a+length < a {
		return start, p.up(^uint64(0))
	}
	return start, p.up(a + length)
}

// call does a system call on t's address space.
func (p *Replay) call(t *task, e *Event) {
	sp := t.space
	switch e.Kind {
	case KindMmap:
		p.mmap(t, e)
	case KindMunmap:
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, mm.Op{Kind: mm.OpUnmap})
		sp.maps.cut(start, end)
	case KindMremap:
		p.mremap(t, e)
	case KindBrk:
		p.brk(t, e)
	case KindMprotect:
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, mm.Op{Kind: mm.OpProtect, Access: mm.Access(e.C) & mm.Prot})
	case KindMadvise:
		p.madvise(t, e)
	case KindMlock:
		op := mm.Op{Kind: mm.OpLock}
		if e.C&mlockOnFault != 0 {
			op.Flags = mm.LockOnFault
		}
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, op)
	case KindMunlock:
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, mm.Op{Kind: mm.OpUnlock})
	case KindMlockall:
		p.emit(mm.Op{Kind: mm.OpLockAll, Space: sp.id, Thread: mm.Thread(t.tid), Arg: e.A})
	case KindShmat:
		p.shmat(t, e)
	case KindShmdt:
		p.shmdt(t, e)
	case KindMbind:
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, mm.Op{Kind: mm.OpPolicyNode, Arg: policyIdentity(e.C, e.D)})
	case KindUffd:
		if e.A|e.B == 0 {
			p.note("a userfaultfd was created; which ranges it watches is not known")
			return
		}
		start, end := p.pages(e.A, e.B)
		p.parts(t, start, end, mm.Op{Kind: mm.OpUffd, Arg: e.C & 1})
	case KindPrctlTHP:
		p.emit(mm.Op{Kind: mm.OpTHPDisable, Space: sp.id, Thread: mm.Thread(t.tid), Arg: uint64(thpDisable(e))})
	case KindUnknown:
		p.unknown(t, e)
	}
}

// parts queues op once for each part of [start, end) that is mapped. Regions
// may lie elsewhere in the model, so an operation spans two of them only where
// they are anchored to each other.
func (p *Replay) parts(t *task, start, end uint64, op mm.Op) {
	op.Space, op.Thread = t.space.id, mm.Thread(t.tid)
	for _, v := range t.space.maps.parts(start, end) {
		op.Region, op.Page, op.N = v.region, v.start-v.base, mm.Pages(v.end-v.start)
		p.emit(op)
	}
}

// mmap makes a region at the address that the kernel chose.
func (p *Replay) mmap(t *task, e *Event) {
	sp := t.space
	flags := e.C >> 32
	// Linux: mm/mmap.c:ksys_mmap_pgoff (v6.18): MAP_ANONYMOUS ignores the descriptor.
	file := flags&mapAnonymous == 0 || e.D&fileCertain != 0
	length := e.B
	if flags&mapHugetlb != 0 && !file {
		length = hugeLength(length, flags)
	}
	start, end := p.pages(uint64(e.Ret), length)
	if start >= end {
		return
	}
	op := mm.Op{Kind: mm.OpMap, Access: mm.Access(e.C) & mm.Prot, Flags: mapFlags(flags, file), Space: sp.id,
		Thread: mm.Thread(t.tid), N: mm.Pages(end - start), Arg: start << p.shift}
	op.Region = p.regions.add(mmapName(e, flags, file))
	v := span{start: start, end: end, base: start, region: op.Region, root: op.Region}
	if op.Flags&(mm.MapFile|mm.MapShared|mm.MapHugetlb) != 0 {
		v.class = classOther
	}
	switch {
	case op.Flags&mm.MapFixed != 0:
		if a, ok := sp.maps.anchor(start); ok {
			op.Aux, op.Page = uint64(a.region), start-a.base
			v.root = a.root
		}
	case op.Flags&mm.MapFile != 0:
		op.Aux = uint64(op.Region) // its own file as far as is known: it merges with none
	}
	if op.Flags&mm.MapFixed == 0 && e.A>>p.shift != 0 {
		op.Flags |= mm.MapHint
	}
	if op.Flags&mm.MapGrowsDown != 0 {
		op.Flags &^= mm.MapGrowsDown // only a main stack's region includes what it may grow into
		p.note("a mapping with MAP_GROWSDOWN is replayed at the size it was made; faults below it count as unknown")
	}
	sp.maps.put(v)
	p.emit(op)
}

// mapFlags decodes mmap's flags.
func mapFlags(flags uint64, file bool) mm.OpFlags {
	f := kindFlags(flags, file)
	for _, m := range [...]struct {
		linux uint64
		ours  mm.OpFlags
	}{
		{mapFixed, mm.MapFixed | mm.MapReplaces}, {mapFixedNoReplace, mm.MapFixed}, {mapGrowsDown, mm.MapGrowsDown},
		{mapLocked, mm.MapLocked}, {mapNoReserve, mm.MapNoReserve}, {mapStack, mm.MapStack}, {mapHugetlb, mm.MapHugetlb},
	} {
		if flags&m.linux != 0 {
			f |= m.ours
		}
	}
	if flags&mapFixedNoReplace != 0 {
		f &^= mm.MapReplaces
	}
	// Linux: mm/mmap.c:do_mmap (v6.18): MAP_NONBLOCK undoes MAP_POPULATE.
	if flags&(mapPopulate|mapNonBlock) == mapPopulate {
		f |= mm.MapPopulate
	}
	return f
}

func mmapName(e *Event, flags uint64, file bool) string {
	shared := flags&mapTypeMask == mapTypeShared || flags&mapTypeMask == mapTypeSharedVal
	switch {
	case e.Name != "":
		return e.Name
	case file:
		return fmt.Sprintf("file (descriptor %d)", int32(uint32(e.D)))
	case flags&mapHugetlb != 0:
		return "hugetlb"
	case shared:
		return nameShared
	}
	return nameAnonymous
}

// hugeLength rounds a hugetlb mapping's length up as the kernel does.
func hugeLength(n, flags uint64) uint64 {
	log := flags >> mapHugeShift & mapHugeMask
	if log < 12 || log > 40 {
		log = 21
	}
	size := uint64(1) << log
	if n+size-1 < n {
		return n
	}
	return (n + size - 1) &^ (size - 1)
}

func (p *Replay) brk(t *task, e *Event) {
	end := p.up(uint64(e.Ret))
	if t.space.heap == 0 {
		if e.A != 0 && e.A <= uint64(e.Ret) {
			p.note("the heap's start is not known; it is taken to begin where its first recorded brk ended")
		}
		p.heapAt(t, end, end)
		return
	}
	p.setBrk(t, end)
}

// madvise may be process_madvise on another process.
func (p *Replay) madvise(t *task, e *Event) {
	target := *t
	if e.D != 0 && int32(e.D) != t.pid {
		g := p.groups[int32(e.D)]
		if g == nil {
			p.note("process_madvise on a process that is not in the recording was left out")
			return
		}
		target.space = g.space
	}
	start, end := p.pages(e.A, e.B)
	p.parts(&target, start, end, mm.Op{Kind: mm.OpAdvise, Arg: e.C})
}

// mremap moves or resizes. Linux: mm/mremap.c (v6.18).
func (p *Replay) mremap(t *task, e *Event) {
	sp := t.space
	start, end := p.pages(e.A, e.B)
	to, toEnd := p.pages(uint64(e.Ret), e.C)
	pieces := sp.maps.parts(start, max(end, start+1))
	if len(pieces) == 0 || pieces[0].start != start || to >= toEnd {
		return
	}
	old := pieces[0]
	if to == start && toEnd < end {
		// Shrinking is munmap of the rest.
		p.parts(t, toEnd, end, mm.Op{Kind: mm.OpUnmap})
		sp.maps.cut(toEnd, end)
		return
	}
	if to == start && toEnd == end {
		return
	}
	if to == start {
		p.emit(mm.Op{Kind: mm.OpRemap, Flags: remapFlags(e.D), Space: sp.id, Thread: mm.Thread(t.tid),
			Region: old.region, Page: start - old.base, N: mm.Pages(end - start), Arg: toEnd - to, Aux: uint64(old.region)})
		grown := old
		if v, ok := sp.maps.find(end - 1); ok {
			grown = v
		}
		grown.start, grown.end = end, toEnd
		sp.maps.put(grown)
		return
	}
	p.move(t, e, old, end, to, toEnd)
}

// move is an mremap to another address. old holds its first page.
func (p *Replay) move(t *task, e *Event, old span, end, to, toEnd uint64) {
	sp := t.space
	region := p.regions.add(p.regions.name(old.region))
	moved := span{start: to, end: toEnd, base: to, region: region, root: region, class: old.class}
	fixed := e.D&mremapFixed != 0
	note := mm.Op{Kind: mm.OpNote, Space: sp.id, Thread: mm.Thread(t.tid), Arg: to << p.shift}
	if a, ok := sp.maps.anchor(to); ok && fixed {
		note.Region, note.Page = a.region, to-a.base
		moved.root = a.root
	}
	if old.start == end {
		// An old length of 0 makes a second mapping of shared memory.
		p.emit(mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Flags: mm.MapShared | mm.MapFile, Space: sp.id,
			Thread: mm.Thread(t.tid), Region: region, N: mm.Pages(toEnd - to), Arg: to << p.shift, Aux: uint64(region)})
		sp.maps.put(moved)
		return
	}
	p.emit(mm.Op{Kind: mm.OpRemap, Flags: remapFlags(e.D), Space: sp.id, Thread: mm.Thread(t.tid),
		Region: old.region, Page: old.start - old.base, N: mm.Pages(end - old.start), Arg: toEnd - to, Aux: uint64(region)})
	if fixed {
		p.emit(note)
	}
	if e.D&mremapDontUnmap == 0 {
		sp.maps.cut(old.start, end)
	}
	sp.maps.put(moved)
}

func remapFlags(d uint64) mm.OpFlags {
	var f mm.OpFlags
	if d&mremapMayMove != 0 {
		f |= mm.RemapMayMove
	}
	if d&mremapFixed != 0 {
		f |= mm.RemapFixed
	}
	if d&mremapDontUnmap != 0 {
		f |= mm.RemapDontUnmap
	}
	return f
}

func (p *Replay) shmat(t *task, e *Event) {
	start, end := p.pages(uint64(e.Ret), e.B)
	if e.B == 0 || start >= end {
		p.note("a shared segment of unknown length was attached; faults on it count as unknown")
		return
	}
	region := p.regions.add(nameShm)
	op := mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Flags: mm.MapShared | mm.MapFile, Space: t.space.id,
		Thread: mm.Thread(t.tid), Region: region, N: mm.Pages(end - start), Arg: start << p.shift, Aux: uint64(region)}
	if e.A>>p.shift != 0 {
		op.Flags |= mm.MapHint
	}
	t.space.maps.put(span{start: start, end: end, base: start, region: region, root: region, class: classOther})
	p.emit(op)
}

// shmdt unmaps what is left of the segment attached at A.
func (p *Replay) shmdt(t *task, e *Event) {
	v, ok := t.space.maps.find(e.A >> p.shift)
	if !ok {
		return
	}
	p.parts(t, v.start, v.end, mm.Op{Kind: mm.OpUnmap})
	t.space.maps.cut(v.start, v.end)
}

// policyIdentity names a memory policy; 0 is the default one.
func policyIdentity(mode, nodes uint64) uint64 {
	if mode == 0 {
		return 0
	}
	h := (nodes*0x9e3779b97f4a7c15 ^ mode) * 0xff51afd7ed558ccd
	return max(h>>32, 1)
}

func thpDisable(e *Event) mm.THPDisable {
	switch {
	case e.A == 0:
		return mm.THPEnabled
	case e.B&prTHPDisableExceptAdvised != 0:
		return mm.THPExceptAdvised
	}
	return mm.THPDisabled
}

func (p *Replay) unknown(t *task, e *Event) {
	start, end := p.pages(e.A, e.B)
	if start < end {
		p.stats.UnknownPages[mm.UnknownKind(e.C)] += end - start
	}
	p.parts(t, start, end, mm.Op{Kind: mm.OpUnknown, Arg: e.C})
}
