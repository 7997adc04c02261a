package predict

import (
	"strings"
	"testing"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// rowOf is a row with what Recommend looks at.
func rowOf(name string, faults uint64, kernel time.Duration, peak mm.Bytes, worst time.Duration) Row {
	return Row{Named: Named{Name: name}, Faults: faults, Kernel: kernel, PeakAnon: peak, WorstFault: worst}
}

func TestRecommend(t *testing.T) {
	const ms, mib = time.Millisecond, mm.Bytes(1 << 20)
	now := rowOf(Now, 94000, 210*ms, 300*mib, 2*time.Microsecond)
	k64 := rowOf("64k", 12000, 120*ms, 310*mib, 4*time.Microsecond)
	thp := rowOf("thp", 4000, 115*ms, 500*mib, 140*time.Microsecond)
	never := rowOf("never", 94000, 210*ms, 290*mib, 1500)
	killed := rowOf("1m", 3000, 10*ms, 300*mib, 2*time.Microsecond)
	killed.OOM = 1
	lacking := rowOf("32k", 3000, 10*ms, 300*mib, 2*time.Microsecond)
	lacking.Lacks = []string{"a newer kernel"}
	program := rowOf("2m=madvise,advise=heap", 3000, 100*ms, 305*mib, 2*time.Microsecond)
	program.Policy.Advise.Heap = true
	small := rowOf("16k", 93000, 205*ms, 300*mib, 2*time.Microsecond)
	dying := now
	dying.OOM = 9

	tests := []struct {
		name   string
		rows   []Row
		goal   Goal
		bound  float64
		whole  time.Duration
		want   string
		reason string // contained in the reason
		cost   string // contained in the cost; "-" for none
	}{
		{"nearly equal gains: the one with less memory", []Row{now, k64, thp}, GoalTime, -1, 3 * time.Second,
			"64k", "64k saves 3 % of the run: 87 % fewer faults, 43 % less kernel time", "3.3 % more memory at peak (10 MiB)"},
		{"the order of rows does not matter", []Row{now, thp, k64}, GoalTime, -1, 3 * time.Second, "64k", "saves", "a worst fault of 4 us"},
		{"a bound on memory", []Row{now, thp}, GoalTime, 0.05, 3 * time.Second, Now, "no other policy can be had with at most 5 % more memory", "-"},
		{"under one percent", []Row{now, k64, thp}, GoalTime, -1, 30 * time.Second, Now, "change nothing: under 1 % to gain (the best, thp, gains 0.3 %)", "-"},
		{"killed rows never", []Row{now, killed, k64}, GoalTime, -1, 3 * time.Second, "64k", "64k saves", "memory"},
		{"what the kernel lacks never", []Row{now, lacking, k64}, GoalTime, -1, 3 * time.Second, "64k", "64k saves", "memory"},
		{"a setting before a program's change", []Row{now, program, k64, small}, GoalTime, -1, 3 * time.Second,
			"2m=madvise,advise=heap", "the program itself must advise", "1.7 % more"},
		{"a setting wins when it gains nearly as much", []Row{now, program, rowOf("64k", 12000, 105*ms, 310*mib, 4000)}, GoalTime, -1, 3 * time.Second,
			"64k", "64k saves", "memory"},
		{"memory", []Row{now, k64, never}, GoalMemory, -1, 3 * time.Second, "never", "never needs 3.3 % less memory at peak", "-"},
		{"memory, nothing to gain", []Row{now, k64}, GoalMemory, -1, 3 * time.Second, Now, "under 1 % of peak memory to gain", "-"},
		{"latency", []Row{now, k64, never}, GoalLatency, -1, 3 * time.Second, "never", "makes the worst fault 25 % shorter", "-"},
		{"latency, nothing to gain", []Row{now, k64, thp}, GoalLatency, -1, 3 * time.Second, Now, "at most 10 % shorter", "-"},
		{"now would be killed", []Row{dying, never}, GoalTime, -1, 3 * time.Second, "never", "with the present settings the program would be killed; with never it ends, and takes 290 MiB", "-"},
		{"a killed now bounds nothing", []Row{dying, k64}, GoalTime, 0, 3 * time.Second, "64k", "would be killed", "-"},
		{"all would be killed", []Row{dying, killed}, GoalTime, -1, 3 * time.Second, Now, "with every other policy tried", "-"},
		{"no run time known", []Row{now, k64}, GoalTime, -1, 0, Now, "does not say how long", "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &Prediction{Rows: tt.rows, Recording: Recording{Wall: tt.whole}}
			got := Recommend(p, tt.goal, tt.bound)
			if got.Policy != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("got %s: %q\nwant %s: %q", got.Policy, got.Reason, tt.want, tt.reason)
			}
			if tt.cost == "-" && got.Cost != "" || tt.cost != "-" && !strings.Contains(got.Cost, tt.cost) {
				t.Errorf("cost %q, want %q", got.Cost, tt.cost)
			}
			if r := p.Row(got.Policy); got.Program != r.Hypothetical() {
				t.Errorf("Program is %v for %s", got.Program, got.Policy)
			}
		})
	}
	if Recommend(&Prediction{Rows: []Row{k64}}, GoalTime, -1) != nil {
		t.Error("a recommendation without a row to compare with")
	}
}

