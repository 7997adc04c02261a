//go:build amd64

package difftest

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// stillSleep keeps khugepaged from a second pass: its sleep is ten minutes.
const (
	sleepFile  = "khugepaged/scan_sleep_millisecs"
	stillSleep = "600000"
)

// setPolicy sets what programs of one policy find.
func (h *Host) setPolicy(set *kernel.Session, spec string, r mm.Rules) error {
	p, err := policyOf(spec)
	if err != nil {
		return err
	}
	now, err := set.Now()
	if err != nil {
		return err
	}
	want := kernel.Values{}
	for name, text := range p.Files(programSizes(), r) {
		file := thpDir + "/" + name
		if _, ok := now[file]; !ok && strings.HasSuffix(name, "shmem_enabled") && text == mm.ShmemNever.String() {
			continue // a kernel without tmpfs
		} else if !ok {
			return fmt.Errorf("settings: %s: this kernel has no such file", file)
		}
		want[file] = text
	}
	want[thpDir+"/"+sleepFile] = stillSleep
	if err := set.Set(want); err != nil {
		return err
	}
	return h.settle(p)
}

// settle holds khugepaged still: it is given another process to look at, looks
// at it, and sleeps for long.
func (h *Host) settle(p mm.Policy) error {
	if h.decoy != nil {
		if err := h.decoy.exit(); err != nil {
			return err
		}
		h.decoy = nil
	}
	pmd := programSizes().PMD
	anon, shared := p.Effective(pmd) != mm.Never, p.ShmemSize[pmd] != mm.ShmemNever
	if !anon && !shared {
		return nil
	}
	before := fullScans()
	var err error
	if h.decoy, _, err = h.puppets.first().fork(); err != nil {
		return err
	}
	how := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED
	if !anon {
		// Shared memory registers it where nothing else has huge pages.
		how = unix.MAP_SHARED | unix.MAP_ANONYMOUS | unix.MAP_FIXED
	}
	for _, call := range [][]uint64{
		{unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, 0, 0, 0, 0},
		{unix.SYS_MMAP, uint64(arenaAt), uint64(pmdSize), unix.PROT_READ | unix.PROT_WRITE, uint64(how), ^uint64(0), 0},
		{unix.SYS_MADVISE, uint64(arenaAt), uint64(pmdSize), unix.MADV_HUGEPAGE},
	} {
		if _, err := h.decoy.do(doSyscall, call...); err != nil {
			return err
		}
	}
	// It is full, or dropping caches would split it.
	if _, err := h.decoy.do(doTouch, uint64(arenaAt), uint64(pmdSize/pageSize), pageSize, 1); err != nil {
		return err
	}
	// The setting is so already: writing it wakes khugepaged.
	if err := os.WriteFile(thpDir+"/"+sleepFile, []byte(stillSleep), 0); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) && fullScans() == before; {
		time.Sleep(time.Millisecond)
	}
	return nil
}

func fullScans() string {
	b, _ := os.ReadFile(thpDir + "/khugepaged/full_scans")
	return strings.TrimSpace(string(b))
}
