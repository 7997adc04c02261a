package hw

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

// TestPresetsAreComplete: a primitive without a cost would be free in every
// prediction.
func TestPresetsAreComplete(t *testing.T) {
	for _, p := range Presets() {
		for i, n := range p.Nanos {
			if n <= 0 {
				t.Errorf("preset %s: %s costs %v ns", p.Name, mm.Prim(i), n)
			}
		}
		if !strings.HasPrefix(p.Source, "preset") {
			t.Errorf("preset %s says its source is %q", p.Name, p.Source)
		}
	}
	if _, ok := Preset("no such"); ok {
		t.Error("Preset found one that does not exist")
	}
}

// TestPresetSums holds the presets to the sums that were measured (see
// presetVM): the parts may be guessed, the whole may not drift.
func TestPresetSums(t *testing.T) {
	p, _ := Preset("vm")
	small := mm.Work{}
	for _, x := range []mm.Prim{mm.PrimFaultSoft, mm.PrimClearSmall, mm.PrimPTESet, mm.PrimAllocPCP, mm.PrimAllocRefill,
		mm.PrimCharge, mm.PrimLRUAdd, mm.PrimRmapAdd, mm.PrimPTELock, mm.PrimVMALock} {
		small.Add(x, 1)
	}
	huge := mm.Work{}
	huge.Add(mm.PrimFaultUser, 1)
	huge.Add(mm.PrimClearPMD, 512)
	huge.Add(mm.PrimPMDSet, 1)
	huge.Add(mm.PrimTableAlloc, 1)
	huge.Add(mm.PrimAllocBuddy, 1)
	tests := []struct {
		name     string
		w        *mm.Work
		low, top mm.Nanos
	}{
		{"a populated small page", &small, 350, 750},
		{"a 2 MB fault", &huge, 60_000, 250_000},
	}
	for _, tt := range tests {
		if got := p.Price(tt.w); got < tt.low || got > tt.top {
			t.Errorf("%s costs %d ns, want %d to %d", tt.name, got, tt.low, tt.top)
		}
	}
}

func TestSaveLoad(t *testing.T) {
	for _, p := range Presets() {
		var b bytes.Buffer
		if err := p.Save(&b); err != nil {
			t.Fatal(err)
		}
		got, err := Load(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&p, got); d != "" {
			t.Errorf("%s changed on its way (-saved +loaded):\n%s", p.Name, d)
		}
	}
}

// TestSaveLoadMeasured: how a profile was made, and its second column, go the
// same way.
func TestSaveLoadMeasured(t *testing.T) {
	p, _ := Preset("vm")
	p.Name, p.Source = "machine", "measured"
	for i := range p.Nanos {
		p.Elapsed[i] = 2 * p.Nanos[i]
	}
	p.Made = &Made{Kernel: "6.18.0", CPU: "a CPU: of 2 words", Date: "2026-01-31", Runs: 7,
		Spread: 0.03, Residual: 0.01, Guessed: []string{"compact"},
		Rows: []MadeRow{{Name: "fork, exit", Measured: 1.5, Fitted: 1.25, Elapsed: 2, Spread: 0.5}}}
	var b bytes.Buffer
	if err := p.Save(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&p, got); d != "" {
		t.Errorf("changed on its way (-saved +loaded):\n%s", d)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown primitive", "version: 2\nnanoseconds:\n  clear_everything: 3\n", "clear_everything"},
		{"negative", "version: 2\nnanoseconds:\n  clear_pmd: -3\n", "clear_pmd: -3 is not"},
		{"words", "version: 2\nnanoseconds:\n  clear_pmd: much\n", "clear_pmd: much is not"},
		{"not a number", "version: 2\nnanoseconds:\n  clear_pmd: .nan\n", "is not a number"},
		{"infinite", "version: 2\nnanoseconds:\n  clear_pmd: .inf\n", "is not a number"},
		{"elapsed", "version: 2\nelapsed:\n  clear_pmd: -1\n", "elapsed: clear_pmd: -1 is not"},
		{"twice", "version: 2\nnanoseconds:\n  clear_pmd: 1\n  ? clear_pmd\n  : 2\n", "clear_pmd"},
		{"other version", "version: 9\n", "version 9, want 2"},
		{"unknown field", "version: 2\nnanos: 3\n", "nanos"},
		{"not YAML", "\t{", "machine profile"},
		{"too long", strings.Repeat("#", maxProfile+1), "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestPriceSumAgreesWithPrice(t *testing.T) {
	p, _ := Preset("metal")
	var sum mm.WorkSum
	var whole mm.Nanos
	for i := range mm.NumPrims {
		var w mm.Work
		w.Add(mm.Prim(i), uint32(1000+i))
		whole += p.Price(&w)
		sum.Take(&w)
	}
	if got := p.PriceSum(&sum); got < whole || got > whole+mm.Nanos(mm.NumPrims) {
		t.Errorf("sum %d, parts %d: they differ by more than rounding", got, whole)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("version: 2\nname: x\nsource: y\nnanoseconds:\n  clear_pmd: 3.5\n"))
	f.Add([]byte("version: 2\nnanoseconds: [1]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Load(bytes.NewReader(text))
		if err != nil {
			return
		}
		for i, n := range p.Nanos {
			if !(n >= 0) {
				t.Fatalf("%s costs %v", mm.Prim(i), n)
			}
		}
	})
}
