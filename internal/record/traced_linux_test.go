package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// recorded is what a test's recording holds.
type recorded struct {
	events []trace.Event
	footer trace.Footer
	exit   int
}

// asNobody makes the recorder's own tests run without root: the test binary
// starts itself again as nobody and the child's verdict counts.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	if os.Getenv("HUGELAB_TEST_NOBODY") != "" {
		t.Fatal("still root")
	}
	exe := t.TempDir() + "/record.test"
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for d := exe; d != "/" && d != "/tmp"; d = d[:max(1, lastSlash(d))] {
		os.Chmod(d, 0o755)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "HUGELAB_TEST_NOBODY=1", "TMPDIR=/tmp", "HOME=/tmp")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	t.Logf("as nobody:\n%s", out)
	if err != nil {
		t.Error(err)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skip("skipped as nobody")
	}
	return false
}

func lastSlash(s string) int { return bytes.LastIndexByte([]byte(s), '/') }

// startTest starts argv as far as the stub.
func startTest(t *testing.T, argv []string) *child {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{"traced-test-stub"}, argv...)
	cmd.ExtraFiles = []*os.File{r}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	return &child{
		pid:          cmd.Process.Pid,
		releaseStops: func() error { defer w.Close(); _, err := w.Write([]byte{2}); return err },
		wait:         sync.OnceValues(func() (*os.ProcessState, error) { return cmd.Process.Wait() }),
	}
}

// recordTest records argv with one of the two methods.
func recordTest(t *testing.T, ctx context.Context, usePerf bool, argv ...string) recorded {
	t.Helper()
	var buf bytes.Buffer
	w, err := trace.NewWriter(&buf, trace.Header{Command: argv, PageSize: os.Getpagesize()})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{opts: Options{Out: w, Command: argv}, start: time.Now(), child: startTest(t, argv)}
	err = newTraced(usePerf).run(ctx, s)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT) {
		unix.Kill(s.child.pid, unix.SIGKILL)
		s.child.wait()
		t.Skipf("this machine does not allow it: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.child.wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(s.footer); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	rec := recorded{footer: s.footer, exit: state.Sys().(syscall.WaitStatus).ExitStatus()}
	for {
		var e trace.Event
		if err := r.Next(&e); err == io.EOF {
			return rec
		} else if err != nil {
			t.Fatal(err)
		}
		rec.events = append(rec.events, e)
	}
}

// bothMethods runs f for perf and pagemap, as nobody.
func bothMethods(t *testing.T, f func(t *testing.T, usePerf bool)) {
	if !asNobody(t) {
		return
	}
	t.Run("perf", func(t *testing.T) { f(t, true) })
	t.Run("pagemap", func(t *testing.T) { f(t, false) })
}

// touchedIn lists, in order, the touches at [from, from+pages), as "page:access".
func (r recorded) touchedIn(from uint64, pages int) []string {
	var out []string
	size := uint64(os.Getpagesize())
	add := func(at uint64, acc mm.Access) {
		if at >= from && at < from+uint64(pages)*size {
			out = append(out, strconv.FormatUint((at-from)/size, 10)+":"+accessName(acc))
		}
	}
	for _, e := range r.events {
		switch e.Kind {
		case trace.KindFault:
			add(e.A, e.Access)
		case trace.KindResident:
			for i := range e.B {
				add(e.A+i*size, mm.Access(e.C))
			}
		}
	}
	return out
}

func accessName(a mm.Access) string {
	switch {
	case a&mm.AccessUnknown != 0:
		return "?"
	case a&mm.Write != 0:
		return "w"
	}
	return "r"
}

func (r recorded) count(k trace.Kind) (n int) {
	for _, e := range r.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func (r recorded) dump() string {
	var b bytes.Buffer
	for _, e := range r.events {
		fmt.Fprintf(&b, "%v kind %d pid %d tid %d acc %x %x %x %x %x = %x %s\n",
			time.Duration(e.When), e.Kind, e.PID, e.TID, e.Access, e.A, e.B, e.C, e.D, e.Ret, e.Name)
	}
	return b.String()
}
