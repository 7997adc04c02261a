package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

const sampleEvery = 2 * time.Millisecond

// follower runs one command and waits for all of it. It is told of each exec,
// fork and exit by ptrace and of nothing else: no system call and no fault is
// stopped for it.
type follower struct {
	run            Run
	root           int
	began          time.Time
	tasks          map[int]bool  // processes alive
	first          bool          // the first exec was seen
	user0, system0 time.Duration // of the starter, before that
	ended          bool          // the root has ended
	other          error
	group          *group // nil: memory is that of the processes, added up
}

const followOptions = unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXIT

// stragglers is how long the rest of a tree may outlive the command, as in a
// recording.
const stragglers = 200 * time.Millisecond

// runOnce runs a command to its end, and counts its folios of these orders. ctx
// ends it early: by SIGTERM, a second later by SIGKILL.
func runOnce(ctx context.Context, o kernel.StartOptions, orders ...mm.Order) (*Run, error) {
	type result struct {
		run *Run
		err error
	}
	done := make(chan result, 1)
	go func() {
		// Tracees belong to a thread. It ends with this goroutine, and lets go of
		// what is left.
		runtime.LockOSThread()
		f := &follower{tasks: map[int]bool{}}
		err := f.follow(ctx, o, orders)
		done <- result{&f.run, err}
	}()
	r := <-done
	return r.run, r.err
}

func (f *follower) follow(ctx context.Context, o kernel.StartOptions, orders []mm.Order) error {
	p, err := kernel.Start(o)
	if err != nil {
		return err
	}
	f.root = p.PID
	f.tasks[f.root] = true
	counter, err := countFaults(f.root)
	if err == nil {
		defer unix.Close(counter)
		err = ptrace(unix.PTRACE_SEIZE, f.root, followOptions)
	}
	f.joinGroup()
	folios, ferr := countFolios(f.root, orders)
	defer folios.close()
	defer f.leaveGroup()
	if err != nil {
		p.Signal(os.Kill)
		p.Wait()
		return fmt.Errorf("verify: watch %s: %w", o.Command[0], err)
	}
	stop := context.AfterFunc(ctx, func() {
		p.Signal(unix.SIGTERM)
		time.AfterFunc(time.Second, func() { p.Signal(os.Kill) })
	})
	defer stop()
	// The starter's own threads stop too; they are seen to while it is let go.
	released := make(chan error, 1)
	go func() { released <- p.Release() }()
	err = f.waitAll()
	if rerr := <-released; rerr != nil {
		return rerr
	}
	if err != nil {
		return err
	}
	var buf [8]byte
	if n, err := unix.Read(counter, buf[:]); err != nil || n != 8 {
		return fmt.Errorf("verify: read the fault counter: %w", errors.Join(err, unix.EIO))
	}
	f.run.Faults = nativeUint64(buf)
	if f.group != nil {
		if f.run.Peak, err = f.group.peak(); err != nil {
			return err
		}
	}
	if f.run.OwnFolios = ferr == nil && len(orders) > 0; f.run.OwnFolios {
		f.run.Folios, err = folios.read()
	}
	return err
}

// waitAll handles stops until the whole tree has ended.
func (f *follower) waitAll() error {
	var deadline time.Time
	sample := time.Now()
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return f.other
		case err != nil:
			return fmt.Errorf("verify: wait: %w", err)
		case pid == 0:
			if f.ended && time.Now().After(deadline) {
				return f.other
			}
			if now := time.Now(); now.Sub(sample) >= sampleEvery {
				sample = now
				f.sampleAll()
			}
			time.Sleep(200 * time.Microsecond)
			continue
		}
		if ws.Stopped() {
			f.stopped(pid, ws)
			continue
		}
		delete(f.tasks, pid)
		if pid == f.root {
			f.ended, deadline = true, time.Now().Add(stragglers)
			f.run.Real = time.Since(f.began)
			f.run.User, f.run.System = max(0, time.Duration(ru.Utime.Nano())-f.user0),
				max(0, time.Duration(ru.Stime.Nano())-f.system0)
			f.run.Exit = ws.ExitStatus()
			if ws.Signaled() {
				f.run.Exit = 128 + int(ws.Signal())
			}
		}
	}
}

// stopped handles one stop and lets the task go on.
func (f *follower) stopped(pid int, ws unix.WaitStatus) {
	sig := int(ws.StopSignal())
	switch event := int(ws) >> 16; event {
	case unix.PTRACE_EVENT_EXEC:
		b, err := execBases(pid)
		if err != nil {
			f.other = errors.Join(f.other, err)
		}
		f.run.Execs = append(f.run.Execs, b)
		if !f.first {
			f.user0, f.system0 = cpuTimes(pid)
			f.first, f.began = true, time.Now()
		}
		sig = 0
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		if f.first {
			f.run.Thread++
		}
		sig = 0
	case unix.PTRACE_EVENT_EXIT:
		f.atExit(pid)
		sig = 0
	case unix.PTRACE_EVENT_STOP:
		switch ws.StopSignal() {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU: // it stays stopped, as its group
			ptrace(unix.PTRACE_LISTEN, pid, 0)
			return
		}
		f.tasks[pid] = true
		sig = 0
	case 0: // a signal on its way
	default:
		sig = 0
	}
	ptrace(unix.PTRACE_CONT, pid, sig)
}

// atExit reads what a process held at most, just before its memory goes.
func (f *follower) atExit(pid int) {
	fsys := kernel.LiveTree().FS
	st, err := kstat.ReadStatus(fsys, pid)
	if err != nil || st["Tgid"] != strconv.Itoa(pid) || !f.first {
		return
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	size, _ := st.Bytes("VmSize")
	f.run.Ends = append(f.run.Ends, End{exe, size})
	most, ok := st.Bytes("VmHWM")
	rss, anon, err := rollup(pid)
	if !ok || err != nil || rss < anon {
		return
	}
	f.run.Bound = max(f.run.Bound, anon, most-min(most, rss-anon))
	if f.group != nil || len(f.tasks) > 1 {
		f.sampleAll()
	}
	if f.group == nil {
		f.run.Peak = max(f.run.Peak, anon)
	}
}

// joinGroup gives the command a memory cgroup where there can be one.
func (f *follower) joinGroup() {
	g, err := newGroup("/sys/fs/cgroup")
	if err != nil {
		f.run.PeakBy = peakByProcess
		return
	}
	if err := g.add(f.root); err != nil {
		g.remove()
		f.run.PeakBy = peakByProcess
		return
	}
	f.group, f.run.PeakBy = g, peakByGroup
}

func (f *follower) leaveGroup() {
	if f.group != nil {
		f.group.remove()
	}
}

// sampleAll adds up the anonymous memory of all processes.
func (f *follower) sampleAll() {
	if !f.first {
		return
	}
	if f.group != nil {
		f.group.sample()
		return
	}
	fsys := kernel.LiveTree().FS
	var sum mm.Bytes
	for pid := range f.tasks {
		if st, err := kstat.ReadStatus(fsys, pid); err == nil && st["Tgid"] == strconv.Itoa(pid) {
			b, _ := st.Bytes("RssAnon")
			sum += b
		}
	}
	f.run.Peak = max(f.run.Peak, sum)
}

// rollup is a process's resident memory, and what of it is anonymous, exact to
// the page.
func rollup(pid int) (rss, anon mm.Bytes, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		var kb uint64
		if fmt.Sscanf(rest, "%d", &kb); name == "Rss" {
			rss = mm.Bytes(kb << 10)
		} else if name == "Anonymous" {
			anon = mm.Bytes(kb << 10)
		}
	}
	return rss, anon, nil
}
