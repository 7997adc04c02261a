package mm

import (
	"errors"
	"fmt"
)

// ErrOOM is what Exec returns where Config.StopAtOOM ends it.
var ErrOOM = errors.New("out of memory")

// execState is what Exec keeps between calls.
type execState struct {
	cur   Current
	done  WorkSum // the program's work, all but what cur holds
	moved lastRemap

	// region is the one that the operation under way names, 0 between
	// operations and where usage by region is not kept.
	region Region
}

// lastRemap is the remap that an OpNote may still tell the address of.
type lastRemap struct {
	op Op
	at VA // where it landed; 0: no remap is open
}

func opError(op *Op, what string) error {
	return fmt.Errorf("op kind %d of space %d: %s", op.Kind, op.Space, what)
}

func errUnknownRegion(op *Op, r Region) error {
	return opError(op, fmt.Sprintf("region %d is not mapped there", r))
}

// spaceOf is the space numbered id, nil if there is none.
func (m *Machine) spaceOf(id Space) *space {
	if int(id) < len(m.spaces) {
		return m.spaces[id]
	}
	return nil
}

// Exec does operations in order on the machine, as the named CPU of each. out
// may be nil, or as long as ops. A refusal of the modelled kernel is a
// Result.Errno; an error means that ops[n] makes no sense.
//
// Between operations time moves to Op.When: khugepaged runs, per-CPU lists
// drain, Usage.Integral grows.
func (m *Machine) Exec(ops []Op, out []Result) (n int, err error) {
	c := &m.exec.cur
	defer m.exec.done.Take(&c.Work)
	if len(ops) > 0 && ops[0].Kind != OpNote {
		m.exec.moved = lastRemap{}
	}
	var spare Result
	for i := range ops {
		op := &ops[i]
		if op.When > c.Now {
			c.Now = op.When
			m.tick(op.When)
		}
		c.CPU = op.CPU
		res := &spare
		if out != nil {
			res = &out[i]
		}
		*res = Result{}
		if m.cfg.ByRegion {
			m.exec.region = op.Region
		}
		before := m.Usage.Faults
		if op.Kind == OpTouch {
			err = m.opTouch(c, op)
		} else {
			err = m.other(c, ops, i, res)
			m.endHuge(c)
		}
		m.exec.region = 0
		if err != nil {
			return i, fmt.Errorf("operation %d: %w", i, err)
		}
		if faults := m.Usage.Faults - before; faults != 0 {
			res.Faults = uint32(min(faults, 1<<32-1))
			if m.cfg.ByRegion {
				m.region(op.Region).Faults += faults
			}
			if m.Usage.OOM != 0 && m.cfg.StopAtOOM {
				return i + 1, ErrOOM
			}
		}
	}
	return len(ops), nil
}

// Advance moves time on to now with no operation: khugepaged runs.
func (m *Machine) Advance(now Nanos) {
	if c := &m.exec.cur; now > c.Now {
		c.Now = now
		m.tick(now)
	}
}

// programWork is all that programs did through Exec.
func (m *Machine) programWork() *WorkSum {
	m.exec.done.Take(&m.exec.cur.Work)
	return &m.exec.done
}

// opTouch does a run of accesses.
func (m *Machine) opTouch(c *Current, op *Op) error {
	if op.Region == 0 {
		m.Usage.Faults += uint64(op.N)
		m.Usage.Unknown += uint64(op.N)
		c.Work.Add(PrimFaultFile, uint32(op.N))
		return nil
	}
	sp := m.spaceOf(op.Space)
	if sp == nil {
		return opError(op, "no such space")
	}
	a, ok := sp.regions.base(op.Region)
	if !ok {
		return errUnknownRegion(op, op.Region)
	}
	a += VA(op.Page) << m.pageShift
	step := VA(int64(op.Stride)) << m.pageShift
	for n := op.N; n > 0; n-- {
		m.touchOne(c, sp, a, op.Access)
		a += step
	}
	return nil
}

// touchOne does one access. A recorded touch of file-backed or shared memory
// was a fault, and is one here; a private mapping of a file may also get an
// anonymous page by it.
func (m *Machine) touchOne(c *Current, sp *space, a VA, acc Access) {
	v := sp.find(a)
	switch {
	case v == nil || v.start > a || v.flags&vmFile == 0 || v.huge != nil || v.shm != nil:
		m.touch(c, sp, a, acc)
	case v.flags&(vmShared|vmSpecials) == 0:
		m.touchPrivateFile(c, sp, v, a, acc)
	default:
		m.Usage.Faults++
		m.Usage.FileFaults++
		sp.faults++
		c.Work.Add(PrimFaultFile, 1)
	}
}

