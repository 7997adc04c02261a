package repro

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/internal/report"
)

func TestRunRefuses(t *testing.T) {
	for _, o := range []Options{
		{Names: []string{"nothing"}},
	} {
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if len(Results()) == 0 {
		t.Skip("the model has no result yet")
	}
	for _, o := range []Options{
		{Machine: "nothing"},
		{Set: []string{"llc.size"}},
		{Set: []string{"llc=1"}},
		{Set: []string{"llc.size=x"}},
	} {
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestResultsAreListed: every result of the model is one that was published,
// and runs on a machine that there is.
func TestResultsAreListed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Results() {
		if _, err := LoadPublished(r.Name); err != nil {
			t.Error(err)
		}
		if seen[r.Name] || r.Did == "" || r.Main == "" {
			t.Errorf("%s: stands there twice, or does not say what it does, or has no main metric", r.Name)
		}
		seen[r.Name] = true
	}
}

// TestMainOnly: leaving out all but the main metric does not change it.
func TestMainOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every model twice: left out with -short")
	}
	for _, r := range Results() {
		env := Env{Machine: machineWith(t, r.Machine), Seed: 3}
		full, err := r.Model(env)
		if err != nil {
			t.Fatal(err)
		}
		env.MainOnly = true
		short, err := r.Model(env)
		if err != nil {
			t.Fatal(err)
		}
		a, err1 := full.main(r.Main)
		b, err2 := short.main(r.Main)
		if err1 != nil || err2 != nil || a != b {
			t.Errorf("%s: %s is %v, alone %v (%v, %v)", r.Name, r.Main, a, b, err1, err2)
		}
	}
}

// TestSameSeedSameBytes runs every model twice, and one result with all its
// sensitivities on several processors.
func TestSameSeedSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every model twice: left out with -short")
	}
	for _, r := range Results() {
		if a, b := modelOf(t, r), modelOf(t, r); !slices.Equal(a, b) {
			t.Errorf("%s: two runs with one seed differ:\n%v\n%v", r.Name, a, b)
		}
	}
	var texts [2]string
	for i := range texts {
		outs, err := Run(t.Context(), Options{Seed: 7, Names: []string{"thp-migration", "hvo"}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteReproJSON(&b, Report(outs, 7)); err != nil {
			t.Fatal(err)
		}
		texts[i] = b.String()
	}
	if texts[0] != texts[1] {
		t.Error("two runs with one seed differ")
	}
	for _, n := range []string{"thp-migration", "hvo"} {
		if !strings.Contains(texts[0], `"name": "`+n+`"`) {
			t.Errorf("%s is not in the report", n)
		}
	}
}

// TestHostOnlyMetric: a figure that only the host has stands in the report.
func TestHostOnlyMetric(t *testing.T) {
	p, err := LoadPublished("hvo")
	if err != nil {
		t.Fatal(err)
	}
	r := hvo()
	u := Outcome{Published: p, Result: &r, Machine: machineWith(t, r.Machine), HostErr: "why"}
	u.Model.Add("grow_ratio_batched", 1)
	u.Host.Add("grow_ratio_batched", 2)
	u.Host.Add("host_alone", 3)
	out := Report([]Outcome{u}, 1).Results[0]
	seen := 0
	for _, m := range out.Metrics {
		switch {
		case m.Name == "grow_ratio_batched" && *m.Model == 1 && *m.Host == 2:
			seen++
		case m.Name == "host_alone" && m.Model == nil && *m.Host == 3 && m.HostReason == "":
			seen++
		case m.Host != nil || m.HostReason != "why":
			t.Errorf("%+v", m)
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 figures of the host are there once", seen)
	}
}
