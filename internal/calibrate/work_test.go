package calibrate

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

var update = flag.Bool("update", false, "rewrite testdata")

// machine is a model machine on which workload w can run.
func machine(t testing.TB, w *workload, noZero bool) mm.Config {
	t.Helper()
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	rules.NoZeroPage = noZero
	s, _ := mm.SizesOf(4096)
	p := mm.DefaultPolicy(s)
	p.Enabled = mm.Madvise
	if w.order != 0 {
		p.Size[w.order] = mm.Madvise
	}
	return mm.Config{Nodes: []mm.Node{{Mem: 2 << 30}}, CPUs: 2, Rules: rules, Policy: p}
}

// TestWork holds what each step of each workload costs in primitives.
func TestWork(t *testing.T) {
	for name, noZero := range map[string]bool{"work.golden": false, "work-nozeropage.golden": true} {
		var b bytes.Buffer
		k := newMaker(mm.Sizes{Base: 4096, PMD: 9})
		for _, w := range k.all() {
			counts, err := count(&w, machine(t, &w, noZero), ballast{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range w.steps {
				if w.steps[i].name == "" {
					continue
				}
				fmt.Fprintf(&b, "%s (%d): %d faults\n", w.steps[i].name, w.steps[i].per, counts[i].faults)
				for p, n := range counts[i].work {
					if n > 0 {
						fmt.Fprintf(&b, "\t%s %d\n", mm.Prim(p), n)
					}
				}
			}
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestFaults holds the numbers of faults to what anyone can count by hand.
func TestFaults(t *testing.T) {
	want := map[string]uint64{
		"write fault, small page": 1024, "read fault, small page": 1024, "write after read": 1024,
		"write fault, table too": 128, "madvise(MADV_POPULATE_WRITE)": 1024, "munmap, small pages": 0,
		"write fault in a system call": 1024, copyFault: 512, "write fault, reuse": 512, firstAccess: 0,
		"write fault, block of 16k": 512, "write fault, block of 1m": 8, "write fault, block of 2m": 8,
		"write fault, reuse of 2m": 8, "fork, exit": 0, "mprotect, nothing mapped": 0,
	}
	k := newMaker(mm.Sizes{Base: 4096, PMD: 9})
	for _, w := range k.all() {
		counts, err := count(&w, machine(t, &w, false), ballast{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.steps {
			name := w.steps[i].name
			if n, ok := want[name]; ok && n != counts[i].faults {
				t.Errorf("%s: %d faults, want %d", name, counts[i].faults, n)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("no step %q", name)
	}
}

// TestCyclesRepeat: a workload leaves the model as it found it, so that every
// repetition costs the same.
func TestCyclesRepeat(t *testing.T) {
	k := newMaker(mm.Sizes{Base: 4096, PMD: 9})
	for _, w := range k.all() {
		once, err := count(&w, machine(t, &w, true), ballast{Pages: 900, Tables: 30, Maps: 20})
		if err != nil {
			t.Fatal(err)
		}
		twice := w
		twice.steps = append(append([]step(nil), w.steps...), w.steps...)
		got, err := count(&twice, machine(t, &w, true), ballast{Pages: 900, Tables: 30, Maps: 20})
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.steps {
			// The allocator's lists are refilled in batches: their primitives,
			// and the splits and merges of blocks, differ from cycle to cycle.
			for _, p := range []mm.Prim{mm.PrimAllocPCP, mm.PrimAllocRefill, mm.PrimAllocBuddy, mm.PrimExpand,
				mm.PrimFreePCP, mm.PrimFreeBuddy, mm.PrimMerge, mm.PrimZoneLock} {
				once[i].work[p], got[i].work[p] = 0, 0
			}
			if d := cmp.Diff(once[i].work, got[i].work); d != "" {
				t.Errorf("%s, step %d %q, in another cycle:\n%s", w.name, i, w.steps[i].name, d)
			}
		}
	}
}

// TestOtherBasePages: workloads of 16 and 64 kB pages run on the model too.
func TestOtherBasePages(t *testing.T) {
	for _, base := range []mm.Bytes{16 << 10, 64 << 10} {
		s, _ := mm.SizesOf(base)
		k := newMaker(s)
		for _, w := range k.all() {
			cfg := machine(t, &workload{}, false)
			cfg.BasePage = base
			cfg.Nodes[0].Mem = 64 << 30
			cfg.Policy = mm.DefaultPolicy(s)
			cfg.Policy.Enabled = mm.Madvise
			if w.order != 0 {
				cfg.Policy.Size[w.order] = mm.Madvise
			}
			if _, err := count(&w, cfg, ballast{}); err != nil {
				t.Errorf("base page %d: %v", base, err)
			}
		}
	}
}
