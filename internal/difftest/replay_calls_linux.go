//go:build amd64

package difftest

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// replayReply is what the kernel made of one operation.
type replayReply struct {
	errno        mm.Errno
	faults, soft uint64 // of touches; of system calls
}

// mostTouches is how many touches one command does.
const mostTouches = 1 << 16

// do does a call that the model has answered by e.
func (h *replayHost) do(c *replayCall, e mm.Errno) (replayReply, error) {
	op := c.op
	switch op.Kind {
	case mm.OpNone, mm.OpUnknown, mm.OpNote:
		return replayReply{errno: e}, nil
	case mm.OpUffd:
		h.note("what userfaultfd watched is not replayed")
		return replayReply{errno: e}, nil
	case mm.OpPolicyNode:
		h.note("mbind is not replayed")
		return replayReply{errno: e}, nil
	case mm.OpExec:
		return replayReply{}, h.exec(op)
	}
	s := h.spaces[op.Space]
	if s == nil {
		return replayReply{}, errors.New("no such space")
	}
	if from, to := c.span(); named(op.Kind) || op.Kind == mm.OpMap {
		if to > from && h.set.at.holds(from, to) || op.Kind == mm.OpRemap &&
			h.set.at.holds(uint64(c.to), uint64(c.to)+uint64(op.Arg)*pageSize) {
			return replayReply{}, fmt.Errorf("the helper has its own memory at %#x", h.set.at.area)
		}
	}
	switch op.Kind {
	case mm.OpFork:
		return replayReply{}, h.fork(s, mm.Space(op.Arg))
	case mm.OpExit:
		return replayReply{}, h.exit(op.Space)
	case mm.OpTouch:
		if op.Region == 0 {
			return replayReply{errno: e}, nil
		}
		return h.touch(s, c)
	case mm.OpResident:
		h.note("pages present when the recording began are touched one by one: huge ones need not become so")
		got, err := h.touch(s, c)
		got.faults = 0
		return got, err
	case mm.OpMap:
		return h.mmap(s, c, e)
	case mm.OpTHPDisable:
		return h.thpDisable(s, mm.THPDisable(op.Arg))
	}
	return h.call(s, c, e)
}

func (s *replaySpace) sys(nr uint64, args ...uint64) (replayReply, error) {
	r, err := s.do(doSyscall, append([]uint64{nr}, args...)...)
	return replayReply{errno: r.errno(), soft: r.faults()}, err
}

// call does an operation that is one system call on a range.
func (h *replayHost) call(s *replaySpace, c *replayCall, e mm.Errno) (replayReply, error) {
	op, at, n := c.op, uint64(c.at), uint64(c.n)*pageSize
	switch op.Kind {
	case mm.OpUnmap:
		return s.sys(unix.SYS_MUNMAP, at, n)
	case mm.OpProtect:
		return s.sys(unix.SYS_MPROTECT, at, n, uint64(op.Access&mm.Prot))
	case mm.OpAdvise:
		if op.Arg > 1<<16 || !knownAdvice(mm.Advice(op.Arg)) {
			h.note(fmt.Sprintf("madvise %d is not replayed", op.Arg))
			return replayReply{errno: e}, nil
		}
		return s.sys(unix.SYS_MADVISE, at, n, op.Arg)
	case mm.OpRemap:
		return s.remap(c, e)
	case mm.OpBrk:
		return s.brk(c)
	case mm.OpLock:
		return s.sys(unix.SYS_MLOCK2, at, n, uint64(op.Flags&mm.LockOnFault))
	case mm.OpUnlock:
		return s.sys(unix.SYS_MUNLOCK, at, n)
	case mm.OpLockAll:
		if op.Arg == 0 {
			return s.sys(unix.SYS_MUNLOCKALL)
		}
		return s.sys(unix.SYS_MLOCKALL, op.Arg)
	case mm.OpPopulate:
		return s.sys(unix.SYS_MADVISE, at, n, uint64(mm.AdvisePopulateWrite))
	}
	return replayReply{}, errors.New("not an operation")
}

// exec begins a space: a fresh helper, whose address space is empty but for
// the helper itself.
func (h *replayHost) exec(op *mm.Op) error {
	var thp mm.THPDisable
	if left := h.spaces[mm.Space(op.Arg)]; left != nil {
		thp = left.thp
	}
	if h.spaces[op.Space] != nil {
		if err := h.exit(op.Space); err != nil {
			return err
		}
	}
	p, _, err := h.set.first().fork()
	if err != nil {
		return err
	}
	s, err := h.add(op.Space, p)
	if err != nil {
		return err
	}
	got, err := h.thpDisable(s, thp)
	if err == nil && got.errno != mm.OK {
		err = fmt.Errorf("helper process: prctl: %w", got.errno)
	}
	return err
}

func (h *replayHost) add(id mm.Space, p *puppet) (*replaySpace, error) {
	pages, err := kernel.OpenFolioMap(p.pid)
	if err != nil {
		return nil, err
	}
	s := &replaySpace{puppet: p, pages: pages}
	h.spaces[id] = s
	return s, nil
}

func (h *replayHost) fork(s *replaySpace, id mm.Space) error {
	p, _, err := s.puppet.fork()
	if err != nil {
		return err
	}
	c, err := h.add(id, p)
	if err != nil {
		return err
	}
	c.thp, c.files = s.thp, append(c.files, s.files...)
	h.files.share(c.files)
	return nil
}

