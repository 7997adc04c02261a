package record

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// stoppedCall is a call between its entry and its exit.
type stoppedCall struct {
	nr    uint64
	args  [6]uint64
	space *userSpace

	fills  bool   // the kernel may fill pages in within the call
	before uint64 // the thread's faults at its entry, where fills
}

// enter handles the stop at a call's entry: the pages that the call may take
// away, and those around them, are looked at while they are there.
func (t *traced) enter(k *tracedTask) {
	info, err := getCallInfo(k.tid)
	if err != nil || info.Op != infoSeccomp {
		return // killed meanwhile
	}
	c := &stoppedCall{nr: info.U[0], space: k.proc.space}
	copy(c.args[:], info.U[1:7])
	k.call = c
	if sp := c.space; sp != nil {
		t.settle(sp, k.tid, k.proc.pid, t.spansAtEntry(c)...)
		sp.inCall++
		if sp.willFill(c) {
			st, ok := readThreadStat(k.proc.pid, k.tid)
			c.fills, c.before = ok, st.faults
		}
	}
}

// around is a range with what lies near it.
func around(from, length uint64) span {
	lo := from - min(from, nearby)
	hi := from + length
	if hi < from || hi > uint64(everything.to)-nearby {
		return span{mm.VA(lo), everything.to}
	}
	return span{mm.VA(lo), mm.VA(hi + nearby)}
}

// spansAtEntry says where to look before a call. Removals need an exact look at
// their range. The others change what may lie around the range from then on (a
// VMA's end, its protection, its policy): pages touched before must be told
// before.
func (t *traced) spansAtEntry(c *stoppedCall) []span {
	a := &c.args
	switch c.nr {
	case unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE, unix.SYS_MBIND,
		unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK:
		return []span{around(a[0], a[1])}
	case unix.SYS_MMAP:
		if a[0] != 0 {
			return []span{around(a[0], a[1])}
		}
	case unix.SYS_MREMAP:
		spans := []span{around(a[0], max(a[1], a[2]))}
		if a[3]&unix.MREMAP_FIXED != 0 {
			spans = append(spans, around(a[4], a[2]))
		}
		return spans
	case unix.SYS_BRK:
		if a[0] != 0 {
			at := uint64(c.space.brk)
			return []span{around(min(a[0], at), max(a[0], at)-min(a[0], at))}
		}
	case unix.SYS_PROCESS_MADVISE, unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL, unix.SYS_PRCTL, unix.SYS_USERFAULTFD:
		return []span{everything}
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		if c.space.users == 1 {
			return []span{everything}
		}
	}
	return nil
}

// endCall forgets the call that k is in.
func (t *traced) endCall(k *tracedTask) {
	if k.call != nil && k.call.space != nil {
		k.call.space.inCall--
	}
	k.call = nil
}

// leave handles the stop at a call's exit: the call is written, with its
// result, and what it did to pages is followed.
func (t *traced) leave(k *tracedTask) {
	c := k.call
	info, err := getCallInfo(k.tid)
	t.endCall(k)
	if c == nil || err != nil || info.Op != infoExit {
		return
	}
	ret := int64(info.U[0])
	if c.nr == unix.SYS_PTRACE {
		if ret == -int64(unix.EPERM) {
			t.note(readProgram(k.proc.pid).name + " asked to trace a process, as a debugger does: refused, " +
				"because a process has one tracer only and the recorder is it; method root traces nothing")
		}
		return
	}
	sp := c.space
	if sp == nil {
		return
	}
	e := trace.Event{TID: int32(k.tid), PID: int32(k.proc.pid), Ret: ret}
	if !callEvent(c, &e) {
		if c.nr == unix.SYS_PROCESS_MADVISE {
			t.processMadvise(k, c, ret)
		}
		return
	}
	if ret >= 0 && (c.nr == unix.SYS_MMAP || c.nr == unix.SYS_MREMAP) {
		// Neighbours' pages were touched before the new range was there.
		at, end := mm.VA(ret), mm.VA(ret)+mm.VA(newLength(c))
		t.lookBeside(sp, k, span{at - min(at, nearby), at}, span{end, end + nearby})
	}
	if e.Kind == trace.KindShmat && ret >= 0 {
		e.B = mappingLength(k.proc.pid, mm.VA(ret))
	}
	if e.Kind == trace.KindMbind {
		e.D = hashWords(readWords(k.tid, c.args[3], int(min(c.args[4]+63, 4096)/64)))
	}
	e.When = t.now()
	t.emit(&e)
	t.followAll(sp, k, c, ret)
}

// newLength is the length of the range that an mmap or mremap made.
func newLength(c *stoppedCall) uint64 {
	if c.nr == unix.SYS_MREMAP {
		return c.args[2]
	}
	return c.args[1]
}

