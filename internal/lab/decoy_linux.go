package lab

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

/*
khugepaged sleeps in one of two ways. With no process to scan it wakes as soon
as one comes; with any it wakes when its sleep is over. The decoy is that any:

	decoy registers, then scan_sleep_millisecs is set long: one round now, then quiet

Linux: mm/khugepaged.c:khugepaged_wait_work, __khugepaged_enter (v6.18).
*/
const decoyName = "hugelab-decoy"

// Decoy must be called first in main (and in TestMain): in the process that
// holds khugepaged still, and in that of a warm pass, it does not return.
func Decoy() {
	switch {
	case len(os.Args) == 1 && os.Args[0] == decoyName:
		os.Exit(beDecoy())
	case len(os.Args) == 2 && os.Args[0] == warmName:
		os.Exit(beWarm(os.Args[1]))
	}
}

func beDecoy() int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	const length = 8 << 20
	// Whoever started it has huge pages switched off, which is inherited.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0); err != nil {
		return 1
	}
	m, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil || unix.Madvise(m, unix.MADV_HUGEPAGE) != nil {
		return 1
	}
	skip := (2<<20 - uintptr(unsafe.Pointer(&m[0]))%(2<<20)) % (2 << 20)
	m[skip] = 1
	os.Stdout.Write([]byte{'+'})
	os.Stdin.Read(make([]byte, 1)) // ends with its parent
	return 0
}

type decoy struct {
	cmd *exec.Cmd
	end *os.File
}

// startDecoy starts the decoy under settings that allow huge pages on advice.
func startDecoy() (*decoy, error) {
	in, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Stdin = []string{decoyName}, in
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		end.Close()
		return nil, fmt.Errorf("verify: hold khugepaged still: %w", err)
	}
	d := &decoy{cmd, end}
	if n, err := out.Read(make([]byte, 1)); n != 1 {
		d.stop()
		return nil, fmt.Errorf("verify: hold khugepaged still: the decoy did not start: %v", err)
	}
	return d, nil
}

// stop lets khugepaged go; a nil decoy holds nothing.
func (d *decoy) stop() {
	if d == nil {
		return
	}
	d.end.Close()
	d.cmd.Wait()
}

// quiet is how long khugepaged needs for the round that a new sleep begins
// with.
const quiet = 20 * time.Millisecond
