package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a prediction with everything a report can show. Its numbers are
// made up.
func sample(t *testing.T) *predict.Prediction {
	t.Helper()
	s, err := mm.SizesOf(4096)
	if err != nil {
		t.Fatal(err)
	}
	now := mm.DefaultPolicy(s)
	p := &predict.Prediction{
		Recording: predict.Recording{
			Command: []string{"gcc", "-O2", "-c", "a.c"}, Method: "root", Kernel: "6.18.44", Faults: 94_123, Lost: 0,
			Wall: 3200 * time.Millisecond, CPU: 3 * time.Second, AnonShare: 0.71,
			AnonBytes: 300 << 20, FileBytes: 20 << 20,
		},
		Kernel: "6.6", Current: now.Spec(s), Sizes: s, Profile: "vm (preset, not measured on this machine)",
		Preset: true, NowFrom: "the settings of this host", Memory: "fresh", Limit: 512 << 20, Seed: 7,
		Assumed: predict.Assumptions(), Programs: predict.Programs(predict.Runtimes{}),
		Notes: []string{"not known: the order in which pages were touched (1.20k pages)"},
	}
	spec := func(name string) predict.Named {
		q, err := mm.ParsePolicySpec(now, name, s)
		if err != nil {
			t.Fatal(err)
		}
		return predict.Named{Name: name, Policy: q}
	}
	row := func(n predict.Named, faults uint64, kernel time.Duration, peak mm.Bytes, worst time.Duration) predict.Row {
		r := predict.Row{Named: n, Faults: faults, Kernel: kernel, PeakAnon: peak, EndAnon: 1 << 20, WorstFault: worst,
			MeanAnon: float64(peak) / 2, Untouched: peak / 10}
		for i := range 100 {
			r.Timeline = append(r.Timeline, predict.Sample{When: mm.Nanos(i+1) * 1e6, Anon: peak * mm.Bytes(i%50) / 49})
		}
		return r
	}
	p.Rows = []predict.Row{
		row(predict.Named{Name: predict.Now, Policy: now}, 94_123, 213*time.Millisecond, 312<<20, 1400),
		row(spec("never"), 94_500, 214*time.Millisecond, 311<<20, 1300),
		row(spec("64k"), 12_345, 120*time.Millisecond, 322<<20, 4100),
		row(spec("thp+64k"), 9_012, 111*time.Millisecond, 640<<20, 141*time.Microsecond),
		row(spec("64k=always,2m=madvise,max_ptes_none=64"), 1_000_012, 2131*time.Millisecond, 312<<30, 141*time.Millisecond),
		row(spec("2m=madvise,advise=heap"), 80_012, 200*time.Millisecond, 320<<20, 141*time.Microsecond),
	}
	p.Rows[2].Lacks = []string{"64k=always needs Linux 6.8 or later; this is 6.6"}
	p.Rows[2].Folios[4], p.Rows[2].Coverage, p.Rows[2].CoverageBy[4] = 5123, 0.93, 0.93
	p.Rows[3].Folios[9], p.Rows[3].Coverage = 210, 0.98
	p.Rows[3].CoverageBy[9], p.Rows[3].CoverageBy[4] = 0.855, 0.125
	p.Rows[3].OOM, p.Rows[3].KilledAt, p.Rows[3].Kills, p.Rows[3].Fallbacks = 1, 1234*time.Millisecond, 1, 1_234_567
	p.Rows[4].SoftFaults = 12
	p.Rows[3].Background = 3 * time.Millisecond
	p.Mappings = []predict.MappingUse{
		{Mapping: "anonymous", By: make([]predict.RegionUse, len(p.Rows))},
		{Mapping: "/usr/lib/a/very/long/path/to/a/library.so.6", By: make([]predict.RegionUse, len(p.Rows))},
	}
	p.Mappings[0].By[0] = predict.RegionUse{Faults: 70_000, Allocated: 280 << 20, Wasted: 4096}
	p.Mappings[0].By[5] = predict.RegionUse{Faults: 7_000, Allocated: 290 << 20, Wasted: 10 << 20}
	p.Best = predict.Recommend(p, predict.GoalTime, -1)
	p.Best.Commands = []string{"GLIBC_TUNABLES=glibc.malloc.hugetlb=1 gcc", "echo always > /sys/kernel/mm/transparent_hugepage/enabled"}
	return p
}

// golden compares with a file below testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got); run with -update if that is right:\n%s", name, d)
	}
}

