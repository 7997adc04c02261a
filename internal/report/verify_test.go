package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/internal/predict"
)

func verified() (*predict.Prediction, *Verified) {
	p := &predict.Prediction{Kernel: "6.18", Profile: "vm", Rows: []predict.Row{
		{Named: predict.Named{Name: "now"}, Faults: 6502, Kernel: 4_820_000},
		{Named: predict.Named{Name: "64k"}, Faults: 493, Kernel: 1_730_000},
		{Named: predict.Named{Name: "thp"}, Faults: 602},
	}}
	return p, &Verified{Asked: 3, Warm: true, System: true, PeakBy: "looking", Interrupted: true,
		NotRun: []string{"advise=all: the program must"},
		Notes:  []string{"a note"}, Rows: []Measured{
			{Policy: "now", Runs: 3,
				Faults: MeasuredValue{6502, 6500.4, 6500, 6500, 6501, 0.0003, -0.0005},
				Peak:   MeasuredValue{26 << 20, 25 << 20, 25 << 20, 25 << 20, 25 << 20, 0.04, 0.04},
				System: MeasuredValue{0.11, 0.1, 0.1, 0.09, 0.11, 0.1, 0}},
			{Policy: "64k", Runs: 2, Faults: MeasuredValue{493, 500, 500, 490, 510, -0.014, -0.02},
				Folios: []MeasuredFolios{{"64k", MeasuredValue{Predicted: 400,
					Measured: 380, Least: 380, Most: 380, Error: 0.0526}}},
				Again: &MeasuredAgain{Faults: MeasuredSame{0.01, 0.02}},
				Active: &MeasuredActive{Faults: MeasuredValue{Predicted: 480, Measured: 470, Error: 0.0213},
					Collapses: 3}},
			{Policy: "thp"},
		}}
}

func TestVerifyText(t *testing.T) {
	p, v := verified()
	for style, name := range map[Style]string{Text: "verify.txt", Markdown: "verify.md"} {
		var b bytes.Buffer
		if err := Verify(&b, p, v, style); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(line)) - 1; style == Text && n > Width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

func TestVerifyJSON(t *testing.T) {
	p, v := verified()
	var b bytes.Buffer
	if err := WriteVerifyJSON(&b, p, v); err != nil {
		t.Fatal(err)
	}
	var out PredictJSON
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	row := out.Policies[1]
	if row.Measured == nil || row.Measured.Runs != 2 || row.Measured.Spread["faults"][1] != 510 ||
		math.Abs(row.Error["faults"]+0.014) > 1e-9 {
		t.Errorf("64k: %+v, %v", row.Measured, row.Error)
	}
	if row.Measured.Folios["64k"] != 380 || row.Error["folios_64k"] != 0.0526 ||
		row.Measured.Khugepaged["collapses"] != 3 ||
		row.Measured.Again["faults_spread"] != 0.02 {
		t.Errorf("64k: %+v, %v", row.Measured, row.Error)
	}
	if out.Policies[2].Measured != nil || out.Policies[2].Error != nil {
		t.Error("thp was not run, and has measurements")
	}
}

// TestSuite: the text and the Markdown, and what is beyond the bars.
func TestSuite(t *testing.T) {
	p, v := verified()
	s := &Suite{Kernel: "6.18.1", CPUs: 2, Memory: 8 << 30, Profile: "vm", Runs: 3,
		Programs: []SuiteProgram{
			{Name: "gcc", Skipped: "gcc: not installed: gcc"},
			{Name: "sort", Prediction: p, Verified: v},
			{Name: "xz", Failed: "exit code 1"}}}
	for style, name := range map[Style]string{Text: "suite.txt", Markdown: "suite.md"} {
		var b bytes.Buffer
		if err := VerifySuite(&b, s, style); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
	var b bytes.Buffer
	if err := WriteSuiteJSON(&b, s); err != nil {
		t.Fatal(err)
	}
	var out SuiteJSON
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Programs) != 3 || out.Programs[1].Prediction.Policies[0].Measured == nil {
		t.Errorf("%+v", out.Programs)
	}
	want := []SuiteSummaryJSON{
		{"faults", 2, (0.0003 + 0.014) / 2, -0.014, "sort under 64k", 0},
		{"folios", 1, 20. / 380, 0, "", 0}, // 20 folios are a few
		{"peak_anon_bytes", 2, 0.02, 0.04, "sort under now", 1},
		{"system_seconds", 0, 0, 0, "", 0}, // no run spends 0.3 s in the kernel
	}
	for i, w := range want {
		if got := out.Summary[i]; got != w {
			t.Errorf("summary %+v, want %+v", got, w)
		}
	}
}
