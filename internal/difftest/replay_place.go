package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// replayCall is one operation of a recording at the addresses where the model
// has it: what the kernel is to do.
type replayCall struct {
	op *mm.Op
	at mm.VA    // where it begins
	n  mm.Pages // its length
	to mm.VA    // a remap's result
}

// replayModel is the model of a replay. It places every operation: the kernel
// follows, so that both have the same addresses whatever lay where when it was
// recorded.
type replayModel struct {
	m   *mm.Machine
	out [2]mm.Result
}

// do does ops[0], and the note that may follow it, and says where that was.
func (r *replayModel) do(ops []mm.Op) (c replayCall, e mm.Errno, err error) {
	op := &ops[0]
	c = replayCall{op: op, n: op.N}
	if named(op.Kind) {
		c.at, _ = r.m.Addr(op.Space, op.Region, op.Page)
	}
	_, err = r.m.Exec(ops, r.out[:len(ops)])
	e = r.out[0].Errno
	switch op.Kind {
	case mm.OpMap:
		c.at = r.out[0].Addr
		if op.Flags&mm.MapGrowsDown != 0 && op.Flags&mm.MapAtExec != 0 {
			c.n -= mm.Pages(op.Page) // the region is all that the stack may grow into
		}
	case mm.OpRemap:
		c.to = r.out[0].Addr
	case mm.OpBrk:
		c.at, _ = r.m.Addr(op.Space, op.Region, 0)
	}
	return c, e, err
}

// named says whether operations of a kind work on a range of a region.
func named(k mm.OpKind) bool {
	switch k {
	case mm.OpTouch, mm.OpUnmap, mm.OpRemap, mm.OpProtect, mm.OpAdvise, mm.OpLock, mm.OpUnlock,
		mm.OpPopulate, mm.OpResident:
		return true
	}
	return false
}

// span is the range of addresses that a call names, 0 and 0 for none.
func (c *replayCall) span() (from, to uint64) {
	size := func(n mm.Pages) uint64 { return uint64(min(n, 1<<40)) * pageSize }
	if c.op.Kind != mm.OpTouch {
		return uint64(c.at), uint64(c.at) + size(c.n)
	}
	if c.n == 0 {
		return 0, 0
	}
	last := int64(c.n-1) * int64(c.op.Stride) * pageSize
	from, to = uint64(c.at), uint64(int64(c.at)+last)
	return min(from, to), max(from, to) + pageSize
}

// String says what was done, for people.
func (c *replayCall) String() string {
	op := c.op
	name, ok := replayNames[op.Kind]
	if !ok {
		name = fmt.Sprintf("operation of kind %d", op.Kind)
	}
	s := fmt.Sprintf("space %d: %s", op.Space, name)
	if from, to := c.span(); to > from {
		s += fmt.Sprintf(" %#x-%#x", from, to)
	}
	switch op.Kind {
	case mm.OpTouch:
		if s += " read"; op.Access&mm.Write != 0 {
			s = s[:len(s)-4] + "write"
		}
		if op.Stride != 1 && op.N > 1 {
			s += fmt.Sprintf(", every %d pages", op.Stride)
		}
	case mm.OpMap:
		switch {
		case op.Flags&fileBacked != 0:
			s += " of a file"
		case op.Flags&mm.MapShared != 0:
			s += " shared"
		}
	case mm.OpRemap:
		s += fmt.Sprintf(" to %#x, %d pages", uint64(c.to), op.Arg)
	case mm.OpAdvise, mm.OpFork, mm.OpLockAll, mm.OpTHPDisable:
		s += fmt.Sprintf(" %d", op.Arg)
	}
	return s
}

var replayNames = map[mm.OpKind]string{
	mm.OpTouch: "touch", mm.OpMap: "map", mm.OpUnmap: "unmap", mm.OpRemap: "remap", mm.OpProtect: "protect",
	mm.OpAdvise: "advise", mm.OpBrk: "brk", mm.OpLock: "lock", mm.OpUnlock: "unlock", mm.OpLockAll: "lock all",
	mm.OpFork: "fork", mm.OpExec: "exec", mm.OpExit: "exit", mm.OpTHPDisable: "prctl thp-disable",
	mm.OpPopulate: "populate", mm.OpResident: "resident pages",
}

// fileBacked are the flags of maps that a file stands in for.
const fileBacked = mm.MapFile | mm.MapHugetlb | mm.MapSpecial

// knownAdvice lists what a replay asks the kernel for: advice that acts on the
// caller's memory alone. Poisoning pages, which it may ask for too, does not.
func knownAdvice(a mm.Advice) bool {
	switch a {
	case mm.AdviseNormal, mm.AdviseMergeable, mm.AdviseUnmergeable, mm.AdvisePageOut, mm.AdviseDontNeed,
		mm.AdviseFree, mm.AdviseRemove, mm.AdviseDontFork, mm.AdviseDoFork,
		mm.AdviseHugePage, mm.AdviseNoHugePage, mm.AdviseDontDump, mm.AdviseDoDump, mm.AdviseWipeOnFork,
		mm.AdviseKeepOnFork, mm.AdviseCold, mm.AdvisePopulateRead, mm.AdvisePopulateWrite,
		mm.AdviseDontNeedLocked, mm.AdviseCollapse, mm.AdviseGuardInstall, mm.AdviseGuardRemove:
		return true
	}
	return false
}
