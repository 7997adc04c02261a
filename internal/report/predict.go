package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// Width is the most columns that a report in text takes.
const Width = 100

// Style is how a report is written.
type Style uint8

// Styles.
const (
	Text Style = iota
	Markdown
)

// PredictOptions say which parts of a prediction to show.
type PredictOptions struct {
	Style    Style
	Timeline bool
	LastLine string
}

// Predict writes a prediction for people.
func Predict(w io.Writer, p *predict.Prediction, o PredictOptions) error {
	d := doc{style: o.Style}
	predictHead(&d, p)
	d.table(predictTable(p))
	predictNotes(&d, p)
	if o.Timeline {
		d.gap()
		d.block(Timeline(p))
	}
	if len(p.Mappings) > 0 {
		d.gap()
		d.table(mappingTable(p))
	}
	if p.Layouts > 1 {
		d.gap()
		d.line(fmt.Sprintf("range over %d layouts (the table has means; seed %d):", p.Layouts, p.Seed))
		d.table(spreadTable(p))
	}
	predictFoot(&d, p)
	if o.LastLine != "" {
		d.gap()
		d.line(o.LastLine)
	}
	_, err := io.WriteString(w, d.b.String())
	return err
}

// predictHead is what stands above the table.
func predictHead(d *doc, p *predict.Prediction) {
	r := &p.Recording
	what := strings.Join(r.Command, " ")
	if what == "" {
		what = "a program"
	}
	if r.Example {
		what += " (the example that comes with hugelab)"
	}
	d.line(fmt.Sprintf("Prediction for %s", what))
	d.line(fmt.Sprintf("%s faults, recorded by method %s on Linux %s, predicted with the rules of %s",
		predict.HumanCount(r.Faults), cmp.Or(string(r.Method), "unknown"), cmp.Or(r.Kernel, "unknown"), p.Kernel))
	now := p.Now()
	if now == nil {
		now = &p.Rows[0]
	}
	d.line(runLine(r, now))
	d.line(reach(r))
	d.line("now: " + p.Current + ", " + cmp.Or(p.NowFrom, "as given"))
	d.gap()
}

// runLine is the run time and the share of it that the kernel spent on memory.
func runLine(r *predict.Recording, now *predict.Row) string {
	whole := r.Whole()
	if whole <= 0 {
		return "how long the program ran is not known"
	}
	share := predict.HumanPercent(float64(now.Kernel) / float64(whole))
	ran := predict.HumanTime(r.Wall)
	if r.CPU > 0 {
		ran += " (" + predict.HumanTime(r.CPU) + " of processor time)"
	}
	if now.Killed() {
		return "it ran " + ran
	}
	return fmt.Sprintf("it ran %s, %s of that in the kernel for its memory", ran, share)
}

// reach says how much of the program's memory, and of its faults, these
// policies can touch at all.
func reach(r *predict.Recording) string {
	all := r.AnonBytes + r.FileBytes
	if all == 0 {
		return fmt.Sprintf("%s of its faults are on private anonymous memory; the table says nothing of the rest",
			predict.HumanPercent(r.AnonShare))
	}
	share := float64(r.AnonBytes) / float64(all)
	return fmt.Sprintf("these policies can touch %s of its memory at least: %s private anonymous at peak, beside "+
		"at most %s of files and shared memory; and %s of its faults; the table says nothing of the rest",
		predict.HumanPercent(share), predict.HumanBytes(r.AnonBytes), predict.HumanBytes(r.FileBytes),
		predict.HumanPercent(r.AnonShare))
}

// rowLabels gives each row a name of at most 10 columns; long ones become p1,
// p2, ..., explained below the table. A star marks rows with a remark there.
func rowLabels(p *predict.Prediction) (labels []string, legend []string) {
	n := 0
	for i := range p.Rows {
		r := &p.Rows[i]
		label := r.Name
		if len(label) > 9 {
			n++
			label = fmt.Sprintf("p%d", n)
			legend = append(legend, fmt.Sprintf("%s: %s", label, r.Name))
		}
		if r.Killed() || r.Hypothetical() || len(r.Lacks) > 0 {
			label += "*"
		}
		labels = append(labels, label)
	}
	return labels, legend
}

func predictTable(p *predict.Prediction) table.Writer {
	t := newTable("policy", "faults", "kernel time", "of run", "peak memory", "at end", "worst",
		"large folios", "fallbacks")
	now := p.Now()
	whole := p.Recording.Whole()
	labels, _ := rowLabels(p)
	for i := range p.Rows {
		r := &p.Rows[i]
		base := now
		if r == now || r.Killed() || now != nil && now.Killed() {
			base = nil // a row that ends early compares with nothing
		}
		share := "-"
		if whole > 0 {
			share = tight(predict.HumanPercent(float64(r.Kernel) / float64(whole)))
		}
		var bf, bk, bp float64
		if base != nil {
			bf, bk, bp = float64(base.Faults), float64(base.Kernel), float64(base.PeakAnon)
		}
		t.AppendRow(table.Row{labels[i],
			against(predict.HumanCount(r.Faults), base != nil, bf, float64(r.Faults)),
			against(predict.HumanTime(r.Kernel), base != nil, bk, float64(r.Kernel)),
			share,
			against(predict.HumanBytes(r.PeakAnon), base != nil, bp, float64(r.PeakAnon)),
			predict.HumanBytes(r.EndAnon), predict.HumanTime(r.WorstFault), coverage(r, p.Sizes),
			predict.HumanCount(r.Fallbacks)})
	}
	return t
}

