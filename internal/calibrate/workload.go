package calibrate

import "github.com/hugelab/hugelab/mm"

// workload is a cycle of steps that ends as it began. It is repeated.
type workload struct {
	name  string
	order mm.Order // needs faults of this order where advised; 0: none
	warm  mm.Pages // as many pages are used before, see warm
	steps []step

	seldom bool // done a few times: it takes long
}

// step is what is timed at once; a step without a name is not timed.
type step struct {
	name string
	ops  []mm.Op
	per  mm.Pages // how many pages, faults or calls the name is about

	// at times each touch by itself; what counts is that quantile of them, 0
	// for the whole step at once. A single step is no row of the fit. cold has
	// the program use as much memory as its caches hold before each touch.
	at           float64
	single, cold bool
	traced       bool // perf records each fault meanwhile

	hot bool // the caches are not emptied before
}

// Spaces of a workload: its own, and those of the processes it makes.
const (
	self    mm.Space = 1
	child   mm.Space = 2
	program mm.Space = 3 // what the child becomes by exec
)

// Regions. Each has four gigabytes to itself, so that no table is shared.
const (
	regionA mm.Region = iota + 1
	regionB
	regionHeap
	regionText
	regionStack
	regionBallast // what the helper has mapped anyway
	regionSlots   // the first of any number
)

// firstAddr is where regions begin: far from where kernels place anything by
// themselves, and within 47 bits.
const firstAddr = 1 << 44

func addrOf(r mm.Region) uint64 { return firstAddr + uint64(r)<<32 }

// rounds are how often a call is repeated in a step that times the call and
// not its pages.
const rounds = 256

// blocks are how many blocks of the PMD's size a workload has of them.
const blocks = 8

// maker makes the workloads of a base page.
type maker struct {
	mm.Sizes
	n    mm.Pages // small pages of a workload
	huge mm.Pages // pages of a workload of blocks
}

func newMaker(s mm.Sizes) maker {
	return maker{Sizes: s, n: 2 * s.PMD.Pages(), huge: blocks * s.PMD.Pages()}
}

func (k *maker) mapping(r mm.Region, n mm.Pages) mm.Op {
	return mm.Op{Kind: mm.OpMap, Access: mm.Read | mm.Write, Space: self, Region: r, N: n, Arg: addrOf(r)}
}

func op(kind mm.OpKind, r mm.Region, page uint64, n mm.Pages, arg uint64) mm.Op {
	return mm.Op{Kind: kind, Space: self, Region: r, Page: page, N: n, Arg: arg}
}

func advise(r mm.Region, n mm.Pages, a mm.Advice) mm.Op { return op(mm.OpAdvise, r, 0, n, uint64(a)) }
func unmap(r mm.Region, n mm.Pages) mm.Op               { return op(mm.OpUnmap, r, 0, n, 0) }

func protect(r mm.Region, page uint64, n mm.Pages, a mm.Access) mm.Op {
	o := op(mm.OpProtect, r, page, n, 0)
	o.Access = a
	return o
}

// touch accesses n pages, every stride-th one.
func touch(r mm.Region, n mm.Pages, stride int32, a mm.Access) mm.Op {
	o := op(mm.OpTouch, r, 0, n, 0)
	o.Access, o.Stride = a, stride
	return o
}

// move moves n pages to another region's place, page at of it.
func move(from, to mm.Region, at uint64, n mm.Pages) []mm.Op {
	o := op(mm.OpRemap, from, 0, n, uint64(n))
	o.Flags, o.Aux = mm.RemapFixed|mm.RemapMayMove, uint64(to)
	return []mm.Op{o, {Kind: mm.OpNote, Space: self, Arg: addrOf(to) + at}}
}

// repeat is ops n times.
func repeat(n int, ops ...mm.Op) []mm.Op {
	var all []mm.Op
	for range n {
		all = append(all, ops...)
	}
	return all
}

// small begins every workload of small pages, whatever the host's settings.
func (k *maker) small(r mm.Region, n mm.Pages) step {
	return step{ops: []mm.Op{k.mapping(r, n), advise(r, n, mm.AdviseNoHugePage)}}
}

// blocks begins every workload of blocks of the PMD's size.
func (k *maker) blocks(r mm.Region) step {
	return step{ops: []mm.Op{k.mapping(r, k.huge), advise(r, k.huge, mm.AdviseHugePage)}}
}