// lookBeside looks at spans before a call's event is written. It leaves out the
// call's own range, which the reader does not know yet.
func (t *traced) lookBeside(sp *userSpace, k *tracedTask, spans ...span) {
	t.drain()
	if sp.inCall != 0 || sp.pm == nil || len(sp.pending) != 0 {
		return // another thread is busy here: the next look tells
	}
	t.runs = t.runs[:0]
	for _, s := range spans {
		var err error
		if t.runs, err = sp.pm.Scan(s.from, s.to, true, t.runs); err != nil {
			return
		}
	}
	if t.drain(); len(sp.pending) == 0 {
		t.writeFound(sp, k.tid, k.proc.pid)
	}
}

// willFill says whether the kernel may fill pages in within a call. It notes
// memory being locked, refused calls too: they may have locked a part.
func (sp *userSpace) willFill(c *stoppedCall) bool {
	switch c.nr {
	case unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MLOCKALL:
		sp.locks = true
		return true
	case unix.SYS_MMAP:
		if c.args[3]&unix.MAP_LOCKED != 0 {
			sp.locks = true
		}
		return sp.locks || c.args[3]&unix.MAP_POPULATE != 0
	case unix.SYS_MADVISE:
		return c.args[2] == unix.MADV_POPULATE_READ || c.args[2] == unix.MADV_POPULATE_WRITE
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_MREMAP, unix.SYS_BRK:
		return sp.locks
	}
	return false
}

// followAll follows a call and explains the faults that it took in the kernel:
// also those that made no page known, copies of pages shared by a fork.
func (t *traced) followAll(sp *userSpace, k *tracedTask, c *stoppedCall, ret int64) {
	owner := t.procs[sp.owner]
	var told uint64
	if owner != nil {
		told = owner.explained
	}
	if ret >= 0 {
		t.follow(sp, c, ret)
	}
	if !c.fills || owner == nil {
		return
	}
	st, ok := readThreadStat(k.proc.pid, k.tid)
	if took := st.faults - min(c.before, st.faults); ok {
		owner.explained = told + took
	}
}

// callEvent fills in the event of a call; false when it has none.
func callEvent(c *stoppedCall, e *trace.Event) bool {
	a := &c.args
	e.A, e.B = a[0], a[1]
	switch c.nr {
	case unix.SYS_MMAP:
		e.Kind, e.C = trace.KindMmap, a[2]&(1<<32-1)|a[3]<<32
		e.D = a[4] & (1<<32 - 1)
		if a[3]&unix.MAP_ANONYMOUS == 0 {
			e.D |= 1 << 32
		}
	case unix.SYS_MUNMAP:
		e.Kind = trace.KindMunmap
	case unix.SYS_MREMAP:
		e.Kind, e.C, e.D = trace.KindMremap, a[2], a[3]&0xfff|a[4]&^0xfff
	case unix.SYS_MPROTECT:
		e.Kind, e.C = trace.KindMprotect, a[2]
	case unix.SYS_PKEY_MPROTECT:
		e.Kind, e.C, e.D = trace.KindMprotect, a[2], uint64(int64(int32(a[3]))+1)
	case unix.SYS_BRK:
		e.Kind, e.B = trace.KindBrk, 0
	case unix.SYS_MADVISE:
		e.Kind, e.C = trace.KindMadvise, a[2]
	case unix.SYS_MLOCK:
		e.Kind = trace.KindMlock
	case unix.SYS_MLOCK2:
		e.Kind, e.C = trace.KindMlock, a[2]
	case unix.SYS_MUNLOCK:
		e.Kind = trace.KindMunlock
	case unix.SYS_MLOCKALL:
		e.Kind, e.B = trace.KindMlockall, 0
	case unix.SYS_MUNLOCKALL:
		e.Kind, e.A, e.B = trace.KindMlockall, 0, 0
	case unix.SYS_SHMAT:
		e.Kind, e.A, e.B = trace.KindShmat, a[1], 0
	case unix.SYS_SHMDT:
		e.Kind, e.B = trace.KindShmdt, 0
	case unix.SYS_MBIND:
		e.Kind, e.C = trace.KindMbind, a[2]
	case unix.SYS_USERFAULTFD:
		e.Kind, e.A, e.B, e.C = trace.KindUffd, 0, 0, 1
	case unix.SYS_PRCTL:
		e.Kind, e.A, e.B = trace.KindPrctlTHP, a[1], a[2]
	default:
		return false
	}
	return true
}

// Advice that takes pages away or fills them in. Linux:
// include/uapi/asm-generic/mman-common.h (v6.18).
const (
	madvDontneedLocked = 24
	madvGuardInstall   = 102
)

