package report

import (
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
	Policy       string
	Runs         int
	Faults, Peak MeasuredValue
	System       MeasuredValue // seconds; Error is of the median
	Real, User   MeasuredValue // seconds; only measured
	Folios       []MeasuredFolios
	Unlike       string // how the runs did other work than was recorded, "" if they did not

	Again  *MeasuredAgain  // with runs of the same policy once more
	Active *MeasuredActive // with khugepaged at work
}

// MeasuredFolios are the large folios of one size.
type MeasuredFolios struct {
	Size string // "64k"
	MeasuredValue
}

// MeasuredValue is one number over the runs.
type MeasuredValue struct {
	Predicted, Measured, Median, Least, Most float64 // means, the median and range of the measured
	Error, WorstError                        float64 // relative, signed: mean over the runs, and of the worst
}

// MeasuredAgain compares a policy with itself (A/A).
type MeasuredAgain struct{ Faults, Peak, System MeasuredSame }

// MeasuredSame is how far two lots of runs of the same are apart, and half the
// range of all, both by the mean.
type MeasuredSame struct{ Apart, Spread float64 }

// MeasuredActive is what runs gave with khugepaged at work.
type MeasuredActive struct {
	Faults, Huge MeasuredValue // page faults, and huge pages by faults and collapses
	Collapses    float64       // of the measured huge pages, khugepaged's
}

// Verified is all that verify found.
type Verified struct {
	Rows        []Measured
	Asked       int // runs of each policy
	Interrupted bool
	Fixed       bool // without address randomisation
	Replayed    bool // not the program ran: helpers did what was recorded
	Warm        bool // with a warm pass before each run
	System      bool // System.Predicted is known
	OwnFolios   bool // of the command alone, not of the whole machine
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

	Folios          map[string]float64 `json:"folios" doc:"large folios by size"`
	SystemMedian    float64            `json:"system_seconds_median" doc:"the median over the runs"`
	SystemPredicted float64            `json:"system_seconds_predicted,omitempty" doc:"by recording and model"`
	NotSameWork     string             `json:"not_same_work,omitempty" doc:"how the runs differed"`
	Again           map[string]float64 `json:"again,omitempty" doc:"against itself: NAME apart, NAME_spread"`
	Khugepaged      map[string]float64 `json:"khugepaged,omitempty" doc:"the same with khugepaged at work"`
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
	verifyBody(&d, v, label)
	for _, l := range legend {
		d.line(l)
	}
	d.gap()
	verifyFoot(&d, v)
	d.line("The model's time is by machine profile " + p.Profile + ".")
	d.list("not run:", v.NotRun)
	d.list("to know:", append(v.Notes[:len(v.Notes):len(v.Notes)], p.Notes...))
	_, err := io.WriteString(w, d.b.String())
	return err
}

// verifyBody has the tables of one verification.
func verifyBody(d *doc, v *Verified, label func(string) string) {
	d.table(verifyTable(v, label))
	if !v.Replayed {
		d.gap()
		d.table(timesTable(v, label))
	}
	for _, t := range []table.Writer{foliosTable(v, label), activeTable(v, label), againTable(v, label)} {
		if t.Length() > 0 {
			d.gap()
			d.table(t)
		}
	}
}

// verifyFoot says how the numbers came about.
func verifyFoot(d *doc, v *Verified) {
	if v.System {
		d.line("system time is all that the kernel did, for memory or not. As many runs more without huge pages " +
			"tell how this program's prices lie to the profile's and what it spends on other things; predicted " +
			"is the model's time under the policy at those prices, and the other things. Its error is of the median.")
	}
	d.line("peak memory is anonymous memory: " + v.PeakBy + ".")
	if v.Replayed {
		d.line("faults are those that the touches of the helper processes took, as the kernel counts them; " +
			"a sparse file stands in for every file, so that each recorded fault on one is a fault again.")
	}
	if v.OwnFolios {
		d.line("folios are those that were had for the command's processes, by the tracepoint kmem:mm_page_alloc.")
	} else {
		d.line("folios are counted by the kernel for the whole machine.")
	}
	d.line("khugepaged was held still, here and in the model, but where its own table says otherwise.")
	if v.Warm {
		d.line("Right before each run as much memory as its predicted peak was taken and given back: memory " +
			"that the hypervisor has not backed costs more at its first use.")
	}
}

