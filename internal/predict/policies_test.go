package predict

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

// fixture is a kernel, its sizes and the settings most distributions have.
func fixture(t testing.TB, version string, base mm.Bytes) (mm.Policy, mm.Rules, mm.Sizes) {
	t.Helper()
	s, err := mm.SizesOf(base)
	if err != nil {
		t.Fatal(err)
	}
	r, err := mm.RulesFor(version)
	if err != nil {
		t.Fatal(err)
	}
	now := mm.DefaultPolicy(s)
	now.Enabled = mm.Madvise
	return now, r, s
}

func names(rows []Named) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

func TestDefaults(t *testing.T) {
	now, r, s := fixture(t, "6.18", 4096)
	rows := Defaults(now, now, r, s)
	want := []string{"now", "never", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "thp", "thp+64k"}
	if d := cmp.Diff(want, names(rows)); d != "" {
		t.Error(d)
	}
	for _, row := range rows {
		if len(row.Lacks) > 0 || row.Hypothetical() {
			t.Errorf("%s: lacks %q", row.Name, row.Lacks)
		}
	}
	// An old kernel has no smaller sizes: the rows stay, marked.
	_, old, _ := fixture(t, "6.6", 4096)
	for _, row := range Defaults(now, now, old, s) {
		sized := !slices.Contains([]string{"now", "never", "thp"}, row.Name)
		if sized != (len(row.Lacks) > 0) {
			t.Errorf("6.6: %s lacks %q", row.Name, row.Lacks)
		}
		if sized && !row.rulesFor(old).MTHP {
			t.Errorf("6.6: %s would be predicted without its sizes", row.Name)
		}
	}
	// With pages of 64 kB a folio of 64 kB is one page.
	now, r, s = fixture(t, "6.18", 65536)
	if got := names(Defaults(now, now, r, s)); slices.Contains(got, "thp+64k") || !slices.Contains(got, "256k") {
		t.Errorf("64 kB pages: %q", got)
	}
}

func TestParsePolicies(t *testing.T) {
	now, r, s := fixture(t, "6.18", 4096)
	rows, err := ParsePolicies([]string{"64k", "2m=madvise,advise=heap", "now", "64k"}, now, now, r, s)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"now", "64k", "2m=madvise,advise=heap"}, names(rows)); d != "" {
		t.Error(d)
	}
	if !rows[2].Hypothetical() || rows[1].Hypothetical() {
		t.Error("advise= must make a row hypothetical, and nothing else may")
	}
	for _, bad := range []string{"48k", "64k=often", "sizes=all", ""} {
		if _, err := ParsePolicies([]string{bad}, now, now, r, s); err == nil {
			t.Errorf("%q was taken", bad)
		} else if bad != "" && !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "sizes are") {
			t.Errorf("%q: %v does not say what is allowed", bad, err)
		}
	}
}

func TestProgramOf(t *testing.T) {
	tests := []struct {
		command string
		want    string
	}{
		{"java -jar x", "java"}, {"/usr/bin/env A=1 java", "java"}, {"go test", "go"}, {"sort java", ""}, {"", ""},
	}
	for _, tt := range tests {
		if got := programOf(strings.Fields(tt.command)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.command, got, tt.want)
		}
	}
}

// TestPolicyLists: a list of names is rows, a list of settings is one row, and
// the two do not mix.
func TestPolicyLists(t *testing.T) {
	now, r, s := fixture(t, "6.18", 4096)
	for _, tt := range []struct {
		specs []string
		want  []string // rows after now; nil: refused
	}{
		{[]string{"never,16k,64k,thp"}, []string{"never", "16k", "64k", "thp"}},
		{[]string{" never, 64k ", "thp,64k"}, []string{"never", "64k", "thp"}},
		{[]string{"now,thp+64k"}, []string{"thp+64k"}},
		{[]string{"64k=always, 2m=madvise"}, []string{"64k=always,2m=madvise"}},
		{[]string{"default,enabled=madvise"}, []string{"default,enabled=madvise"}},
		{[]string{"never", "64k=always,2m=madvise"}, []string{"never", "64k=always,2m=madvise"}},
		{[]string{"never,64k=always"}, nil},
		{[]string{"64k=always,thp"}, nil},
		{[]string{"now,64k=always"}, nil},
		{[]string{"default,default,64k=always"}, nil},
		{[]string{"never,48k"}, nil},
		{[]string{","}, nil},
	} {
		rows, err := ParsePolicies(tt.specs, now, now, r, s)
		switch {
		case tt.want == nil && err == nil:
			t.Errorf("%q: not refused", tt.specs)
		case tt.want != nil && err != nil:
			t.Errorf("%q: %v", tt.specs, err)
		case tt.want != nil:
			if d := cmp.Diff(append([]string{Now}, tt.want...), names(rows)); d != "" {
				t.Errorf("%q: %s", tt.specs, d)
			}
		}
	}
}
