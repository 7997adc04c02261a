package difftest

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

func rules618(t testing.TB) mm.Rules {
	t.Helper()
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// modelAnswers writes what the model says of some programs.
func modelAnswers(t testing.TB, rules mm.Rules, programs int) ([]*Program, []*Answers, []byte) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewAnswersWriter(&file, AnswersHeader{Kernel: "6.18"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Rules: rules, Seed: 5, Steps: 30}
	var all []*Program
	var answers []*Answers
	for n := range programs {
		p := o.program(n * perPolicy)
		a, err := Record(p, o.model, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, answers = append(all, p), append(answers, a)
		if err := w.Add(p, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return all, answers, file.Bytes()
}

// TestAnswersReadBack: a file says what went into it, and folios are the same
// or others as they were.
func TestAnswersReadBack(t *testing.T) {
	programs, answers, file := modelAnswers(t, rules618(t), 8)
	r, err := NewAnswersReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got Answers
	pages := 0
	for i, p := range programs {
		q, err := r.Next(&got)
		if err != nil {
			t.Fatal(err)
		}
		if q.Name != p.Name || q.String() != p.String() {
			t.Fatalf("%s\n%s\nreads back as %s\n%s", p.Name, p, q.Name, q)
		}
		for k := range answers[i].Steps {
			want, have := &answers[i].Steps[k], &got.Steps[k]
			if len(want.Procs) == 0 {
				continue
			}
			if d := Compare(want, have); d != nil {
				t.Errorf("%s: step %d: %s", p.Name, k+1, d)
			}
			for j := range want.Procs {
				pages += len(want.Procs[j].Pages)
			}
		}
	}
	if q, err := r.Next(&got); q != nil || err != nil {
		t.Errorf("behind the end: %v, %v", q, err)
	}
	t.Logf("%d pages in %d bytes", pages, len(file))
}

// TestAnswersKeepEveryField: no field of a page is forgotten by the file.
func TestAnswersKeepEveryField(t *testing.T) {
	p, err := Parse("p", strings.NewReader("map a 4m\n"))
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[PageSeen]().NumField()
	for i := range fields {
		page := PageSeen{At: arenaAt, Order: 4, Index: 3, PFN: 1<<folioShift + 3, Maps: 1}
		v := reflect.ValueOf(&page).Elem().Field(i)
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		default:
			v.SetUint(v.Uint() + pageSize)
			if reflect.TypeFor[PageSeen]().Field(i).Name != "At" {
				v.SetUint(v.Uint() - pageSize + 1)
			}
		}
		want := Seen{Errno: 12, Faults: 7, Refused: 9, Counters: make([]int64, len(CounterNames())),
			Procs: []ProcSeen{{VMAs: []mm.VMAInfo{{Start: arenaAt, End: arenaAt + pageSize,
				Flags: mm.ParseVMAFlags([]string{"rd", "hg"})}}, Pages: []PageSeen{page}}}}
		want.Counters[3] = -5
		var file bytes.Buffer
		w, err := NewAnswersWriter(&file, AnswersHeader{Kernel: "6.18", NoZeroPage: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(p, &Answers{Steps: []Seen{want}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewAnswersReader(&file)
		if err != nil || !r.NoZeroPage {
			t.Fatal(err, r)
		}
		var got Answers
		if _, err := r.Next(&got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Steps[0]); d != "" {
			t.Errorf("field %s: %s", reflect.TypeFor[PageSeen]().Field(i).Name, d)
		}
		r.Close()
	}
}

// TestAgainst: the model agrees with its own answers, and not with those of
// other rules.
func TestAgainst(t *testing.T) {
	rules := rules618(t)
	_, _, file := modelAnswers(t, rules, 10)
	rep, err := CheckAgainst(context.Background(), Options{}, bytes.NewReader(file))
	if err != nil || rep.Programs != 10 || len(rep.Mismatches) > 0 || rep.Pages == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	rules.NoZeroPage = true
	_, _, file = modelAnswers(t, rules, 10)
	rep, err = CheckAgainst(context.Background(), Options{MaxMismatches: 1}, bytes.NewReader(file))
	if err != nil || len(rep.Mismatches) != 1 {
		t.Errorf("%+v, %v", rep, err)
	}
	for cut := 1; cut < len(file); cut += len(file)/50 + 1 {
		if _, err := CheckAgainst(context.Background(), Options{}, bytes.NewReader(file[:cut])); err == nil {
			t.Errorf("the first %d bytes of %d: no error", cut, len(file))
		}
	}
}

// FuzzAnswers: no bytes make the reader do more than refuse them.
func FuzzAnswers(f *testing.F) {
	_, _, file := modelAnswers(f, rules618(f), 1)
	f.Add(file)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewAnswersReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		var a Answers
		for range 3 {
			if p, err := r.Next(&a); p == nil || err != nil {
				return
			}
		}
	})
}
