package report

import (
	"cmp"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/internal/predict"
)

// predictTimes says what the times in the table are and, with a calibrated
// profile, what more is known of them.
func predictTimes(d *doc, p *predict.Prediction) {
	if p.Preset {
		return
	}
	head := []string{"policy", "kernel for memory"}
	backing, elapsed := false, false
	for i := range p.Rows {
		backing, elapsed = backing || p.Rows[i].Backing > 0, elapsed || p.Rows[i].Elapsed > 0
	}
	if backing {
		head = append(head, "of it backing")
	}
	if elapsed {
		head = append(head, "processor for memory")
	}
	system := p.Times.Known()
	if system {
		head = append(head, "all system time")
	}
	if len(head) > 2 {
		t := newTable(head...)
		labels, _ := rowLabels(p)
		for i := range p.Rows {
			r := &p.Rows[i]
			row := table.Row{labels[i], predict.HumanTime(r.Kernel)}
			if backing {
				row = append(row, predict.HumanTime(r.Backing))
			}
			if elapsed {
				row = append(row, predict.HumanTime(r.Elapsed))
			}
			if system {
				text := "-"
				if all, ok := p.System(r); ok {
					text = predict.HumanTime(all)
				}
				row = append(row, text)
			}
			t.AppendRow(row)
		}
		d.table(t)
		d.gap()
	}
	if backing {
		d.line("backing: the hypervisor of this machine takes free memory back; a fresh block of the largest size " +
			"waits until it has found memory for all of it")
	}
	if elapsed {
		d.line("processor for memory: kernel time, and what the same work costs in the hypervisor")
	}
	if system {
		d.line("all system time (sys of time): " + systemText(p))
	} else {
		d.line("all system time (sys of time) is not predicted: " + cmp.Or(p.Times.Unknown, "not known"))
	}
}

// systemText says what all system time is made of.
func systemText(p *predict.Prediction) string {
	return fmt.Sprintf("kernel time for memory times %.2f, by which the recorded run, without huge pages, differed "+
		"from the profile's prices, and %s that it spent on other things", p.Times.Scale,
		predict.HumanTime(p.Times.Rest))
}