// other does every operation but a touch.
func (m *Machine) other(c *Current, ops []Op, i int, res *Result) error {
	op := &ops[i]
	switch op.Kind {
	case OpNone, OpUnknown:
		return nil
	case OpExec:
		return m.opExec(c, op)
	}
	sp := m.spaceOf(op.Space)
	if sp == nil {
		return opError(op, "no such space")
	}
	var err error
	switch op.Kind {
	case OpMap:
		res.Addr, res.Errno, err = m.opMap(c, sp, op)
	case OpFork:
		err = m.opFork(c, sp, op)
	case OpExit:
		c.Work.Add(PrimExit, 1)
		m.endSpace(c, sp)
	case OpLockAll:
		res.Errno = m.opLockAll(c, sp, op)
	case OpTHPDisable:
		if op.Arg > uint64(THPExceptAdvised) || op.Arg == uint64(THPExceptAdvised) && !m.rules.ExceptAdvised {
			res.Errno = EINVAL
			return nil
		}
		sp.thpDisable = THPDisable(op.Arg)
	case OpNote:
		m.lateNote(c, sp, op)
	default:
		err = m.onRange(c, sp, ops, i, res)
	}
	return err
}

// onRange does the operations on a range of pages.
func (m *Machine) onRange(c *Current, sp *space, ops []Op, i int, res *Result) error {
	op := &ops[i]
	a, ok := sp.regions.base(op.Region)
	if !ok && (op.Kind != OpBrk || sp.brkStart == 0) {
		return errUnknownRegion(op, op.Region)
	}
	a += m.bytes(Pages(op.Page))
	switch op.Kind {
	case OpUnmap:
		res.Errno = m.opUnmap(c, sp, op, a)
	case OpRemap:
		var note VA
		if i+1 < len(ops) && ops[i+1].Kind == OpNote {
			note = m.noteAddr(sp, &ops[i+1])
		}
		res.Addr, res.Errno = m.opRemap(c, sp, op, a, note)
		m.exec.moved = lastRemap{}
		if i+1 == len(ops) && res.Errno == OK {
			m.exec.moved = lastRemap{*op, res.Addr}
		}
	case OpProtect:
		res.Errno = m.opProtect(c, sp, op, a)
	case OpAdvise:
		res.Errno = m.opAdvise(c, sp, op, a)
	case OpBrk:
		res.Errno = m.opBrk(c, sp, op, a)
	case OpLock, OpUnlock:
		res.Errno = m.opLock(c, sp, op, a)
	case OpPopulate:
		res.Errno = m.opPopulate(c, sp, op, a)
	case OpUffd:
		res.Errno = m.opUffd(c, sp, op, a)
	case OpPolicyNode:
		res.Errno = m.opPolicyNode(c, sp, op, a)
	case OpResident:
		m.opResident(c, sp, op, a)
	default:
		return opError(op, "not an operation")
	}
	return nil
}

// noteAddr is the address that a note tells: relative to a region if it names
// one, absolute otherwise.
func (m *Machine) noteAddr(sp *space, note *Op) VA {
	if base, ok := sp.regions.base(note.Region); ok && note.Region != 0 && !m.cfg.AsRecorded {
		return base + m.bytes(Pages(note.Page))
	}
	return VA(note.Arg)
}

// lateNote moves a remap whose note came with the next call of Exec to where
// the note says, at no cost; a note that was read in time has no effect here.
func (m *Machine) lateNote(c *Current, sp *space, note *Op) {
	last := m.exec.moved
	m.exec.moved = lastRemap{}
	if last.at == 0 || last.op.Space != note.Space {
		return
	}
	to := m.noteAddr(sp, note)
	if to == last.at || !m.cfg.AsRecorded && last.op.Flags&RemapFixed == 0 {
		return
	}
	free := Current{CPU: c.CPU, Now: c.Now}
	n := m.bytes(Pages(last.op.Arg))
	q := moveReq{from: last.at, old: n, want: n, to: to, fixed: true, mayMove: true, region: Region(last.op.Aux)}
	if at, e := m.remap(&free, sp, &q); e == OK {
		sp.regions.set(Region(last.op.Aux), at, Pages(last.op.Arg))
	}
}

// opResident puts pages there that were present when the recording began.
func (m *Machine) opResident(c *Current, sp *space, op *Op, a VA) {
	end := a + m.bytes(op.N)
	for v := sp.find(a); v != nil && v.start < end; v = v.next() {
		if from, to := max(a, v.start), min(end, v.end); v.anonymous() {
			m.makeResident(c, sp, v, from, m.span(from, to), Order(op.Arg), op.Access)
		}
	}
}

// opExec begins a space anew. A process's THP-disable state outlives exec.
// Linux: kernel/fork.c:mm_init (v6.18).
func (m *Machine) opExec(c *Current, op *Op) error {
	if op.Space == 0 || op.Space > 1<<31 {
		return opError(op, "an exec in an impossible space")
	}
	c.Work.Add(PrimExec, 1)
	var disable THPDisable
	if left := m.spaceOf(Space(op.Arg)); left != nil {
		disable = left.thpDisable
	}
	if old := m.spaceOf(op.Space); old != nil {
		disable = old.thpDisable
		m.endSpace(c, old)
	}
	sp := m.newSpace(op.Space)
	sp.thpDisable = disable
	sp.compat = op.Aux&1 != 0
	if sp.compat {
		sp.mmapBase = taskSizeCompat - 128<<20
	}
	if m.cfg.Shift != nil && !m.cfg.AsRecorded {
		sp.shift = m.cfg.Shift(m.nextExec)
	}
	m.nextExec++
	return nil
}