func render(t *testing.T, p *predict.Prediction, o PredictOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Predict(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPredictText(t *testing.T) {
	got := render(t, sample(t), PredictOptions{Timeline: true, LastLine: "record your own: hugelab record -- COMMAND"})
	golden(t, "predict.txt", got)
}

func TestPredictMarkdown(t *testing.T) {
	golden(t, "predict.md", render(t, sample(t), PredictOptions{Style: Markdown}))
}

func TestPredictLayouts(t *testing.T) {
	p := sample(t)
	p.Layouts, p.Mappings = 8, nil
	for i := range p.Rows {
		r := &p.Rows[i]
		r.Spread = &predict.Spread{FaultsMin: r.Faults - 100, FaultsMax: r.Faults + 100, KernelMin: r.Kernel, KernelMax: r.Kernel * 2,
			PeakMin: r.PeakAnon - 4096, PeakMax: r.PeakAnon + 4096}
	}
	golden(t, "layouts.txt", render(t, p, PredictOptions{}))
}

// TestWidth holds every line of every report to Width, whatever the names in a
// recording are.
func TestWidth(t *testing.T) {
	p := sample(t)
	p.Recording.Command = []string{strings.Repeat("x", 250), "a\nb\x1b[31mc"}
	p.Notes = append(p.Notes, strings.Repeat("word ", 100))
	p.Mappings[0].Mapping = strings.Repeat("/ü", 100)
	for i := range p.Rows { // the widest numbers there are
		r := &p.Rows[i]
		r.Faults, r.Fallbacks, r.Kernel, r.WorstFault = 888_888_888_888, 888_888_888, 888_888*time.Second, 888_888*time.Second
		r.PeakAnon, r.EndAnon = 888<<40, 888<<40
	}
	for i := range p.Rows {
		p.Rows[i].Spread = &predict.Spread{FaultsMin: 1e12, FaultsMax: 1e13, PeakMin: 888 << 40, PeakMax: 888 << 40}
	}
	p.Layouts = 3
	out := render(t, p, PredictOptions{Timeline: true})
	for l := range strings.Lines(out) {
		l = strings.TrimRight(l, "\n")
		if strings.HasPrefix(l, "  GLIBC") || strings.HasPrefix(l, "  echo") {
			continue // commands are never folded
		}
		if n := utf8.RuneCountInString(l); n > Width {
			t.Errorf("%d columns: %s", n, l)
		}
		if strings.ContainsRune(l, 0x1b) {
			t.Errorf("an escape from the recording came through: %q", l)
		}
	}
}

// TestJSONNames holds the output to the names of the contract and to the
// schema.
func TestJSONNames(t *testing.T) {
	var b bytes.Buffer
	if err := WritePredictJSON(&b, sample(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, "predict.json", b.String())
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	contract := map[string][]string{
		"":            {"recording", "current", "policies", "recommended"},
		"recording":   {"command", "method", "faults", "lost", "kernel"},
		"recommended": {"policy", "reason", "commands"},
		"policies": {"name", "faults", "kernel_seconds", "peak_anon_bytes", "end_anon_bytes", "mean_anon_bytes",
			"untouched_bytes", "worst_fault_ns", "folios", "coverage", "fallbacks"},
	}
	for at, names := range contract {
		objects := []any{got[at]}
		if at == "" {
			objects = []any{got}
		} else if list, ok := got[at].([]any); ok {
			objects = list
		}
		for _, o := range objects {
			for _, n := range names {
				if _, ok := o.(map[string]any)[n]; !ok {
					t.Errorf("%s has no %q", at, n)
				}
			}
		}
	}
	text := PredictSchema()
	golden(t, "predict.schema.json", text)
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	for _, e := range validate(schema, got, "") {
		t.Error(e)
	}
	got["policies"].([]any)[0].(map[string]any)["faultz"] = 3.0
	if len(validate(schema, got, "")) == 0 {
		t.Error("the schema takes a name it does not have")
	}
}

// validate checks v against the part of JSON Schema that schemaOf writes.
func validate(s map[string]any, v any, at string) []string {
	var out []string
	switch s["type"] {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return []string{at + ": not an object"}
		}
		props, _ := s["properties"].(map[string]any)
		for _, n := range asList(s["required"]) {
			if _, ok := m[n.(string)]; !ok {
				out = append(out, at+": lacks "+n.(string))
			}
		}
		for n, x := range m {
			sub, ok := props[n].(map[string]any)
			if !ok {
				if sub, ok = s["additionalProperties"].(map[string]any); !ok {
					out = append(out, at+": "+n+" is not in the schema")
					continue
				}
			}
			out = append(out, validate(sub, x, at+"."+n)...)
		}
	case "array":
		if reflect.TypeOf(v) != reflect.TypeOf([]any{}) {
			return []string{at + ": not a list"}
		}
		for _, x := range v.([]any) {
			out = append(out, validate(s["items"].(map[string]any), x, at+"[]")...)
		}
	case "string":
		if _, ok := v.(string); !ok {
			out = append(out, at+": not a string")
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			out = append(out, at+": not a boolean")
		}
	case "integer", "number":
		n, ok := v.(float64)
		if !ok || s["type"] == "integer" && n != float64(int64(n)) {
			out = append(out, at+": not "+s["type"].(string))
		}
	}
	return out
}

func asList(v any) []any { l, _ := v.([]any); return l }

func TestFold(t *testing.T) {
	tests := []struct{ in, want string }{
		{"short", "short\n"},
		{strings.Repeat("a", 99) + " bb", strings.Repeat("a", 99) + "\n  bb\n"},
		{strings.Repeat("a", 97) + " bb", strings.Repeat("a", 97) + " bb\n"},
		{strings.Repeat("a", 150), strings.Repeat("a", 100) + "\n  " + strings.Repeat("a", 50) + "\n"},
		{"", "\n"},
	}
	for _, tt := range tests {
		if got := fold(tt.in, "  "); got != tt.want {
			t.Errorf("fold(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSparkline(t *testing.T) {
	samples := []predict.Sample{{When: 1, Anon: 8}, {When: 100, Anon: 0}}
	got := []rune(sparkline(samples, 100, 8))
	if len(got) != timelineColumns || got[0] != '█' || got[40] != '█' || got[timelineColumns-1] != ' ' {
		t.Errorf("got %q", string(got))
	}
	if got := sparkline(nil, 0, 0); strings.TrimSpace(got) != "" {
		t.Errorf("without samples: %q", got)
	}
}
