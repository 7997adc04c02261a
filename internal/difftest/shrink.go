package difftest

// Shrink makes a program as small as it gets while fails still finds a
// difference in it, and returns it with that difference. fails gets programs
// that compile only; it must answer the same to the same program.
func Shrink(p *Program, fails func(*Program) *Difference) (*Program, *Difference) {
	best, found := p, fails(p)
	if found == nil {
		return p, nil
	}
	try := func(steps []Step) bool {
		q := &Program{Name: p.Name, Policy: best.Policy, Steps: steps}
		if q.check() != nil {
			return false
		}
		d := fails(q)
		if d == nil {
			return false
		}
		best, found = q, d
		best.Steps = best.Steps[:min(d.Step+1, len(best.Steps))]
		return true
	}
	best.Steps = best.Steps[:min(found.Step+1, len(best.Steps))]
	for n := len(best.Steps) / 2; n > 0; {
		before := len(best.Steps)
		for i := 0; i < len(best.Steps); {
			rest := append([]Step(nil), best.Steps[:i]...)
			rest = append(rest, best.Steps[min(i+n, len(best.Steps)):]...)
			if !try(rest) {
				i += n
			}
		}
		// Steps that others needed may go once those have gone.
		if n > 1 || len(best.Steps) == before {
			n /= 2
		}
	}
	for i := range best.Steps {
		for i < len(best.Steps) {
			s, ok := simpler(best.Steps[i])
			if !ok || !try(replaced(best.Steps, i, s)) {
				break
			}
		}
	}
	return best, found
}

func replaced(steps []Step, i int, s Step) []Step {
	out := append([]Step(nil), steps...)
	out[i] = s
	return out
}

// simpler makes one touch of a run.
func simpler(s Step) (Step, bool) {
	if s.Verb != VerbTouch || s.Area.Single {
		return s, false
	}
	s.Step = 0
	s.Area = Area{Region: s.Area.Region, From: s.Area.From, To: s.Area.From + pageSize, Single: true}
	return s, true
}
