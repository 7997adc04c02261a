package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

/*
The journal holds every setting as it was before the first change.

	            Take                    Restore, or the guardian
	no journal ------> active journal ---------------------------> no journal
	                        |
	                        | Keep (settings apply without a command)
	                        v
	                  kept journal -- settings restore --> no journal

An active journal without a holder of the lock means that hugelab and its
guardian both died: whoever takes the lock next replays it. A kept journal is of
the first permanent change, so that restore goes back to before all of them.
*/
const (
	activeName = "journal"
	keptName   = "kept"
	// journalMark starts a journal; the number is its format's.
	journalMark = "hugelab settings journal 1"
)

// journal is one journal file.
type journal struct {
	boot    string // the kernel's boot_id: settings do not outlive a boot
	command string // who made it
	when    string
	old     Values
}

// bootID tells one boot from another.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// write puts the journal into dir under name, on disk before it returns.
func (j *journal) write(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	err = j.old.WriteText(f, journalMark, "boot "+j.boot, "when "+j.when,
		"command "+strings.ReplaceAll(j.command, "\n", " "))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// loadJournal reads a journal. One of another boot is removed and is as if it
// were not there: fs.ErrNotExist.
func loadJournal(dir, name string) (*journal, error) {
	file := filepath.Join(dir, name)
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	old, header, err := ParseValues(b)
	if err != nil {
		return nil, fmt.Errorf("journal: %s: %w", file, err)
	}
	if len(header) == 0 || header[0] != journalMark {
		return nil, fmt.Errorf("journal: %s: of another version of hugelab: want %q in its first line: use that version",
			file, journalMark)
	}
	j := &journal{old: old}
	for _, h := range header[1:] {
		key, value, _ := strings.Cut(h, " ")
		switch key {
		case "boot":
			j.boot = value
		case "when":
			j.when = value
		case "command":
			j.command = value
		}
	}
	if j.boot != bootID() {
		return nil, errors.Join(os.Remove(file), &fs.PathError{Op: "read", Path: file, Err: fs.ErrNotExist})
	}
	return j, nil
}

// replay puts everything back and removes the journal. Where something could
// not be put back the journal stays.
func (j *journal) replay(root, dir, name string) error {
	if err := j.old.reach(root); err != nil {
		return fmt.Errorf("settings: put back: %w", err)
	}
	return removeJournal(dir, name)
}

func removeJournal(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func newJournal(command string, old Values) *journal {
	return &journal{boot: bootID(), command: command, when: time.Now().Format(time.RFC3339), old: old}
}
