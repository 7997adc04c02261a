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

func TestCommands(t *testing.T) {
	tests := []struct {
		name, kernel, policy string
		command              []string
		want                 []string
	}{
		{"one size", "6.18", "64k", []string{"sort", "big file"}, []string{
			"echo never > /sys/kernel/mm/transparent_hugepage/enabled",
			"echo always > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
			"echo never > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
			"boot: transparent_hugepage=never thp_anon=64K:always"}},
		{"thp: the program can do it where the host says madvise", "6.18", "thp", []string{"sort", "big file"}, []string{
			"GLIBC_TUNABLES=glibc.malloc.hugetlb=1 sort 'big file'   # glibc 2.35 or later, for malloc",
			"MALLOC_CONF=thp:always sort 'big file'   # if it uses jemalloc",
			"systemctl edit UNIT   # [Service] Environment=GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
			"echo always > /sys/kernel/mm/transparent_hugepage/enabled",
			"boot: transparent_hugepage=always"}},
		{"java", "6.18", "thp", []string{"/usr/bin/java", "-jar", "x"}, []string{
			"JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages /usr/bin/java -jar x",
			"systemctl edit UNIT   # [Service] Environment=JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages",
			"echo always > /sys/kernel/mm/transparent_hugepage/enabled",
			"boot: transparent_hugepage=always"}},
		{"before sizes had files", "6.6", "thp", []string{"go", "build"}, []string{
			"echo always > /sys/kernel/mm/transparent_hugepage/enabled",
			"boot: transparent_hugepage=always"}},
		{"never, for go", "6.6", "never", []string{"go", "build"}, []string{
			"GODEBUG=disablethp=1 go build   # Go 1.21.6 or later, for its heap",
			"systemctl edit UNIT   # [Service] MemoryTHP=disable, where this systemd knows it",
			"echo never > /sys/kernel/mm/transparent_hugepage/enabled",
			"boot: transparent_hugepage=never"}},
		{"hypothetical: the program alone", "6.18", "advise=all", nil, []string{
			"GLIBC_TUNABLES=glibc.malloc.hugetlb=1 COMMAND   # glibc 2.35 or later, for malloc",
			"MALLOC_CONF=thp:always COMMAND   # if it uses jemalloc",
			"systemctl edit UNIT   # [Service] Environment=GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}},
		{"a knob of khugepaged", "6.18", "max_ptes_none=64", nil, []string{
			"echo 64 > /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"}},
		{"now", "6.18", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, r, s := fixture(t, tt.kernel, 4096)
			row := &Row{Named: Named{Name: Now, Policy: now}}
			if tt.policy != "" {
				rows, err := ParsePolicies([]string{tt.policy}, now, now, r, s)
				if err != nil {
					t.Fatal(err)
				}
				row = &Row{Named: rows[1]}
			}
			if d := cmp.Diff(tt.want, Commands(row, now, r, s, tt.command)); d != "" {
				t.Error(d)
			}
		})
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
