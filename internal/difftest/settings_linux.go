package difftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// lockFile is held exclusively by whoever changes a setting of the kernel.
const lockFile = "/run/hugelab.lock"

// stillSleep keeps khugepaged from a second pass: its sleep is ten minutes.
const stillSleep = "600000"

// settings are the kernel's huge-page settings, changed under the lock, with
// what they were before.
type settings struct {
	lock   *os.File
	mu     sync.Mutex
	before map[string]string // by path below transparent_hugepage
	wrote  map[string]bool
	stop   func() bool
}

// takeSettings waits for the lock and notes every setting. A signal that ends
// this process puts them back first.
func takeSettings(ctx context.Context) (*settings, error) {
	lock, err := os.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("settings: lock: %w", err)
	}
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) || ctx.Err() != nil {
			lock.Close()
			return nil, fmt.Errorf("settings: lock %s: %w", lockFile, err)
		}
	}
	s := &settings{lock: lock, before: map[string]string{}, wrote: map[string]bool{}}
	files, err := kstat.ReadTHPSettings(os.DirFS("/"))
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("settings: %w", err)
	}
	for name, text := range files {
		if value, ok := chosenWord(text); ok {
			s.before[name] = value
		}
	}
	sig, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	undo := context.AfterFunc(sig, func() {
		s.restore()
		os.Exit(1)
	})
	s.stop = func() bool { defer cancel(); return undo() }
	return s, nil
}

// chosenWord is what to write to have a setting as it is read.
func chosenWord(text string) (string, bool) {
	if _, after, ok := strings.Cut(text, "["); ok {
		in, _, ok := strings.Cut(after, "]")
		return in, ok
	}
	return strings.TrimSpace(text), true
}

// apply sets a policy; khugepaged's sleep is always the long one.
func (s *settings) apply(p mm.Policy, r mm.Rules) error {
	files := p.Files(programSizes(), r)
	files["khugepaged/scan_sleep_millisecs"] = stillSleep
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, text := range files {
		if _, ok := s.before[name]; !ok {
			return fmt.Errorf("settings: %s: this kernel has no such file", name)
		}
		if !s.changed(name, text) {
			continue
		}
		s.wrote[name] = true
		if err := writeSetting(name, text); err != nil {
			return err
		}
	}
	return nil
}

// changed says whether a file now holds something else than text.
func (s *settings) changed(name, text string) bool {
	b, err := os.ReadFile(filepath.Join(thpDir, name))
	now, _ := chosenWord(string(b))
	return err != nil || now != text
}

func writeSetting(name, text string) error {
	if err := os.WriteFile(filepath.Join(thpDir, name), []byte(text), 0); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// restore writes back what has changed.
func (s *settings) restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for name := range s.wrote {
		all = append(all, writeSetting(name, s.before[name]))
	}
	return errors.Join(all...)
}

// release puts the settings back and lets go of the lock.
func (s *settings) release() error {
	defer s.lock.Close()
	defer s.stop()
	return s.restore()
}
