package repro

import (
	"testing"

	"github.com/goccy/go-yaml"
)

func TestFolioBands(t *testing.T) {
	r := folioSizes()
	v := modelOf(t, r)
	holdBands(t, r, v)
	// Each larger size takes fewer faults, and down to 64k the kernel less time.
	for _, name := range []string{"kernel_time", "faults"} {
		last := 0.0
		for _, size := range []string{"16k", "32k", "64k"} {
			x := must(t, v, name+"_"+size+"_percent")
			if x >= last {
				t.Errorf("%s at %s: %v, one size below %v", name, size, x, last)
			}
			last = x
		}
	}
}

// TestFolioSettings: with the sizes inheriting, never gives none, madvise none
// to a make that asks for nothing, and always mixes huge pages in.
func TestFolioSettings(t *testing.T) {
	v := modelOf(t, folioSizes())
	for _, tc := range []struct {
		name string
		want bool
	}{
		{"folios_64k_enabled_never", false}, {"folios_2m_enabled_never", false},
		{"folios_64k_enabled_madvise", false}, {"folios_2m_enabled_madvise", false},
		{"folios_64k_enabled_always", true}, {"folios_2m_enabled_always", true},
	} {
		if got := must(t, v, tc.name); got > 0 != tc.want {
			t.Errorf("%s is %v", tc.name, got)
		}
	}
}

// TestFolioCauses: the kernel time saved is that of the faults not taken.
// Without what a fault costs beside clearing, nearly nothing is left of it; and
// it is no share of the calls that have nothing to do with memory.
func TestFolioCauses(t *testing.T) {
	r := folioSizes()
	base := must(t, modelOf(t, r), r.Main)
	free := []string{"kernel.cold=0"}
	for _, w := range []string{"fault_user", "fault_kernel", "fault_file", "vma_lock", "mmap_read", "pte_lock",
		"alloc_pcp", "alloc_refill", "charge", "lru_add", "rmap_add", "free_pcp", "uncharge"} {
		free = append(free, "work."+w+"=0")
	}
	if x := must(t, modelOf(t, r, free...), r.Main); x < base/4 {
		t.Errorf("faults that cost nothing but clearing: %v, with their cost %v", x, base)
	}
	if x := must(t, modelOf(t, r, "syscall=*4"), r.Main); x < base*0.75 {
		t.Errorf("other calls four times as dear: %v, else %v", x, base)
	}
	if x := must(t, modelOf(t, r, "clear.rate=*0.25"), r.Main); x < base*0.95 {
		t.Errorf("clearing a quarter as fast, which no size avoids: %v, else %v", x, base)
	}
}

func TestMakeFacts(t *testing.T) {
	var f recordedMake
	if err := yaml.UnmarshalWithOptions(makeFacts, &f, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if f.UserSecs <= 0 || f.SystemSecs <= 0 || f.PeakBytes <= 0 || f.OtherCalls <= 0 ||
		f.Command == "" || f.Host == "" {
		t.Errorf("something is missing: %+v", f)
	}
	if len(makeRecording) > 2<<20 {
		t.Errorf("the recording has %d bytes", len(makeRecording))
	}
}
