package record

import (
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// decoder turns records, in order of time, into events.
//
//	sys_enter --> place (pending) --lock held--> moved there --sys_exit--> filled
//	COMM exec --> place (pending) --MMAP2s, sched_process_exec, sys_exit--> filled, maps behind it
type decoder struct {
	f     *formats
	q     *queue
	note  func(string)
	start uint64 // CLOCK_MONOTONIC of time 0
	from  uint64 // records before this time are older than the attached state

	tasks map[int32]*task
	procs map[int32]*proc
	live  int // tasks under record

	calls uint64
	late  uint64 // records older than one already decoded
	last  uint64
	event trace.Event
}

// task is one thread under record.
type task struct {
	pid    int32
	call   trace.Event // the call it is in; KindNone outside
	seq    uint64      // the call's place
	locked bool        // the place is where the lock was taken
	exec   *execing
}

// execing is an exec between its new address space and its return.
type execing struct {
	event trace.Event
	seq   uint64
	maps  []mmap2
}

// proc is one thread group under record.
type proc struct {
	threads  int
	compat   bool // runs a 32-bit program
	heapSeen bool // KindBrkAt was written since the exec
}

func newDecoder(f *formats, q *queue, note func(string)) *decoder {
	return &decoder{f: f, q: q, note: note, tasks: map[int32]*task{}, procs: map[int32]*proc{}}
}

// adopt counts a task that is there before the first event.
func (d *decoder) adopt(pid, tid int32) *task {
	t := &task{pid: pid}
	d.tasks[tid] = t
	d.live++
	p := d.procs[pid]
	if p == nil {
		p = &proc{}
		d.procs[pid] = p
	}
	p.threads++
	return t
}

// task finds a thread, which is adopted when it was not known (a lost event).
func (d *decoder) task(pid, tid int32) *task {
	if t := d.tasks[tid]; t != nil {
		return t
	}
	return d.adopt(pid, tid)
}

// decode reads one record of cpu's ring.
func (d *decoder) decode(r *record, cpu mm.CPU) {
	if r.time < d.last {
		d.late++
	} else {
		d.last = r.time
	}
	if r.time < d.from && r.typ != recLost {
		return
	}
	e := &d.event
	*e = trace.Event{CPU: cpu, PID: r.pid, TID: r.tid, When: mm.Nanos(r.time - d.start)}
	switch r.typ {
	case recSample:
		d.sample(r, e)
	case recComm:
		if r.misc&miscCommExec != 0 {
			d.execBegin(r, e)
		}
	case recMmap2:
		d.mapped(r)
	case recExit:
		d.exit(r, e)
	case recLost:
		e.Kind, e.A = trace.KindLost, u64(r.body, 8)
		d.q.add(e)
	}
}

func (d *decoder) sample(r *record, e *trace.Event) {
	f := d.f
	switch id := u16(r.raw, 0); id {
	case 0:
	case f.faultUser, f.faultKernel:
		e.Kind, e.A, e.B = trace.KindFault, u64(r.raw, f.faultAddr), u64(r.raw, f.faultIP)
		if e.A >= userTop {
			return
		}
		e.Access = faultAccess(u64(r.raw, f.faultCode))
		d.q.add(e)
	case f.enter:
		d.enter(r, e)
	case f.exit:
		d.leave(r, e)
	case f.lock:
		d.lockHeld(r, e)
	case f.newtask:
		d.newTask(r, e)
	case f.exec:
		if t := d.tasks[r.tid]; t != nil && t.exec != nil {
			t.exec.event.Name = dataLoc(r.raw, f.execName)
			t.exec.event.A = uint64(u32(r.raw, f.execOld))
		}
	}
}

// userTop is above every user address of 4- and 5-level page tables.
const userTop = 1 << 56

// faultAccess reads a hardware error code.
// Linux: arch/x86/include/asm/trap_pf.h:x86_pf_error_code (v6.18).
func faultAccess(code uint64) mm.Access {
	var a mm.Access
	switch {
	case code&2 != 0:
		a = mm.Write
	case code&16 != 0:
		a = mm.Exec
	default:
		a = mm.Read
	}
	if code&4 == 0 {
		a |= mm.KernelMode
	}
	if code&1 != 0 {
		a |= mm.WasPresent
	}
	return a
}

func (d *decoder) enter(r *record, e *trace.Event) {
	t := d.task(r.pid, r.tid)
	d.abandon(t)
	if p := d.procs[t.pid]; p != nil && p.compat {
		return
	}
	var args [6]uint64
	for i := range args {
		args[i] = u64(r.raw, d.f.enterArgs+8*i)
	}
	nr := int64(u64(r.raw, d.f.enterID))
	call := memoryCall(nr, &args)
	if call.Kind == trace.KindNone {
		return
	}
	if nr == unix.SYS_PROCESS_MADVISE {
		d.note("process_madvise was called: its ranges and its target are not in the recording")
	}
	e.Kind, e.A, e.B, e.C, e.D = call.Kind, call.A, call.B, call.C, call.D
	t.call, t.locked = *e, false
	t.seq = d.q.place(e)
}

// abandon forgets a call whose exit never came.
func (d *decoder) abandon(t *task) {
	if t.call.Kind != trace.KindNone {
		d.q.drop(t.seq)
		t.call.Kind = trace.KindNone
	}
}

// lockHeld moves a call to the time at which it held the address space.
func (d *decoder) lockHeld(r *record, e *trace.Event) {
	t := d.tasks[r.tid]
	if t == nil || t.call.Kind == trace.KindNone || t.locked {
		return
	}
	t.locked = true
	old := t.seq
	t.call.When, t.call.CPU = e.When, e.CPU
	t.seq = d.q.place(&t.call)
	d.q.drop(old)
}

func (d *decoder) leave(r *record, e *trace.Event) {
	t := d.tasks[r.tid]
	if t == nil {
		return
	}
	nr, ret := int64(u64(r.raw, d.f.exitID)), int64(u64(r.raw, d.f.exitRet))
	if t.exec != nil {
		d.execEnd(t, r)
		return
	}
	if nr == unix.SYS_EXECVE || nr == unix.SYS_EXECVEAT || t.call.Kind == trace.KindNone {
		return
	}
	if t.call.Kind == trace.KindNewTask { // refused: task_newtask would have ended it
		d.abandon(t)
		return
	}
	d.calls++
	c := t.call
	c.Ret = ret
	t.call.Kind = trace.KindNone
	if c.Kind == trace.KindBrk {
		d.heap(t, &c)
	}
	if t.locked || !placedAtExit(&c) {
		d.q.fill(t.seq, &c, nil)
		return
	}
	d.q.drop(t.seq)
	c.When, c.CPU = e.When, e.CPU
	d.q.add(&c)
}

// heap tells where the heap begins: the first brk(0) after an exec returns it.
func (d *decoder) heap(t *task, c *trace.Event) {
	p := d.procs[t.pid]
	if p == nil || p.heapSeen {
		return
	}
	p.heapSeen = true
	if c.A == 0 {
		at := *c
		at.Kind, at.A, at.B, at.Ret = trace.KindBrkAt, uint64(c.Ret), uint64(c.Ret), 0
		d.q.add(&at)
	}
}

func (d *decoder) newTask(r *record, e *trace.Event) {
	t := d.task(r.pid, r.tid)
	tid, flags := int32(u32(r.raw, d.f.newPID)), u64(r.raw, d.f.newFlags)
	pid := tid
	if flags&unix.CLONE_THREAD != 0 {
		pid = r.pid
	}
	e.Kind, e.A, e.B, e.C = trace.KindNewTask, uint64(tid), flags, uint64(pid)
	if t.call.Kind == trace.KindNewTask {
		t.call.Kind = trace.KindNone
		if t.locked {
			e.When, e.CPU = t.call.When, t.call.CPU
			d.q.fill(t.seq, e, nil)
		} else {
			d.q.drop(t.seq)
			d.q.add(e)
		}
	} else {
		d.q.add(e)
	}
	if d.tasks[tid] == nil {
		d.adopt(pid, tid)
	}
	if parent, child := d.procs[r.pid], d.procs[pid]; pid != r.pid && parent != nil {
		child.compat, child.heapSeen = parent.compat, parent.heapSeen
	}
}

func (d *decoder) execBegin(r *record, e *trace.Event) {
	t := d.task(r.pid, r.tid)
	d.abandon(t)
	if t.exec != nil {
		d.q.drop(t.exec.seq)
	}
	e.Kind, e.A = trace.KindExec, uint64(r.tid)
	e.Name = cstring(r.body, 8)
	t.exec = &execing{event: *e}
	t.exec.seq = d.q.place(e)
	if p := d.procs[t.pid]; p != nil {
		p.compat, p.heapSeen = false, false
	}
}

// execEnd completes an exec; its maps stand right behind it, before the faults
// that loading the program took.
func (d *decoder) execEnd(t *task, r *record) {
	x := t.exec
	t.exec = nil
	if r != nil {
		var compat bool
		x.event.B, compat = r.sp()
		if compat {
			x.event.C = 1
			d.procs[t.pid].compat = true
			d.note("a 32-bit program ran (" + x.event.Name + "): its memory calls are not in the recording, its faults are")
		}
	}
	maps := settleMaps(x.maps)
	after := make([]trace.Event, len(maps))
	for i, m := range maps {
		after[i] = trace.Event{
			Kind: trace.KindMapAt, CPU: x.event.CPU, TID: x.event.TID, PID: x.event.PID, When: x.event.When,
			A: m.start, B: m.end, C: uint64(m.prot) | uint64(m.flags)<<32, D: m.ident, Name: m.name,
		}
	}
	d.q.fill(x.seq, &x.event, after)
}

// mapped takes what the kernel says of a new mapping: all of it at an exec, and
// what a call's arguments do not tell.
func (d *decoder) mapped(r *record) {
	t := d.tasks[r.tid]
	if t == nil {
		return
	}
	m, ok := r.mmap2()
	if !ok {
		return
	}
	switch {
	case t.exec != nil:
		t.exec.maps = append(t.exec.maps, m)
	case t.call.Kind == trace.KindMmap && m.ident != 0 && t.call.C>>32&unix.MAP_ANONYMOUS == 0:
		t.call.D |= 1 << 32
	case t.call.Kind == trace.KindShmat:
		t.call.B = m.end - m.start
	}
}

func (d *decoder) exit(r *record, e *trace.Event) {
	tid := int32(u32(r.body, 8))
	t := d.tasks[tid]
	if t == nil {
		return
	}
	d.abandon(t)
	if t.exec != nil {
		d.execEnd(t, nil)
	}
	delete(d.tasks, tid)
	d.live--
	e.Kind, e.TID, e.PID = trace.KindExit, tid, t.pid
	if p := d.procs[t.pid]; p != nil {
		if p.threads--; p.threads <= 0 {
			e.A = 1
			delete(d.procs, t.pid)
		}
	}
	d.q.add(e)
}

// finish completes what is still open, at the recording's end.
func (d *decoder) finish() {
	for _, t := range d.tasks {
		d.abandon(t)
		if t.exec != nil {
			d.execEnd(t, nil)
		}
	}
	d.q.flush()
}
