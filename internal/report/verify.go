package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// Measured is one policy's real runs beside its prediction. A report stands
// below the package that measures, so that this is its own type.
type Measured struct {
	Policy             string
	Runs               int
	Faults, Peak       MeasuredValue
	Real, User, System MeasuredValue // seconds; only measured
}

// MeasuredValue is one number over the runs.
type MeasuredValue struct {
	Predicted, Measured, Least, Most float64 // means, and the range of the measured
	Error, WorstError                float64 // relative, signed: mean over the runs, and of the worst
}

// Verified is all that verify found.
type Verified struct {
	Rows        []Measured
	Asked       int // runs of each policy
	Interrupted bool
	Fixed       bool // without address randomisation
	PeakBy      string
	Notes       []string
	NotRun      []string
}

// MeasuredJSON is what runs of one policy gave, under the names of the
// prediction.
type MeasuredJSON struct {
	Faults        float64              `json:"faults" doc:"mean over the runs, as the others"`
	PeakAnonBytes float64              `json:"peak_anon_bytes" doc:"anonymous memory at most"`
	RealSeconds   float64              `json:"real_seconds" doc:"from exec to end"`
	UserSeconds   float64              `json:"user_seconds" doc:"of the command and its children"`
	SystemSeconds float64              `json:"system_seconds" doc:"all kernel time, for memory or not"`
	Runs          int                  `json:"runs" doc:"how many"`
	Spread        map[string][]float64 `json:"spread" doc:"least and most of each of these"`
}

// Verify writes predicted beside measured for people.
func Verify(w io.Writer, p *predict.Prediction, v *Verified, style Style) error {
	d := doc{style: style}
	labels, legend := rowLabels(p)
	label := func(policy string) string {
		for i := range p.Rows {
			if p.Rows[i].Name == policy {
				return labels[i]
			}
		}
		return policy
	}
	predictHead(&d, p)
	d.line(verifyHead(v))
	d.gap()
	d.table(verifyTable(v, label))
	d.gap()
	d.table(timesTable(p, v, label))
	for _, l := range legend {
		d.line(l)
	}
	d.gap()
	if p.Times.Known() {
		d.line("system time is predicted from the recorded run's: " + systemText(p) + "; by machine profile " +
			p.Profile + ".")
	} else {
		d.line("system time has more in it than memory: compare its differences between policies (all of it is not " +
			"predicted: " + cmp.Or(p.Times.Unknown, "not known") + "). The predicted time is by machine profile " + p.Profile + ".")
	}
	d.line("peak memory is anonymous memory: " + v.PeakBy + ".")
	d.line("khugepaged was held still, here and in the model: what it does over time is not in these numbers.")
	d.list("not run:", v.NotRun)
	d.list("to know:", append(v.Notes[:len(v.Notes):len(v.Notes)], p.Notes...))
	_, err := io.WriteString(w, d.b.String())
	return err
}

// verifyTable has what both the model and the kernel count.
func verifyTable(v *Verified, label func(string) string) table.Writer {
	t := newTable("policy", "runs", "faults: predicted", "measured", "error", "worst", "spread",
		"peak: predicted", "measured", "error")
	for i := range v.Rows {
		r := &v.Rows[i]
		if r.Runs == 0 {
			t.AppendRow(table.Row{label(r.Policy), 0, "-", "-", "-", "-", "-", "-", "-", "-"})
			continue
		}
		t.AppendRow(table.Row{label(r.Policy), r.Runs, count(r.Faults.Predicted), count(r.Faults.Measured),
			signed(r.Faults.Error), signed(r.Faults.WorstError), spread(r.Faults),
			bytesText(r.Peak.Predicted), bytesText(r.Peak.Measured), signed(r.Peak.Error)})
	}
	return t
}

// timesTable has the times, of which the model predicts a part of one.
func timesTable(p *predict.Prediction, v *Verified, label func(string) string) table.Writer {
	t := newTable("policy", "kernel for memory: predicted", "system: predicted", "measured", "spread", "user",
		"spread", "real", "spread")
	for i := range v.Rows {
		r := &v.Rows[i]
		if r.Runs == 0 {
			continue
		}
		kernel, system := "-", "-"
		if row := p.Row(r.Policy); row != nil {
			kernel = predict.HumanTime(row.Kernel)
			if t, ok := p.System(row); ok {
				system = predict.HumanTime(t)
			}
		}
		t.AppendRow(table.Row{label(r.Policy), kernel, system, seconds(r.System.Measured), spread(r.System),
			seconds(r.User.Measured), spread(r.User), seconds(r.Real.Measured), spread(r.Real)})
	}
	return t
}

func verifyHead(v *Verified) string {
	s := fmt.Sprintf("Verified by %d runs of each policy, in random order, each predicted at its own addresses",
		v.Asked)
	if v.Fixed {
		s += " (not randomised)"
	}
	if v.Interrupted {
		s += "; interrupted: what was done so far"
	}
	return s
}

func count(x float64) string     { return predict.HumanCount(uint64(math.Round(x))) }
func bytesText(x float64) string { return predict.HumanBytes(mm.Bytes(math.Round(x))) }
func seconds(x float64) string   { return predict.HumanTime(time.Duration(x * 1e9)) }

// signed is an error with its sign.
func signed(x float64) string { return fmt.Sprintf("%+.2f%%", 100*x) }

// spread is half the range of the measured, by their mean.
func spread(v MeasuredValue) string {
	if v.Measured == 0 {
		return "0%"
	}
	return fmt.Sprintf("±%.1f%%", 100*(v.Most-v.Least)/2/v.Measured)
}

// WriteVerifyJSON writes a prediction with what was measured in its rows.
func WriteVerifyJSON(w io.Writer, p *predict.Prediction, v *Verified) error {
	out := predictJSON(p)
	for i := range v.Rows {
		r := &v.Rows[i]
		for k := range out.Policies {
			if row := &out.Policies[k]; row.Name == r.Policy && r.Runs > 0 {
				row.Measured, row.Error = measuredJSON(r)
				if t := r.System.Measured; t > 0 && row.SystemSeconds > 0 {
					row.Error["system_seconds"] = row.SystemSeconds/t - 1
				}
			}
		}
	}
	out.Notes = append(out.Notes, v.Notes...)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func measuredJSON(r *Measured) (*MeasuredJSON, map[string]float64) {
	m := &MeasuredJSON{
		Faults: r.Faults.Measured, PeakAnonBytes: r.Peak.Measured, RealSeconds: r.Real.Measured,
		UserSeconds: r.User.Measured, SystemSeconds: r.System.Measured, Runs: r.Runs,
		Spread: map[string][]float64{},
	}
	for name, x := range map[string]MeasuredValue{"faults": r.Faults, "peak_anon_bytes": r.Peak,
		"real_seconds": r.Real, "user_seconds": r.User, "system_seconds": r.System} {
		m.Spread[name] = []float64{x.Least, x.Most}
	}
	return m, map[string]float64{"faults": r.Faults.Error, "peak_anon_bytes": r.Peak.Error}
}
