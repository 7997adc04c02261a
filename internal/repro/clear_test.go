package repro

import (
	"math"
	"testing"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// machineWith loads a machine with changes.
func machineWith(t testing.TB, name string, set ...string) *hw.Machine {
	t.Helper()
	m, err := hw.LoadMachine(name)
	for i := 0; i < len(set) && err == nil; i += 2 {
		m, err = m.With(set[i], set[i+1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func model(t testing.TB, r Result, seed uint64, set ...string) Values {
	t.Helper()
	v, err := r.Model(Env{Machine: machineWith(t, r.Machine, set...), Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// band holds a metric to a range.
func band(t *testing.T, v Values, name string, low, high float64) {
	t.Helper()
	x, ok := v.Get(name)
	if !ok || math.IsNaN(x) || x < low || x > high {
		t.Errorf("%s: %.2f, want %v to %v", name, x, low, high)
	}
}

// clearGain is what a pair's change brings, in percent of throughput.
func clearGain(t *testing.T, p clearPair, machine string, set ...string) float64 {
	t.Helper()
	base, patched, err := p.run(Env{Machine: machineWith(t, machine, set...), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return change(base.throughput, patched.throughput)
}

// TestAnonWSeqHugetlb: the effect, and the two set-ups without it.
func TestAnonWSeqHugetlb(t *testing.T) {
	for seed := range uint64(2) {
		v := model(t, anonWSeqHugetlb(), seed)
		band(t, v, "throughput_gain_percent", 18, 38)
		band(t, v, "miss_rate_change_percent", -45, -15)
		band(t, v, "ipc_gain_percent", 10, 40)
		band(t, v, "user_time_change_percent", -35, -8)
		band(t, v, "gain_4_processes_percent", -2, 2)
		band(t, v, "gain_forward_percent", -2, 2)
	}
}

// TestAnonWSeqHugetlbCauses takes the causes of the effect away, and then
// what it must not hang on: how the last level chooses what to give up, and
// whether clearing reads what it clears.
func TestAnonWSeqHugetlbCauses(t *testing.T) {
	for _, tc := range []struct {
		key, to   string
		low, high float64
	}{
		{"llc.size", "*4", -3, 3},
		{"processes", "4", -1, 1},
		{"processes", "22", -1, 1},
		{"memory.bandwidth", "*20", 0, 8}, // nobody waits in turn: a miss costs its latency alone
		{"llc.policy", "0", 18, 50},
		{"llc.policy", "1", 18, 50},
		{"clear.reads", "1", 15, 38},
	} {
		if g := clearGain(t, hugetlbPair(), "xeon-e5-2699v4", tc.key, tc.to); g < tc.low || g > tc.high {
			t.Errorf("%s=%s: gain %.2f %%, want %v to %v", tc.key, tc.to, g, tc.low, tc.high)
		}
	}
}

func TestAnonWSeqTHP(t *testing.T) {
	p := orderPair(workload.Usemem{Step: workload.Word})
	for _, tc := range []struct {
		key, to   string
		low, high float64
	}{
		{"line", "64", 18, 38}, {"llc.size", "*4", -3, 3}, {"processes", "4", -1, 1},
	} {
		if g := clearGain(t, p, "xeon-e5-2699v3", tc.key, tc.to); g < tc.low || g > tc.high {
			t.Errorf("%s=%s: gain %.2f %%, want %v to %v", tc.key, tc.to, g, tc.low, tc.high)
		}
	}
}

// TestClearSimDeterministic: same seed, same figures to the last bit.
func TestClearSimDeterministic(t *testing.T) {
	m := machineWith(t, "xeon-e5-2640v4")
	var runs [2]clearRun
	for i := range runs {
		var err error
		set := clearSetup{use: workload.Usemem{Processes: 40, Step: workload.Word}}
		if runs[i], err = runClear(m, 7, set); err != nil {
			t.Fatal(err)
		}
	}
	if runs[0] != runs[1] {
		t.Errorf("%+v, then %+v", runs[0], runs[1])
	}
}

// TestClearSimTraffic: without a cache to speak of, each line of a page is
// written back after the clearing and again after the program, and read once
// between; the struct pages add as much as they are large.
func TestClearSimTraffic(t *testing.T) {
	m := machineWith(t, "xeon-e5-2699v4", "llc.size", "6m", "llc.policy", "0")
	r, err := runClear(m, 1, clearSetup{
		use:   workload.Usemem{Processes: 88, Step: workload.Word, Reverse: true},
		order: mm.ClearTowards,
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := float64(hugeBytes / 64)
	if reads := r.reads / lines; reads < 0.98 || reads > 1.03 {
		t.Errorf("%.3f lines read a line of the page, want 1 and struct pages", reads)
	}
	if writes := r.writes / lines; writes < 1.96 || writes > 2.05 {
		t.Errorf("%.3f lines written back a line of the page, want 2 and struct pages", writes)
	}
	if full := m.Get("memory.bandwidth"); r.bandwidth < 0.98*full || r.bandwidth > 1.01*full {
		t.Errorf("memory moves %.1f GB/s, want the %v that it can", r.bandwidth, full)
	}
	if over := r.credited / r.throughput; math.Abs(over-1.125) > 1e-9 {
		t.Errorf("reported %.4f times what was written, want 1.125", over)
	}
}

// TestClearOnAnyMachine: the results run on every machine that there is.
func TestClearOnAnyMachine(t *testing.T) {
	for _, name := range hw.MachineNames() {
		p := hugetlbPair()
		if _, _, err := p.run(Env{Machine: machineWith(t, name, "processes", "2")}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunClearRefuses(t *testing.T) {
	for _, set := range [][2]string{
		{"memory.bandwidth", "0"}, {"processes", "89"}, {"line", "1"}, {"l1.size", "64"}, {"cpu.clock", "0"},
	} {
		_, err := anonWSeqHugetlb().Model(Env{Machine: machineWith(t, "xeon-e5-2699v4", set[0], set[1])})
		if err == nil {
			t.Errorf("%v was taken", set)
		}
	}
}

func BenchmarkAnonWSeqHugetlb(b *testing.B) {
	for b.Loop() {
		model(b, anonWSeqHugetlb(), 1)
	}
}
