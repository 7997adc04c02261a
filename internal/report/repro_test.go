package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/hw"
)

func ptr[T any](x T) *T { return &x }

// reproExample has a figure of each kind.
func reproExample() *Repro {
	return &Repro{Seed: 1, Results: []ReproResult{{
		Name: "name", Title: "a title", Source: "a letter", Machine: "vm-2", MachineTitle: "a machine", Main: "a",
		Set: []string{"llc.size=4"}, Did: "something",
		Metrics: []ReproMetric{
			{Name: "a", Published: ptr(2.0), Model: ptr(1.0), Ratio: ptr(0.5), Low: ptr(1.5), High: ptr(2.5),
				Reached: ptr(false), HostReason: "why not"},
			{Name: "b", Published: ptr(-41.9), Withdrawn: "wrong", Model: ptr(-40.0), Host: ptr(3.25), Unit: "GiB"},
			{Name: "c", Said: "no change", Model: ptr(0.00012), HostReason: "why not"},
		},
		Sensitivity: []ReproSensitivity{{Key: "copy.rate", Value: 4, Metric: "a", Base: 1, Low: 0.5, High: 1.5}},
		Tries:       []ReproTry{{What: "no cause", Set: []string{"x=0"}, Metric: "a", Base: 1, Value: 0}},
		Notes:       []string{"a note"}, NotReached: []string{"a cause"},
	}}}
}

func TestWriteRepro(t *testing.T) {
	for _, tc := range []struct {
		style Style
		want  []string
	}{
		{Text, []string{"name: a title", "published: a letter", "with llc.size=4", "NOT REACHED", "-41.9 (withdrawn)",
			"3.25 GiB", "no change", "this host has no a, c: why not", "copy.rate", "no cause", "- a note", "- a cause"}},
		{Markdown, []string{"## name", "| a | 2 | 1 |", "- a note"}},
	} {
		var b bytes.Buffer
		if err := WriteRepro(&b, reproExample(), tc.style); err != nil {
			t.Fatal(err)
		}
		for _, w := range tc.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("style %d lacks %q:\n%s", tc.style, w, b.String())
			}
		}
	}
}

// TestReproJSON: what has no number is null, and is there.
func TestReproJSON(t *testing.T) {
	var b bytes.Buffer
	if err := WriteReproJSON(&b, reproExample()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results []struct{ Metrics []map[string]any }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	m := got.Results[0].Metrics[0]
	if host, ok := m["host"]; !ok || host != nil || m["host_reason"] != "why not" || m["published"] != 2.0 {
		t.Errorf("%v", m)
	}
	if s := Schema("x", Repro{}); !strings.Contains(s, `"null"`) {
		t.Error("the schema does not allow null")
	}
}

func TestWriteMachine(t *testing.T) {
	m, err := hw.LoadMachine("vm-2")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteMachine(&b, m); err != nil {
		t.Fatal(err)
	}
	for _, k := range hw.Keys {
		if !strings.Contains(b.String(), "\n"+k.Name+" ") {
			t.Errorf("%s is not listed", k.Name)
		}
	}
	for _, w := range []string{"by definition", "preset vm", "33554432"} {
		if !strings.Contains(b.String(), w) {
			t.Errorf("lacks %q", w)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1987.38: "1987", 658.54: "658.5", 140: "140", 3.017: "3.02",
		-0.1: "-0.1", 0.00012: "0", -0.0004: "0", 12: "12", -41.9: "-41.9"} {
		if got := number(x); got != want {
			t.Errorf("%v is printed as %q, want %q", x, got, want)
		}
	}
}
