package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Repro is the published results beside the model's and this host's. Its names
// in JSON are a contract: none is ever renamed or taken away.
type Repro struct {
	Seed    uint64        `json:"seed" doc:"seed of the model's runs"`
	Results []ReproResult `json:"results" doc:"one block a published result"`
}

// ReproResult is one published result.
type ReproResult struct {
	Name             string             `json:"name" doc:"as hugelab repro takes it"`
	Title            string             `json:"title" doc:"what it shows"`
	Source           string             `json:"source" doc:"the letter, its author and date"`
	Kernel           string             `json:"kernel" doc:"as published"`
	PublishedMachine string             `json:"published_machine" doc:"as published"`
	Workload         string             `json:"workload" doc:"as published"`
	Statistic        string             `json:"statistic" doc:"what the published figures are"`
	N                int                `json:"n" doc:"runs behind a published figure, 0 when not stated"`
	Machine          string             `json:"machine" doc:"the machine of the model, as hugelab machine show takes it"`
	MachineTitle     string             `json:"machine_title" doc:"the same in words"`
	Set              []string           `json:"set,omitempty" doc:"numbers of the machine changed for this run"`
	Did              string             `json:"did" doc:"what the model did"`
	Main             string             `json:"main" doc:"the metric of sensitivity and tries"`
	Metrics          []ReproMetric      `json:"metrics" doc:"figures"`
	Sensitivity      []ReproSensitivity `json:"sensitivity" doc:"each fitted number of the machine, moved"`
	Tries            []ReproTry         `json:"tries" doc:"runs with a cause taken away or changed"`
	Notes            []string           `json:"notes" doc:"what to know of the published figures"`
	NotReached       []string           `json:"not_reached" doc:"what is known of where model and published differ"`
}

// ReproMetric is one figure.
type ReproMetric struct {
	Name       string   `json:"name" doc:"of the figure"`
	Unit       string   `json:"unit" doc:"%, us, GiB, ...; empty for ratios and shares"`
	Published  *float64 `json:"published" doc:"null when no number was published"`
	Said       string   `json:"said,omitempty" doc:"what was published instead of a number"`
	From       string   `json:"from,omitempty" doc:"the printed figures that published was computed from"`
	Withdrawn  string   `json:"withdrawn,omitempty" doc:"why its author took the figure back"`
	Model      *float64 `json:"model" doc:"null when the model does not have it"`
	Host       *float64 `json:"host" doc:"null when this host did not measure it"`
	HostReason string   `json:"host_reason" doc:"why host is null"`
	Ratio      *float64 `json:"ratio" doc:"model by published"`
	Low        *float64 `json:"low" doc:"the model reaches the figure from here"`
	High       *float64 `json:"high" doc:"to here"`
	Reached    *bool    `json:"reached" doc:"whether model lies between low and high"`
}

// ReproSensitivity is how a metric moves with a fitted number of the machine.
type ReproSensitivity struct {
	Key    string  `json:"key" doc:"the number, as hugelab machine show lists it"`
	Value  float64 `json:"value" doc:"as fitted"`
	Fitted string  `json:"fitted" doc:"the published base column that it was fitted to"`
	Metric string  `json:"metric" doc:"what moves"`
	Base   float64 `json:"base" doc:"the metric with the number as fitted"`
	Low    float64 `json:"low" doc:"with 0.7 of the number"`
	High   float64 `json:"high" doc:"with 1.3 of the number"`
}

// ReproTry is a metric with a cause of the effect taken away or changed.
type ReproTry struct {
	What   string   `json:"what" doc:"in words"`
	Set    []string `json:"set" doc:"as --set takes it"`
	Metric string   `json:"metric" doc:"what moves"`
	Base   float64  `json:"base" doc:"without the change"`
	Value  float64  `json:"value" doc:"with it"`
}

// WriteReproJSON writes results as JSON.
func WriteReproJSON(w io.Writer, r *Repro) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteRepro writes results for people: a block each.
func WriteRepro(w io.Writer, r *Repro, style Style) error {
	d := doc{style: style}
	for i := range r.Results {
		if i > 0 {
			d.gap()
			d.gap()
		}
		reproBlock(&d, &r.Results[i])
	}
	_, err := io.WriteString(w, d.b.String())
	return err
}

func reproBlock(d *doc, r *ReproResult) {
	if d.style == Markdown {
		d.b.WriteString("## " + r.Name + "\n\n")
		d.line(r.Title)
	} else {
		d.line(r.Name + ": " + r.Title)
	}
	d.line("published: " + r.Source)
	d.line("done then: " + r.Workload + "; on " + r.PublishedMachine + "; Linux " + r.Kernel + "; " + r.Statistic)
	did := "done here: " + r.Did
	if r.Machine != "" {
		did += "; on machine " + r.Machine + " (" + r.MachineTitle + ")"
	}
	if len(r.Set) > 0 {
		did += " with " + strings.Join(r.Set, ", ")
	}
	d.line(did)
	d.gap()
	d.table(reproTable(r))
	reproReasons(d, r)
	reproMoves(d, r)
	d.list("of the published figures:", r.Notes)
	d.list("where model and published differ:", r.NotReached)
}

