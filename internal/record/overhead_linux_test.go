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
)

// BenchmarkRecordOverhead compiles a generated file by turns recorded and not,
// and reports the ratio of each pair. Pairs run in alternating order, so that a
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
	plain := func() (wall, cpu time.Duration) {
		start := time.Now()
		cmd := exec.Command(command[0], command[1:]...)
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	recorded := func() (wall, cpu time.Duration) {
		start := time.Now()
		foot := recordToFile(b, filepath.Join(dir, "recording"), command)
		b.ReportMetric(float64(foot.Faults), "faults")
		return time.Since(start), time.Duration(foot.User + foot.System)
	}
	for b.Loop() {
		wall, cpu := interleave(pairs, plain, recorded)
		for name, ratios := range map[string][]float64{"wall": wall, "cpu": cpu} {
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

// interleave times a and b in pairs, the first of a pair by turns, and returns
// b/a of the time that passed and of the processor time that the command used.
func interleave(pairs int, a, b func() (wall, cpu time.Duration)) (wall, cpu []float64) {
	a()
	b()
	for i := range pairs {
		var wa, ca, wb, cb time.Duration
		if i%2 == 0 {
			wa, ca = a()
			wb, cb = b()
		} else {
			wb, cb = b()
			wa, ca = a()
		}
		wall = append(wall, float64(wb)/float64(wa))
		cpu = append(cpu, float64(cb)/float64(ca))
	}
	return wall, cpu
}