// against is a value with its change, in fixed places.
func against(v string, has bool, from, to float64) string {
	if !has {
		return v + strings.Repeat(" ", 6)
	}
	return fmt.Sprintf("%s %5s", v, tight(predict.Change(from, to)))
}

// tight takes the space before a percent sign away.
func tight(s string) string { return strings.Replace(s, " %", "%", 1) }

// coverage is the share in large folios with their size, or the shares of the
// two sizes that hold most.
func coverage(r *predict.Row, s mm.Sizes) string {
	if r.Coverage == 0 {
		return "0%"
	}
	out := tight(predict.HumanPercent(r.Coverage))
	first, second := topTwo(&r.CoverageBy)
	if second == 0 {
		return s.Name(first) + " " + out
	}
	return fmt.Sprintf("%s %.0f%% %s %.0f%%",
		s.Name(first), 100*r.CoverageBy[first], s.Name(second), 100*r.CoverageBy[second])
}

// topTwo are the two orders that cover most; 0 for none.
func topTwo(by *[mm.NumOrders]float64) (first, second mm.Order) {
	for o := 1; o < len(by); o++ {
		switch {
		case by[o] > by[first] || first == 0 && by[o] > 0:
			first, second = mm.Order(o), first
		case by[o] > 0.005 && (second == 0 || by[o] > by[second]):
			second = mm.Order(o)
		}
	}
	if second != 0 && by[second] <= 0.005 {
		second = 0
	}
	return first, second
}

// predictNotes are remarks on rows, directly below the table.
func predictNotes(d *doc, p *predict.Prediction) {
	_, legend := rowLabels(p)
	for _, l := range legend {
		d.line(l)
	}
	softLine(d, p)
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Killed() {
			d.line(killedLine(p, r))
		}
		if r.Hypothetical() {
			d.line(fmt.Sprintf("* %s: hypothetical: the program itself must advise its memory", r.Name))
		}
		for _, l := range r.Lacks {
			d.line(fmt.Sprintf("* %s: predicted, but not to be had here: %s", r.Name, l))
		}
		if r.Background >= time.Microsecond {
			d.line(fmt.Sprintf("%s: khugepaged adds %s beside the program", r.Name, predict.HumanTime(r.Background)))
		}
	}
}

// killedLine says when a row ends, and that its numbers do.
func killedLine(p *predict.Prediction, r *predict.Row) string {
	when := "after " + predict.HumanTime(r.KilledAt)
	if p.Layouts > 1 {
		when = fmt.Sprintf("in %d of %d layouts, first %s", r.Kills, p.Layouts, when)
	}
	return fmt.Sprintf("* %s: would be killed %s: no memory left%s; its numbers end there", r.Name, when, limitText(p.Limit))
}

// softLine names faults that perf does not count, where there are any.
func softLine(d *doc, p *predict.Prediction) {
	var parts []string
	some := false
	for i := range p.Rows {
		some = some || p.Rows[i].SoftFaults > 0
		parts = append(parts, p.Rows[i].Name+" "+predict.HumanCount(p.Rows[i].SoftFaults))
	}
	if some {
		d.line("beside these, pages made for MADV_POPULATE, mlock and the like, without an exception: " +
			strings.Join(parts, ", "))
	}
}

func limitText(b mm.Bytes) string {
	if b == 0 {
		return ""
	}
	return " under the limit of " + predict.HumanBytes(b)
}

// predictFoot is what stands below: the recommendation, then what to know.
func predictFoot(d *doc, p *predict.Prediction) {
	if b := p.Best; b != nil {
		d.gap()
		text := b.Reason
		if b.Policy != predict.Now {
			text = "recommended: " + text
		}
		d.line(text)
		if b.Cost != "" {
			d.line("it costs " + b.Cost)
		}
		if len(b.Commands) > 0 {
			d.line("to apply, narrowest first (take one):")
			d.block(strings.Join(b.Commands, "\n") + "\n")
		}
	}
	d.gap()
	d.line(predict.NotPredicted)
	d.line(fmt.Sprintf("kernel time by machine profile %s; memory: %s%s", p.Profile, p.Memory, limitText(p.Limit)))
	predictTimes(d, p)
	if p.Preset {
		d.line("a preset is typical of machines of its kind; what a fault costs differs several-fold between " +
			"machines, above all between virtual ones (hugelab calibrate measures it)")
	}
	d.list("assumed:", p.Assumed)
	d.list("to know of this recording:", p.Notes)
	d.list("programs that read the settings themselves:", p.Programs)
}

// newTable is a table in the house's style.
func newTable(head ...string) table.Writer {
	t := table.NewWriter()
	st := table.StyleDefault
	st.Format.Header, st.Format.HeaderAlign = text.FormatDefault, text.AlignRight
	st.Options = table.OptionsNoBordersAndSeparators
	st.Options.SeparateHeader = false
	st.Box.PaddingLeft, st.Box.PaddingRight = "", "  "
	t.SetStyle(st)
	row := make(table.Row, len(head))
	cols := make([]table.ColumnConfig, len(head))
	for i, h := range head {
		row[i] = h
		cols[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	cols[0].Align, cols[0].AlignHeader = text.AlignLeft, text.AlignLeft
	t.AppendHeader(row)
	t.SetColumnConfigs(cols)
	return t
}

// leftAfter aligns the columns from number n on (counted from 1) to the left.
func leftAfter(t table.Writer, n int) {
	cols := []table.ColumnConfig{{Number: 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}}
	for i := 2; i < 12; i++ {
		c := table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if i >= n {
			c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		cols = append(cols, c)
	}
	t.SetColumnConfigs(cols)
}
