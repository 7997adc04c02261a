package hugelab_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/hugelab/hugelab/"

// floors is the house of docs/architecture.md: a package may import from lower
// floors only, and from its own floor not at all, except where listed in
// neighbours.
var floors = map[string]int{
	"mm/internal/buddy": 0, "mm/internal/itree": 0, "stats": 0, "scripts/suite": 0,
	"mm":              1,
	"hw":              2,
	"mm/procfs":       2,
	"sim":             3,
	"trace":           4,
	"internal/kstat":  5,
	"internal/kernel": 6,
	"internal/probe":  7, "internal/calibrate": 7,
	"internal/record": 8, "internal/vm": 8,
	"internal/workload": 9,
	"internal/difftest": 10, "internal/predict": 10,
	"internal/report": 11,
	"internal/lab":    12, "internal/repro": 12,
	"cmd/hugelab": 13,
}

// TestImportsPointDown holds every import to the house.
func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "." {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		floor, ok := floors[pkg]
		if !ok {
			t.Errorf("%s: package %s has no floor in the house: add it to floors and to docs/architecture.md", path, pkg)
			return nil
		}
		seen[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, im := range f.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			to, ours := strings.CutPrefix(name, module)
			if ours && floors[to] >= floor {
				t.Errorf("%s: %s (floor %d) imports %s (floor %d): imports point down", path, pkg, floor, to, floors[to])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range floors {
		if !seen[pkg] {
			t.Errorf("floors names %s, which does not exist", pkg)
		}
	}
}

// TestModelIsPure holds mm, hw and sim to their promise: no clock, no input or
// output, no goroutine, no global randomness.
func TestModelIsPure(t *testing.T) {
	banned := map[string]bool{"time": true, "os": true, "syscall": true, "net": true, "math/rand": true, "math/rand/v2": true, "sync": true, "unsafe": false}
	for _, dir := range []string{"mm", "mm/internal/buddy", "mm/internal/itree", "hw", "sim"} {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, im := range f.Imports {
				if name, _ := strconv.Unquote(im.Path.Value); banned[name] {
					t.Errorf("%s imports %s: the model is pure", path, name)
				}
			}
		}
	}
}
