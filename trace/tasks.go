package trace

import "github.com/hugelab/hugelab/mm"

/*
Tasks and their address spaces. State is kept by space, not by process:

	            clone(CLONE_VM), vfork: users+1          fork: a copy
	(no space) --exec--> space, users 1 --exec--> new space; the old one: users-1
	                     users 0: OpExit
*/

// task is one thread.
type task struct {
	tid, pid int32
	space    *space
}

// group is one process: its threads alive, and the space they use.
type group struct {
	threads int
	space   *space
}

// space is one address space.
type space struct {
	id    mm.Space
	users int // tasks
	maps  *spans

	heap      mm.Region // 0: not known yet
	heapStart uint64    // page
	brk       uint64    // page behind the heap's last
	exe       exe
	stackAt   uint64 // the stack pointer at exec, 0 not known
}

// task returns the event's thread; nil when it has no address space: it stands
// before its first exec, or the recording does not know it.
func (p *Replay) task(e *Event) *task {
	if t := p.last; t != nil && t.tid == e.TID && t.pid == e.PID {
		return t
	}
	t := p.tasks[e.TID]
	if t != nil && t.pid != e.PID && e.PID != 0 {
		p.drop(t) // the number was used again and the end not seen
		t = nil
	}
	if t == nil {
		g := p.groups[e.PID]
		if g == nil || g.space == nil {
			return nil
		}
		t = p.join(e.TID, e.PID, g.space) // its beginning was not seen
	}
	p.last = t
	return t
}

// found gives the process of an attached recording its space: its maps come
// with no exec before them.
func (p *Replay) found(e *Event) *task {
	if !p.r.Header.Attached || e.Kind != KindMapAt && e.Kind != KindBrkAt {
		return nil
	}
	sp := p.newSpace()
	p.emit(mm.Op{Kind: mm.OpExec, Space: sp.id, Thread: mm.Thread(e.TID)})
	return p.join(e.TID, e.PID, sp)
}

func (p *Replay) newSpace() *space {
	sp := &space{id: p.nextSpace, maps: &spans{}}
	p.nextSpace++
	p.stats.Spaces++
	return sp
}

// join makes a task that uses sp.
func (p *Replay) join(tid, pid int32, sp *space) *task {
	if old := p.tasks[tid]; old != nil {
		p.drop(old)
	}
	g := p.groups[pid]
	if g == nil {
		g = &group{}
		p.groups[pid] = g
	}
	g.threads++
	g.space = sp
	sp.users++
	t := &task{tid, pid, sp}
	p.tasks[tid] = t
	return t
}

// drop forgets a task; the last user's end is the space's.
func (p *Replay) drop(t *task) {
	delete(p.tasks, t.tid)
	if p.last == t {
		p.last = nil
	}
	if g := p.groups[t.pid]; g != nil {
		if g.threads--; g.threads == 0 {
			delete(p.groups, t.pid)
		}
	}
	if t.space.users--; t.space.users == 0 {
		p.emit(mm.Op{Kind: mm.OpExit, Space: t.space.id, Thread: mm.Thread(t.tid)})
	}
}

func (p *Replay) newTask(e *Event) {
	t := p.task(e)
	if t == nil || refused(e.Ret) {
		return
	}
	tid, pid := int32(e.A), int32(e.C)
	if pid == 0 {
		pid = tid
	}
	if child := p.tasks[tid]; child != nil && child.pid == pid && child.space == t.space && e.B&cloneVM != 0 {
		return // seen through its own events first
	}
	sp := t.space
	if e.B&cloneVM == 0 {
		sp = p.newSpace()
		id := sp.id
		*sp = *t.space
		sp.id, sp.users, sp.maps = id, 0, t.space.maps.copy()
		p.emit(mm.Op{Kind: mm.OpFork, Space: t.space.id, Thread: mm.Thread(t.tid), Arg: uint64(id)})
	}
	p.join(tid, pid, sp)
}

func (p *Replay) exec(e *Event) {
	t := p.tasks[int32(e.A)]
	if t == nil || t.pid != e.PID {
		t = p.tasks[e.TID]
	}
	sp := p.newSpace()
	sp.stackAt = e.B
	op := mm.Op{Kind: mm.OpExec, Space: sp.id, Thread: mm.Thread(e.TID), Aux: e.C & 1}
	if t != nil {
		op.Arg = uint64(t.space.id)
	}
	p.emit(op)
	if t != nil {
		p.drop(t)
	}
	p.dropGroup(e.PID) // exec ended its other threads
	p.last = p.join(e.TID, e.PID, sp)
}

// dropGroup drops the threads of a process that are still known.
func (p *Replay) dropGroup(pid int32) {
	g := p.groups[pid]
	if g == nil {
		return
	}
	var left []int32
	for tid, t := range p.tasks {
		if t.pid == pid {
			left = append(left, tid)
		}
	}
	for _, tid := range left {
		p.drop(p.tasks[tid])
	}
}

func (p *Replay) exit(e *Event) {
	if t := p.tasks[e.TID]; t != nil && (t.pid == e.PID || e.PID == 0) {
		p.drop(t)
	}
	if e.A == 1 {
		p.dropGroup(e.PID)
	}
}
