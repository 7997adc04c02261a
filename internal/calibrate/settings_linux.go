package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

const (
	thpDir = "/sys/kernel/mm/transparent_hugepage"

	// lockPath is held by whoever changes huge-page settings of this machine.
	lockPath = "/run/hugelab.lock"

	// minFree moves with the settings. Linux:
	// mm/khugepaged.c:set_recommended_min_free_kbytes (v6.18).
	minFree = "/proc/sys/vm/min_free_kbytes"
)

// advised lets blocks of a size be had where a program advises them, and
// nowhere else, until it is put back. It holds the machine's lock.
type advised struct {
	lock  *os.File
	sizes mm.Sizes
	old   map[string]string // of everything that will be changed
}

// patience bounds the wait for another program that changes settings.
const patience = 60 * time.Second

// errBusy says that another program changes settings.
var errBusy = errors.New("another program changes settings")

// takeSettings takes the lock and reads what will be changed for the orders.
// It changes nothing yet. If somebody else has the lock it waits as long as
// wait says.
func takeSettings(ctx context.Context, s mm.Sizes, orders []mm.Order, wait time.Duration) (*advised, error) {
	lock, err := os.OpenFile(lockPath, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, lock, wait); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: %w", lockPath, err)
	}
	a := &advised{lock: lock, sizes: s, old: map[string]string{}}
	paths := []string{minFree}
	for _, o := range orders {
		paths = append(paths, a.path(o))
	}
	for _, path := range paths {
		if a.old[path], err = readSetting(path); err == nil {
			err = unix.Access(path, unix.W_OK)
		}
		if err != nil {
			lock.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return a, nil
}

func flock(ctx context.Context, f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(until) {
			return errBusy
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (a *advised) path(o mm.Order) string { return filepath.Join(thpDir, a.sizes.Dir(o), "enabled") }

// only lets advised memory have blocks of order o; every other order is as it
// was. Memory of other programs is affected only where they advised it.
func (a *advised) only(o mm.Order) error {
	if err := a.restore(); err != nil {
		return err
	}
	return os.WriteFile(a.path(o), []byte(mm.Madvise.String()), 0)
}

func (a *advised) restore() error { return writeAll(a.old) }

// undo puts everything back and lets others change settings.
func (a *advised) undo() error { return errors.Join(a.restore(), a.lock.Close()) }

// writeAll writes settings, min_free_kbytes last because the others move it.
func writeAll(old map[string]string) error {
	var err error
	for path := range old {
		if path != minFree {
			err = errors.Join(err, writeBack(path, old))
		}
	}
	return errors.Join(err, writeBack(minFree, old))
}

// writeBack writes a setting that is not what it was.
func writeBack(path string, old map[string]string) error {
	text, ok := old[path]
	if now, err := readSetting(path); !ok || err == nil && now == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0)
}

// readSetting is a file's text; of a list of choices, the one in brackets.
func readSetting(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if _, rest, ok := strings.Cut(text, "["); ok {
		text, _, _ = strings.Cut(rest, "]")
	}
	return text, nil
}
