package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// mostMappings is how many mappings a table lists.
const mostMappings = 20

// mappingTable is, for each mapping, the faults and the wasted bytes under now
// and under the recommended policy (or the last row).
func mappingTable(p *predict.Prediction) table.Writer {
	at := len(p.Rows) - 1
	if p.Best != nil {
		for i := range p.Rows {
			if p.Rows[i].Name == p.Best.Policy && i != 0 {
				at = i
			}
		}
	}
	labels, _ := rowLabels(p)
	label := labels[at]
	t := newTable("mapping", "faults now", label, "", "allocated now", label, "not touched", label)
	for i, m := range p.Mappings {
		if i == mostMappings {
			t.AppendRow(table.Row{fmt.Sprintf("and %d more", len(p.Mappings)-i)})
			break
		}
		a, b := m.By[0], m.By[at]
		t.AppendRow(table.Row{clip(m.Mapping, 28), predict.HumanCount(a.Faults), predict.HumanCount(b.Faults),
			tight(predict.Change(float64(a.Faults), float64(b.Faults))),
			predict.HumanBytes(a.Allocated), predict.HumanBytes(b.Allocated),
			predict.HumanBytes(a.Wasted), predict.HumanBytes(b.Wasted)})
	}
	return t
}

// clip keeps the end of a name, where paths differ.
func clip(s string, n int) string {
	r := []rune(strings.Map(printable, s))
	if len(r) <= n {
		return string(r)
	}
	return ".." + string(r[len(r)-n+2:])
}

// spreadTable is the range of each row over the layouts.
func spreadTable(p *predict.Prediction) table.Writer {
	t := newTable("policy", "faults", "from", "to", "kernel time", "from", "to", "peak memory", "from", "to")
	labels, _ := rowLabels(p)
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Spread == nil {
			continue
		}
		s := r.Spread
		t.AppendRow(table.Row{labels[i],
			predict.HumanCount(r.Faults), predict.HumanCount(s.FaultsMin), predict.HumanCount(s.FaultsMax),
			predict.HumanTime(r.Kernel), predict.HumanTime(s.KernelMin), predict.HumanTime(s.KernelMax),
			predict.HumanBytes(r.PeakAnon), predict.HumanBytes(s.PeakMin), predict.HumanBytes(s.PeakMax)})
	}
	return t
}

// sparks are the heights of a timeline's line.
var sparks = []rune("▁▂▃▄▅▆▇█")

// timelineColumns is how wide a timeline's line is.
const timelineColumns = 72

// Timeline draws memory over time, one line a policy, all to one scale: the
// highest peak of any. A blank is no memory at all.
func Timeline(p *predict.Prediction) string {
	var top mm.Bytes
	var end mm.Nanos
	for i := range p.Rows {
		for _, s := range p.Rows[i].Timeline {
			top, end = max(top, s.Anon), max(end, s.When)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "anonymous memory over %.3g s, full height %s\n", float64(end)/1e9, predict.HumanBytes(top))
	labels, _ := rowLabels(p)
	for i := range p.Rows {
		line := sparkline(p.Rows[i].Timeline, end, top)
		fmt.Fprintf(&b, "%-10s %s\n", labels[i], strings.TrimRight(line, " "))
	}
	return b.String()
}

// sparkline draws samples in timelineColumns columns: each the highest sample
// of its span, or the one before where it has none.
func sparkline(samples []predict.Sample, end mm.Nanos, top mm.Bytes) string {
	cols := make([]mm.Bytes, timelineColumns)
	has := make([]bool, timelineColumns)
	for _, s := range samples {
		c := 0
		if end > 0 {
			c = int(int64(s.When-1) * timelineColumns / int64(end))
		}
		c = min(max(c, 0), timelineColumns-1)
		cols[c], has[c] = max(cols[c], s.Anon), true
	}
	out := make([]rune, timelineColumns)
	var last mm.Bytes
	for c := range out {
		if has[c] {
			last = cols[c]
		}
		switch {
		case last == 0 || top == 0:
			out[c] = ' '
		default:
			out[c] = sparks[int((float64(last)/float64(top))*float64(len(sparks)-1)+0.5)]
		}
	}
	return string(out)
}