// reproTable has the figures.
func reproTable(r *ReproResult) table.Writer {
	t := newTable("metric", "published", "model", "this host", "ratio", "band", "")
	for i := range r.Metrics {
		m := &r.Metrics[i]
		unit := ""
		if m.Unit != "" && !strings.HasSuffix(m.Name, "_us") && m.Unit != "%" {
			unit = " " + m.Unit
		}
		published := figure(m.Published)
		if m.Published == nil && m.Said != "" {
			published = m.Said
		}
		if m.Withdrawn != "" {
			published += " (withdrawn)"
		}
		t.AppendRow(table.Row{m.Name, published + unitOf(m.Published, unit), figure(m.Model) + unitOf(m.Model, unit),
			figure(m.Host) + unitOf(m.Host, unit), figure(m.Ratio), bandText(m), reachedText(m)})
	}
	return t
}

func unitOf(x *float64, unit string) string {
	if x == nil {
		return ""
	}
	return unit
}

// figure is a number with at most four digits that matter; "-" for none.
func figure(x *float64) string {
	if x == nil {
		return "-"
	}
	return number(*x)
}

// number is x with four digits that matter, never in powers of ten.
func number(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "-"
	case a >= 1000:
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	case a >= 100:
		return trimZeros(strconv.FormatFloat(x, 'f', 1, 64))
	case a >= 1 || a == 0:
		return trimZeros(strconv.FormatFloat(x, 'f', 2, 64))
	}
	return trimZeros(strconv.FormatFloat(x, 'f', 3, 64))
}

// trimZeros takes zeros behind the point away.
func trimZeros(s string) string {
	if s = strings.TrimRight(strings.TrimRight(s, "0"), "."); s == "-0" {
		return "0"
	}
	return s
}

func bandText(m *ReproMetric) string {
	switch {
	case m.Low == nil && m.High == nil:
		return ""
	case m.Low == nil:
		return "to " + number(*m.High)
	case m.High == nil:
		return "from " + number(*m.Low)
	case *m.Low == *m.High:
		return number(*m.Low)
	}
	return number(*m.Low) + " to " + number(*m.High)
}

func reachedText(m *ReproMetric) string {
	switch {
	case m.Reached == nil:
		return ""
	case *m.Reached:
		return "reached"
	}
	return "NOT REACHED"
}

// reproReasons says where the published figures come from and why the host has
// none, each reason once.
func reproReasons(d *doc, r *ReproResult) {
	type group struct {
		reason string
		names  []string
	}
	var groups []group
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if m.Host != nil {
			continue
		}
		at := slices.IndexFunc(groups, func(g group) bool { return g.reason == m.HostReason })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{reason: m.HostReason})
		}
		groups[at].names = append(groups[at].names, m.Name)
	}
	for _, g := range groups {
		if len(g.names) == len(r.Metrics) {
			d.line("this host: " + g.reason)
		} else {
			d.line("this host has no " + strings.Join(g.names, ", ") + ": " + g.reason)
		}
	}
	var from []string
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.From != "" {
			from = append(from, m.Name+": "+m.From)
		}
		if m := &r.Metrics[i]; m.Withdrawn != "" {
			from = append(from, m.Name+" withdrawn: "+m.Withdrawn)
		}
	}
	d.list("computed from, or withdrawn:", from)
}

// reproMoves has the sensitivities and the tries.
func reproMoves(d *doc, r *ReproResult) {
	if r.Machine != "" && len(r.Sensitivity) == 0 {
		d.line("no number of this machine was fitted to a published column")
	}
	if len(r.Sensitivity) > 0 {
		d.gap()
		d.line(r.Main + " when a fitted number of the machine moves:")
		t := newTable("key", "value", "at 0.7", "as fitted", "at 1.3")
		for _, s := range r.Sensitivity {
			t.AppendRow(table.Row{s.Key, number(s.Value), number(s.Low), number(s.Base), number(s.High)})
		}
		d.table(t)
	}
	if len(r.Tries) > 0 {
		d.gap()
		d.line(r.Main + " when a cause is taken away or changed:")
		t := newTable("change", "--set", "without", "with")
		for _, s := range r.Tries {
			t.AppendRow(table.Row{s.What, strings.Join(s.Set, " "), number(s.Base), number(s.Value)})
		}
		d.table(t)
	}
}
