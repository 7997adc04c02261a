package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

func TestMain(m *testing.M) {
	kernel.Guardian()
	Decoy()
	record.Stub()
	if len(os.Args) == 2 && os.Args[1] == "touch-8m" {
		os.Exit(touch())
	}
	os.Exit(m.Run())
}

const touched = 8 << 20

// touch writes 8 MiB of fresh memory, page by page, and gives it back before it
// ends.
func touch() int {
	m, err := unix.Mmap(-1, 0, touched, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 1
	}
	for i := 0; i < touched; i += os.Getpagesize() {
		m[i] = 1
	}
	time.Sleep(20 * time.Millisecond) // for whoever samples
	unix.Munmap(m)
	return 0
}

// follow runs a command, or skips where that is not possible.
func follow(t *testing.T, command ...string) *Run {
	t.Helper()
	run, err := runOnce(context.Background(), kernel.StartOptions{Command: command})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("may not trace or count here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestRunOnce(t *testing.T) {
	r := follow(t, "/proc/self/exe", "touch-8m")
	pages := uint64(touched / os.Getpagesize())
	if r.Exit != 0 || r.Faults < pages/512 || r.Faults > 2*pages+20000 {
		t.Errorf("exit %d, %d faults for %d pages", r.Exit, r.Faults, pages)
	}
	if r.Peak < touched || r.Peak > touched+64<<20 {
		t.Errorf("peak %d, want %d and a little", r.Peak, touched)
	}
	if r.Real < 20*time.Millisecond || r.Real > 10*time.Second {
		t.Errorf("it ran %v", r.Real)
	}
	if len(r.Execs) != 1 || r.Execs[0].Exe == 0 || r.Execs[0].Heap == 0 || r.Execs[0].Stack == 0 {
		t.Errorf("execs %+v", r.Execs)
	}
	// The test program has no loader: where its mmap area ends is told by the vdso.
	rules, err := mm.RulesFor(kernel.LiveFacts().Release)
	if v, verr := mm.ParseRelease(rules.Version); err == nil && verr == nil && v.Major >= 6 && v.Minor >= 16 &&
		r.Execs[0].Mmap == 0 {
		t.Errorf("no mmap area: %+v", r.Execs)
	}
}

func TestRunOnceTree(t *testing.T) {
	r := follow(t, "sh", "-c", "sleep 0.01 & /bin/true; wait; kill -TERM $$")
	if r.Exit != 128+int(unix.SIGTERM) || len(r.Execs) != 3 || r.Thread != 2 {
		t.Errorf("exit %d, %d execs, %d new tasks", r.Exit, len(r.Execs), r.Thread)
	}
	for _, b := range r.Execs {
		if b.Program == "" || b.Stack == 0 {
			t.Errorf("%+v", b)
		}
	}
}

func TestRunOnceEnds(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	start := time.Now()
	r, err := runOnce(ctx, kernel.StartOptions{Command: []string{"sleep", "100"}})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("may not trace or count here: ", err)
	}
	if err != nil || r.Exit != 128+int(unix.SIGTERM) || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v: %+v", err, time.Since(start), r)
	}
	var se *kernel.StartError
	_, err = runOnce(context.Background(), kernel.StartOptions{Command: []string{"/nonexistent/x"}})
	if !errors.As(err, &se) {
		t.Errorf("%v", err)
	}
}

// TestVerifyReal holds predictions against this kernel: within 2 % of the
// faults and of the peak under never, thp and one size of its own.
func TestVerifyReal(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: changes the machine's settings")
	}
	if err := kernel.CanChange(); err != nil {
		t.Skip(err)
	}
	if method, why := record.Choose(); method != trace.MethodRoot {
		t.Skip("an exact recording needs method root: ", why)
	}
	command := []string{"sh", "-c", "seq 1 300000 | sort -S 64M --parallel=1 -r | tail -1"}
	var b bytes.Buffer
	o := record.Options{Command: command, Method: trace.MethodRoot, Quiet: true}
	w, err := trace.NewWriter(&b, record.Header(o, trace.MethodRoot))
	if err != nil {
		t.Fatal(err)
	}
	o.Out = w
	footer, err := record.Run(context.Background(), o)
	if err == nil {
		err = w.Close(footer)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	s, err := kernel.Take(ctx, kernel.SessionOptions{Command: "a test of verify"})
	var held *kernel.HeldError
	if errors.As(err, &held) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Restore()
	now, err := s.Before().Policy(s.Sizes())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := mm.RulesFor(kernel.LiveFacts().Release)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := predict.ParsePolicies([]string{"never,64k,thp"}, now, now, rules, s.Sizes())
	if err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	v, err := Verify(context.Background(), Plan{
		Command: command, Input: predict.Input{Open: open, Policies: rows}, Runs: 2, Seed: 1, Session: s,
		Peak: func(string) mm.Bytes { return 64 << 20 }})
	if rerr := s.Restore(); rerr != nil {
		t.Error(rerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.Cells {
		c := &v.Cells[i]
		f, p := c.Faults(), c.Peak()
		t.Logf("%-6s faults %.0f, measured %.0f, %+.2f%%; peak %+.2f%%", c.Policy, f.Predicted, f.Measured,
			100*f.Error, 100*p.Error)
		if len(c.Pairs) != 2 || abs(f.Error) > 0.02 {
			t.Errorf("%s: %d runs, error %+.2f%%", c.Policy, len(c.Pairs), 100*f.Error)
		}
		for _, o := range v.SizesUsed(c) {
			n := v.Folios(c, o)
			t.Logf("%-6s folios of %s: %.0f, measured %.0f", c.Policy, v.Sizes.Name(o), n.Predicted, n.Measured)
			if abs(n.Predicted-n.Measured) > max(20, 0.03*n.Measured) {
				t.Errorf("%s: folios of %s: %.0f, measured %.0f", c.Policy, v.Sizes.Name(o), n.Predicted, n.Measured)
			}
		}
		if c.Unlike != "" {
			t.Errorf("%s: not the same work: %s", c.Policy, c.Unlike)
		}
	}
	for _, n := range v.Notes {
		if !strings.Contains(n, "new to the machine") { // that is the host's affair
			t.Errorf("note: %q", n)
		}
	}
}

// TestFlagValue: both ways in which kernels have described the flag.
func TestFlagValue(t *testing.T) {
	for _, c := range []struct {
		format string
		want   uint64
	}{
		{`{( unsigned long)(( gfp_t)((((1UL))) << (19))), "__GFP_NOMEMALLOC"}, {1, "x"}`, 1 << 19},
		{`{(unsigned long)(1UL), "GFP_X"}, {(unsigned long)((( gfp_t)0x80000u)), "__GFP_NOMEMALLOC"}`, 0x80000},
		{`{(unsigned long)((( gfp_t)0x80000u)), "__GFP_OTHER"}`, 0},
		{`{(unsigned long)((( gfp_t)(1) << (what)), "__GFP_NOMEMALLOC"}`, 0},
		{`{(1UL << (64)), "__GFP_NOMEMALLOC"}`, 0},
		{`"__GFP_NOMEMALLOC"`, 0},
	} {
		got, err := flagValue(c.format, "__GFP_NOMEMALLOC")
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s: %#x, %v, want %#x", c.format, got, err, c.want)
		}
	}
}
