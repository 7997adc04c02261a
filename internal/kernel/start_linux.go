package kernel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// starterName is argv[0] of the process that becomes a command.
const starterName = "hugelab-start"

const (
	starterGo  = 3 // one byte: exec now; end of file: the parent has died
	starterErr = 4 // starterReady, then why it failed; closed by a successful exec
)

const starterReady = '+'

// StartError says that a command could not be started.
type StartError struct {
	Name string
	Code int // the shell's exit code for it: 127 not found, 126 not executable
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("run: %s: %v", e.Name, e.Err) }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// StartOptions say how a command is started.
type StartOptions struct {
	Command        []string
	Stdin          *os.File // nil for none
	Stdout, Stderr *os.File // nil for none
	FixedAddresses bool     // no randomisation of its address spaces
}

// Started is a command that waits, before its exec, for Release.
type Started struct {
	PID  int
	cmd  *exec.Cmd
	goW  *os.File
	errR *os.File
	name string
}

// thpWasOff is what this process was started with; commands get that back.
var thpWasOff, _ = unix.PrctlRetInt(unix.PR_GET_THP_DISABLE, 0, 0, 0, 0)

// Start starts a command as far as its exec. Huge pages are for it as they were
// for this process before Take.
func Start(o StartOptions) (*Started, error) {
	name := o.Command[0]
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		code := 126
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code, err = 127, errors.New("command not found")
		}
		return nil, &StartError{name, code, err}
	}
	goR, goW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run: %s: %w", name, err)
	}
	defer goR.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		goW.Close()
		return nil, fmt.Errorf("run: %s: %w", name, err)
	}
	defer errW.Close()
	flags := fmt.Sprintf("%d%d", min(thpWasOff, 1), map[bool]int{true: 1}[o.FixedAddresses])
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{starterName, flags, path}, o.Command...)
	cmd.ExtraFiles = []*os.File{goR, errW}
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if o.Stdout != nil {
		cmd.Stdout = o.Stdout
	}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
	}
	if err := cmd.Start(); err != nil {
		goW.Close()
		errR.Close()
		return nil, fmt.Errorf("run: start %s: %w", name, err)
	}
	s := &Started{cmd.Process.Pid, cmd, goW, errR, name}
	errW.Close()
	// The starter's own exec is over when it speaks.
	ready := make([]byte, 1)
	if _, err := io.ReadFull(errR, ready); err != nil || ready[0] != starterReady {
		why, _ := io.ReadAll(errR)
		s.goW.Close()
		s.errR.Close()
		cmd.Wait()
		return nil, fmt.Errorf("run: start %s: is kernel.Guardian called first in main? %s%s", name, ready, why)
	}
	return s, nil
}

// Release lets the command go and returns when its exec has happened, or a
// *StartError.
func (s *Started) Release() error {
	s.goW.Write([]byte{1})
	s.goW.Close()
	text, _ := io.ReadAll(s.errR)
	s.errR.Close()
	if len(text) == 0 {
		return nil
	}
	s.cmd.Wait()
	code := 126
	if strings.Contains(string(text), unix.ENOENT.Error()) {
		code = 127
	}
	return &StartError{s.name, code, errors.New(string(text))}
}

// Wait waits for the command's end. A command that fails is no error.
func (s *Started) Wait() (*os.ProcessState, error) {
	st, err := s.cmd.Process.Wait()
	if err != nil {
		return nil, fmt.Errorf("run: wait for %s: %w", s.name, err)
	}
	return st, nil
}

// Signal sends the command a signal.
func (s *Started) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

func isStarter() bool { return len(os.Args) > 3 && os.Args[0] == starterName }

// Perf events of the main thread, and its personality, must be the ones that
// exec keeps.
func init() {
	if isStarter() {
		runtime.LockOSThread()
	}
}

func becomeCommand() int {
	unix.CloseOnExec(starterErr)
	report := os.NewFile(starterErr, "report")
	flags, path, argv := os.Args[1], os.Args[2], os.Args[3:]
	if unix.Gettid() != unix.Getpid() {
		fmt.Fprint(report, "the starter does not run on its first thread")
		return 125
	}
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, uintptr(flags[0]-'0'), 0, 0, 0); err != nil {
		fmt.Fprintf(report, "set huge pages: %v", err)
		return 125
	}
	if flags[1] == '1' {
		const addrNoRandomize = 0x0040000 // Linux: include/uapi/linux/personality.h (v6.18)
		old, _, errno := unix.Syscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
		if errno == 0 {
			_, _, errno = unix.Syscall(unix.SYS_PERSONALITY, old|addrNoRandomize, 0, 0)
		}
		if errno != 0 {
			fmt.Fprintf(report, "fix addresses: %v", errno)
			return 125
		}
	}
	report.Write([]byte{starterReady})
	release := os.NewFile(starterGo, "release")
	if _, err := io.ReadFull(release, make([]byte, 1)); err != nil {
		return 125
	}
	release.Close()
	err := syscall.Exec(path, argv, os.Environ())
	fmt.Fprintf(report, "exec: %v", err)
	if errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}
