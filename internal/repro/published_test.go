package repro

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bands are the figures that a reader looks up by name: they may not go away.
var bands = map[string][]string{
	"anon-w-seq-hugetlb": {"throughput_gain_percent", "miss_rate_change_percent", "ipc_gain_percent",
		"user_time_change_percent", "gain_4_processes_percent", "gain_forward_percent"},
	"ebizzy-thp":     {"means_differ_percent", "notsup_share", "huge_faults_per_record"},
	"ebizzy-mTRp-16": {"gain_percent"}, "ebizzy-mTt-16": {"gain_percent"}, "page-fault3": {"gain_percent"},
	"thp-migration": {"ratio_512x4k_to_2m", "in_kernel_ratio", "copy_only_ratio"},
	"folio-sizes": {"kernel_time_16k_percent", "kernel_time_64k_percent", "kernel_time_128k_over_64k_points",
		"kernel_time_256k_over_64k_points", "peak_memory_64k_percent"},
	"hvo":    {"pages_freed_2m", "pages_freed_1g", "saved_1tib_2m_gib"},
	"gup-1g": {"get_ratio", "unpin_ratio_single", "unpin_ratio_grouped"},
}

func TestPublished(t *testing.T) {
	for _, n := range Names() {
		p, err := LoadPublished(n)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != n || p.Title == "" || p.Thread == "" || p.Machine == "" || p.Workload == "" || p.Statistic == "" {
			t.Errorf("%s: something of its head is missing: %+v", n, p)
		}
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		seen := map[string]bool{}
		for _, m := range p.Metrics {
			if seen[m.Name] {
				t.Errorf("%s: %s stands there twice", n, m.Name)
			}
			seen[m.Name] = true
			if ok, known := m.Reached(value(m.Value)); m.Value != nil && known && !ok {
				t.Errorf("%s: %s: the published figure lies outside of its own band", n, m.Name)
			}
		}
		for _, b := range bands[n] {
			if m := p.metric(b); m == nil || m.Low == nil && m.High == nil {
				t.Errorf("%s: no band for %s", n, b)
			}
		}
	}
	if _, err := LoadPublished("nothing"); err == nil || !strings.Contains(err.Error(), "hvo") {
		t.Errorf("an unknown result: %v", err)
	}
}

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// TestModelsKnowNoPublishedFigure looks for published figures, those with four
// digits or more, in the source of the models and workloads.
func TestModelsKnowNoPublishedFigure(t *testing.T) {
	figures := map[string]string{}
	for _, n := range Names() {
		p, err := LoadPublished(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Metrics {
			s := strconv.FormatFloat(value(m.Value), 'f', -1, 64)
			if strings.Contains(s, ".") && len(strings.Trim(s, "-.0")) >= 5 {
				figures[s] = n + " " + m.Name
			}
		}
	}
	if len(figures) < 5 {
		t.Fatalf("only %d figures to look for", len(figures))
	}
	files := 0
	for _, dir := range []string{".", "../workload", "../../mm", "../../hw", "../../sim"} {
		paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files++
			for s, of := range figures {
				if strings.Contains(string(text), s) {
					t.Errorf("%s has %s, the published %s", path, s, of)
				}
			}
		}
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}
