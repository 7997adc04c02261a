package record

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// closerName is argv[0] of a process that holds perf events only to end with
// them. Closing the last user of a tracepoint makes the kernel wait for every
// CPU, some 27 ms for each: time that COMMAND's user would wait for nothing.
// Linux: kernel/trace/trace_event_perf.c:perf_trace_event_unreg (v6.18).
const closerName = "hugelab-record-closer"

func isCloser() bool { return len(os.Args) == 1 && os.Args[0] == closerName }

// closeElsewhere stops perf events and closes them without waiting: another
// process of this program gets them, ends at once, and the kernel closes them
// at its end. Where it cannot be started they are closed here.
func closeElsewhere(fds []int) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{closerName}
	cmd.Env = []string{}
	for _, fd := range fds {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0) // it ends with its last descriptor anyhow
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "perf event"))
	}
	if err := cmd.Start(); err == nil {
		go func() { _ = cmd.Wait() }() // only so that it does not stay a zombie
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}