func TestParseGoal(t *testing.T) {
	for _, g := range []Goal{GoalTime, GoalMemory, GoalLatency} {
		if got, err := ParseGoal(g.String()); err != nil || got != g {
			t.Errorf("%v: %v, %v", g, got, err)
		}
	}
	if _, err := ParseGoal("speed"); err == nil || !strings.Contains(err.Error(), "time, memory or latency") {
		t.Errorf("unknown goal: %v", err)
	}
}

func TestHuman(t *testing.T) {
	tests := []struct{ got, want string }{
		{HumanCount(999), "999"}, {HumanCount(1000), "1k"}, {HumanCount(94123), "94.1k"}, {HumanCount(999_999), "1.00M"},
		{HumanBytes(1023), "1023 B"}, {HumanBytes(4096), "4 KiB"}, {HumanBytes(4404019), "4.20 MiB"}, {HumanBytes(1 << 40), "1 TiB"},
		{HumanTime(650), "650 ns"}, {HumanTime(141_400), "141 us"}, {HumanTime(2_131_000_000), "2.13 s"}, {HumanTime(-5), "-5 ns"},
		{HumanTime(20000 * time.Second), "5.56 h"}, {HumanTime(2400 * time.Hour), "100 d"},
		{HumanPercent(0.031), "3.1 %"}, {HumanPercent(0.0004), "0.04 %"}, {HumanPercent(0.871), "87 %"}, {HumanPercent(0), "0 %"},
		{HumanPercent(12), ">999 %"},
		{Change(100, 103.1), "+3.1 %"}, {Change(1000, 1000.6), "+0.1 %"}, {Change(100, 13), "-87 %"}, {Change(0, 5), "new"}, {Change(0, 0), "0 %"},
		{Change(1, 12), "x12"}, {Change(1e6, 1e6+1), "~0 %"}, {Change(1, 1e6), ">x9k"}, {Change(5, 0), "-100 %"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// TestUnless: where only the prices of a preset speak against a policy, the
// answer says from what price on it would be worth it.
func TestUnless(t *testing.T) {
	const ms, mib = time.Millisecond, mm.Bytes(1 << 20)
	now := rowOf(Now, 41_000, 33*ms, 143*mib, 10*time.Microsecond)
	k64 := rowOf("64k", 6_000, 12*ms, 144*mib, 10*time.Microsecond)
	for _, tt := range []struct {
		preset bool
		whole  time.Duration
		want   bool
	}{
		{true, 6 * time.Second, true},   // 39 ms are missing: 1.1 us a fault
		{false, 6 * time.Second, false}, // a measured profile is believed
		{true, time.Hour, false},        // no machine's faults are so dear
	} {
		p := &Prediction{Rows: []Row{now, k64}, Recording: Recording{Wall: tt.whole}, Preset: tt.preset}
		got := Recommend(p, GoalTime, -1)
		if has := strings.Contains(got.Reason, "where a fault costs"); got.Policy != Now || has != tt.want {
			t.Errorf("preset %v, %v: %q", tt.preset, tt.whole, got.Reason)
		}
		if tt.want && !strings.Contains(got.Reason, "1.11 us more") {
			t.Errorf("wrong price: %q", got.Reason)
		}
	}
}
