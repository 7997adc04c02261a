package workload

import (
	"fmt"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// MigrateHow says what is moved and in what form.
type MigrateHow uint8

// Forms. All but MigrateOne move 2 MB.
const (
	MigrateOne   MigrateHow = iota // one small page
	MigrateSmall                   // memory that never was huge: 512 small pages
	MigrateWhole                   // a huge page, whole
	MigrateSplit                   // a huge page, split first and moved as 512 pages
)

// Migration is what one move_pages call took, by stage, in nanoseconds.
type Migration struct {
	Split    float64 // before the call: the splitting, for MigrateSplit
	Call     float64 // the call, draining of per-CPU lists, lookup and isolation
	Unmap    float64 // target frames, splitting that the kernel itself needs, migration entries, flushes
	Copy     float64 // the bytes
	State    float64 // flags, charge and lists of the new folio
	Remap    float64 // entries back, old frames freed
	Counters mm.Counters
	Flushes  uint64
}

// Total is the time of the call.
func (m *Migration) Total() float64 { return m.Call + m.InKernel() }

// InKernel is what the kernel's migrate_pages() takes of it.
func (m *Migration) InKernel() float64 { return m.Unmap + m.CopyAndState() + m.Remap }

// CopyAndState is what moving content and state takes of that.
func (m *Migration) CopyAndState() float64 { return m.Copy + m.State }

// migrateStages are the stages that work belongs to. What is not here is no
// work of a migration, and an error.
var migrateStages = map[mm.Prim]func(*Migration) *float64{
	mm.PrimMigrateCall: stageCall, mm.PrimLRUDrain: stageCall, mm.PrimIsolate: stageCall,
	mm.PrimAllocPCP: stageUnmap, mm.PrimAllocRefill: stageUnmap, mm.PrimAllocBuddy: stageUnmap,
	mm.PrimExpand: stageUnmap, mm.PrimZoneLock: stageUnmap, mm.PrimMigrateOut: stageUnmap,
	mm.PrimMigrateOutPMD: stageUnmap, mm.PrimRmapRemove: stageUnmap, mm.PrimPTELock: stageUnmap,
	mm.PrimFlush: stageUnmap, mm.PrimFolioSplit: stageUnmap, mm.PrimPMDSplit: stageUnmap,
	mm.PrimPTESet: stageUnmap, mm.PrimDeferred: stageUnmap, mm.PrimMigrateMove: stageState, mm.PrimCopyMigrate: stageCopy,
	mm.PrimMigrateIn: stageRemap, mm.PrimMigrateInPMD: stageRemap, mm.PrimRmapAdd: stageRemap,
	mm.PrimFreePCP: stageRemap, mm.PrimFreeBuddy: stageRemap, mm.PrimMerge: stageRemap,
}

func stageCall(m *Migration) *float64  { return &m.Call }
func stageUnmap(m *Migration) *float64 { return &m.Unmap }
func stageCopy(m *Migration) *float64  { return &m.Copy }
func stageState(m *Migration) *float64 { return &m.State }
func stageRemap(m *Migration) *float64 { return &m.Remap }

// scaled is work whose price migrate.scale moves.
var scaled = map[mm.Prim]bool{mm.PrimIsolate: true, mm.PrimMigrateOut: true, mm.PrimMigrateOutPMD: true,
	mm.PrimMigrateMove: true, mm.PrimMigrateIn: true, mm.PrimMigrateInPMD: true}

// Migrate moves memory from one node to the other by one call of move_pages,
// under the rules given, and prices the work for the machine.
func Migrate(hwm *hw.Machine, rules mm.Rules, how MigrateHow) (*Migration, error) {
	m, at, err := migrateSetup(hwm, rules, how)
	if err != nil {
		return nil, err
	}
	out := &Migration{}
	c := &mm.Current{}
	if how == MigrateSplit {
		if n := m.SplitHugePages(c, 1, at, 512); n != 1 {
			return nil, fmt.Errorf("migrate: %d huge pages were split, want 1", n)
		}
		out.Split = float64(hwm.Costs().Price(&c.Work))
		c.Work = mm.Work{}
	}
	n := mm.Pages(512)
	if how == MigrateOne || how == MigrateWhole {
		n = 1
	}
	pages, nodes, status := make([]mm.VA, n), make([]mm.NodeID, n), make([]int32, n)
	for i := range pages {
		pages[i], nodes[i] = at+mm.VA(i)<<12, 1
	}
	before := m.Counters
	if e := m.MovePages(c, 1, pages, nodes, status, false); e != mm.OK {
		return nil, fmt.Errorf("migrate: move_pages: %w", e)
	}
	for i, s := range status {
		if s != 1 {
			return nil, fmt.Errorf("migrate: page %d: status %d", i, s)
		}
	}
	out.Counters = difference(&m.Counters, &before)
	out.Flushes = uint64(c.Work[mm.PrimFlush])
	order := mm.Order(0)
	if how == MigrateWhole {
		order = 9
	}
	return out, out.price(hwm, &c.Work, order)
}

// difference is how far the vmstat counters moved.
func difference(now, before *mm.Counters) mm.Counters {
	d := *now
	for i := range d.VM {
		d.VM[i] -= before.VM[i]
	}
	return d
}

// migrateSetup makes a machine with a program that has touched its memory, all
// of it on the first node, and says where it begins.
func migrateSetup(hwm *hw.Machine, rules mm.Rules, how MigrateHow) (*mm.Machine, mm.VA, error) {
	half := hwm.Int("cpu.sockets") * hwm.Int("cpu.cores") * hwm.Int("cpu.threads") / 2
	far := make([]mm.CPU, half)
	for i := range far {
		far[i] = mm.CPU(half + i)
	}
	p := mm.DefaultPolicy(mm.Sizes{Base: 4096, PMD: 9})
	p.Enabled, p.Size[9] = mm.Madvise, mm.Inherit
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 8 << 30}, {Mem: 8 << 30, CPUs: far}}, CPUs: 2 * half,
		Rules: rules, Policy: p})
	if err != nil {
		return nil, 0, fmt.Errorf("migrate: %w", err)
	}
	const length = 1024 // twice what is moved, so that an aligned half lies inside
	advice := mm.AdviseNoHugePage
	if how == MigrateWhole || how == MigrateSplit {
		advice = mm.AdviseHugePage
	}
	out := make([]mm.Result, 3)
	if _, err := m.Exec([]mm.Op{
		{Kind: mm.OpExec, Space: 1},
		{Kind: mm.OpMap, Space: 1, Region: 1, N: length, Access: mm.Read | mm.Write},
		{Kind: mm.OpAdvise, Space: 1, Region: 1, N: length, Arg: uint64(advice)},
	}, out); err != nil {
		return nil, 0, fmt.Errorf("migrate: %w", err)
	}
	base := out[1].Addr
	at := (base + 2<<20 - 1) &^ (2<<20 - 1)
	if _, err := m.Exec([]mm.Op{{Kind: mm.OpTouch, Space: 1, Region: 1, Page: uint64(at-base) >> 12, N: 512,
		Stride: 1, Access: mm.Write}}, nil); err != nil {
		return nil, 0, fmt.Errorf("migrate: %w", err)
	}
	want := mm.Order(0)
	if advice == mm.AdviseHugePage {
		want = 9
	}
	if in := m.PageInfo(1, at); in.Order != want {
		return nil, 0, fmt.Errorf("migrate: the memory lies in pages of order %d, want %d", in.Order, want)
	}
	return m, at, nil
}

