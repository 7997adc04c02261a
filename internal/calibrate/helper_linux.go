package calibrate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// The helper is this program again, under these names: the first pins itself
// to a processor and becomes the second, so that all its threads are pinned.
const (
	pinName    = "hugelab-calibrate-pin"
	helperName = "hugelab-calibrate-helper"
)

func isHelper() bool {
	return len(os.Args) == 2 && (os.Args[0] == pinName || os.Args[0] == helperName)
}

func init() {
	if isHelper() {
		runtime.LockOSThread()
	}
}

// Helper must be called first in main (and TestMain) of a program that calls
// Run. In the process that Run starts it executes workloads and does not
// return; anywhere else it returns at once.
func Helper() {
	if !isHelper() {
		return
	}
	signal.Ignore(os.Interrupt) // Ctrl-C on a terminal: hugelab ends the work in good order
	cpu, err := strconv.Atoi(os.Args[1])
	if err == nil && os.Args[0] == pinName {
		err = becomeHelper(cpu)
	}
	if err == nil {
		err = serve(os.Stdin, os.Stdout, cpu)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "calibrate helper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func becomeHelper(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to processor %d: %w", cpu, err)
	}
	// Fewer interruptions are less noise; without the right it goes on as it is.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	// Whoever started this may have switched huge pages off for all below it.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("huge pages on: %w", err)
	}
	return unix.Exec("/proc/self/exe", []string{helperName, os.Args[1]}, os.Environ())
}

// serve answers orders until the end of in.
func serve(in io.Reader, out io.Writer, cpu int) error {
	debug.SetGCPercent(-1)
	enc := json.NewEncoder(out)
	w, err := newWorld()
	if err != nil {
		return enc.Encode(hello{Err: err.Error()})
	}
	defer w.close()
	w.empty = w.emptyStep()
	h := hello{Pinned: cpu, Clock: w.empty, Ballast: ownMaps(mm.Pages(len(w.far)) / mm.Pages(w.page))}
	if err := w.startSampler(); err != nil {
		h.Sampler = err.Error()
	}
	h.Traced = w.startTracer() == nil
	if err := enc.Encode(h); err != nil {
		return err
	}
	k := newMaker(w.sizes)
	all := k.all()
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var o order
		if err := dec.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		i := slices.IndexFunc(all, func(w workload) bool { return w.name == o.Workload })
		if i < 0 {
			return fmt.Errorf("no workload %q", o.Workload)
		}
		a, err := w.run(&all[i], o.Times)
		if err != nil {
			a = answer{Err: err.Error()}
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

// run repeats a workload; every third time perf samples it, if it can.
func (w *world) run(l *workload, times int) (answer, error) {
	a := answer{Steps: make([][]sample, len(l.steps))}
	for rep := range times {
		if l.warm > 0 {
			ns, err := w.warmUp(l, rep)
			if err != nil {
				return a, err
			}
			a.Warm = append(a.Warm, ns)
		}
		for i := range l.steps {
			s := &l.steps[i]
			if s.name == "" {
				if err := w.exec(s.ops); err != nil {
					return a, fmt.Errorf("%s: step %d: %w", l.name, i, err)
				}
				continue
			}
			x, err := w.time(s, w.sampler != nil && rep%sampledOf == 1)
			if err != nil {
				return a, fmt.Errorf("%s: %s: %w", l.name, s.name, err)
			}
			a.Steps[i] = append(a.Steps[i], x)
		}
	}
	return a, nil
}

// sampledOf: one repetition of so many is sampled.
const sampledOf = 3

// ownMaps is what this process has mapped by itself, and forks copy: all but
// far pages.
func ownMaps(far mm.Pages) ballast {
	var b ballast
	if text, err := os.ReadFile("/proc/self/smaps_rollup"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Anonymous:" {
				kb, _ := strconv.ParseUint(f[1], 10, 64)
				b.Pages = mm.Pages(kb<<10/uint64(os.Getpagesize())) - far
			}
		}
	}
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "VmPTE:" {
				kb, _ := strconv.Atoi(f[1])
				b.Tables = kb << 10 / os.Getpagesize()
			}
		}
	}
	if text, err := os.ReadFile("/proc/self/maps"); err == nil {
		b.Maps = strings.Count(string(text), "\n")
	}
	return b
}
