package repro

import (
	"embed"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// Published is what was published of one result: published/NAME.yaml. Only the
// report reads it, never a model.
type Published struct {
	Name      string            `yaml:"name"`
	Title     string            `yaml:"title"`
	Thread    string            `yaml:"thread"` // the letter, with its author
	Date      string            `yaml:"date"`   // year-month-day
	Kernel    string            `yaml:"kernel"`
	Machine   string            `yaml:"machine"`  // as published
	Workload  string            `yaml:"workload"` // with its arguments
	N         int               `yaml:"n,omitempty"`
	Statistic string            `yaml:"statistic"`
	Metrics   []PublishedMetric `yaml:"metrics"`
	Notes     []string          `yaml:"notes,omitempty"` // what does not fit, or was withdrawn
}

// PublishedMetric is one published figure.
type PublishedMetric struct {
	Name           string   `yaml:"name"`
	Unit           string   `yaml:"unit"`
	Value          *float64 `yaml:"value,omitempty"` // nil: no number was given
	Said           string   `yaml:"said,omitempty"`  // what was said instead of a number
	From           string   `yaml:"from,omitempty"`  // the printed figures that Value was computed from
	Low            *float64 `yaml:"low,omitempty"`   // the model reaches the figure from Low
	High           *float64 `yaml:"high,omitempty"`  // to High, both included
	HigherIsBetter bool     `yaml:"higher_is_better,omitempty"`
	Withdrawn      string   `yaml:"withdrawn,omitempty"` // why the author took it back
}

// Reached says whether x lies in the band of the metric; known is false where
// the metric has none.
func (m *PublishedMetric) Reached(x float64) (ok, known bool) {
	if m.Low == nil && m.High == nil {
		return false, false
	}
	return (m.Low == nil || x >= *m.Low) && (m.High == nil || x <= *m.High), true
}

//go:embed published/*.yaml
var publishedFiles embed.FS

// publishedOrder is the order of printing.
var publishedOrder = []string{
	"anon-w-seq-hugetlb", "anon-w-seq-thp", "anon-cow-seq", "ebizzy-thp", "ebizzy-mTRp-16", "ebizzy-mTt-16", "page-fault3", "thp-migration",
	"folio-sizes", "hvo", "gup-1g",
}

// Names are all published results, in the order of printing.
func Names() []string { return append([]string{}, publishedOrder...) }

// LoadPublished reads what was published of one result.
func LoadPublished(name string) (*Published, error) {
	text, err := publishedFiles.ReadFile("published/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("result %q: there is none of that name: %s", name, strings.Join(Names(), ", "))
	}
	p := &Published{}
	if err := yaml.UnmarshalWithOptions(text, p, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("result %s: %w", name, err)
	}
	return p, nil
}

// metric finds a published figure; nil when there is none.
func (p *Published) metric(name string) *PublishedMetric {
	for i := range p.Metrics {
		if p.Metrics[i].Name == name {
			return &p.Metrics[i]
		}
	}
	return nil
}

// Source is where the result was published, in one line.
func (p *Published) Source() string { return p.Thread + ", " + p.Date }