// follow does to the known pages what a successful call did to them.
func (t *traced) follow(sp *userSpace, c *stoppedCall, ret int64) {
	a := &c.args
	switch c.nr {
	case unix.SYS_MUNMAP:
		sp.known.forget(mm.VA(a[0]), mm.VA(a[0]+a[1]))
	case unix.SYS_MMAP:
		at := span{mm.VA(ret), mm.VA(uint64(ret) + a[1])}
		sp.known.forget(at.from, at.to)
		if sp.lockFuture || sp.locks || a[3]&unix.MAP_POPULATE != 0 {
			t.absorb(sp, at)
		}
	case unix.SYS_MREMAP:
		t.followRemap(sp, a, ret)
	case unix.SYS_BRK:
		if end := mm.VA(ret); end < sp.brk {
			page := mm.VA(t.pageSize)
			sp.known.forget((end+page-1)&^(page-1), sp.brk) // the page that holds the end stays
		} else if sp.lockFuture || sp.locks {
			t.absorb(sp, span{sp.brk, end})
		}
		sp.brk = mm.VA(ret)
	case unix.SYS_MADVISE:
		t.followAdvice(sp, span{mm.VA(a[0]), mm.VA(a[0] + a[1])}, a[2])
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		if sp.locks {
			t.absorb(sp, span{mm.VA(a[0]), mm.VA(a[0] + a[1])})
		}
	case unix.SYS_MLOCK, unix.SYS_MLOCK2:
		t.absorb(sp, span{mm.VA(a[0]), mm.VA(a[0] + a[1])})
	case unix.SYS_MLOCKALL:
		sp.lockFuture = a[0]&unix.MCL_FUTURE != 0
		t.absorb(sp, everything)
	case unix.SYS_MUNLOCKALL:
		sp.lockFuture = false
	}
}

func (t *traced) followRemap(sp *userSpace, a *[6]uint64, ret int64) {
	from, to, old, length := mm.VA(a[0]), mm.VA(ret), a[1], a[2]
	if from != to {
		sp.known.move(from, to, min(old, length))
	}
	if length < old && a[3]&unix.MREMAP_DONTUNMAP == 0 {
		sp.known.forget(from+mm.VA(length), from+mm.VA(old))
	}
	if (sp.lockFuture || sp.locks) && length > old {
		t.absorb(sp, span{to + mm.VA(old), to + mm.VA(length)})
	}
}

func (t *traced) followAdvice(sp *userSpace, s span, advice uint64) {
	switch advice {
	case unix.MADV_DONTNEED, unix.MADV_REMOVE, madvDontneedLocked, madvGuardInstall:
		sp.known.forget(s.from, s.to)
	case unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE:
		t.absorb(sp, s)
	}
}

// processMadvise writes one event for each range of process_madvise(pidfd, vec,
// n, advice, flags).
func (t *traced) processMadvise(k *tracedTask, c *stoppedCall, ret int64) {
	if ret < 0 {
		return
	}
	target := pidOfFD(k.proc.pid, int(int32(c.args[0])))
	q := t.procs[target]
	vec := readWords(k.tid, c.args[1], int(min(c.args[2], 1024))*2)
	for i := 0; i+1 < len(vec); i += 2 {
		t.emit(&trace.Event{
			Kind: trace.KindMadvise, TID: int32(k.tid), PID: int32(k.proc.pid), When: t.now(),
			A: vec[i], B: vec[i+1], C: c.args[3], D: uint64(target),
		})
		if q != nil && q.space != nil {
			t.followAdvice(q.space, span{mm.VA(vec[i]), mm.VA(vec[i] + vec[i+1])}, c.args[3])
		}
	}
}

// pidOfFD is the process that a pidfd of process pid names, 0 if unknown.
func pidOfFD(pid, fd int) int {
	text, err := os.ReadFile(procPath(pid, "fdinfo/"+itoa(fd)))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nPid:"))
	line, _, _ := strings.Cut(string(rest), "\n")
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return n
}

// mappingLength is the length of the mapping that starts at from, 0 if unknown.
func mappingLength(pid int, from mm.VA) uint64 {
	maps, _ := readMaps(pid)
	for _, m := range maps {
		if m.start == uint64(from) {
			return m.end - m.start
		}
	}
	return 0
}

// hashWords is the identity of a node mask; 0 for none.
func hashWords(words []uint64) uint64 {
	if len(words) == 0 {
		return 0
	}
	h := fnv.New64a()
	var b [8]byte
	for _, w := range words {
		binary.LittleEndian.PutUint64(b[:], w)
		h.Write(b[:])
	}
	return h.Sum64()
}
