package record

import (
	"fmt"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// born handles the event of a new thread or process, in its parent's stop.
func (t *traced) born(k *tracedTask, event int) error {
	msg, err := unix.PtraceGetEventMsg(k.tid)
	if err != nil {
		return nil // the parent was killed meanwhile
	}
	tid, parent := int(msg), k.proc
	pid := tgidOf(tid)
	if pid == 0 {
		pid = tid
	}
	var flags uint64
	if event == unix.PTRACE_EVENT_VFORK {
		flags |= unix.CLONE_VFORK
	}
	if k := t.tasks[tid]; k != nil && k.proc.pid != pid {
		delete(t.tasks, tid) // the end of an earlier thread with this id was not reported
	} else if k != nil {
		return nil // adopted already
	}
	p := parent
	switch same, known := sameMemory(k.tid, tid); {
	case pid == parent.pid:
		flags |= unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND
	case known && same, !known && event != unix.PTRACE_EVENT_FORK:
		flags |= unix.CLONE_VM
	}
	if pid != parent.pid {
		p = &tracedProc{pid: pid}
		t.settle(parent.space, k.tid, parent.pid, everything)
		if flags&unix.CLONE_VM != 0 {
			p.space = parent.space
			if p.space != nil {
				p.space.users++
			}
		} else {
			p.space = t.forkSpace(parent.space, pid)
		}
		t.procs[pid] = p
	}
	p.threads++
	t.tasks[tid] = &tracedTask{tid: tid, proc: p}
	if parent.space != nil { // else the stub's
		t.emit(&trace.Event{
			Kind: trace.KindNewTask, TID: int32(k.tid), PID: int32(parent.pid), When: t.now(),
			A: uint64(tid), B: flags, C: uint64(pid),
		})
	}
	if t.early[tid] {
		delete(t.early, tid)
		if err := resumeTo(unix.PTRACE_CONT, tid, 0); err != nil {
			return fmt.Errorf("record: resume thread %d: %w", tid, err)
		}
	}
	return nil
}

// adopt lets threads go on whose parent ended before it could announce them.
func (t *traced) adopt() {
	for tid := range t.early {
		if t.adoptOne(tid) != nil {
			_ = resumeTo(unix.PTRACE_CONT, tid, 0) // should it fail, the thread's end is reported
		}
	}
}

// adoptOne makes a thread known that nobody announced; nil when it has gone. A
// process without a known space is followed from its exec on.
func (t *traced) adoptOne(tid int) *tracedTask {
	delete(t.early, tid)
	pid := tgidOf(tid)
	if pid == 0 {
		return nil
	}
	p := t.procs[pid]
	if p == nil {
		p = &tracedProc{pid: pid}
		t.procs[pid] = p
		t.note("process " + itoa(pid) + " was born while its parent was killed: recorded from its next exec on")
	}
	p.threads++
	k := &tracedTask{tid: tid, proc: p}
	t.tasks[tid] = k
	return k
}

// forkSpace is the space of a forked child: its parent's, with pages that are
// known already.
func (t *traced) forkSpace(from *userSpace, pid int) *userSpace {
	if from == nil {
		return nil
	}
	sp := &userSpace{
		owner: pid, known: from.known.clone(), users: 1,
		stack: from.stack, brk: from.brk, lockFuture: from.lockFuture,
	}
	t.openSpace(sp, pid)
	return sp
}

// openSpace opens the page map of what pid runs now.
func (t *traced) openSpace(sp *userSpace, pid int) {
	pm, err := kernel.OpenPageMap(pid)
	if err != nil {
		t.note("process " + itoa(pid) + ": " + err.Error() + "; its memory is not in the recording")
		t.emit(&trace.Event{
			Kind: trace.KindUnknown, PID: int32(pid), TID: int32(pid), When: t.now(),
			A: 0, B: uint64(everything.to), C: uint64(mm.UnknownContent),
		})
		return
	}
	sp.pm = pm
}

// dropSpace takes one user off a space.
func (t *traced) dropSpace(p *tracedProc) {
	sp := p.space
	p.space = nil
	if sp == nil {
		return
	}
	sp.users--
	if sp.users > 0 {
		if sp.owner == p.pid { // the space lives on: somebody else answers for it
			for _, q := range t.procs {
				if q.space == sp {
					sp.owner = q.pid
					break
				}
			}
		}
		return
	}
	if sp.pm != nil {
		sp.pm.Close()
		sp.pm = nil
	}
}

// execed handles a successful exec: a new space, with the maps that the kernel
// made. The stop is reported under the process's id whatever thread called.
func (t *traced) execed(pid int) *tracedTask {
	old := pid
	if msg, err := unix.PtraceGetEventMsg(pid); err == nil {
		old = int(msg)
	}
	p := t.procs[pid]
	if p == nil { // cannot be: every process was announced
		p = &tracedProc{pid: pid}
		t.procs[pid] = p
	}
	if k := t.tasks[old]; pid == t.s.child.pid && p.space == nil && (k == nil || k.call == nil) {
		return t.tasks[pid] // the stub's own exec was not over when it was seized: no stop led to it
	}
	for tid, k := range t.tasks { // the other threads have ended without a word
		if k.proc == p {
			t.endCall(k)
			delete(t.tasks, tid)
		}
	}
	p.threads = 1
	k := &tracedTask{tid: pid, proc: p}
	t.tasks[pid] = k
	t.drain()
	first := p.space == nil
	if sp := p.space; sp != nil && sp.users == 1 {
		t.runs = t.runs[:0]
		t.writePending(sp, len(sp.pending))
	}
	t.dropSpace(p)

	prog := readProgram(pid)
	e := trace.Event{
		Kind: trace.KindExec, TID: int32(pid), PID: int32(pid), When: t.now(),
		A: uint64(old), Name: prog.name,
	}
	if info, err := getCallInfo(pid); err == nil {
		e.B = info.SP
	}
	if !prog.wide {
		e.C = 1
		t.note(prog.name + " is a 32-bit program: its memory calls are not in the recording")
	}
	if prog.setuid {
		t.note(prog.name + " is a setuid or setgid program: recorded without root it runs without that privilege")
	}
	t.emit(&e)
	sp := &userSpace{owner: pid, known: newPageSet(t.pageSize), users: 1}
	p.space = sp
	t.openSpace(sp, pid)
	t.writeMaps(sp, pid)
	// Arguments and environment were put into the stack for the program: no
	// fault of its own. Linux: fs/exec.c:get_arg_page (v6.18).
	t.absorb(sp, sp.stack)
	t.settle(sp, pid, pid, everything)
	t.settleCounter(p, first)
	return k
}

// writeMaps writes the maps that a process has now, and its heap.
func (t *traced) writeMaps(sp *userSpace, pid int) {
	maps, err := readMaps(pid)
	if err != nil {
		t.note("maps of process " + itoa(pid) + " cannot be read: " + err.Error())
	}
	st, _ := readStat(pid)
	sp.brk = mm.VA(st.startBrk)
	e := trace.Event{TID: int32(pid), PID: int32(pid), When: t.now()}
	for _, m := range maps {
		if m.start >= userTop { // vsyscall
			continue
		}
		e.Kind, e.A, e.B, e.C = trace.KindMapAt, m.start, m.end, uint64(m.prot)|uint64(m.flags)<<32
		e.D, e.Name = m.ident, m.name
		t.emit(&e)
		switch m.name {
		case "[heap]":
			sp.brk = mm.VA(m.end)
		case "[stack]":
			limit, end := mm.VA(stackLimit(pid)), mm.VA(m.end)
			sp.stack = span{end - min(limit, end), end}
		}
	}
	if st.startBrk != 0 {
		t.emit(&trace.Event{
			Kind: trace.KindBrkAt, TID: e.TID, PID: e.PID, When: e.When,
			A: st.startBrk, B: uint64(max(sp.brk, mm.VA(st.startBrk))),
		})
	}
}

// exiting handles the stop before a thread's end. The last thread's is the last
// look at the process's memory.
func (t *traced) exiting(k *tracedTask) {
	p := k.proc
	told := p.space != nil
	t.endCall(k)
	e := trace.Event{Kind: trace.KindExit, TID: int32(k.tid), PID: int32(p.pid)}
	if p.threads == 1 {
		e.A = 1
		if p.space != nil && p.space.users == 1 {
			t.settle(p.space, k.tid, p.pid, everything)
			t.runs = t.runs[:0]
			t.writePending(p.space, len(p.space.pending))
		}
		t.settleCounter(p, false)
		t.dropSpace(p)
		delete(t.procs, p.pid)
	}
	p.threads--
	delete(t.tasks, k.tid)
	// The thread reports its end once more; it is then no longer known.
	t.tasks[k.tid] = &tracedTask{tid: k.tid, proc: &tracedProc{pid: p.pid}}
	if told {
		e.When = t.now()
		t.emit(&e)
	}
}

// gone handles the end of a thread. Without an exit stop before it, its pages
// were lost.
func (t *traced) gone(tid int) {
	if k := t.tasks[tid]; k != nil && t.procs[k.proc.pid] == k.proc {
		p := k.proc
		t.endCall(k)
		p.threads--
		if p.threads <= 0 {
			t.note("process " + itoa(p.pid) + " was killed before a last look at its memory")
			t.dropSpace(p)
			delete(t.procs, p.pid)
		}
		t.emit(&trace.Event{Kind: trace.KindExit, TID: int32(tid), PID: int32(p.pid), When: t.now()})
	}
	delete(t.tasks, tid)
	delete(t.early, tid)
	t.adopt()
	if tid == t.s.child.pid {
		t.s.child.wait()
	}
}

// settleCounter compares the kernel's count of p's faults with what the
// recording told of them, and writes the difference: faults on files above all.
// At the first exec the count so far is the stub's and none of COMMAND's.
func (t *traced) settleCounter(p *tracedProc, first bool) {
	st, ok := readStat(p.pid)
	if !ok {
		return
	}
	n := st.faults - min(p.counted, st.faults)
	p.counted = st.faults
	told := p.explained + t.explainedMore
	p.explained, t.explainedMore = 0, 0
	switch {
	case first:
	case n > told:
		t.emit(&trace.Event{
			Kind: trace.KindOtherFaults, TID: int32(p.pid), PID: int32(p.pid), When: t.now(), A: n - told,
		})
	default:
		t.explainedMore = told - n
	}
}
