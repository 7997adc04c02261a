package record

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// BenchmarkRecordOverhead compiles a generated file by turns recorded and not,
// and reports the ratio of the pairs, and that of the least of each side, which
// a busy machine disturbs less. Pairs run in alternating order, so that a
// drift of the machine hits both sides.
func BenchmarkRecordOverhead(b *testing.B) {
	if m, why := Choose(); m != trace.MethodRoot {
		b.Skipf("method root does not work here: %s", why)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		b.Skip("no gcc")
	}
	pairs, _ := strconv.Atoi(os.Getenv("HUGELAB_OVERHEAD_PAIRS"))
	pairs = max(pairs, 5)
	functions := os.Getenv("HUGELAB_OVERHEAD_FUNCTIONS")
	if functions == "" {
		functions = "3000"
	}
	dir := b.TempDir()
	src := filepath.Join(dir, "functions.c")
	text, err := exec.Command("../../scripts/gen-functions.sh", functions).Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(src, text, 0o644); err != nil {
		b.Fatal(err)
	}
	command := []string{gcc, "-O2", "-c", "-o", filepath.Join(dir, "functions.o"), src}
	plain := func() {
		if err := exec.Command(command[0], command[1:]...).Run(); err != nil {
			b.Fatal(err)
		}
	}
	file := filepath.Join(dir, "recording")
	with := func() {
		foot := recordToFile(b, file, command)
		b.ReportMetric(float64(foot.Events), "events")
	}
	if os.Getenv("HUGELAB_OVERHEAD_WITH") == "perf" {
		with = func() { perfRecord(b, file, command) }
	}
	for b.Loop() {
		plains, withs := interleave(pairs, plain, with)
		for i, name := range []string{"wall", "cpu", "command-cpu"} {
			var ratios []float64
			least, leastWith := plains[0][i], withs[0][i]
			for n := range plains {
				ratios = append(ratios, float64(withs[n][i])/float64(plains[n][i]))
				least, leastWith = min(least, plains[n][i]), min(leastWith, withs[n][i])
			}
			b.ReportMetric(float64(leastWith)/float64(least), name+"-of-least")
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], name+"-ratio")
			b.ReportMetric(ratios[len(ratios)/4], name+"-q1")
			b.ReportMetric(ratios[len(ratios)*3/4], name+"-q3")
		}
		b.ReportMetric(float64(pairs), "pairs")
	}
}

// recordToFile records a command as the tool does.
func recordToFile(b *testing.B, path string, command []string) trace.Footer {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	o := Options{Command: command, Method: trace.MethodRoot}
	if o.Out, err = trace.NewWriter(f, Header(o, o.Method)); err != nil {
		b.Fatal(err)
	}
	foot, err := Run(context.Background(), o)
	if err != nil || foot.Exit != 0 || foot.Lost != 0 {
		b.Fatalf("recorded: %v, %+v", err, foot)
	}
	if err := o.Out.Close(foot); err != nil {
		b.Fatal(err)
	}
	return foot
}

// perfRecord records the same events with perf record.
func perfRecord(b *testing.B, path string, command []string) {
	args := []string{"record", "-q", "-o", path, "-m", "8M", "-d",
		"-e", "exceptions:page_fault_user", "-e", "exceptions:page_fault_kernel",
		"--filter", kernelFaults,
		"-e", "raw_syscalls:sys_enter", "--filter", idFilter(memoryCalls),
		"-e", "raw_syscalls:sys_exit", "--filter", idFilter(memoryCalls, execCalls),
		"-e", "task:task_newtask", "-e", "sched:sched_process_exec",
		"-e", "mmap_lock:mmap_lock_acquire_returned", "--filter", "write==1&&success==1", "--"}
	if out, err := exec.Command("perf", append(args, command...)...).CombinedOutput(); err != nil {
		b.Fatalf("perf record: %v: %s", err, out)
	}
}

// cost is what a run took: time that passed, processor time of this process and
// all that it waited for, and of the latter alone.
type cost [3]time.Duration

func costOf(run func()) cost {
	used := func(who int) time.Duration {
		var ru unix.Rusage
		_ = unix.Getrusage(who, &ru)
		return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	start, self, children := time.Now(), used(unix.RUSAGE_SELF), used(unix.RUSAGE_CHILDREN)
	run()
	wall := time.Since(start)
	children = used(unix.RUSAGE_CHILDREN) - children
	return cost{wall, children + used(unix.RUSAGE_SELF) - self, children}
}

// interleave times a and b in pairs, the first of a pair by turns.
func interleave(pairs int, a, b func()) (costsA, costsB []cost) {
	a()
	b()
	for i := range pairs {
		var ca, cb cost
		if i%2 == 0 {
			ca = costOf(a)
			cb = costOf(b)
		} else {
			cb = costOf(b)
			ca = costOf(a)
		}
		costsA, costsB = append(costsA, ca), append(costsB, cb)
	}
	return costsA, costsB
}
