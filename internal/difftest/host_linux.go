//go:build amd64

package difftest

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// Host makes executors on the running kernel. Its policy is whatever the
// caller has set.
type Host struct {
	puppets *puppets
	folios  *kernel.Folios
	counts  *liveCounters
	smaps   vmaReader
	drop    *os.File // vm/drop_caches
	decoy   *puppet  // what khugepaged looks at, nil: nothing
	alone   *alone   // keeps others from running, nil: this machine cannot

	aloneErr error // why not
}

// OpenHost starts the helper that programs' processes are forked from. It
// needs root. The host belongs to the thread that calls.
func OpenHost() (*Host, error) {
	h := &Host{}
	var err error
	if h.folios, err = kernel.OpenFolios(); err != nil {
		return nil, err
	}
	if h.counts, err = openCounters(); err != nil {
		h.Close()
		return nil, err
	}
	if h.drop, err = os.OpenFile("/proc/sys/vm/drop_caches", os.O_WRONLY, 0); err != nil {
		h.Close()
		return nil, err
	}
	if h.puppets, err = startPuppets(); err != nil {
		h.Close()
		return nil, err
	}
	h.alone, h.aloneErr = h.newAlone()
	return h, nil
}

// Close ends the helper and all processes that descend from it.
func (h *Host) Close() {
	if h.puppets != nil {
		h.puppets.close()
	}
	if h.alone != nil {
		h.alone.close()
	}
	if h.counts != nil {
		h.counts.close()
	}
	if h.drop != nil {
		h.drop.Close()
	}
	h.folios.Close()
}

// hostRun is one program on the host.
type hostRun struct {
	h     *Host
	procs []*hostProc // nil: ended
	alone *alone      // nil: others run beside its steps

	// Counters are of the whole machine: they are read right before and right
	// after each step, and what moves them between steps is somebody else.
	before, after, moved []int64

	pool   bool // the program has to do with hugetlb
	floats floats
	room   action

	others []int64 // what a pass of khugepaged counts for processes that are not the program's
}

type hostProc struct {
	*puppet
	pages *kernel.FolioMap
	smaps *os.File
}

// Start forks a fresh process for a program. Nobody else runs while it does a
// step, where that is possible.
func (h *Host) Start(p *Program) (*hostRun, error) {
	n := len(CounterNames())
	if p.usesPool() {
		if err := startPool(p); err != nil {
			return nil, err
		}
	}
	h.counts.watch(p.usesShared())
	r := &hostRun{h: h, pool: p.usesPool(), before: make([]int64, n), after: make([]int64, n),
		moved: make([]int64, n)}
	err := r.bystanders(p)
	if err == nil && p.has(VerbDropCaches) {
		// Huge pages of others that wait to be split go now, not in a step.
		_, err = h.drop.Write([]byte("2"))
	}
	if err == nil {
		err = r.begin()
	}
	if err != nil && r.pool {
		err = errors.Join(err, endPool())
	}
	return r, err
}

// begin forks the program's first process.
func (r *hostRun) begin() error {
	h := r.h
	p, _, err := h.puppets.first().fork()
	if err != nil {
		return err
	}
	if err := r.add(p); err != nil {
		return err
	}
	err = r.lay(p)
	if err == nil && h.alone != nil {
		r.alone = h.alone
		if err = setFIFO(p.pid, true); err == nil {
			err = r.alone.pin()
		}
	}
	if err != nil {
		r.Close()
		return err
	}
	return nil
}

func (r *hostRun) add(p *puppet) error {
	pages, err := kernel.OpenFolioMap(p.pid)
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/" + strconv.Itoa(p.pid) + "/smaps")
	if err != nil {
		pages.Close()
		return err
	}
	r.procs = append(r.procs, &hostProc{p, pages, smaps})
	return nil
}

