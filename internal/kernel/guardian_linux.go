package kernel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

/*
The guardian is this program again, in a session of its own. It shares the lock,
and waits on a pipe for the word of its parent; the end of the file means that
the parent has died, however.

	            +-- 'r' ----> put back, answer, end        (Restore)
	ready ----> +-- 'k' ----> answer, end                  (Keep)
	            +-- end ----> put back, say so, end        (the parent died)

The parent's writes are over when the guardian sees the end: a dying process
closes its files only when its last thread has left the kernel.
*/
const guardianName = "hugelab-guardian"

// The guardian's inherited files.
const (
	guardAsk  = 3
	guardAck  = 4
	guardLock = 5 // held open: the lock is shared until the settings are back
)

const (
	askRestore = 'r'
	askKeep    = 'k'
	ackReady   = '+'
	ackDone    = '.'
)

// Guardian must be called first in main (and in TestMain). In the processes
// that this package starts it does not return; anywhere else it does at once.
func Guardian() {
	switch {
	case len(os.Args) == 3 && os.Args[0] == guardianName:
		o := SessionOptions{dir: os.Args[1], root: os.Args[2]}
		o.defaults()
		os.Exit(guard(&o))
	case isStarter():
		os.Exit(becomeCommand())
	}
}

func guard(o *SessionOptions) int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP,
		unix.SIGTTIN, unix.SIGTTOU, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	for fd := range 3 {
		unix.CloseOnExec(guardAsk + fd)
	}
	thpOff()
	// Memory that runs out is a reason to need a guardian, not to end it.
	os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	os.Chdir("/")
	ask, ack := os.NewFile(guardAsk, "ask"), os.NewFile(guardAck, "answer")
	lock := &lockFile{os.NewFile(guardLock, "lock")}
	ack.Write([]byte{ackReady})
	word := make([]byte, 1)
	_, err := io.ReadFull(ask, word)
	if err == nil && word[0] == askKeep {
		ack.Write([]byte{ackDone})
		return 0
	}
	j, lerr := loadJournal(o.journal(), activeName)
	switch {
	case errors.Is(lerr, fs.ErrNotExist):
		lerr = nil // the parent died between Keep's rename and its word
	case lerr == nil:
		lerr = j.replay(o.root, o.journal(), activeName)
	}
	text := ""
	if lerr != nil {
		text = lerr.Error() + ": 'hugelab settings restore' tries again"
	}
	if err == nil {
		ack.Write(append([]byte(text), ackDone))
		return 0
	}
	lock.say("")
	if text == "" {
		text = "ended early; its guardian put the settings back"
	}
	fmt.Fprintf(os.Stderr, "hugelab: %s\n", text)
	return 0
}

// guardian is the parent's end.
type guardian struct {
	cmd  *exec.Cmd
	word *os.File
	ack  *os.File
}

func startGuardian(o *SessionOptions, lock *lockFile) (*guardian, error) {
	askR, askW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guardian: %w", err)
	}
	defer askR.Close()
	ackR, ackW, err := os.Pipe()
	if err != nil {
		askW.Close()
		return nil, fmt.Errorf("guardian: %w", err)
	}
	defer ackW.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{guardianName, o.dir, o.root}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{askR, ackW, lock.f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	g := &guardian{cmd: cmd, word: askW, ack: ackR}
	if err := cmd.Start(); err != nil {
		askW.Close()
		ackR.Close()
		return nil, fmt.Errorf("guardian: %w", err)
	}
	ackW.Close()
	ready := make([]byte, 1)
	if _, err := io.ReadFull(ackR, ready); err != nil || ready[0] != ackReady {
		g.wait()
		return nil, fmt.Errorf("guardian: it did not start: is kernel.Guardian called first in main?")
	}
	return g, nil
}

// ask asks the guardian and gives its answer, "" for done; alive is false
// when it has died.
func (g *guardian) ask(word byte) (answer string, alive bool) {
	if _, err := g.word.Write([]byte{word}); err != nil {
		return "", false
	}
	b, _ := io.ReadAll(g.ack)
	return strings.CutSuffix(string(b), string(ackDone))
}

func (g *guardian) wait() {
	g.word.Close()
	g.ack.Close()
	g.cmd.Wait()
}

// thpOff switches huge pages off for this process.
func thpOff() { unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0) }
