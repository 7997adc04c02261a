package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

/*
Memory that the hypervisor has not backed costs several times more at its first
use, and a guest that reports its free pages loses the backing again within
seconds. So a process takes about as much memory as a run will, and gives it
back, right before the run:

	free, perhaps not backed -> taken by the warm pass -> free and backed -> the run

Linux: mm/page_reporting.c:page_reporting_process (v6.18): free blocks of 2 MiB,
two seconds after they became free.
*/
const warmName = "hugelab-warm"

// errLow says that there is too little free memory for a warm pass.
var errLow = errors.New("too little memory is free for a warm pass before each run")

// beWarm takes memory in huge pages and ends. MADV_COLLAPSE takes them whatever
// the settings are.
func beWarm(text string) int {
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil || unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	const huge = 2 << 20
	m, err := unix.Mmap(-1, 0, int(n)+huge, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return 1
	}
	skip := int(huge-uintptr(unsafe.Pointer(&m[0]))%huge) % huge
	m = m[skip : skip+int(n)/huge*huge]
	for i := 0; i < len(m); i += huge {
		m[i] = 1
	}
	if len(m) == 0 || unix.Madvise(m, unix.MADV_COLLAPSE) == nil {
		return 0
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return 0
}

// warm has that much memory taken and given back, and says how long it took.
func warm(ctx context.Context, n mm.Bytes) (time.Duration, error) {
	info, err := kstat.ReadMemInfo(kernel.LiveTree().FS)
	if err == nil && info.Bytes["MemAvailable"] < n+n/2 {
		return 0, errLow
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{warmName, strconv.FormatUint(uint64(n), 10)}
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("verify: warm pass: %w", err)
	}
	return time.Since(start), nil
}
