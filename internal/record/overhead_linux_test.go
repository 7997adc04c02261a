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

// count is a sink that only counts, so that the recorder alone is measured.
type count struct{ n uint64 }

func (c *count) Write(*trace.Event) error { c.n++; return nil }

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
	dir := b.TempDir()
	src := filepath.Join(dir, "functions.c")
	text, err := exec.Command("../../scripts/gen-functions.sh", "3000").Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(src, text, 0o644); err != nil {
		b.Fatal(err)
	}
	command := []string{gcc, "-O2", "-c", "-o", filepath.Join(dir, "functions.o"), src}
	side := map[string]func() time.Duration{
		"plain": func() time.Duration {
			start := time.Now()
			if err := exec.Command(command[0], command[1:]...).Run(); err != nil {
				b.Fatal(err)
			}
			return time.Since(start)
		},
		"recorded": func() time.Duration {
			start := time.Now()
			foot, err := Run(context.Background(), Options{Command: command, Method: trace.MethodRoot, sink: &count{}})
			if err != nil || foot.Exit != 0 || foot.Lost != 0 {
				b.Fatalf("recorded: %v, %+v", err, foot)
			}
			b.ReportMetric(float64(foot.Faults), "faults")
			return time.Since(start)
		},
	}
	for b.Loop() {
		ratios := interleave(pairs, side["plain"], side["recorded"])
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], "ratio")
		b.ReportMetric(ratios[len(ratios)/4], "ratio-q1")
		b.ReportMetric(ratios[len(ratios)*3/4], "ratio-q3")
		b.ReportMetric(float64(pairs), "pairs")
	}
}

// interleave times a and b in pairs, the first of a pair by turns, and returns b/a.
func interleave(pairs int, a, b func() time.Duration) []float64 {
	a()
	b()
	var ratios []float64
	for i := range pairs {
		var ta, tb time.Duration
		if i%2 == 0 {
			ta, tb = a(), b()
		} else {
			tb, ta = b(), a()
		}
		ratios = append(ratios, float64(tb)/float64(ta))
	}
	return ratios
}
