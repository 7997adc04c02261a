package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/internal/predict"
)

// Suite is what the suite's programs gave.
type Suite struct {
	Programs    []SuiteProgram
	Kernel      string // uname -r
	CPUs        int
	Memory      uint64 // bytes
	Profile     string // the machine profile that priced the work
	Runs        int    // of each policy, asked
	Interrupted bool
}

// SuiteProgram is one program's verification.
type SuiteProgram struct {
	Name       string
	Prediction *predict.Prediction // nil where it was not run
	Verified   *Verified
	Skipped    string // why it was not run
	Failed     string // what ended it early
}

// The bars that a summary counts against: a share, what few folios may differ
// by, and the kernel time from which on it is judged.
const (
	folioShare  = 0.03
	folioFew    = 20
	kernelLeast = 0.3
)

// SuiteJSON is the suite for programs.
type SuiteJSON struct {
	Kernel      string             `json:"kernel" doc:"uname -r"`
	CPUs        int                `json:"cpus" doc:"processors"`
	MemoryBytes uint64             `json:"memory_bytes" doc:"memory of the machine"`
	Profile     string             `json:"profile" doc:"the machine profile that priced the work"`
	Runs        int                `json:"runs" doc:"runs of each policy that were asked for"`
	Interrupted bool               `json:"interrupted" doc:"there is less than was asked for"`
	Programs    []SuiteProgramJSON `json:"programs" doc:"in the order they ran"`
	Summary     []SuiteSummaryJSON `json:"summary" doc:"errors over all programs and policies, a line a measure"`
}

// SuiteProgramJSON is one program.
type SuiteProgramJSON struct {
	Name       string       `json:"name" doc:"the program's name in the suite"`
	Skipped    string       `json:"skipped,omitempty" doc:"why it was not run"`
	Failed     string       `json:"failed,omitempty" doc:"what ended it early"`
	Prediction *PredictJSON `json:"prediction,omitempty" doc:"as hugelab predict --verify --json"`
}

// SuiteSummaryJSON is one measure over all cells.
type SuiteSummaryJSON struct {
	Measure string  `json:"measure" doc:"faults, folios, peak_anon_bytes or system_seconds"`
	Cells   int     `json:"cells" doc:"pairs of program and policy in it"`
	Median  float64 `json:"median" doc:"of the errors without sign"`
	Worst   float64 `json:"worst" doc:"the error furthest from zero, with its sign"`
	Where   string  `json:"where" doc:"program and policy of the worst"`
	Beyond  int     `json:"beyond" doc:"cells beyond the bar of docs/accuracy.md"`
}

// cell is an error and where it is.
type suiteCell struct {
	off   float64
	few   bool // within the absolute allowance, whatever the share
	where string
}

// summary is every measure over all cells. Cells that did other work than was
// recorded are in none.
func (s *Suite) summary() []SuiteSummaryJSON {
	var faults, folios, peak, system []suiteCell
	for i := range s.Programs {
		p := &s.Programs[i]
		if p.Verified == nil {
			continue
		}
		for k := range p.Verified.Rows {
			r := &p.Verified.Rows[k]
			if r.Runs == 0 || r.Unlike != "" {
				continue
			}
			where := p.Name + " under " + r.Policy
			faults = append(faults, suiteCell{r.Faults.Error, false, where})
			peak = append(peak, suiteCell{r.Peak.Error, false, where})
			if r.System.Median >= kernelLeast && p.Verified.System {
				system = append(system, suiteCell{r.System.Error, false, where})
			}
			for _, f := range r.Folios {
				folios = append(folios, suiteCell{folioError(f), math.Abs(f.Predicted-f.Measured) <= folioFew,
					where + ", " + f.Size})
			}
		}
	}
	return []SuiteSummaryJSON{
		summarise("faults", faults, 0.02), summarise("folios", folios, folioShare),
		summarise("peak_anon_bytes", peak, 0.02), summarise("system_seconds", system, 0.2),
	}
}

// folioError is the error by what was measured, or by what was predicted where
// none was.
func folioError(f MeasuredFolios) float64 {
	if f.Measured == 0 && f.Predicted > 0 {
		return 1
	}
	return (f.Predicted - f.Measured) / max(f.Measured, 1)
}

func summarise(measure string, cells []suiteCell, bar float64) SuiteSummaryJSON {
	s := SuiteSummaryJSON{Measure: measure, Cells: len(cells)}
	if len(cells) == 0 {
		return s
	}
	// Of folios the worst is the worst that is more than a few.
	slices.SortStableFunc(cells, func(a, b suiteCell) int {
		return cmp.Compare(math.Abs(a.off), math.Abs(b.off))
	})
	n := len(cells)
	s.Median = (math.Abs(cells[(n-1)/2].off) + math.Abs(cells[n/2].off)) / 2
	for _, c := range cells {
		if c.few && math.Abs(c.off) > bar {
			continue
		}
		s.Worst, s.Where = c.off, c.where
		if math.Abs(c.off) > bar {
			s.Beyond++
		}
	}
	return s
}