// lay makes what every program finds: the anchor, an empty heap, and huge pages
// as the policy has them.
func (r *hostRun) lay(p *puppet) error {
	for _, call := range [][]uint64{
		{unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, 0, 0, 0, 0},
		{unix.SYS_MMAP, uint64(anchorAt), pageSize, 0,
			unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED, ^uint64(0), 0},
	} {
		rep, err := p.do(doSyscall, call...)
		if err != nil {
			return err
		}
		if e := rep.errno(); e != mm.OK {
			return fmt.Errorf("helper process: lay out memory: call %d: %w", call[0], e)
		}
	}
	rep, err := p.do(doSyscall, unix.SYS_BRK, 0)
	if err == nil && rep.Result != int64(heapAt) {
		err = fmt.Errorf("helper process: the heap begins at %#x, not %#x", rep.Result, uint64(heapAt))
	}
	return err
}

func (p *hostProc) close() {
	p.pages.Close()
	p.smaps.Close()
}

// Close implements Executor.
func (r *hostRun) Close() error {
	var first error
	if r.alone != nil {
		first = r.alone.unpin()
	}
	for i, p := range r.procs {
		if p == nil {
			continue
		}
		p.close()
		if err := p.exit(); err != nil && first == nil {
			first = err
		}
		r.procs[i] = nil
	}
	if r.pool {
		if err := endPool(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Do implements Executor.
func (r *hostRun) Do(a *action, s *Seen) (err error) {
	if err := r.counted(a, s); err != nil {
		return err
	}
	for i := range r.moved {
		r.moved[i] += r.after[i] - r.before[i]
		if a.step.Verb == VerbKhugepaged && r.others != nil {
			r.moved[i] -= r.others[i]
		}
	}
	s.Counters = append(s.Counters, r.moved...)
	if r.pool {
		if s.Pool, err = readPool(); err != nil {
			return err
		}
	}
	return r.look(s)
}

// counted does an action between two readings of the counters.
func (r *hostRun) counted(a *action, s *Seen) (err error) {
	// khugepaged is one of the others.
	if r.alone != nil && a.step.Verb != VerbKhugepaged {
		rounds := uint64(longHold)
		if a.step.Advice == mm.AdviseCollapse || a.drop {
			rounds = shortHold
		}
		if err := r.alone.begin(rounds); err != nil {
			return err
		}
		defer func() {
			if eerr := r.alone.end(); err == nil {
				err = eerr
			}
		}()
	}
	if err := r.h.counts.read(r.before); err != nil {
		return err
	}
	if err := r.act(a, s); err != nil {
		return err
	}
	return r.h.counts.read(r.after)
}

// act does an action.
func (r *hostRun) act(a *action, s *Seen) error {
	a = r.floats.here(a, &r.room)
	if a.drop {
		return r.machine(a)
	}
	p := r.procs[a.proc]
	switch a.op().Kind {
	case mm.OpFork:
		c, rep, err := p.fork()
		if err != nil {
			return err
		}
		s.Faults = rep.faults()
		return r.add(c)
	case mm.OpExit:
		p.close()
		r.procs[a.proc] = nil
		return p.exit()
	}
	rep, err := r.call(p, a)
	s.Errno, s.Faults, s.Refused, s.Bus = rep.errno(), rep.faults(), rep.refused(), rep.bus()
	if k := a.op().Kind; err == nil && s.Errno == mm.OK && (k == mm.OpMap || k == mm.OpRemap) {
		s.Addr = mm.VA(rep.Result)
		r.floats.landed(a, s.Addr)
	}
	return err
}

// call does an action that is one system call, or a run of touches.
func (r *hostRun) call(p *hostProc, a *action) (reply, error) {
	op := a.op()
	at, n := uint64(a.at), uint64(a.n)*pageSize
	sys := func(nr uint64, args ...uint64) (reply, error) {
		return p.do(doSyscall, append([]uint64{nr}, args...)...)
	}
	switch op.Kind {
	case mm.OpTouch:
		how := uint64(0)
		if op.Access&mm.Write != 0 {
			if how = 1; op.Access&mm.ZeroData != 0 {
				how = 2
			}
		}
		who := p.puppet
		if op.Thread != 0 {
			var err error
			if who, err = p.other(); err != nil {
				return reply{}, err
			}
		}
		return who.do(doTouch, at, uint64(op.N), uint64(int64(op.Stride)*pageSize), how)
	case mm.OpMap:
		if op.Flags&(mm.MapFixed|mm.MapHint) == 0 {
			at = 0
		}
		return sys(unix.SYS_MMAP, at, n, uint64(op.Access&mm.Prot), mapFlags(op), ^uint64(0), 0)
	case mm.OpUnmap:
		return sys(unix.SYS_MUNMAP, at, n)
	case mm.OpProtect:
		return sys(unix.SYS_MPROTECT, at, n, uint64(op.Access&mm.Prot))
	case mm.OpAdvise:
		return sys(unix.SYS_MADVISE, at, n, op.Arg)
	case mm.OpRemap:
		return sys(unix.SYS_MREMAP, at, n, op.Arg*pageSize, remapFlags(op), uint64(a.to))
	case mm.OpLock:
		return sys(unix.SYS_MLOCK2, at, n, uint64(op.Flags&mm.LockOnFault))
	case mm.OpUnlock:
		return sys(unix.SYS_MUNLOCK, at, n)
	case mm.OpBrk:
		return brk(sys, uint64(heapAt)+n)
	case mm.OpLockAll:
		if op.Arg == 0 && a.step.Verb == VerbUnlockAll {
			return sys(unix.SYS_MUNLOCKALL)
		}
		return sys(unix.SYS_MLOCKALL, op.Arg)
	case mm.OpTHPDisable:
		on, flags := uint64(1), uint64(0)
		switch mm.THPDisable(op.Arg) {
		case mm.THPEnabled:
			on = 0
		case mm.THPExceptAdvised:
			flags = 2
		}
		return sys(unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, on, flags, 0, 0)
	}
	return reply{}, fmt.Errorf("operation %d: not one that programs have", op.Kind)
}

// brk turns brk's way to say no into an errno.
func brk(sys func(uint64, ...uint64) (reply, error), want uint64) (reply, error) {
	r, err := sys(unix.SYS_BRK, want)
	if err == nil && r.Result != int64(want) {
		r.Result = -int64(mm.ENOMEM)
	}
	return r, err
}

func remapFlags(op *mm.Op) (f uint64) {
	if op.Flags&mm.RemapFixed != 0 {
		f |= unix.MREMAP_FIXED
	}
	if op.Flags&mm.RemapMayMove != 0 {
		f |= unix.MREMAP_MAYMOVE
	}
	if op.Flags&mm.RemapDontUnmap != 0 {
		f |= unix.MREMAP_DONTUNMAP
	}
	return f
}

func mapFlags(op *mm.Op) uint64 {
	f := uint64(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS)
	switch {
	case op.Flags&mm.MapFixed == 0:
	case op.Flags&mm.MapReplaces != 0:
		f |= unix.MAP_FIXED
	default:
		f |= unix.MAP_FIXED_NOREPLACE
	}
	return hugetlbFlags(op, f|mapExtras(op))
}

// mapExtras are the flags of mmap that mean the same for every mapping.
func mapExtras(op *mm.Op) (f uint64) {
	for _, x := range []struct {
		has mm.OpFlags
		set uint64
	}{
		{mm.MapStack, unix.MAP_STACK}, {mm.MapNoReserve, unix.MAP_NORESERVE},
		{mm.MapPopulate, unix.MAP_POPULATE}, {mm.MapLocked, unix.MAP_LOCKED},
		{mm.MapGrowsDown, unix.MAP_GROWSDOWN},
	} {
		if op.Flags&x.has != 0 {
			f |= x.set
		}
	}
	return f
}
