package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/hw"
)

// MachineJSON is a machine for programs. Its names are a contract.
type MachineJSON struct {
	Name   string             `json:"name" doc:"as --machine takes it"`
	Title  string             `json:"title" doc:"in words"`
	Values []MachineValueJSON `json:"values" doc:"every number, in a fixed order"`
}

// MachineValueJSON is one number of a machine.
type MachineValueJSON struct {
	Key    string  `json:"key" doc:"as --set takes it"`
	Value  float64 `json:"value" doc:"the number"`
	Unit   string  `json:"unit" doc:"empty for counts and ratios"`
	Source string  `json:"source,omitempty" doc:"independent data that it comes from"`
	Fitted string  `json:"fitted,omitempty" doc:"the published base column that it was fitted to"`
	Doc    string  `json:"doc" doc:"what it means"`
}

// machineJSON is every key with the machine's number, or the key's default, or
// for a primitive of the kernel's work the preset's.
func machineJSON(m *hw.Machine) *MachineJSON {
	out := &MachineJSON{Name: m.Name, Title: m.Title}
	has := map[string]hw.Value{}
	for _, v := range m.Values() {
		has[v.Key] = v
	}
	for i := range hw.Keys {
		k := &hw.Keys[i]
		v := MachineValueJSON{Key: k.Name, Unit: k.Unit, Doc: k.Doc}
		if own, ok := has[k.Name]; ok {
			v.Value, v.Source, v.Fitted = own.Value, own.Source, own.Fitted
		} else if v.Value = m.Get(k.Name); hw.IsWork(k.Name) {
			v.Source = "preset " + m.Profile
		} else {
			v.Source = "default"
		}
		out.Values = append(out.Values, v)
	}
	return out
}

// WriteMachineJSON writes a machine as JSON.
func WriteMachineJSON(w io.Writer, m *hw.Machine) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(machineJSON(m)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteMachine writes a machine for people.
func WriteMachine(w io.Writer, m *hw.Machine) error {
	d := doc{}
	d.line(m.Name + ": " + m.Title)
	d.gap()
	t := newTable("key", "value", "unit", "from", "meaning")
	j := machineJSON(m)
	for i := range j.Values {
		v := &j.Values[i]
		from := v.Source
		if v.Fitted != "" {
			from = "fitted: " + v.Fitted
		}
		t.AppendRow(table.Row{v.Key, exact(v.Value), v.Unit, from, v.Doc})
	}
	leftAfter(t, 3)
	d.table(t)
	_, err := io.WriteString(w, d.b.String())
	return err
}

// exact is a number as it was given; what a preset computed keeps six digits.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', max(6, digits(x)), 64) }

// digits is how many digits the whole part of x has, so that no power of ten
// is printed.
func digits(x float64) int { return len(strconv.FormatFloat(math.Trunc(x), 'f', 0, 64)) }
