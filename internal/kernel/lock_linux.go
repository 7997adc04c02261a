package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// HeldError says who holds the machine's settings.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string {
	return "settings: held by " + e.Holder + ": wait for it, or end it"
}

// lockFile is one flock(2) for the machine; whoever changes settings holds it
// from before reading the old ones until they are back. The holder's process
// id and command stand in it.
type lockFile struct{ f *os.File }

// takeLock waits for the lock until ctx ends. waiting is called once when
// somebody else has it.
func takeLock(ctx context.Context, path, me string, waiting func(holder string)) (*lockFile, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := waitLock(ctx, f, waiting); err != nil {
			return nil, err
		}
		// Somebody may have removed the file while we waited.
		var ours, there unix.Stat_t
		if unix.Fstat(int(f.Fd()), &ours) == nil && unix.Stat(path, &there) == nil && ours.Ino == there.Ino {
			l := &lockFile{f}
			l.say(me)
			return l, nil
		}
		f.Close()
	}
}

// waitLock locks f. It waits in flock itself, so that waiters are served in
// their order; a wait that is given up lets go of the lock when it comes.
func waitLock(ctx context.Context, f *os.File, waiting func(holder string)) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return fmt.Errorf("lock: %s: %w", f.Name(), err)
	}
	who := holder(f)
	if ctx.Err() != nil {
		f.Close()
		return &HeldError{who}
	}
	if waiting != nil {
		waiting(who)
	}
	got := make(chan error, 1)
	var given atomic.Bool
	go func() {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if !given.CompareAndSwap(false, true) {
			f.Close()
		}
		got <- err
	}()
	select {
	case err = <-got:
	case <-ctx.Done():
		if given.CompareAndSwap(false, true) {
			return &HeldError{holder(f)}
		}
		err = <-got
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("lock: %s: %w", f.Name(), err)
	}
	return nil
}

// say writes who holds the lock, for those who wait. It is a courtesy: a
// failure changes nothing.
func (l *lockFile) say(who string) {
	l.f.Truncate(0)
	if who != "" {
		l.f.WriteAt([]byte(who+"\n"), 0)
	}
}

// wanted says whether somebody waits for the lock.
func (l *lockFile) wanted() bool {
	var st unix.Stat_t
	if unix.Fstat(int(l.f.Fd()), &st) != nil {
		return false
	}
	locks, _ := os.ReadFile("/proc/locks")
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		w := strings.Fields(line) // 1: -> FLOCK ADVISORY WRITE pid major:minor:inode 0 EOF
		if len(w) >= 7 && w[1] == "->" && w[2] == "FLOCK" && strings.HasSuffix(w[6], inode) {
			return true
		}
	}
	return false
}

// release lets go, unless another process shares the lock.
func (l *lockFile) release() { l.f.Close() }

// holder says who holds the lock on f: what the holder wrote, or else whom
// /proc/locks names.
func holder(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if s := strings.TrimSpace(string(text)); s != "" {
		return s
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return "another process"
	}
	locks, _ := os.ReadFile("/proc/locks")
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		w := strings.Fields(line) // 1: FLOCK ADVISORY WRITE pid major:minor:inode 0 EOF
		if len(w) >= 6 && w[1] == "FLOCK" && strings.HasSuffix(w[5], inode) {
			return holderName(w[4])
		}
	}
	return "another process"
}

func holderName(pid string) string {
	cmd, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || len(cmd) == 0 {
		return "process " + pid + " or a child that it left the lock to"
	}
	words := strings.Split(strings.TrimRight(string(cmd), "\x00"), "\x00")
	return "process " + pid + ": " + strings.Join(words, " ")
}
