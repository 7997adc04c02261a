package record

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// realSource is a C program whose compilation takes cc1 a while.
func realSource() string {
	var b strings.Builder
	b.WriteString("#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n")
	for i := range 15 {
		fmt.Fprintf(&b, "double f%d(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) "+
			"{ s += a[i] * %d; if (s > 1e9) s = a[(i * %d) %% n]; switch (i & 3) { case 0: s++; break; "+
			"case 1: a[i] = s; break; default: s -= a[n - 1 - i]; } } return s; }\n", i, i+1, i+7)
	}
	b.WriteString("int main(void) { return 0; }\n")
	return b.String()
}

// TestTracedReal records gcc and sort and compares with what the kernel
// counted: every fault told, or said to be another's.
func TestTracedReal(t *testing.T) {
	if testing.Short() {
		t.Skip("records a compilation")
	}
	bothMethods(t, func(t *testing.T, usePerf bool) {
		dir := t.TempDir()
		src, text := dir+"/a.c", dir+"/text"
		var lines strings.Builder
		for i := range 40000 {
			fmt.Fprintf(&lines, "%d line %d\n", (i*7919)%400009, i)
		}
		for path, data := range map[string]string{src: realSource(), text: lines.String()} {
			if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, argv := range [][]string{
			{"gcc", "-O2", "-c", "-o", dir + "/a.o", src},
			{"sort", "-o", dir + "/sorted", text},
		} {
			t.Run(argv[0], func(t *testing.T) {
				if _, err := exec.LookPath(argv[0]); err != nil {
					t.Skip("no ", argv[0], " here")
				}
				compareWithKernel(t, usePerf, argv)
			})
		}
	})
}

func compareWithKernel(t *testing.T, usePerf bool, argv []string) {
	run := func() (time.Duration, uint64) {
		cmd := exec.Command(argv[0], argv[1:]...)
		began := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		return time.Since(began), uint64(ru.Minflt + ru.Majflt)
	}
	unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	alone, want := run()
	began := time.Now()
	r := recordTest(t, context.Background(), usePerf, argv...)
	took := time.Since(began)
	var faults, found, other, stops uint64
	for _, e := range r.events {
		switch e.Kind {
		case trace.KindFault:
			faults++
		case trace.KindResident:
			found += e.B
		case trace.KindOtherFaults:
			other += e.A
		case trace.KindMmap, trace.KindMunmap, trace.KindBrk, trace.KindMremap, trace.KindMprotect,
			trace.KindMadvise:
			stops++
		}
	}
	got := faults + found + other
	t.Logf("%s: alone %v, %d faults; recorded %v (%.2fx): "+
		"%d faults + %d found + %d other = %d; %d stops, %d lost", argv[0],
		alone, want, took, float64(took)/float64(alone), faults, found, other, got, stops, r.footer.Lost)
	if diff := float64(got)/float64(want) - 1; diff < -0.03 || diff > 0.03 {
		t.Errorf("%d faults told, the kernel counted %d (%+.1f %%)", got, want, 100*diff)
	}
	if r.exit != 0 {
		t.Errorf("exit %d", r.exit)
	}
}
