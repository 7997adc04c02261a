package difftest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

var (
	allMutations = flag.String("mutations", "", "plant the faults whose rule matches this, not a few")
	answersFile  = flag.String("answers", "", "find them by the answers in this file, not the model's own")
)

// mutation is one fault to plant.
type mutation struct{ rule, file, old, new string }

func readMutations(t *testing.T) (all []mutation) {
	t.Helper()
	b, err := os.ReadFile("testdata/mutations.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(b), "\n\n") {
		if block = strings.Trim(block, "\n"); block == "" || block[0] == '#' {
			continue
		}
		l := strings.Split(block, "\n")
		if len(l) != 4 || !strings.HasPrefix(l[2], "- ") || !strings.HasPrefix(l[3], "+ ") {
			t.Fatalf("mutations.txt: want a rule, a file, - old, + new:\n%s", block)
		}
		all = append(all, mutation{l[0], l[1], l[2][2:], l[3][2:]})
	}
	return all
}

// apply returns the file with the fault in it.
func (f *mutation) apply(t *testing.T, root string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), f.old+"\n"); n != 1 {
		t.Fatalf("%s: %q stands there %d times, want once", f.file, f.old, n)
	}
	return strings.Replace(string(b), f.old+"\n", f.new+"\n", 1)
}

// TestMutationsApply: the list fits the sources.
func TestMutationsApply(t *testing.T) {
	all := readMutations(t)
	if len(all) < 25 {
		t.Errorf("%d faults, want 25 and more", len(all))
	}
	for i := range all {
		if all[i].apply(t, "../..") == "" || all[i].old == all[i].new {
			t.Errorf("%s: changes nothing", all[i].rule)
		}
	}
}

// mutationPrograms is within how many programs a planted fault must show.
const mutationPrograms = 500

// TestMutations: programs find planted faults. Without a kernel's answers those
// of the model before the fault stand for them.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the model anew for each fault")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go tool to build with: ", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, dir, file := readMutations(t), t.TempDir(), *answersFile
	if file == "" {
		file = ownAnswers(t, dir)
	}
	which := *allMutations
	if which == "" {
		which = "^(a THP needs the whole|a folio of two processes|DONTNEED leaves guard)"
	}
	chosen := regexp.MustCompile(which)
	all = slices.DeleteFunc(all, func(f mutation) bool { return !chosen.MatchString(f.rule) })
	found := 0
	for i := range all {
		f := &all[i]
		n, what := f.find(t, goTool, root, dir, file)
		fmt.Printf("%s\t%d\t%s\n", f.rule, n, what)
		if what == "nothing" || n > mutationPrograms {
			t.Errorf("%s: %d programs show nothing of it", f.rule, n)
			continue
		}
		found++
	}
	fmt.Printf("%d of %d faults found\n", found, len(all))
}

// find builds the model with the fault and says after how many programs what
// differed.
func (f *mutation) find(t *testing.T, goTool, root, dir, answers string) (programs int, what string) {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, f.file): write("mutated.go", f.apply(t, root))},
	})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "against")
	build := exec.Command(goTool, "build", "-overlay", write("overlay.json", string(overlay)), "-o", program,
		"./internal/difftest/testdata/against")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", f.rule, err, out)
		return 0, "nothing"
	}
	out, err := exec.Command(program, answers).Output()
	if err != nil {
		return 1, "the end of the process: " + err.Error()
	}
	first, what, _ := strings.Cut(strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0]), " ")
	if programs, err = strconv.Atoi(first); err != nil {
		t.Fatalf("%s: %q: %v", f.rule, out, err)
	}
	return programs, what
}

// ownAnswers makes a file of what the model shows of generated programs.
func ownAnswers(t *testing.T, dir string) string {
	t.Helper()
	o := Options{Seed: 1, Steps: 40}
	var err error
	if o.Rules, err = mm.RulesFor("6.18"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "answers")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := NewAnswersWriter(file, AnswersHeader{Kernel: "6.18"})
	if err != nil {
		t.Fatal(err)
	}
	programs := 60
	if *allMutations != "" {
		programs = mutationPrograms
	}
	for n := range programs {
		p := o.program(n)
		answers, err := Record(p, o.model, nil)
		if err == nil {
			err = w.Add(p, answers)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