// all makes every workload.
func (k *maker) all() []workload {
	w := []workload{k.faults(), k.singles(), k.reads(), k.tables(), k.populate(), k.kernelFaults(),
		k.fileFaults(), k.copies(), k.moves(), k.calls(), k.heap(), k.processes()}
	for o := mm.MinTHPOrder; o < k.PMD; o++ {
		w = append(w, k.size(o))
	}
	return append(w, k.thp(), k.splits(), k.collapse(), k.fresh())
}

func (k *maker) faults() workload {
	n := k.n
	return workload{name: "small pages", warm: n, steps: []step{
		k.small(regionA, n),
		{name: smallFault, ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n},
		{name: "mprotect to read, small pages", ops: []mm.Op{protect(regionA, 0, n, mm.Read)}, per: n},
		{name: "mprotect to write, small pages", ops: []mm.Op{protect(regionA, 0, n, mm.Read|mm.Write)}, per: n},
		{name: "madvise(MADV_DONTNEED), small pages", ops: []mm.Op{advise(regionA, n, mm.AdviseDontNeed)}, per: n},
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "munmap, small pages", ops: []mm.Op{unmap(regionA, n)}, per: n},
	}}
}

// smallFault is the commonest step of all.
const smallFault = "write fault, small page"

// hotFault and coldFault are the steps that tell what a fault costs more
// between a program's own work than back to back.
const (
	hotFault    = "write fault, one by one"
	coldFault   = "write fault, caches cold"
	tracedFault = "write fault, recorded"
)

// freshFault and blockFault tell what a block takes that the hypervisor has to
// back first.
const freshFault = "write fault, fresh block"

func (k *maker) blockFault() string { return "write fault, block of " + k.Name(k.PMD) }

func (k *maker) singles() workload {
	n := mm.Pages(256)
	cold := touch(regionA, n, 1, mm.Write)
	cold.Page = uint64(n)
	traced := cold
	traced.Page = 2 * uint64(n)
	return workload{name: "single faults", warm: 3 * n, steps: []step{
		k.small(regionA, 3*n),
		{name: hotFault, ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n, at: half, single: true, hot: true},
		{name: tracedFault, ops: []mm.Op{traced}, per: n, at: half, single: true, hot: true, traced: true},
		{name: coldFault, ops: []mm.Op{cold}, per: n, at: half, single: true, cold: true, hot: true},
		{ops: []mm.Op{unmap(regionA, 3*n)}},
	}}
}

