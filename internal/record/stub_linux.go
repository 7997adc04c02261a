package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// stubName is argv[0] of the stub; its environment is COMMAND's own, untouched.
const stubName = "hugelab-record-stub"

// The stub's inherited pipes.
const (
	stubGo  = 3 // one byte, goExec or goStops: exec now; end of file: the recorder has gone
	stubErr = 4 // a line of what the stub used, then why exec failed; closed by a successful exec
)

const (
	goExec  = 1
	goStops = 2 // the stub is traced: install stops first
)

func isStub() bool { return len(os.Args) > 2 && os.Args[0] == stubName }

// The exec must come from the thread whose id is the process id: perf events
// hang on that task, and an exec from another one would end it.
func init() {
	if isStub() {
		runtime.LockOSThread()
	}
}

// Stub must be the first call of main (and of TestMain). In the process that
// Run starts it switches huge pages off, waits for the recorder and becomes
// COMMAND; anywhere else it returns at once.
//
// Huge pages go off here and not between fork and exec of the recorder, whose
// memory a vfork child shares: the switch is a property of the address space,
// and is kept by fork and exec. Linux: kernel/sys.c:prctl_set_thp_disable (v6.18).
func Stub() {
	if isCloser() {
		os.Exit(0)
	}
	if isStub() {
		os.Exit(stub(os.Args[1], os.Args[2:]))
	}
}

func stub(path string, argv []string) int {
	unix.CloseOnExec(stubErr)
	report := os.NewFile(stubErr, "stub report")
	if unix.Gettid() != unix.Getpid() {
		fmt.Fprint(report, "the stub does not run on its first thread")
		return 125
	}
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		fmt.Fprintf(report, "switch huge pages off: %v", err)
		return 125
	}
	release := os.NewFile(stubGo, "stub release")
	how := make([]byte, 1)
	if _, err := io.ReadFull(release, how); err != nil {
		return 125
	}
	release.Close()
	if how[0] == goStops {
		if err := InstallStops(); err != nil {
			fmt.Fprint(report, err)
			return 125
		}
	}
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	fmt.Fprintf(report, "%d %d %d\n", used.Utime.Nano(), used.Stime.Nano(), used.Maxrss)
	err := syscall.Exec(path, argv, os.Environ())
	fmt.Fprintf(report, "exec: %v", err)
	if errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// startChild starts COMMAND as far as the stub.
func startChild(o *Options) (*child, error) {
	name := o.Command[0]
	path, err := findCommand(name)
	if err != nil {
		return nil, err
	}
	goR, goW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("record: start %s: %w", name, err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		goR.Close()
		goW.Close()
		return nil, fmt.Errorf("record: start %s: %w", name, err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{stubName, path}, o.Command...)
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
		if !o.Quiet {
			cmd.Stdout = o.Stderr
		}
	}
	cmd.ExtraFiles = []*os.File{goR, errW}
	err = cmd.Start()
	goR.Close()
	errW.Close()
	if err != nil {
		goW.Close()
		errR.Close()
		return nil, fmt.Errorf("record: start the stub of %s: %w", name, err)
	}
	return watchChild(cmd, name, goW, errR), nil
}

// watchChild wraps a started stub.
func watchChild(cmd *exec.Cmd, name string, goW, errR *os.File) *child {
	c := &child{pid: cmd.Process.Pid, signal: cmd.Process.Signal}
	letGo := func(how byte) error {
		defer goW.Close()
		if _, err := goW.Write([]byte{how}); err != nil {
			return fmt.Errorf("record: release %s: %w", name, err)
		}
		return nil
	}
	c.release = func() error { return letGo(goExec) }
	c.stops = func() error { return letGo(goStops) }
	c.wait = sync.OnceValues(func() (*os.ProcessState, error) {
		defer goW.Close()
		return cmd.Process.Wait()
	})
	c.started = sync.OnceValues(func() (stubUse, error) {
		defer errR.Close()
		text, _ := io.ReadAll(errR)
		var use stubUse
		first, why, _ := strings.Cut(string(text), "\n")
		if n, _ := fmt.Sscan(first, &use.user, &use.system, &use.maxRSS); n != 3 {
			why = string(text) // it did not come as far as exec
		}
		if why == "" {
			return use, nil
		}
		code := 126
		if strings.Contains(why, unix.ENOENT.Error()) {
			code = 127
		}
		return use, &CommandError{Name: name, Code: code, Err: errors.New(why)}
	})
	return c
}

// LookUp says why name cannot be run as COMMAND, as a *CommandError.
func LookUp(name string) error {
	_, err := findCommand(name)
	return err
}

// findCommand finds name as a shell would, through PATH.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, os.ErrPermission):
		return "", &CommandError{name, 126, errors.New("not executable")}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &CommandError{name, 127, errors.New("command not found")}
	}
	return "", &CommandError{name, 126, err}
}
