package record

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
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
	exe, err := publicBinary()
	if err != nil {
		t.Fatal(err)
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

// publicBinary is a copy of the test binary that everybody may run; TestMain
// removes it.
var publicBinary = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	if publicDir, err = os.MkdirTemp("/tmp", "hugelab-record-test-"); err != nil {
		return "", err
	}
	exe := publicDir + "/record.test"
	if err := os.Chmod(publicDir, 0o755); err != nil {
		return "", err
	}
	return exe, os.WriteFile(exe, data, 0o755)
})

var publicDir string

// recordTest records argv with one of the two methods.
func recordTest(t *testing.T, ctx context.Context, usePerf bool, argv ...string) recorded {
	t.Helper()
	out := &events{}
	m := trace.MethodPagemap
	if usePerf {
		m = trace.MethodPerf
	}
	foot, err := Run(ctx, Options{Command: argv, Method: m, Quiet: true, Stderr: os.Stderr, sink: out})
	if errors.Is(err, ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return recorded{events: out.list, footer: foot, exit: foot.Exit}
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
