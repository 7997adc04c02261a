package hw

import (
	"strings"
	"testing"
)

// TestMachinesLoad loads every machine that comes with the program.
func TestMachinesLoad(t *testing.T) {
	for _, n := range MachineNames() {
		m, err := LoadMachine(n)
		if err != nil {
			t.Error(err)
			continue
		}
		if m.Name != n || m.Title == "" {
			t.Errorf("%s: named %q, titled %q", n, m.Name, m.Title)
		}
		if m.Costs().Nanos == (Profile{}).Nanos {
			t.Errorf("%s: kernel work costs nothing", n)
		}
	}
}

func TestMachineWith(t *testing.T) {
	m, err := LoadMachine("vm-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		key, to string
		want    float64
	}{
		{"llc.size", "*4", 128 << 20},
		{"llc.size", "2m", 2 << 20},
		{"copy.rate", "7.5", 7.5},
		{"processes", "4", 4},
		{"work.fault_user", "*0", 0},
	} {
		c, err := m.With(tc.key, tc.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Get(tc.key); got != tc.want {
			t.Errorf("%s=%s: %v, want %v", tc.key, tc.to, got, tc.want)
		}
	}
	if got := m.Get("llc.size"); got != 32<<20 {
		t.Errorf("With changed the machine it copied: %v", got)
	}
	for _, bad := range [][2]string{{"llc", "1"}, {"llc.size", "x"}, {"copy.rate", "*-1"}, {"copy.rate", "7m"}, {"copy.rate", "NaN"}} {
		if _, err := m.With(bad[0], bad[1]); err == nil {
			t.Errorf("%s=%s was taken", bad[0], bad[1])
		}
	}
}

func TestParseMachineRefuses(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"cpu.cors: {value: 1, source: x}", "no key"},
		{"cpu.cores: {value: 1}", "wants a source"},
		{"cpu.cores: {value: 1, source: x, fitted: y}", "wants a source"},
		{"cpu.cores: {value: -1, source: x}", "not a number"},
		{"cpu.cores: {value: 1, sauce: x}", "sauce"},
	} {
		_, err := ParseMachine([]byte("version: 1\nname: x\nvalues:\n  " + tc.values + "\n"))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.values, err, tc.want)
		}
	}
}
