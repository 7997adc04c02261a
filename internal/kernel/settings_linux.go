package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// Session is the right to change the machine's settings: it holds the one
// lock, a journal with all old settings is on disk, and a guardian process
// stands by to put them back should this process end in any way.
type Session struct {
	o     SessionOptions
	lock  *lockFile
	j     *journal
	guard *guardian
	sizes mm.Sizes
	rules mm.Rules
}

// CanChange says whether this user may change settings on this machine; the
// error wraps ErrNotHere and says what stands in the way.
func CanChange() error { return canChange("/") }

func canChange(root string) error {
	if root == "/" {
		if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initPIDNamespace {
			return fmt.Errorf("settings: this is a container: its settings are the whole host's, where no lock of "+
				"ours holds: run hugelab on the host: %w", ErrNotHere)
		}
	}
	for _, file := range []string{thpDir + "/enabled", minFree} {
		err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(root, file), unix.W_OK, unix.AT_EACCESS)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("settings: %s: this kernel has no transparent huge pages: %w", file, ErrNotHere)
		case errors.Is(err, unix.EROFS):
			return fmt.Errorf("settings: %s is mounted read-only, as in a container: run hugelab on the host: %w",
				file, ErrNotHere)
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("settings: %s: only root may write it: run as root: %w", file, ErrNotHere)
		default:
			return fmt.Errorf("settings: %s: %w: %w", file, err, ErrNotHere)
		}
	}
	return nil
}

// initPIDNamespace is what the first process namespace is called.
// Linux: include/linux/proc_ns.h:PROC_PID_INIT_INO (v6.18).
const initPIDNamespace = "pid:[4026531836]"

// Take waits for the machine's lock until ctx ends (a *HeldError), puts back
// what a hugelab that was killed with its guardian left behind, and prepares
// the way back: journal first, then the guardian. Nothing is changed yet.
//
// Huge pages go off for this process, so that its own memory does not mix with
// what is measured; Start puts them on again for the command.
func Take(ctx context.Context, o SessionOptions) (*Session, error) {
	o.defaults()
	if err := canChange(o.root); err != nil {
		return nil, err
	}
	facts := LiveFacts()
	rules, err := mm.RulesFor(facts.Release)
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, o.lock(), fmt.Sprintf("process %d: %s", os.Getpid(), o.Command), o.Waiting)
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, lock: lock, sizes: facts.Sizes, rules: rules}
	if err := s.prepare(); err != nil {
		lock.say("")
		lock.release()
		return nil, err
	}
	return s, nil
}

func (s *Session) prepare() error {
	if _, err := recoverJournal(&s.o, activeName); err != nil {
		return err
	}
	now, err := ReadValues(s.o.root)
	if err != nil {
		return err
	}
	s.j = newJournal(s.o.Command, now)
	if err := s.j.write(s.o.journal(), activeName); err != nil {
		return err
	}
	if s.guard, err = startGuardian(&s.o, s.lock); err != nil {
		return errors.Join(err, removeJournal(s.o.journal(), activeName))
	}
	thpOff()
	return nil
}

