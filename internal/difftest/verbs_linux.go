//go:build amd64

package difftest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// machine does what no system call of the process does.
func (r *hostRun) machine(a *action) error {
	switch a.step.Verb {
	case VerbKhugepaged:
		return khugepagedPass()
	case VerbPool, VerbOvercommit:
		return setPool(a.step)
	case VerbSplit:
		f, err := splitFile()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "%d,%#x,%#x", r.procs[a.proc].pid, uint64(a.at), uint64(a.at)+uint64(a.n)*pageSize)
		return err
	}
	// 2 is what has shrinkers: the queue of huge pages to split among them.
	_, err := r.h.drop.Write([]byte("2"))
	return err
}

// khugepagedPass makes khugepaged do exactly one pass: writing its sleep ends
// the one under way, and the pass over every page that it may scan at a time
// (wholePass) is a full scan. Where no size lets it run nothing happens.
func khugepagedPass() error {
	before := fullScans()
	if err := os.WriteFile(thpDir+"/"+sleepFile, []byte(stillSleep), 0); err != nil {
		return fmt.Errorf("settings: %w", err)
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

// bystanders measures what a pass counts for processes elsewhere on the machine
// that asked for huge pages: pages that it looks at and leaves are counted anew
// every time. A pass that does more has changed them, and is done again.
func (r *hostRun) bystanders(p *Program) error {
	if !p.has(VerbKhugepaged) || !khugepagedRuns() {
		return nil
	}
	r.others = make([]int64, len(r.before))
	for range 4 {
		if err := r.h.counts.read(r.before); err != nil {
			return err
		}
		if err := khugepagedPass(); err != nil {
			return err
		}
		if err := r.h.counts.read(r.after); err != nil {
			return err
		}
		quiet := true
		for i := range r.others {
			r.others[i] = r.after[i] - r.before[i]
			quiet = quiet && (r.others[i] == 0 || i < len(vmCounters) && scanExceeds(vmCounters[i]))
		}
		if quiet {
			return nil
		}
	}
	clear(r.others)
	return nil
}

func scanExceeds(c mm.Counter) bool {
	return c >= mm.THPScanExceedNonePTE && c <= mm.THPScanExceedSharePTE
}

// has says whether the program has a step of that verb.
func (p *Program) has(v Verb) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Verb == v })
}

// khugepagedRuns says whether the settings let khugepaged run.
func khugepagedRuns() bool {
	mode := chosenWord(programSizes().Dir(programSizes().PMD) + "/enabled")
	if mode == mm.Inherit.String() {
		mode = chosenWord("enabled")
	}
	return mode != mm.Never.String()
}

// chosenWord is the word in brackets of a setting.
func chosenWord(name string) string {
	b, _ := os.ReadFile(thpDir + "/" + name)
	_, after, _ := strings.Cut(string(b), "[")
	in, _, _ := strings.Cut(after, "]")
	return in
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
