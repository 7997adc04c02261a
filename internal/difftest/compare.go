package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Difference is the first thing in which two sides do not agree.
type Difference struct {
	Step    int    `json:"step"`            // index into the program's steps
	What    string `json:"what"`            // result, mapping, page, folio, faults or the counter's name
	Where   string `json:"where,omitempty"` // process and address, "" where the step says it all
	Model   string `json:"model"`
	Host    string `json:"kernel"`
	Counter bool   `json:"counter,omitempty"` // one of the whole machine: others may have moved it
}

// String is one line for people.
func (d *Difference) String() string {
	where := d.Where
	if where != "" {
		where += " "
	}
	return fmt.Sprintf("step %d: %s%s: model %s, kernel %s", d.Step+1, where, d.What, d.Model, d.Host)
}

// Compare holds what the two sides show after a step together; nil: they agree.
// Pages and VMAs come before counters, because they say more.
func Compare(model, host *Seen) *Difference {
	diff := func(what string, m, h any) *Difference {
		return &Difference{What: what, Model: fmt.Sprint(m), Host: fmt.Sprint(h)}
	}
	if model.Errno != host.Errno {
		return diff("result", model.Errno, host.Errno)
	}
	for i := range model.Procs {
		if d := compareVMAs(i, model.Procs[i].VMAs, host.Procs[i].VMAs); d != nil {
			return d
		}
	}
	frames := frameMap{toHost: map[mm.PFN]mm.PFN{}, toModel: map[mm.PFN]mm.PFN{}}
	for i := range model.Procs {
		if d := frames.pages(i, model.Procs[i].Pages, host.Procs[i].Pages); d != nil {
			return d
		}
	}
	switch {
	case model.Refused != host.Refused:
		return diff("refused touches", model.Refused, host.Refused)
	case model.Bus != host.Bus:
		return diff("touches that got SIGBUS", model.Bus, host.Bus)
	case model.Faults != host.Faults:
		return diff("faults", model.Faults, host.Faults)
	}
	if d := comparePools(model.Pool, host.Pool); d != nil {
		return d
	}
	for i, name := range CounterNames() {
		if model.Counters[i] != host.Counters[i] {
			d := diff(name, model.Counters[i], host.Counters[i])
			d.Counter = true
			return d
		}
	}
	return nil
}

func compareVMAs(proc int, model, host []mm.VMAInfo) *Difference {
	for i := range max(len(model), len(host)) {
		var m, h mm.VMAInfo
		if i < len(model) {
			m = model[i]
		}
		if i < len(host) {
			h = host[i]
		}
		if m != h {
			where := fmt.Sprintf("process %d", proc)
			return &Difference{What: "mapping", Where: where, Model: vmaText(m), Host: vmaText(h)}
		}
	}
	return nil
}

func vmaText(v mm.VMAInfo) string {
	if v.End == 0 {
		return "none"
	}
	return fmt.Sprintf("%#x-%#x [%s]", uint64(v.Start), uint64(v.End), v.Flags)
}

// frameMap pairs the frames of the two sides: whatever two pages share on one
// side they must share on the other.
type frameMap struct{ toHost, toModel map[mm.PFN]mm.PFN }

func (f *frameMap) pages(proc int, model, host []PageSeen) *Difference {
	for i := 0; i < max(len(model), len(host)); i++ {
		switch {
		case i == len(host) || i < len(model) && model[i].At < host[i].At:
			return pageDifference(proc, model[i].At, model[i].String(), "nothing")
		case i == len(model) || host[i].At < model[i].At:
			return pageDifference(proc, host[i].At, "nothing", host[i].String())
		}
		m, h := model[i], host[i]
		a, b := m, h
		if a.PFN, b.PFN = 0, 0; a != b {
			return pageDifference(proc, m.At, m.String(), h.String())
		}
		if m.Guard || m.Zero {
			continue
		}
		if d := f.pair(proc, m, h); d != nil {
			return d
		}
	}
	return nil
}

// pair pairs the first frames of the two folios.
func (f *frameMap) pair(proc int, m, h PageSeen) *Difference {
	a, b := m.PFN-mm.PFN(m.Index), h.PFN-mm.PFN(h.Index)
	b1, ok1 := f.toHost[a]
	a1, ok2 := f.toModel[b]
	if !ok1 && !ok2 {
		f.toHost[a], f.toModel[b] = b, a
		return nil
	}
	if b1 == b && a1 == a {
		return nil
	}
	says := map[bool]string{true: "seen before", false: "a new one"}
	d := pageDifference(proc, m.At, says[ok1], says[ok2])
	d.What = "folio"
	if ok1 && ok2 {
		d.Model, d.Host = "shared with one page", "shared with another"
	}
	return d
}

func pageDifference(proc int, at mm.VA, m, h string) *Difference {
	return &Difference{What: "page", Where: fmt.Sprintf("process %d %#x", proc, uint64(at)), Model: m, Host: h}
}
