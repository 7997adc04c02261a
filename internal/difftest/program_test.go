package difftest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

func parseFile(t *testing.T, name string) *Program {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Parse(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func kept(t *testing.T) (all []*Program) {
	t.Helper()
	names, _ := filepath.Glob("testdata/programs/*.txt")
	if len(names) == 0 {
		t.Fatal("no programs")
	}
	for _, n := range names {
		all = append(all, parseFile(t, n))
	}
	return all
}

// TestKeptOnModel: what programs expect holds on the model, by the rules of
// ordinary kernels and of those without a zero page.
func TestKeptOnModel(t *testing.T) {
	for _, noZero := range []bool{false, true} {
		rules, err := mm.RulesFor("6.18")
		if err != nil {
			t.Fatal(err)
		}
		rules.NoZeroPage = noZero
		_, err = CheckModel(context.Background(), Options{Files: kept(t), Rules: rules, Paranoid: true,
			OnMismatch: func(m *Mismatch) { t.Errorf("without a zero page %v: %s: %s", noZero, m.From, &m.Difference) }})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestGenerated: generated programs read back as they print, and the model
// stays free of contradictions under them.
func TestGenerated(t *testing.T) {
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(60) {
		p := Generate(9, n, GeneratePolicy(n, n%2 == 0), 40, n%3 == 0)
		q, err := Parse("again", strings.NewReader(p.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		if q.String() != p.String() {
			t.Fatalf("printed\n%s\nreads back as\n%s", p, q)
		}
		model := func(p *Program) (Executor, error) { return NewModel(p, rules, true) }
		if _, err := Run(p, model, nil, nil); err != nil {
			t.Errorf("%v\n%s", err, p)
		}
	}
}

// broken is a model that claims another thing about one page.
type broken struct {
	Executor
	spoil func(*Seen)
}

func (b broken) Do(a *action, s *Seen) error {
	err := b.Executor.Do(a, s)
	if err == nil {
		b.spoil(s)
	}
	return err
}

// TestDifferences: each thing that is compared is found, and named.
func TestDifferences(t *testing.T) {
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse("p", strings.NewReader("policy 64k=always 2m=always\nmap a 4m at=+4k\ntouch a w\nfork p1\ntouch a+16k w\n"))
	if err != nil {
		t.Fatal(err)
	}
	last := func(s *Seen) *PageSeen {
		pages := s.Procs[len(s.Procs)-1].Pages
		if len(pages) == 0 {
			return &PageSeen{}
		}
		return &pages[len(pages)-1]
	}
	for _, c := range []struct {
		what  string
		spoil func(*Seen)
	}{
		{"", func(*Seen) {}},
		{"result", func(s *Seen) { s.Errno++ }},
		{"faults", func(s *Seen) { s.Faults++ }},
		{"refused touches", func(s *Seen) { s.Refused++ }},
		{"thp_split_pmd", func(s *Seen) { s.Counters[10]++ }},
		{"mapping", func(s *Seen) { s.Procs[0].VMAs[0].Flags ^= 1 }},
		{"mapping", func(s *Seen) { s.Procs[0].VMAs = s.Procs[0].VMAs[1:] }},
		{"page", func(s *Seen) { last(s).Order++ }},
		{"page", func(s *Seen) { last(s).Index++ }},
		{"page", func(s *Seen) { last(s).PMD = !last(s).PMD }},
		{"page", func(s *Seen) { last(s).Zero = !last(s).Zero }},
		{"page", func(s *Seen) { last(s).Maps++ }},
		{"page", func(s *Seen) { last(s).Guard = true }},
		{"page", func(s *Seen) { s.Procs[0].Pages = s.Procs[0].Pages[:max(1, len(s.Procs[0].Pages))-1] }},
		{"folio", func(s *Seen) { last(s).PFN += 4096 }},
	} {
		model := func(p *Program) (Executor, error) { return NewModel(p, rules, true) }
		host := func(p *Program) (Executor, error) {
			x, err := NewModel(p, rules, true)
			return broken{x, c.spoil}, err
		}
		out, err := Run(p, model, host, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if out.Difference != nil {
			got = out.Difference.What
		}
		if got != c.what {
			t.Errorf("got %q, want %q", got, c.what)
		}
	}
}

// TestShrink: a difference that one touch makes is shrunk to what that touch
// needs.
func TestShrink(t *testing.T) {
	p := Generate(3, 7, "2m=madvise", 40, true)
	p.Steps = append(p.Steps, Step{Verb: VerbMap, Area: Area{Region: "zz", To: 64 << 10}, Access: mm.Read | mm.Write},
		Step{Verb: VerbTouch, Area: Area{Region: "zz", Whole: true}, Access: mm.Write})
	small, d := Shrink(p, func(q *Program) *Difference {
		for i := range q.Steps {
			if s := &q.Steps[i]; s.Verb == VerbTouch && s.Area.Region == "zz" {
				return &Difference{Step: i, What: "page"}
			}
		}
		return nil
	})
	if d == nil || len(small.Steps) != 2 || small.Steps[1].String() != "touch zz+0 w" {
		t.Errorf("got %v\n%s", d, small)
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{
		"fly a", "map a", "map a 3", "map A 4k", "map a 4k at=b", "map a 4k wide", "touch a r", "map a 4k\ntouch a x",
		"map a 4k\ntouch a+3 r", "map a 4k\ntouch a+8k..4k r", "policy 3m=always", "policy advise=all", "in p1",
		"fork p1\nfork p1", "exit\nexit", "brk 0", "map a 4k\nadvise a gently", "map a 4k\nremap a at=+4k",
		"map a 4k\npolicy enabled=never", "map heap 4k", "map a 999g", "map a 4k\nexpect a 3k", "result FINE",
		"map a 4k\ntouch a r data=zero", "prctl vm on", "map a 4k\nprotect a x", "map a 4k\nremap a to=heap",
	} {
		if p, err := Parse("p", strings.NewReader(text)); err == nil {
			t.Errorf("%q was read as %s", text, p)
		}
	}
}

// FuzzParse: whatever is read prints to text that reads as the same, and the
// model takes it.
func FuzzParse(f *testing.F) {
	names, _ := filepath.Glob("testdata/programs/*.txt")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 || strings.Count(text, "touch") > 20 {
			return
		}
		p, err := Parse("fuzz", strings.NewReader(text))
		if err != nil {
			return
		}
		q, err := Parse("again", strings.NewReader(p.String()))
		if err != nil || q.String() != p.String() {
			t.Fatalf("%v: printed\n%s\nreads back as\n%v", err, p, q)
		}
		model := func(p *Program) (Executor, error) { return NewModel(p, rules, false) }
		if _, err := Run(p, model, nil, nil); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// neverCounted are counters that no program, or hardly any, can move, and why.
var neverCounted = map[string]string{
	"/split_failed":         "only the model pins pages, and not of every size in so few programs",
	"shmem_fallback_charge": "only the largest size in use is ever charged in vain; the model's own test has it",
}

// TestNothingMissing: all that programs may have occurs in a few hundred of
// them, as they are for the kernel or for the model alone.
func TestNothingMissing(t *testing.T) {
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	never := map[string]int{}
	for _, vary := range []bool{false, true} {
		o := Options{Seed: 1, Programs: 350, Steps: 40, Rules: rules, Split: true, Vary: vary}
		if vary {
			o.Programs *= 2 // there are many sizes to run out of
		}
		rep, err := CheckModel(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range rep.Stats.Zeros() {
			never[name]++
		}
	}
	for name, n := range never {
		why := ""
		if n < 2 {
			continue
		}
		for what, reason := range neverCounted {
			if strings.HasSuffix(name, what) {
				why = reason
			}
		}
		if why == "" {
			t.Errorf("%s: never", name)
		}
	}
}