// price sorts the work into stages.
func (m *Migration) price(hwm *hw.Machine, w *mm.Work, order mm.Order) error {
	costs, scale := hwm.Costs(), hwm.Get("migrate.scale")
	for i, n := range w {
		p := mm.Prim(i)
		if n == 0 {
			continue
		}
		stage, ok := migrateStages[p]
		if !ok {
			return fmt.Errorf("migrate: %d of %s: no stage has it", n, p)
		}
		each := costs.Nanos[i]
		switch {
		case p == mm.PrimCopyMigrate:
			each = copyToOtherNode(hwm)
		case scaled[p]:
			each *= scale
		}
		*stage(m) += each * float64(n)
	}
	if order > 0 {
		here, there := structPages(hwm, order)
		m.Unmap += there
		m.Remap += here
	}
	return nil
}

// copyToOtherNode is the time to copy one page to another node. A core's
// copying is bound by how many missing lines it keeps in flight: copy.rate says
// how fast that is where source and target have the latency of the own node,
// and with a target on another node every second miss takes longer. A page is
// one instruction (rep movs), whose misses do not overlap with what stands
// before it: its first line is waited for.
func copyToOtherNode(m *hw.Machine) float64 {
	near, far := m.Get("memory.latency"), m.Get("memory.remote_latency")
	rate := m.Get("copy.rate") * 2 * near / (near + far)
	return 4096/rate + near
}

// structPages is the time that the page structs of a block take, which the
// allocator makes a compound page of and takes apart when it frees it: a
// missing line each, as many at a time as a core keeps in flight.
func structPages(m *hw.Machine, o mm.Order) (here, there float64) {
	lines := float64(o.Pages()) * 64 / m.Get("line")
	return lines * m.Get("memory.latency") / m.Get("cpu.fill_buffers"),
		lines * m.Get("memory.remote_latency") / m.Get("cpu.fill_buffers")
}