// verifyTable has what both the model and the kernel count.
func verifyTable(v *Verified, label func(string) string) table.Writer {
	measured := "measured"
	if v.Replayed {
		measured = "replayed"
	}
	t := newTable("policy", "runs", "faults: predicted", measured, "error", "worst", "spread",
		"peak: predicted", measured, "error")
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

// timesTable has the times, of which one is predicted.
func timesTable(v *Verified, label func(string) string) table.Writer {
	t := newTable("policy", "system: predicted", "median", "error", "spread", "user", "spread", "real", "spread")
	for i := range v.Rows {
		r := &v.Rows[i]
		if r.Runs == 0 {
			continue
		}
		predicted, off := "-", "-"
		if v.System {
			predicted, off = seconds(r.System.Predicted), signed(r.System.Error)
		}
		t.AppendRow(table.Row{label(r.Policy), predicted, seconds(r.System.Median), off, spread(r.System),
			seconds(r.User.Measured), spread(r.User), seconds(r.Real.Measured), spread(r.Real)})
	}
	return t
}

// foliosTable has the large folios by size.
func foliosTable(v *Verified, label func(string) string) table.Writer {
	t := newTable("policy", "folios of", "predicted", "measured", "error", "spread")
	for i := range v.Rows {
		for _, f := range v.Rows[i].Folios {
			t.AppendRow(table.Row{label(v.Rows[i].Policy), f.Size, count(f.Predicted), count(f.Measured),
				signed(f.Error), spread(f.MeasuredValue)})
		}
	}
	return t
}

// activeTable has the runs with khugepaged at work.
func activeTable(v *Verified, label func(string) string) table.Writer {
	t := newTable("khugepaged", "faults: predicted", "measured", "error", "held still",
		"huge: predicted", "measured", "collapsed")
	for i := range v.Rows {
		r := &v.Rows[i]
		if a := r.Active; a != nil {
			t.AppendRow(table.Row{label(r.Policy), count(a.Faults.Predicted), count(a.Faults.Measured),
				signed(a.Faults.Error), count(r.Faults.Measured), count(a.Huge.Predicted), count(a.Huge.Measured), count(a.Collapses)})
		}
	}
	return t
}

// againTable holds policies against themselves.
func againTable(v *Verified, label func(string) string) table.Writer {
	t := newTable("A/A", "faults apart", "spread", "peak apart", "spread", "system apart", "spread")
	for i := range v.Rows {
		r := &v.Rows[i]
		if a := r.Again; a != nil {
			t.AppendRow(table.Row{label(r.Policy), signed(a.Faults.Apart), plus(a.Faults.Spread),
				signed(a.Peak.Apart), plus(a.Peak.Spread), signed(a.System.Apart), plus(a.System.Spread)})
		}
	}
	return t
}

func plus(x float64) string { return fmt.Sprintf("±%.2f%%", 100*x) }

func verifyHead(v *Verified) string {
	s := fmt.Sprintf("Verified by %d runs of each policy, in random order, each predicted at its own addresses",
		v.Asked)
	if v.Replayed {
		s = fmt.Sprintf("Replayed on this kernel %s under each policy, in random order, "+
			"at the addresses of the prediction", times(v.Asked))
	}
	if v.Fixed {
		s += " (not randomised)"
	}
	if v.Interrupted {
		s += "; interrupted: what was done so far"
	}
	return s
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
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
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(verifiedJSON(p, v)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func verifiedJSON(p *predict.Prediction, v *Verified) *PredictJSON {
	out := predictJSON(p)
	for i := range v.Rows {
		r := &v.Rows[i]
		for k := range out.Policies {
			if row := &out.Policies[k]; row.Name == r.Policy && r.Runs > 0 {
				row.Measured, row.Error = measuredJSON(r)
			}
		}
	}
	out.Notes = append(out.Notes, v.Notes...)
	return out
}

func measuredJSON(r *Measured) (*MeasuredJSON, map[string]float64) {
	m := &MeasuredJSON{
		Faults: r.Faults.Measured, PeakAnonBytes: r.Peak.Measured, RealSeconds: r.Real.Measured,
		UserSeconds: r.User.Measured, SystemSeconds: r.System.Measured, Runs: r.Runs,
		Spread: map[string][]float64{}, Folios: map[string]float64{},
		SystemMedian: r.System.Median, NotSameWork: r.Unlike,
	}
	for name, x := range map[string]MeasuredValue{"faults": r.Faults, "peak_anon_bytes": r.Peak,
		"real_seconds": r.Real, "user_seconds": r.User, "system_seconds": r.System} {
		m.Spread[name] = []float64{x.Least, x.Most}
	}
	off := map[string]float64{"faults": r.Faults.Error, "peak_anon_bytes": r.Peak.Error}
	if r.System.Predicted > 0 {
		m.SystemPredicted, off["system_seconds"] = r.System.Predicted, r.System.Error
	}
	for _, f := range r.Folios {
		m.Folios[f.Size], off["folios_"+f.Size] = f.Measured, f.Error
	}
	if a := r.Again; a != nil {
		m.Again = map[string]float64{"faults": a.Faults.Apart, "faults_spread": a.Faults.Spread,
			"peak_anon_bytes": a.Peak.Apart, "peak_anon_bytes_spread": a.Peak.Spread,
			"system_seconds": a.System.Apart, "system_seconds_spread": a.System.Spread}
	}
	if a := r.Active; a != nil {
		m.Khugepaged = map[string]float64{"faults": a.Faults.Measured, "faults_predicted": a.Faults.Predicted,
			"faults_error": a.Faults.Error, "huge_pages": a.Huge.Measured, "huge_pages_predicted": a.Huge.Predicted,
			"collapses": a.Collapses}
	}
	return m, off
}
