package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// run is Run on Linux.
func run(ctx context.Context, o Options) (trace.Footer, error) {
	if o.Method == "" {
		o.Method, _ = Choose()
	}
	var m method
	switch o.Method {
	case trace.MethodRoot:
		m = newRoot()
	case trace.MethodPerf:
		m = newTraced(true)
	case trace.MethodPagemap:
		m = newTraced(false)
	default:
		return trace.Footer{}, fmt.Errorf("record: method %q: choose root, perf or pagemap", o.Method)
	}
	if o.PID != 0 {
		if err := CanAttach(o.PID, o.Method); err != nil {
			return trace.Footer{}, err
		}
	}
	s := &session{opts: o, start: time.Now(), out: o.sink}
	if o.PID == 0 {
		c, err := startChild(&o)
		if err != nil {
			return failed(err)
		}
		s.child = c
	}
	err := m.run(ctx, s)
	if s.child != nil {
		if err2 := s.reap(err != nil); err == nil {
			err = err2
		}
	}
	if s.footer.Wall == 0 {
		s.footer.Wall = mm.Nanos(time.Since(s.start))
	}
	if ctx.Err() != nil {
		s.footer.Interrupted = true
	}
	return s.footer, err
}

// CanAttach says why process pid cannot be recorded by method m, nil if it can.
func CanAttach(pid int, m trace.Method) error {
	if _, err := os.Stat(procPath(pid, "task")); err != nil {
		return fmt.Errorf("record: process %d: no such process", pid)
	}
	if m != trace.MethodRoot {
		return fmt.Errorf("record: %w: attaching to a process needs method root, this is %s", ErrNotHere, m)
	}
	return nil
}

// failed is the footer of a command that did not start.
func failed(err error) (trace.Footer, error) {
	var c *CommandError
	if errors.As(err, &c) {
		return trace.Footer{Exit: c.Code}, err
	}
	return trace.Footer{}, err
}

// reap takes the child's end into the footer. A child that the method failed to
// record is ended first.
func (s *session) reap(kill bool) error {
	if kill {
		_ = s.child.signal(unix.SIGKILL) // it may have ended already
	}
	st, err := s.child.wait()
	use, execErr := s.child.started()
	if execErr != nil {
		var c *CommandError
		if errors.As(execErr, &c) {
			s.footer.Exit = c.Code
		}
		return execErr
	}
	if err != nil {
		return fmt.Errorf("record: wait for the command: %w", err)
	}
	ru, _ := st.SysUsage().(*syscall.Rusage)
	ws, _ := st.Sys().(syscall.WaitStatus)
	s.footer.Exit = ws.ExitStatus()
	if ws.Signaled() {
		s.footer.Exit = 128 + int(ws.Signal())
	}
	if ru != nil {
		s.footer.User = max(mm.Nanos(ru.Utime.Nano())-use.user, 0)
		s.footer.System = max(mm.Nanos(ru.Stime.Nano())-use.system, 0)
		if kib := uint64(ru.Maxrss); kib > use.maxRSS { // else it is the stub's, COMMAND's was less
			s.footer.MaxRSS = kib << 10
		}
	}
	return nil
}

// Header describes a recording about to be made with o by method m.
func Header(o Options, m trace.Method) trace.Header {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	h := trace.Header{
		Version: 1, Tool: "hugelab", Command: o.Command, Method: m, Attached: o.PID != 0,
		Kernel: unix.ByteSliceToString(uts.Release[:]), Arch: unix.ByteSliceToString(uts.Machine[:]),
		PageSize: os.Getpagesize(), Start: time.Now().UTC().Format(time.RFC3339),
		Settings: map[string]string{},
	}
	if o.PID != 0 {
		if text, err := os.ReadFile(procPath(o.PID, "cmdline")); err == nil && len(text) > 0 {
			h.Command = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		}
	}
	if cpus, err := onlineCPUs(); err == nil {
		h.CPUs = len(cpus)
	}
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		h.MemTotal = si.Totalram * uint64(si.Unit)
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &lim) == nil && lim.Cur != unix.RLIM_INFINITY {
		h.StackLimit = lim.Cur
	}
	thpSettings(h.Settings)
	h.NoZeroPage = kernel.NoZeroPage()
	if m == trace.MethodRoot {
		h.CannotKnow = []string{
			"touches of pages that were present already: the hardware takes no fault for them",
			"what a page was filled with",
			"the ranges of process_madvise and of userfaultfd",
		}
	}
	h.CannotKnow = append(h.CannotKnow, tracedCannotKnow(m)...)
	if o.PID != 0 {
		h.CannotKnow = append(h.CannotKnow,
			"what the process did before, and touches inside the huge pages that it had then")
	}
	return h
}

// thpSettings reads the host's huge page settings, by file below transparent_hugepage.
func thpSettings(into map[string]string) {
	const dir = "/sys/kernel/mm/transparent_hugepage"
	root := os.DirFS(dir)
	names := []string{"enabled", "defrag", "shmem_enabled", "use_zero_page", "shrink_underused"}
	for _, k := range []string{"defrag", "pages_to_scan", "scan_sleep_millisecs", "alloc_sleep_millisecs",
		"max_ptes_none", "max_ptes_swap", "max_ptes_shared"} {
		names = append(names, "khugepaged/"+k)
	}
	if sizes, err := os.ReadDir(dir); err == nil {
		for _, s := range sizes {
			if strings.HasPrefix(s.Name(), "hugepages-") {
				names = append(names, s.Name()+"/enabled")
			}
		}
	}
	for _, n := range names {
		f, err := root.Open(n)
		if err != nil {
			continue
		}
		b := make([]byte, 256)
		k, _ := f.Read(b)
		f.Close()
		into[n] = strings.TrimSpace(string(b[:k]))
	}
}
