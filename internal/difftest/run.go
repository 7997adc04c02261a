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
	Moves  []int             // in how many steps each of the model's counters moved
	Errnos map[mm.Errno]int
	last   []int64
}

// Watcher sees what each side showed after a step; sides that do not run are
// nil.
type Watcher func(step int, model, host *Seen)

// Answers are what one side showed of a program.
type Answers struct {
	Steps []Seen // by step; those of a step that does nothing are empty
	Err   error  // why there are no more
}

// Record does a program on one side and keeps what it shows. into is used again
// where it is not nil.
func Record(p *Program, side Starter, into *Answers) (*Answers, error) {
	actions, err := compile(p)
	if err != nil {
		return nil, err
	}
	x, err := side(p)
	if err != nil {
		return nil, err
	}
	if into == nil {
		into = &Answers{}
	}
	into.Steps, into.Err = into.Steps[:0], nil
	for i := range actions {
		s := into.step(i)
		if actions[i].none {
			continue
		}
		if err := x.Do(&actions[i], s); err != nil {
			into.Steps = into.Steps[:i]
			into.Err = fmt.Errorf("%s: step %d: %s: kernel: %w", p.Name, i+1, actions[i].step, err)
			break
		}
	}
	return into, x.Close()
}

// step is the i-th step, the first that there is not yet, empty.
func (a *Answers) step(i int) *Seen {
	if i < cap(a.Steps) {
		a.Steps = a.Steps[:i+1]
	} else {
		a.Steps = append(a.Steps, Seen{})
	}
	a.Steps[i].reset()
	return &a.Steps[i]
}

// Run does a program on the model and, where host is not nil, on the host
// before it, and compares them after every step. An error means that a side
// could not do the program at all.
func Run(p *Program, model, host Starter, watch Watcher) (out Outcome, err error) {
	var answers *Answers
	if host != nil {
		if answers, err = Record(p, host, nil); err != nil {
			return out, err
		}
	}
	return Judge(p, model, answers, watch)
}

// Judge does a program on the model and holds it, step by step, to what the
// other side has answered; to nothing but the program's own claims where
// answers is nil.
func Judge(p *Program, model Starter, answers *Answers, watch Watcher) (out Outcome, err error) {
	actions, err := compile(p)
	if err != nil {
		return out, err
	}
	x, err := model(p)
	if err != nil {
		return out, err
	}
	defer x.Close()
	var m Seen
	var h *Seen
	var counter *Difference
	var f floats
	for i := range actions {
		var room action
		a := &actions[i]
		if answers != nil && i >= len(answers.Steps) {
			return out, answers.Err
		}
		if v := a.step.Verb; v == VerbExpect || v == VerbResult || v == VerbExpectPool {
			out.Difference = expect(f.here(a, &room), &m, h)
		} else if !a.none {
			m.reset()
			if err = x.Do(a, &m); err != nil {
				return out, fmt.Errorf("%s: step %d: %s: model: %w", p.Name, i+1, a.step, err)
			}
			if m.Addr != 0 {
				f.landed(a, m.Addr)
			}
			if answers != nil {
				h = &answers.Steps[i]
				d := Compare(&m, h)
				if d != nil && d.Counter {
					// Others may have moved it: the pages go on being compared.
					if counter == nil {
						counter, d.Step = d, i
					}
					d = nil
				}
				out.Difference = d
				out.compared(&m)
			}
			out.saw(&m)
			if watch != nil {
				watch(i, &m, h)
			}
		}
		out.Steps++
		if out.Difference != nil {
			out.Difference.Step = i
			break
		}
	}
	if out.Difference == nil {
		out.Difference = counter
	}
	return out, nil
}

func (o *Outcome) compared(s *Seen) {
	for i := range s.Procs {
		o.Pages += len(s.Procs[i].Pages)
	}
	o.Counters += len(s.Counters)
}

// saw is what statistics are made of.
func (o *Outcome) saw(s *Seen) {
	for i := range s.Procs {
		for k := range s.Procs[i].Pages {
			o.Orders[s.Procs[i].Pages[k].Order]++
		}
	}
	if o.Errnos == nil {
		o.Errnos = map[mm.Errno]int{}
		o.Moves, o.last = make([]int, len(s.Counters)), make([]int64, len(s.Counters))
	}
	for i, n := range s.Counters {
		if n != o.last[i] {
			o.Moves[i]++
		}
	}
	copy(o.last, s.Counters)
	o.Errnos[s.Errno]++
}

// expect holds a program's claim against the sides; h is nil where one runs.
func expect(a *action, m, h *Seen) *Difference {
	switch {
	case a.step.Verb == VerbExpectPool:
		return expectPool(&a.step.Pool, m, h)
	case a.step.Verb == VerbResult && a.step.Bus > 0:
		if m.Bus == 0 || m.Bus != m.Refused {
			return &Difference{What: "result", Model: fmt.Sprintf("%d of %d refused touches", m.Bus, m.Refused),
				Host: "SIGBUS expected"}
		}
		return nil
	case a.step.Verb == VerbResult:
		if m.Errno != a.step.Errno {
			return &Difference{What: "result", Model: m.Errno.String(), Host: a.step.Errno.String() + " expected"}
		}
		return nil // the kernel's was held to the model's
	}
	for side, s := range []*Seen{m, h} {
		if s == nil || a.proc >= len(s.Procs) {
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
