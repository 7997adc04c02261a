package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Starter starts a program's first process on one side.
type Starter func(p *Program) (Executor, error)

// Outcome is what came of one program.
type Outcome struct {
	Steps      int // done on all sides
	Pages      int // compared
	Counters   int
	Difference *Difference

	Orders [mm.NumOrders]int // pages seen on the model's side, by order
	Moved  []int64           // the model's counters at the end
	Errnos map[mm.Errno]int
}

// Watcher sees what each side showed after a step; sides that do not run are
// nil.
type Watcher func(step int, model, host *Seen)

// Run does a program on the model and, where host is not nil, on the host too,
// and compares them after every step. An error means that a side could not do
// the program at all.
func Run(p *Program, model, host Starter, watch Watcher) (out Outcome, err error) {
	actions, err := compile(p)
	if err != nil {
		return out, err
	}
	x, err := model(p)
	if err != nil {
		return out, err
	}
	defer x.Close()
	var y Executor
	if host != nil {
		if y, err = host(p); err != nil {
			return out, err
		}
		defer func() {
			if cerr := y.Close(); err == nil {
				err = cerr
			}
		}()
	}
	var m, h Seen
	var counter *Difference
	for i := range actions {
		a := &actions[i]
		if a.step.Verb == VerbExpect {
			out.Difference = expect(a, &m, &h, y != nil)
		} else if !a.none {
			if m, err = x.Do(a); err != nil {
				return out, fmt.Errorf("%s: step %d: %s: model: %w", p.Name, i+1, a.step, err)
			}
			if y != nil {
				if h, err = y.Do(a); err != nil {
					return out, fmt.Errorf("%s: step %d: %s: kernel: %w", p.Name, i+1, a.step, err)
				}
				d := Compare(&m, &h)
				if d != nil && d.Counter {
					// Others may have moved it: the pages go on being compared.
					if counter == nil {
						counter, d.Step = d, i
					}
					d = nil
				}
				out.Difference = d
				out.count(&m)
			}
			if watch != nil {
				if y != nil {
					watch(i, &m, &h)
				} else {
					watch(i, &m, nil)
				}
			}
		}
		out.Steps++
		if out.Difference != nil {
			out.Difference.Step = i
			return out, nil
		}
	}
	out.Difference = counter
	return out, nil
}

func (o *Outcome) count(s *Seen) {
	for i := range s.Procs {
		o.Pages += len(s.Procs[i].Pages)
		for _, p := range s.Procs[i].Pages {
			o.Orders[p.Order]++
		}
	}
	o.Counters += len(s.Counters)
	o.Moved = s.Counters
	if o.Errnos == nil {
		o.Errnos = map[mm.Errno]int{}
	}
	o.Errnos[s.Errno]++
}

// expect holds a program's claim against the sides.
func expect(a *action, m, h *Seen, both bool) *Difference {
	for side, s := range []*Seen{m, h} {
		if side == 1 && !both || a.proc >= len(s.Procs) {
			continue
		}
		pages := s.Procs[a.proc].Pages
		k := 0
		for at := a.at; at < a.at+mm.VA(a.n)*pageSize; at += pageSize {
			for k < len(pages) && pages[k].At < at {
				k++
			}
			have := "absent"
			ok := a.step.Expect.Absent
			if k < len(pages) && pages[k].At == at {
				have, ok = pages[k].String(), a.step.Expect.holds(&pages[k])
			}
			if !ok {
				d := pageDifference(a.proc, at, have, a.step.Expect.String()+" expected")
				if side == 1 {
					d.Model, d.Host = d.Host, d.Model
				}
				return d
			}
		}
	}
	return nil
}

func (e *Expected) holds(p *PageSeen) bool {
	switch {
	case e.Absent || p.Guard || p.Order != e.Order || p.Zero != e.Zero:
		return false
	case e.PMD == 1 && !p.PMD || e.PMD == -1 && p.PMD:
		return false
	}
	return p.Zero || e.Shared == (p.Maps > 1)
}
