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
	return p, &Verified{Asked: 3, PeakBy: "looking", Interrupted: true,
		NotRun: []string{"advise=all: the program must"},
		Notes:  []string{"a note"}, Rows: []Measured{
			{Policy: "now", Runs: 3,
				Faults: MeasuredValue{6502, 6500.4, 6500, 6501, 0.0003, -0.0005},
				Peak:   MeasuredValue{26 << 20, 25 << 20, 25 << 20, 25 << 20, 0.04, 0.04},
				System: MeasuredValue{0.1, 0.1, 0.09, 0.11, 0, 0}},
			{Policy: "64k", Runs: 2, Faults: MeasuredValue{493, 500, 490, 510, -0.014, -0.02}},
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
	if out.Policies[2].Measured != nil || out.Policies[2].Error != nil {
		t.Error("thp was not run, and has measurements")
	}
}
