package repro

import (
	"testing"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// spfEnv is a machine, changed, for short runs.
func spfEnv(t *testing.T, name string, set ...string) Env {
	t.Helper()
	m, err := hw.LoadMachine(name)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = with(m, set); err != nil {
		t.Fatal(err)
	}
	return Env{Machine: m, Seed: 1}
}

// gainOf is what a path gains over the classic one, in percent, in one run.
func gainOf(t *testing.T, c spfCase, env Env, path spfPath) float64 {
	t.Helper()
	base, err := c.runs(env, basePath, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.runs(env, path, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	touches := func(r *spfRun) float64 { return r.touches }
	return gain(base.mean(touches), other.mean(touches))
}

// TestSpeculationGainsByCauses takes the causes of the gain away one by one.
func TestSpeculationGainsByCauses(t *testing.T) {
	mTRp, err := ebizzyCase("4.15", 4<<30, 10e6, 30e6, twice, "-mTRp")
	if err != nil {
		t.Fatal(err)
	}
	mTt, err := ebizzyCase("4.17", 4<<30, 10e6, 50e6, once, "-mT")
	if err != nil {
		t.Fatal(err)
	}
	v6, v11 := spfPath{speculative: mm.SpecV6}, spfPath{speculative: mm.SpecV11}
	freeWaking := []string{"lock.wakeup=0", "lock.wake=0", "sched.switch=0"}
	for _, s := range []struct {
		what      string
		c         spfCase
		machine   string
		path      spfPath
		set       []string
		low, high float64
	}{
		{"a writer for every fault", mTRp, "x86-vm-16", v6, nil, 100, 1e9},
		{"many faults to a writer", mTt, "x86-vm-16-may", v11, nil, 20, 1e9},
		{"waking is free: only the cost is left", mTRp, "x86-vm-16", v6, freeWaking, -50, 10},
		{"waking is free: only the cost is left", mTt, "x86-vm-16-may", v11, freeWaking, -50, 10},
		{"one processor: nobody waits", mTRp, "x86-vm-16", v6, []string{"cpu.cores=1"}, -20, 10},
		{"one thread: it never tries", mTt, "x86-vm-16-may", v11, []string{"cpu.cores=1"}, 0, 0},
		{"only files: trying is in vain", pageFaultCase(3, false), "skylake-192", v11, nil, -60, -5},
		{"lines move in no time: trying costs little", pageFaultCase(3, false), "skylake-192", v11,
			[]string{"cpu.sockets=1", "line.near=0"}, -5, 1},
		{"processes of one thread do not try", pageFaultCase(3, true), "skylake-192", v11,
			[]string{"cpu.sockets=1"}, 0, 0},
		{"per-VMA locks", mTRp, "x86-vm-16", vmaPath, nil, 100, 1e9},
	} {
		if g := gainOf(t, s.c, spfEnv(t, s.machine, s.set...), s.path); g < s.low || g > s.high {
			t.Errorf("%s: %.2f %%, want %g to %g", s.what, g, s.low, s.high)
		}
	}
}

// TestGainGrowsWithProcessors: until the write lock is always held.
func TestGainGrowsWithProcessors(t *testing.T) {
	c, err := ebizzyCase("4.17", 4<<30, 20e6, 100e6, once, "-mT")
	if err != nil {
		t.Fatal(err)
	}
	before := 0.0
	for _, n := range []string{"1", "4", "16"} {
		g := gainOf(t, c, spfEnv(t, "x86-vm-16-may", "cpu.cores="+n), spfPath{speculative: mm.SpecV11})
		if n != "1" && g < before+10 {
			t.Errorf("%s processors gain %.1f %%, fewer gained %.1f %%", n, g, before)
		}
		before = g
	}
}
