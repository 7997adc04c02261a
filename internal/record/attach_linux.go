package record

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// attach records a process that runs already.
//
//	open and enable events of all threads -> maps (time 0) -> page map -> follow
//
// Calls before the maps were read are in the maps; they are dropped. Faults
// while the page map was read may be both in it and in the events.
func (m *root) attach(ctx context.Context, f *formats) error {
	s := m.s
	pid := s.opts.PID
	if err := m.openThreads(f, pid); err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("record: attach to %d: %w", pid, err)
	}
	defer unix.Close(pidfd)
	m.watch(pidfd)
	if err := m.perf.all(unix.PERF_EVENT_IOC_ENABLE); err != nil {
		return fmt.Errorf("record: attach to %d: %w", pid, err)
	}
	if err := m.startState(pid); err != nil {
		return fmt.Errorf("record: attach to %d: %w", pid, err)
	}
	began := time.Now()
	ended := began.Add(s.opts.For)
	for s.emitErr == nil && ctx.Err() == nil && time.Now().Before(ended) {
		if m.round(min(pollEvery, time.Until(ended)+time.Millisecond)) {
			s.note(fmt.Sprintf("process %d ended while it was recorded", pid))
			break
		}
	}
	s.footer.Interrupted = ctx.Err() != nil
	took := time.Since(began)
	s.footer.Wall = mm.Nanos(took)
	err = m.finish()
	if sec := took.Seconds(); sec > 0 {
		s.note(fmt.Sprintf("attached for %.1f s: %.0f page faults and %.0f memory calls a second",
			sec, float64(s.footer.Faults)/sec, float64(m.d.calls)/sec))
	}
	return err
}

// openThreads opens the events of every thread, until no thread is new: a
// thread made by one that has its events inherits them.
func (m *root) openThreads(f *formats, pid int) error {
	for {
		tids, err := threads(pid)
		if err != nil {
			return err
		}
		added := false
		for _, tid := range tids {
			if m.d.tasks[int32(tid)] != nil {
				continue
			}
			if err := m.perf.open(f, tid, false); err != nil {
				if _, gone := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid)); gone != nil {
					continue
				}
				return fmt.Errorf("record: %w: %w", ErrNotHere, err)
			}
			m.d.adopt(int32(pid), int32(tid))
			added = true
		}
		if !added {
			return nil
		}
	}
}

// startState writes the process as it stands: program, maps, pages.
func (m *root) startState(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return err
	}
	m.d.start = now()
	m.d.from = m.d.start
	m.s.start = time.Now()
	maps, err := parseProcMaps(text)
	if err != nil {
		return err
	}
	exe, _ := os.Readlink(dir + "/exe") // a kernel thread or a deleted file has none
	base := trace.Event{PID: int32(pid), TID: int32(pid)}
	e := base
	e.Kind, e.Name = trace.KindExec, exe
	m.s.emit(&e)
	for _, v := range maps {
		e = base
		e.Kind, e.A, e.B, e.D, e.Name = trace.KindMapAt, v.start, v.end, v.ident, v.name
		e.C = uint64(v.prot) | uint64(v.flags)<<32
		m.s.emit(&e)
		if v.name == "[heap]" {
			e = base
			e.Kind, e.A, e.B = trace.KindBrkAt, v.start, v.end
			m.s.emit(&e)
		}
	}
	if p := m.d.procs[int32(pid)]; p != nil {
		p.heapSeen = true
	}
	return m.residents(dir, maps, &base)
}

// residents writes the pages that are present, and the large folios among them.
func (m *root) residents(dir string, maps []mmap2, base *trace.Event) error {
	pm, err := openPageMap(dir)
	if err != nil {
		return err
	}
	defer pm.close()
	scan, err := kernel.OpenPageMap(m.s.opts.PID)
	if err != nil {
		return err
	}
	defer scan.Close()
	var huge mm.Bytes
	var present []kernel.Run
	write := func(r pageRun) {
		e := *base
		e.When = mm.Nanos(now() - m.d.start)
		e.Kind, e.A, e.B, e.C, e.D = trace.KindResident, r.start, r.pages, uint64(r.access), uint64(r.order)
		m.s.emit(&e)
		if r.order > 0 {
			bytes := r.pages * pm.page
			e.Kind, e.B, e.C, e.D = trace.KindUnknown, bytes, uint64(mm.UnknownInHuge), 0
			m.s.emit(&e)
			huge += mm.Bytes(bytes)
		}
	}
	for _, v := range maps {
		if v.start >= userTop { // vsyscall
			continue
		}
		// The scan skips holes, which may be terabytes; the entries tell the frames.
		if present, err = scan.Scan(mm.VA(v.start), mm.VA(v.end), false, present[:0]); err != nil {
			return err
		}
		for _, r := range present {
			err := pm.runs(uint64(r.Start), uint64(r.End(pm.page)), v.prot&2 != 0, write)
			if err != nil {
				return err
			}
		}
	}
	if huge > 0 {
		m.s.note(fmt.Sprintf("%d KiB were in large folios when recording began: which of their pages "+
			"are used cannot be known, huge pages cannot be switched off in another process", huge>>10))
	}
	return nil
}