// VerifySuite writes the suite for people.
func VerifySuite(w io.Writer, s *Suite, style Style) error {
	d := doc{style: style}
	d.line(fmt.Sprintf("Suite: %d runs of each policy in random order, each predicted at its own addresses; "+
		"Linux %s, %d CPUs, %d MiB of memory, machine profile %s", s.Runs, s.Kernel, s.CPUs, s.Memory>>20, s.Profile))
	if s.Interrupted {
		d.line("Interrupted: what was done so far.")
	}
	d.gap()
	d.table(summaryTable(s.summary()))
	d.gap()
	if style == Markdown {
		s.grids(&d)
	} else {
		s.each(&d)
	}
	var notes, not []string
	for i := range s.Programs {
		p := &s.Programs[i]
		for _, why := range []string{p.Skipped, p.Failed} {
			if why != "" {
				not = append(not, p.Name+": "+strings.TrimPrefix(why, p.Name+": "))
			}
		}
		if p.Verified != nil {
			for _, n := range p.Verified.Notes {
				notes = append(notes, p.Name+": "+n)
			}
		}
	}
	if k := slices.IndexFunc(s.Programs, func(p SuiteProgram) bool { return p.Verified != nil }); k >= 0 {
		verifyFoot(&d, s.Programs[k].Verified)
	}
	d.list("not run, or not to the end:", not)
	d.list("to know:", notes)
	_, err := io.WriteString(w, d.b.String())
	return err
}

// each writes the tables of every program.
func (s *Suite) each(d *doc) {
	for i := range s.Programs {
		if p := &s.Programs[i]; p.Verified != nil {
			d.line(p.Name + ": " + clip(strings.Join(p.Prediction.Recording.Command, " "), 70))
			verifyBody(d, p.Verified, func(policy string) string { return policy })
			d.gap()
		}
	}
}

func summaryTable(all []SuiteSummaryJSON) table.Writer {
	t := newTable("measure", "cells", "median error", "worst", "beyond the bar", "where the worst is")
	names := map[string]string{"faults": "page faults", "folios": "folios by size",
		"peak_anon_bytes": "peak memory",
		"system_seconds":  "kernel time"}
	for _, m := range all {
		t.AppendRow(table.Row{names[m.Measure], m.Cells, fmt.Sprintf("%.2f%%", 100*m.Median), signed(m.Worst),
			m.Beyond, cmp.Or(m.Where, "-")})
	}
	return t
}

// policies lists the policies of all programs, in order.
func (s *Suite) policies() []string {
	var all []string
	for i := range s.Programs {
		if v := s.Programs[i].Verified; v != nil {
			for k := range v.Rows {
				if !slices.Contains(all, v.Rows[k].Policy) {
					all = append(all, v.Rows[k].Policy)
				}
			}
		}
	}
	return all
}

// grids writes one table a measure, with a column a policy.
func (s *Suite) grids(d *doc) {
	s.grid(d, "Page faults, predicted / measured (error ± spread):", func(r *Measured) string {
		return fmt.Sprintf("%.0f / %.0f (%s %s)", r.Faults.Predicted, r.Faults.Measured, signed(r.Faults.Error),
			spread(r.Faults))
	})
	s.grid(d, "Large folios by size, predicted / measured:", func(r *Measured) string {
		var all []string
		for _, f := range r.Folios {
			all = append(all, fmt.Sprintf("%s: %.0f / %.0f", f.Size, f.Predicted, f.Measured))
		}
		return strings.Join(all, ", ")
	})
	s.grid(d, "Peak anonymous memory, predicted / measured:", func(r *Measured) string {
		return fmt.Sprintf("%s / %s (%s)", bytesText(r.Peak.Predicted), bytesText(r.Peak.Measured),
			signed(r.Peak.Error))
	})
	s.grid(d, "Time in the kernel, predicted / median of the measured:", func(r *Measured) string {
		return fmt.Sprintf("%s / %s (%s %s)", seconds(r.System.Predicted), seconds(r.System.Median),
			signed(r.System.Error), spread(r.System))
	})
}

func (s *Suite) grid(d *doc, title string, cell func(r *Measured) string) {
	policies := s.policies()
	t := newTable(append([]string{"program"}, policies...)...)
	for i := range s.Programs {
		v := s.Programs[i].Verified
		if v == nil {
			continue
		}
		row := table.Row{s.Programs[i].Name}
		for _, name := range policies {
			text := "-"
			for k := range v.Rows {
				if r := &v.Rows[k]; r.Policy == name && r.Runs > 0 {
					text = cmp.Or(cell(r), "none")
				}
			}
			row = append(row, text)
		}
		t.AppendRow(row)
	}
	d.line(title)
	d.table(t)
}

// SuiteSchema is the JSON Schema of WriteSuiteJSON's output.
func SuiteSchema() string { return schemaText("hugelab predict --suite --json", SuiteJSON{}) }

// WriteSuiteJSON writes the suite for programs.
func WriteSuiteJSON(w io.Writer, s *Suite) error {
	out := SuiteJSON{Kernel: s.Kernel, CPUs: s.CPUs, MemoryBytes: s.Memory, Profile: s.Profile, Runs: s.Runs,
		Interrupted: s.Interrupted, Programs: []SuiteProgramJSON{}, Summary: s.summary()}
	for i := range s.Programs {
		p := &s.Programs[i]
		j := SuiteProgramJSON{Name: p.Name, Skipped: p.Skipped, Failed: p.Failed}
		if p.Verified != nil {
			j.Prediction = verifiedJSON(p.Prediction, p.Verified)
		}
		out.Programs = append(out.Programs, j)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