func (k *maker) reads() workload {
	n := k.n
	return workload{name: "reads", warm: n, steps: []step{
		k.small(regionA, n),
		{name: "read fault, small page", ops: []mm.Op{touch(regionA, n, 1, mm.Read)}, per: n},
		{name: "write after read", ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) tables() workload {
	const tables = 128
	n := tables * k.PMD.Pages()
	return workload{name: "tables", warm: 2 * tables, steps: []step{
		k.small(regionA, n),
		{name: "write fault, table too", per: tables,
			ops: []mm.Op{touch(regionA, tables, int32(k.PMD.Pages()), mm.Write)}},
		{name: "munmap, one page a table", ops: []mm.Op{unmap(regionA, n)}, per: tables},
	}}
}

func (k *maker) populate() workload {
	n := k.n
	return workload{name: "populate", warm: n, steps: []step{
		k.small(regionA, n),
		{name: "madvise(MADV_POPULATE_WRITE)", ops: []mm.Op{advise(regionA, n, mm.AdvisePopulateWrite)}, per: n},
		{name: firstAccess, ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

// firstAccess is the step that costs the kernel nothing: what it takes is the
// processor's, or the hypervisor's.
const firstAccess = "first access, page present"

// copyFault is the step whose faults copy a page.
const copyFault = "write fault, copy"

// fileFault is the step of faults on a cached file.
const fileFault = "fault on a cached file, munmap"

func (k *maker) kernelFaults() workload {
	n := k.n
	return workload{name: "kernel mode", warm: n, steps: []step{
		k.small(regionA, n),
		{name: "write fault in a system call", ops: []mm.Op{touch(regionA, n, 1, mm.Write|mm.KernelMode)}, per: n},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

// aroundBytes is how much one fault on a cached file maps, by default. Linux:
// mm/memory.c:fault_around_pages (v6.18).
const aroundBytes = 64 << 10

func (k *maker) fileFaults() workload {
	around := max(1, mm.Pages(aroundBytes/k.Base))
	n := k.n
	file := k.mapping(regionA, n)
	file.Flags, file.Access = mm.MapFile, mm.Read
	return workload{name: "file", steps: []step{
		{ops: []mm.Op{file}},
		{name: fileFault, per: n / around,
			ops: []mm.Op{touch(regionA, n/around, int32(around), mm.Read), unmap(regionA, n)}},
	}}
}

func (k *maker) copies() workload {
	n := k.PMD.Pages()
	fork := op(mm.OpFork, 0, 0, 0, uint64(child))
	exit := mm.Op{Kind: mm.OpExit, Space: child}
	return workload{name: "fork", warm: 2 * n, steps: []step{
		k.small(regionA, n),
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "fork with small pages", ops: []mm.Op{fork}, per: n},
		{name: copyFault, ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n},
		{name: "exit of the child", ops: []mm.Op{exit}, per: n},
		{ops: []mm.Op{fork, exit}},
		{name: "write fault, reuse", ops: []mm.Op{touch(regionA, n, 1, mm.Write)}, per: n},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) moves() workload {
	n, out := k.n, uint64(k.Base)
	var entries, tables []mm.Op
	for range 2 {
		entries = append(append(entries, move(regionA, regionB, out, n)...), move(regionB, regionA, 0, n)...)
	}
	for range 32 {
		tables = append(append(tables, move(regionA, regionB, 0, n)...), move(regionB, regionA, 0, n)...)
	}
	return workload{name: "mremap", warm: n, steps: []step{
		k.small(regionA, n),
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "mremap by entries", ops: entries, per: 4 * n},
		{name: "mremap by tables", ops: tables, per: 64 * n / k.PMD.Pages()},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) calls() workload {
	const n = 16
	r, w := protect(regionA, 0, n, mm.Read), protect(regionA, 0, n, mm.Read|mm.Write)
	mr, mw := protect(regionA, 5, 1, mm.Read), protect(regionA, 5, 1, mm.Read|mm.Write)
	grow, shrink := op(mm.OpRemap, regionA, 0, n, 2*n), op(mm.OpRemap, regionA, 0, 2*n, n)
	lock, unlock := op(mm.OpLock, regionA, 0, 1, 0), op(mm.OpUnlock, regionA, 0, 1, 0)
	grow.Aux, shrink.Aux = uint64(regionA), uint64(regionA)
	return workload{name: "calls", steps: []step{
		{name: "mmap, munmap", ops: repeat(rounds, k.mapping(regionA, n), unmap(regionA, n)), per: rounds, hot: true},
		{ops: []mm.Op{k.mapping(regionA, n)}},
		{name: "mprotect, nothing mapped", ops: repeat(rounds/2, r, w), per: rounds, hot: true},
		{name: "mprotect, split and merge", ops: repeat(rounds/2, mr, mw), per: rounds, hot: true},
		{name: "madvise, nothing mapped", ops: repeat(rounds, advise(regionA, n, mm.AdviseDontNeed)), per: rounds, hot: true},
		{name: "mremap, grow and shrink", ops: repeat(rounds/2, grow, shrink), per: rounds, hot: true},
		{ops: []mm.Op{op(mm.OpPopulate, regionA, 0, 1, 0)}},
		{name: "mlock, munlock of a page", ops: repeat(rounds/2, lock, unlock), per: rounds, hot: true},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) heap() workload {
	n := k.n
	up, down := op(mm.OpBrk, regionHeap, 0, n, 0), op(mm.OpBrk, regionHeap, 0, 0, 0)
	return workload{name: "heap", steps: []step{
		{name: "brk up, down", ops: repeat(rounds/2, up, down), per: rounds, hot: true}}}
}

// processes has the program that is run: one page of text that exits at once.
func (k *maker) processes() workload {
	const each = 4
	in := func(o mm.Op, s mm.Space) mm.Op { o.Space = s; return o }
	fork := op(mm.OpFork, 0, 0, 0, uint64(child))
	text := in(k.mapping(regionText, 1), program)
	text.Flags, text.Access = mm.MapFile|mm.MapAtExec, mm.Read|mm.Exec
	stack := in(k.mapping(regionStack, 2048), program)
	stack.Flags, stack.Page, stack.Aux = mm.MapGrowsDown|mm.MapAtExec, 2048-33, uint64(mm.AreaStack)
	stack.Arg += stack.Page * uint64(k.Base)
	write := in(touch(regionStack, 1, 1, mm.Write|mm.KernelMode), program)
	write.Page = 2047
	run := []mm.Op{fork, {Kind: mm.OpExec, Space: program, Arg: uint64(child)}, {Kind: mm.OpExit, Space: child},
		text, stack, write, in(touch(regionText, 1, 1, mm.Read|mm.Exec), program),
		{Kind: mm.OpExit, Space: program}}
	return workload{name: "processes", steps: []step{
		{name: "fork, exit", ops: repeat(each, fork, mm.Op{Kind: mm.OpExit, Space: child}), per: each},
		{name: "fork, exec, exit", ops: repeat(each, run...), per: each},
	}}
}

// size has blocks of order o in maps of half the PMD's size, each under a
// table of its own, so that no setting of larger sizes can interfere.
func (k *maker) size(o mm.Order) workload {
	const slots = 8
	per := k.PMD.Pages() / 2
	var start, faults, rest, end []mm.Op
	for i := range slots {
		r := regionSlots
		m := k.mapping(r+mm.Region(i), per)
		m.Arg = addrOf(r) + uint64(i)*uint64(k.Bytes(k.PMD))
		start = append(start, m, advise(m.Region, per, mm.AdviseHugePage))
		faults = append(faults, touch(m.Region, per>>o, int32(o.Pages()), mm.Write))
		rest = append(rest, touch(m.Region, per, 1, mm.Write))
		end = append(end, unmap(m.Region, per))
	}
	return workload{name: "blocks of " + k.Name(o), order: o, warm: slots * per, steps: []step{
		{ops: start},
		{name: "write fault, block of " + k.Name(o), ops: faults, per: slots * per >> o},
		{ops: rest},
		{name: "munmap, blocks of " + k.Name(o), ops: end, per: slots * per},
	}}
}

func (k *maker) thp() workload {
	n, block := k.huge, int32(k.PMD.Pages())
	r, w := protect(regionA, 0, n, mm.Read), protect(regionA, 0, n, mm.Read|mm.Write)
	fork, exit := op(mm.OpFork, 0, 0, 0, uint64(child)), mm.Op{Kind: mm.OpExit, Space: child}
	var tables []mm.Op
	for range 16 {
		tables = append(append(tables, move(regionA, regionB, 0, n)...), move(regionB, regionA, 0, n)...)
	}
	name := k.Name(k.PMD)
	return workload{name: "blocks of " + name, order: k.PMD, warm: n, steps: []step{
		k.blocks(regionA),
		{name: k.blockFault(), ops: []mm.Op{touch(regionA, blocks, block, mm.Write)}, per: blocks, at: usual},
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "mprotect, blocks of " + name, ops: repeat(16, r, w), per: 32 * blocks},
		{name: "mremap, blocks of " + name, ops: tables, per: 32 * blocks},
		{ops: []mm.Op{fork, exit}},
		{name: "write fault, reuse of " + name, ops: []mm.Op{touch(regionA, blocks, block, mm.Write)}, per: blocks},
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "munmap, blocks of " + name, ops: []mm.Op{unmap(regionA, n)}, per: blocks},
	}}
}

// fresh takes more blocks than were used lately.
func (k *maker) fresh() workload {
	const many = 4 * blocks
	n := many * k.PMD.Pages()
	return workload{name: "fresh memory", order: k.PMD, seldom: true, steps: []step{
		{ops: []mm.Op{k.mapping(regionA, n), advise(regionA, n, mm.AdviseHugePage)}},
		{name: freshFault, ops: []mm.Op{touch(regionA, many, int32(k.PMD.Pages()), mm.Write)}, per: many,
			at: half, single: true, hot: true},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) splits() workload {
	n, block := k.huge, k.PMD.Pages()
	var guard, punch []mm.Op
	for i := range uint64(blocks) {
		if i%2 == 0 {
			guard = append(guard, protect(regionA, i*uint64(block)+7, 1, mm.Read))
		} else {
			punch = append(punch, op(mm.OpAdvise, regionA, i*uint64(block)+7, 1, uint64(mm.AdviseDontNeed)))
		}
	}
	return workload{name: "splits", order: k.PMD, warm: n, steps: []step{
		k.blocks(regionA),
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write)}},
		{name: "mprotect of a page of a block", ops: guard, per: blocks / 2},
		{name: "MADV_DONTNEED of a page of a block", ops: punch, per: blocks / 2},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}

func (k *maker) collapse() workload {
	n := k.n
	return workload{name: "collapse", order: k.PMD, warm: 2 * n, steps: []step{
		k.small(regionA, n),
		{ops: []mm.Op{touch(regionA, n, 1, mm.Write), advise(regionA, n, mm.AdviseHugePage)}},
		{name: "madvise(MADV_COLLAPSE)", per: n / k.PMD.Pages(),
			ops: []mm.Op{advise(regionA, n, mm.AdviseCollapse)}},
		{ops: []mm.Op{unmap(regionA, n)}},
	}}
}
