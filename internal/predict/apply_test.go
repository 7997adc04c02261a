package predict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommands: what is to be typed for each policy on three generations of
// kernels, by programs of several kinds. REWRITE=1 rewrites the table.
func TestCommands(t *testing.T) {
	programs := []struct {
		name     string
		command  []string
		files    []string
		noAdvice bool
	}{
		{"gcc", []string{"gcc", "-c", "a file.c"}, []string{"/usr/bin/gcc", "/usr/lib64/ld-linux-x86-64.so.2"}, true},
		{"java", []string{"/opt/run.sh"}, []string{"/usr/lib/jvm/lib/server/libjvm.so", "/usr/lib/ld-linux-x86-64.so.2"}, false},
		{"go", []string{"go", "build"}, []string{"/usr/local/go/bin/go"}, false},
		{"jemalloc", []string{"redis-server"}, []string{"/usr/lib/libjemalloc.so.2", "/usr/lib/ld-linux-x86-64.so.2"}, false},
		{"static", []string{"./own"}, []string{"/opt/own"}, false},
		{"unknown", nil, nil, false},
	}
	var b strings.Builder
	seen := map[string]string{} // kernel, policy and lines -> the first program that has them
	for _, kernel := range []string{"6.18", "6.6", "5.15"} {
		now, r, s := fixture(t, kernel, 4096)
		for _, policy := range []string{"never", "64k", "thp", "thp+64k", "advise=all", "max_ptes_none=64"} {
			rows, err := ParsePolicies([]string{policy}, now, now, r, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows[1].Lacks) > 0 {
				continue // never recommended there
			}
			for _, p := range programs {
				use := runtimesOf(p.command, p.files)
				use.NoAdvice = p.noAdvice
				lines := Commands(&Row{Named: rows[1]}, now, r, s, p.command, use)
				for _, l := range lines {
					if !r.MTHP && (strings.Contains(l, "hugepages-") || strings.Contains(l, "thp_anon")) {
						t.Errorf("%s: %s: not to be had there: %s", kernel, policy, l)
					}
				}
				text := strings.Join(lines, "\n\t")
				if first, ok := seen[kernel+policy+text]; ok {
					text = "as " + first
				} else {
					seen[kernel+policy+text] = p.name
				}
				fmt.Fprintf(&b, "%s %s, %s:\n\t%s\n", kernel, policy, p.name, text)
			}
		}
	}
	path := filepath.Join("testdata", "commands.txt")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("-want +got; REWRITE=1 rewrites:\n%s", d)
	}
	now, r, s := fixture(t, "6.18", 4096)
	if got := Commands(&Row{Named: Named{Name: Now, Policy: now}}, now, r, s, nil, Runtimes{}); got != nil {
		t.Errorf("now needs %q", got)
	}
}
