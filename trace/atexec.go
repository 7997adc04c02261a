package trace

import (
	"strings"

	"github.com/hugelab/hugelab/mm"
)

const (
	// fixedBelow bounds where linkers put a program that is not
	// position-independent; randomisation never places one so low.
	fixedBelow = 0x10000000
	// defaultStack is RLIMIT_STACK where the recording does not tell it.
	defaultStack = 8 << 20
	// vsyscall and above is no mapping of the address space.
	userEnd = 1 << 63
)

// exe is what is known of the program while its maps come.
type exe struct {
	name string  // its first file map's
	file uint64  // identity of its file, 0 not known yet
	end  uint64  // page where its last segment ended
	area mm.Area // of that segment
}

// present handles what is there at exec or attach.
func (p *Replay) present(t *task, e *Event) {
	switch e.Kind {
	case KindBrkAt:
		p.heapAt(t, p.up(e.A), p.up(e.B))
	case KindResident:
		p.resident(t, e)
	case KindMapAt:
		p.mapAt(t, e)
	}
}

// mapAt makes a region that the kernel made at exec, or that was there.
func (p *Replay) mapAt(t *task, e *Event) {
	sp := t.space
	start, end := e.A>>p.shift, p.up(e.B)
	if start >= end || e.A >= userEnd {
		return
	}
	flags := e.C >> 32
	if e.Name == nameHeap {
		p.heapAt(t, start, end)
		return
	}
	op := mm.Op{Kind: mm.OpMap, Access: mm.Access(e.C) & mm.Prot, Flags: mm.MapAtExec, Space: sp.id,
		Thread: mm.Thread(t.tid), N: mm.Pages(end - start), Arg: start << p.shift}
	v := span{start: start, end: end, base: start}
	name := e.Name
	switch {
	case name == nameStack || flags&mapGrowsDown != 0:
		name = nameStack
		op.Flags |= mm.MapGrowsDown
		v.start = p.stackLow(sp, start, end)
		v.base = v.start
		op.Page, op.N = start-v.start, mm.Pages(end-v.start)
		op.Aux = uint64(mm.AreaStack)
	case special(name):
		op.Flags |= mm.MapSpecial | mm.MapFile
		v.class = classOther
		op.Aux = uint64(p.area(sp, start, end, e))
	default:
		op.Flags |= kindFlags(flags, e.D != 0 || strings.HasPrefix(name, "/"))
		if op.Flags&(mm.MapShared|mm.MapFile) != 0 {
			v.class = classOther
		}
		op.Aux = uint64(p.area(sp, start, end, e))
	}
	if name == "" {
		name = nameAnonymous
	}
	op.Region = p.regions.add(name)
	v.region, v.root = op.Region, op.Region
	sp.maps.put(v)
	p.emit(op)
}

// kindFlags are the flags of an OpMap that say what backs it.
func kindFlags(flags uint64, file bool) mm.OpFlags {
	var f mm.OpFlags
	switch flags & mapTypeMask {
	case mapTypeShared, mapTypeSharedVal:
		f |= mm.MapShared
	case mapTypeDroppable:
		f |= mm.MapDroppable
	}
	if file {
		f |= mm.MapFile
	}
	return f
}

func special(name string) bool {
	switch name {
	case "[vdso]", "[vvar]", "[vvar_vclock]", "[uprobes]", "[vsyscall]", "[sigpage]":
		return true
	}
	return false
}

// area says which base a map at exec belongs to. The program's own segments
// are those of its file, and anonymous memory that follows one directly (bss).
func (p *Replay) area(sp *space, start, end uint64, e *Event) mm.Area {
	x := &sp.exe
	if special(e.Name) {
		// Most kernels place it above the stack's top and move it with that; 6.16
		// and later for x86 put it where any map without an address goes.
		if e.A < sp.stackAt {
			return mm.AreaMmap
		}
		return mm.AreaStack
	}
	file := e.D != 0 || strings.HasPrefix(e.Name, "/")
	if file && x.file == 0 {
		x.file, x.name = max(e.D, 1), e.Name // the kernel maps the program first, and lowest
	}
	switch {
	case file && e.Name == x.name && max(e.D, 1) == x.file:
		x.area = mm.AreaExe
		if e.A < fixedBelow {
			x.area = mm.AreaFixed
		}
	case file || x.end == 0 || x.end != start:
		return mm.AreaMmap
	}
	x.end = end
	return x.area
}

// stackLow is the lowest page that a stack mapped at [start, end) may grow to:
// its limit, or what lies below it.
func (p *Replay) stackLow(sp *space, start, end uint64) uint64 {
	limit := p.r.Header.StackLimit
	if limit == 0 || limit > 1<<40 {
		limit = defaultStack
	}
	low := start
	if n := limit >> p.shift; n < end {
		low = min(start, end-n)
	}
	if below := sp.maps.in(low, start); len(below) > 0 {
		low = below[len(below)-1].end
	}
	return low
}

// heapAt registers the heap, or learns its length.
func (p *Replay) heapAt(t *task, start, end uint64) {
	sp := t.space
	if sp.heap == 0 {
		sp.heap = p.regions.add(nameHeap)
		sp.heapStart, sp.brk = start, start
		p.emit(mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Flags: mm.MapAtExec, Space: sp.id,
			Thread: mm.Thread(t.tid), Region: sp.heap, Arg: start << p.shift, Aux: uint64(mm.AreaHeap)})
	}
	p.setBrk(t, end)
}

// setBrk moves the heap's end.
func (p *Replay) setBrk(t *task, end uint64) {
	sp := t.space
	if end < sp.heapStart || end == sp.brk {
		return
	}
	if end > sp.brk {
		sp.maps.put(span{start: sp.brk, end: end, base: sp.heapStart, region: sp.heap, root: sp.heap})
	} else {
		sp.maps.cut(end, sp.brk)
	}
	sp.brk = end
	p.emit(mm.Op{Kind: mm.OpBrk, Space: sp.id, Thread: mm.Thread(t.tid), Region: sp.heap,
		N: mm.Pages(end - sp.heapStart)})
}

// resident passes on pages found present: at the start of an attached
// recording, or by a page map before they went.
func (p *Replay) resident(t *task, e *Event) {
	start := e.A >> p.shift
	end := start + min(e.B, 1<<52)
	next := start
	for _, v := range t.space.maps.in(start, end) {
		p.presentPages(t, e, span{start: next, end: v.start})
		p.presentPages(t, e, v)
		next = v.end
	}
	p.presentPages(t, e, span{start: next, end: end})
}

func (p *Replay) presentPages(t *task, e *Event, v span) {
	if v.start >= v.end {
		return
	}
	op := mm.Op{Kind: mm.OpResident, Access: mm.Access(e.C), Space: t.space.id, Thread: mm.Thread(t.tid),
		Region: v.region, Page: v.start - v.base, N: mm.Pages(v.end - v.start), Arg: e.D}
	if p.r.Header.Attached {
		if v.region == 0 {
			return
		}
	} else {
		op.Kind, op.Stride, op.Arg = mm.OpTouch, 1, v.start<<p.shift
		op.Access |= mm.NoFault
		p.count(&v, v.end-v.start)
	}
	if v.region == 0 {
		op.Page = 0
	}
	p.stats.Found += v.end - v.start
	p.emit(op)
}
