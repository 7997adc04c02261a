//go:build amd64

package difftest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// machine does what no system call of the process p does.
func (r *hostRun) machine(p *hostProc, a *action) error {
	switch a.step.Verb {
	case VerbKhugepaged:
		return khugepagedPass()
	case VerbSplit:
		f, err := splitFile()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "%d,%#x,%#x", p.pid, uint64(a.at), uint64(a.at)+uint64(a.n)*pageSize)
		return err
	}
	// 2 is what has shrinkers: the queue of huge pages to split among them.
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0)
}

// khugepagedPass makes khugepaged do exactly one pass: writing its sleep ends
// the one under way, and the pass over every page that it may scan at a time
// (wholePass) is a full scan. Where no size lets it run nothing happens.
func khugepagedPass() error {
	before := fullScans()
	if err := writeSetting("khugepaged/scan_sleep_millisecs", stillSleep); err != nil {
		return err
	}
	if !khugepagedRuns() {
		return nil
	}
	for end := time.Now().Add(10 * time.Second); fullScans() == before; time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			return errors.New("khugepaged: no full scan within ten seconds")
		}
	}
	return nil
}

// khugepagedRuns says whether the settings let khugepaged run.
func khugepagedRuns() bool {
	chosen := func(name string) string {
		b, _ := os.ReadFile(thpDir + "/" + name)
		text, _ := chosenWord(string(b))
		return text
	}
	mode := chosen(programSizes().Dir(programSizes().PMD) + "/enabled")
	if mode == mm.Inherit.String() {
		mode = chosen("enabled")
	}
	return mode != mm.Never.String()
}

// splitFile is debugfs's file that splits the folios of an address range. The
// file system is opened without mounting it anywhere.
var splitFile = sync.OnceValues(func() (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		return nil, fmt.Errorf("split: debugfs: %w: this kernel lets nobody force a split", err)
	}
	fs, err := unix.Fsopen("debugfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return fail(err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(mount)
	fd, err := unix.Openat(mount, "split_huge_pages", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(fd), "split_huge_pages"), nil
})

// CanSplit says why programs cannot split folios here, nil if they can.
func CanSplit() error {
	_, err := splitFile()
	return err
}
