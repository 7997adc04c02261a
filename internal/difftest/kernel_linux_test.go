//go:build amd64

package difftest

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

func TestMain(m *testing.M) {
	kernel.Guardian()
	// Helpers inherit this: pages of their own move no counter.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// hostOptions skips the test where the kernel cannot be asked, or where
// somebody holds its settings for long.
func hostOptions(t *testing.T) Options {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	set, err := kernel.Take(ctx, kernel.SessionOptions{Command: "difftest's tests"})
	if err != nil {
		t.Skip(err)
	}
	if err := set.Restore(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Kernel: strings.TrimSpace(string(b)), Steps: 30, Paranoid: true}
	if o.Rules, err = mm.RulesFor(o.Kernel); err != nil {
		t.Fatal(err)
	}
	if !o.Rules.CollapseReadOnly {
		t.Skipf("kept programs and the test's trust are for 6.18 and later; this is %s", o.Kernel)
	}
	o.Rules.NoZeroPage = kernel.NoZeroPage()
	o.OnMismatch = func(m *Mismatch) { t.Errorf("%s: %s\n%s", m.From, &m.Difference, m.Program) }
	return o
}

// TestKeptOnKernel: what programs expect holds on the running kernel, and the
// model agrees about everything else.
func TestKeptOnKernel(t *testing.T) {
	o := hostOptions(t)
	o.Files = kept(t)
	if _, err := Check(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}

// TestFreshOnKernel: programs that nobody has seen, a few of them; CI asks for
// 300 by HUGELAB_FRESH=300, which take less than three minutes.
func TestFreshOnKernel(t *testing.T) {
	o := hostOptions(t)
	o.Seed, o.Programs, o.Time = uint64(time.Now().UnixMilli())%1e9, 15, 3*time.Second
	if text := os.Getenv("HUGELAB_FRESH"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("HUGELAB_FRESH=%s: want a number of programs", text)
		}
		o.Programs, o.Time, o.Steps, o.Paranoid = n, 0, 40, false
	}
	t.Logf("seed %d", o.Seed)
	rep, err := Check(t.Context(), o)
	if err != nil {
		t.Fatalf("seed %d: %v", o.Seed, err)
	}
	t.Logf("%d programs in %.0f s (%.0f a minute), %d run again %v, %d unsettled, %d steps, %d pages", rep.Programs,
		rep.Seconds, rep.Rate, rep.Rerun, rep.Because, rep.Unsettled, rep.Steps, rep.Pages)
	if rep.Unsettled > rep.Programs/50 {
		t.Errorf("%d of %d programs never agreed, nor differed in one way", rep.Unsettled, rep.Programs)
	}
}
