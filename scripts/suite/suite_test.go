package suite

import (
	"bytes"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestScripts: every script is in Names and the reverse, is one that the shell
// understands, and says what it needs.
func TestScripts(t *testing.T) {
	files, err := fs.Glob(scripts, "*.sh")
	if err != nil || len(files) != len(Names) {
		t.Errorf("%d scripts and %d names, %v", len(files), len(Names), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f, ".sh")
		if !slices.Contains(Names, name) {
			t.Errorf("%s is not in Names", f)
		}
		text, err := Script(name)
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command("sh", "-n")
		check.Stdin = bytes.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", f, err, out)
		}
		needs := exec.Command("sh", "-s", "needs")
		needs.Stdin = bytes.NewReader(text)
		if out, err := needs.Output(); err != nil || len(bytes.Fields(out)) == 0 {
			t.Errorf("%s: needs %q, %v", f, out, err)
		}
	}
	if _, err := Script("nothing"); err == nil || !strings.Contains(err.Error(), "gcc, go") {
		t.Errorf("no program: %v", err)
	}
}