// recoverJournal replays a journal whose makers are gone, and says what that
// changed; the caller holds the lock.
func recoverJournal(o *SessionOptions, name string) ([]Change, error) {
	j, err := loadJournal(o.journal(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now, err := ReadValues(o.root)
	if err != nil {
		return nil, err
	}
	changes := now.Changes(j.old)
	if err := j.replay(o.root, o.journal(), name); err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		o.Note(fmt.Sprintf("%d settings put back that %q left changed (%s)", len(changes), j.command, j.when))
	}
	return changes, nil
}

// Before are the settings as they were at Take.
func (s *Session) Before() Values { return s.j.old }

// Now are the settings as they are.
func (s *Session) Now() (Values, error) { return ReadValues(s.o.root) }

// Sizes are the huge-page sizes of this machine.
func (s *Session) Sizes() mm.Sizes { return s.sizes }

// Wanted says whether another program waits for the settings.
func (s *Session) Wanted() bool { return s.lock != nil && s.lock.wanted() }

// Apply sets a policy; what it does not hold stays. Either all of it is set, or
// what was set is undone and the error says which file failed and why.
func (s *Session) Apply(p mm.Policy) error { return s.ApplyHost(HostSettings{Policy: p}) }

// ApplyHost is Apply with settings beside the policy.
func (s *Session) ApplyHost(h HostSettings) error {
	now, err := s.Now()
	if err != nil {
		return err
	}
	want, err := h.Values(now, s.sizes, s.rules)
	if err != nil {
		return err
	}
	return s.Set(want)
}

// Set writes values, all or none.
func (s *Session) Set(want Values) error {
	now, err := s.Now()
	if err != nil {
		return err
	}
	for _, c := range now.Changes(want) {
		if _, ok := now[c.File]; !ok {
			return fmt.Errorf("settings: %s: this kernel has no such setting", c.File)
		}
		if err := writeValue(s.o.root, c.File, c.To); err != nil {
			err = fmt.Errorf("settings: apply: %w", err)
			if uerr := now.reach(s.o.root); uerr != nil {
				return errors.Join(err, fmt.Errorf("settings: undo: %w", uerr))
			}
			return fmt.Errorf("%w; what was set before it is undone", err)
		}
	}
	return nil
}

// Restore puts everything back, through the guardian, and ends the session.
// Where the guardian is gone it is done here.
func (s *Session) Restore() error {
	if s.lock == nil {
		return nil
	}
	defer s.end()
	answer, alive := s.guard.ask(askRestore)
	switch {
	case !alive:
		s.o.Note("the guardian was killed; the settings are put back without it")
		return s.j.replay(s.o.root, s.o.journal(), activeName)
	case answer != "":
		return errors.New(answer)
	}
	return nil
}

// Keep ends the session with the settings as they are now. The journal stays,
// so that RestoreKept finds the way back, also from several such changes.
func (s *Session) Keep() error {
	if s.lock == nil {
		return errors.New("settings: keep: the session has ended")
	}
	dir := s.o.journal()
	_, err := loadJournal(dir, keptName)
	switch {
	case err == nil:
		err = removeJournal(dir, activeName)
	case errors.Is(err, fs.ErrNotExist):
		if err = os.Rename(filepath.Join(dir, activeName), filepath.Join(dir, keptName)); err == nil {
			err = syncDir(dir)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("settings: keep: %w", err), s.Restore())
	}
	s.guard.ask(askKeep)
	s.end()
	return nil
}

func (s *Session) end() {
	s.guard.wait()
	s.lock.say("")
	s.lock.release()
	s.lock = nil
}

// RestoreKept puts back what a killed hugelab left and what Keep kept, and says
// what it changed. Nothing to put back is no error.
func RestoreKept(ctx context.Context, o SessionOptions) ([]Change, error) {
	o.defaults()
	if err := canChange(o.root); err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, o.lock(), fmt.Sprintf("process %d: %s", os.Getpid(), o.Command), o.Waiting)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	defer lock.say("")
	left, err := recoverJournal(&o, activeName)
	if err != nil {
		return left, err
	}
	kept, err := recoverJournal(&o, keptName)
	return append(left, kept...), err
}

// Kept are the settings that RestoreKept would put back, nil for none.
func Kept() (old Values, command string) {
	var o SessionOptions
	o.defaults()
	j, err := loadJournal(o.journal(), keptName)
	if err != nil {
		return nil, ""
	}
	return j.old, j.command
}

// Bystander is another process that a change of settings touches.
type Bystander struct {
	PID  int
	Name string
	Anon mm.Bytes
}

// Bystanders lists the processes with more anonymous memory than least.
func Bystanders(least mm.Bytes) []Bystander {
	fsys := LiveTree().FS
	dirs, err := fs.ReadDir(fsys, "proc")
	if err != nil {
		return nil
	}
	var all []Bystander
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(d.Name(), "%d", &pid); err != nil || strings.Trim(d.Name(), "0123456789") != "" {
			continue
		}
		st, err := kstat.ReadStatus(fsys, pid)
		if err != nil {
			continue // it has ended
		}
		if anon, ok := st.Bytes("RssAnon"); ok && anon > least {
			all = append(all, Bystander{pid, st["Name"], anon})
		}
	}
	return all
}
