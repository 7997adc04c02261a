package calibrate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// ErrNotHere is returned where calibration is not possible at all.
var ErrNotHere = errors.New("not possible on this machine")

// Write writes a calibration as a table.
func Write(w io.Writer, r *Result) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.DrawBorder, t.Style().Options.SeparateColumns = false, false
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"workload", "each of", "kernel", "fitted", "residual", "spread", "elapsed"})
	var right []table.ColumnConfig
	for i := 2; i <= 7; i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for i := range r.Rows {
		x := &r.Rows[i]
		fitted, residual := nanos(x.Fitted), fmt.Sprintf("%+.1f %%", 100*x.Residual)
		switch {
		case !x.priced():
			fitted, residual = "", ""
		case !x.Used:
			residual = "left out"
		}
		t.AppendRow(table.Row{x.Name, x.Per, nanos(x.Measured), fitted, residual,
			fmt.Sprintf("%.1f %%", 100*x.Spread), nanos(x.Elapsed)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Linux %s, %s\n\n%s\n\n", r.Kernel, r.CPU, t.Render())
	fmt.Fprintf(&b, "kernel: time accounted as system, lower quartile; fitted: by the profile; elapsed:\n"+
		"processor time, user's and hypervisor's too. Median spread %.1f %%, median residual %.1f %%. %.0f s.\n",
		100*r.Spread, 100*r.Residual, r.Seconds)
	fmt.Fprintf(&b, "The profile has each fault %s dearer than the table: programs fault with colder caches.\n",
		nanos(r.Cold))
	if len(r.Guessed) > 0 {
		fmt.Fprintf(&b, "not measured, the preset's scaled: %s\n", strings.Join(r.Guessed, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(&b, "note:", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// nanos is a time with three digits.
func nanos(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f ns", x)
	case x < 9995:
		return fmt.Sprintf("%.0f ns", x)
	case x < 9_995_000:
		return fmt.Sprintf("%.1f us", x/1e3)
	}
	return fmt.Sprintf("%.1f ms", x/1e6)
}