func (h *replayHost) exit(id mm.Space) error {
	s := h.spaces[id]
	delete(h.spaces, id)
	s.pages.Close()
	if err := s.exit(); err != nil {
		return err
	}
	for _, p := range h.files.drop(s.files) {
		err := unix.Fallocate(int(h.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			int64(p.at), int64(p.length))
		if err != nil {
			return fmt.Errorf("stand-in for files: %w", err)
		}
	}
	return nil
}

func (h *replayHost) thpDisable(s *replaySpace, how mm.THPDisable) (replayReply, error) {
	s.thp = how
	on, flags := uint64(1), uint64(0)
	switch how {
	case mm.THPEnabled:
		on = 0
	case mm.THPExceptAdvised:
		flags = 2
	}
	return s.sys(unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, on, flags, 0, 0)
}

// touch does a run of touches. A refused one was a page fault too.
func (h *replayHost) touch(s *replaySpace, c *replayCall) (got replayReply, err error) {
	how := uint64(0)
	if c.op.Access&mm.Write != 0 {
		if how = 1; c.op.Access&mm.ZeroData != 0 {
			how = 2
		}
	}
	stride := c.op.Stride
	if c.op.Kind == mm.OpResident {
		stride = 1
	}
	at, step := uint64(c.at), uint64(int64(stride)*pageSize)
	for left := uint64(c.n); left > 0; {
		n := min(left, mostTouches)
		r, err := s.do(doTouch, at, n, step, how)
		if err != nil {
			return got, err
		}
		got.faults += r.faults() + r.refused()
		at += n * step
		left -= n
	}
	return got, nil
}

// mmap makes a mapping where the model has it.
func (h *replayHost) mmap(s *replaySpace, c *replayCall, e mm.Errno) (replayReply, error) {
	op := c.op
	if e != mm.OK {
		return replayReply{errno: e}, nil // there is no place to ask the kernel for
	}
	if c.n == 0 {
		return s.heap(uint64(c.at))
	}
	at, n, prot := uint64(c.at), uint64(c.n)*pageSize, uint64(op.Access&mm.Prot)
	flags, fd, offset := replayMapFlags(op), ^uint64(0), uint64(0)
	if op.Flags&fileBacked != 0 {
		var ok bool
		if offset, ok = h.files.take(op.Region, n); !ok {
			return replayReply{}, errors.New("more files mapped than the stand-in for them is long")
		}
		s.files = append(s.files, op.Region)
		fd = uint64(4 + h.set.most)
		if prot&unix.PROT_EXEC != 0 {
			prot |= unix.PROT_READ // code is read here, not run
		}
	}
	return s.sys(unix.SYS_MMAP, at, n, prot, flags, fd, offset)
}

// replayMapFlags are mmap's flags for an operation, at a place of its own.
func replayMapFlags(op *mm.Op) uint64 {
	const droppable = 0x08
	f := uint64(unix.MAP_FIXED | unix.MAP_PRIVATE)
	switch {
	case op.Flags&mm.MapShared != 0:
		f = unix.MAP_FIXED | unix.MAP_SHARED
	case op.Flags&mm.MapDroppable != 0:
		f = unix.MAP_FIXED | droppable
	}
	if op.Flags&fileBacked == 0 {
		f |= unix.MAP_ANONYMOUS
	}
	return f | mapExtras(op)
}

// remap does what the model did: in place, or to where it moved it.
func (s *replaySpace) remap(c *replayCall, e mm.Errno) (replayReply, error) {
	op := c.op
	if e != mm.OK {
		return replayReply{errno: e}, nil
	}
	flags := uint64(0)
	if c.to != c.at || op.Flags&mm.RemapDontUnmap != 0 {
		flags = unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED
		if op.Flags&mm.RemapDontUnmap != 0 {
			flags |= unix.MREMAP_DONTUNMAP
		}
	}
	return s.sys(unix.SYS_MREMAP, uint64(c.at), uint64(c.n)*pageSize, op.Arg*pageSize, flags, uint64(c.to))
}

// heap has the heap begin at an address. Of the ways to say so this is the one
// that asks for no privilege; the other addresses that it sets are names of
// things that a helper does not have. Linux: kernel/sys.c:prctl_set_mm_map,
// include/uapi/linux/prctl.h:prctl_mm_map (v6.18).
func (s *replaySpace) heap(at uint64) (replayReply, error) {
	const noFile = 0xffffffff << 32 // auxv_size 0, exe_fd -1
	code, area := s.set.at.code, s.set.at.area
	words := []uint64{code, code + pageSize, area, area, at, at, area, area, area, area, area, 0, noFile}
	for i, w := range words {
		if _, err := s.do(doPoke, s.set.at.pokes()+8*uint64(i), w); err != nil {
			return replayReply{}, err
		}
	}
	got, err := s.sys(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP, s.set.at.pokes(),
		uint64(8*len(words)), 0)
	if err == nil && got.errno != mm.OK {
		err = fmt.Errorf("place the heap at %#x: prctl: %w", at, got.errno)
	}
	return replayReply{}, err
}

// brk sets the heap's end.
func (s *replaySpace) brk(c *replayCall) (replayReply, error) {
	want := uint64(c.at) + uint64(c.n)*pageSize
	r, err := s.do(doSyscall, unix.SYS_BRK, want)
	if err != nil {
		return replayReply{}, err
	}
	got := replayReply{soft: r.faults()}
	if r.Result != int64(want) {
		got.errno = mm.ENOMEM
	}
	return got, nil
}
