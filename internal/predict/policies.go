package predict

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Named is a policy under the name that its row carries.
type Named struct {
	Name   string
	Policy mm.Policy
	Lacks  []string // what the kernel lacks for it, in sentences; empty: it can be set there
}

// Hypothetical says that no setting does it: the program must advise.
func (n *Named) Hypothetical() bool { return n.Policy.Advise != mm.AdviseRule{} }

// Defaults are the policies worth trying: now, never, every size of its own,
// thp and thp with 64k. Each but now turns off all sizes that its name does not
// have; everything else is as in base, which is now but for what the caller
// wants changed in all rows.
func Defaults(now, base mm.Policy, r mm.Rules, s mm.Sizes) []Named {
	names := append([]string{"never"}, s.Names()[:len(s.Names())-1]...)
	names = append(names, "thp", "thp+64k")
	rows := []Named{{Name: Now, Policy: now}}
	for _, n := range names {
		row, err := parseOne(n, base, r, s)
		if err == nil { // a base page of 64 kB has no huge page of 64 kB
			rows = append(rows, row)
		}
	}
	return rows
}

// ParsePolicies reads what --policy was given, one row an element: a name of
// Defaults, or the general form such as "64k=always,2m=madvise". The row now
// comes first whether asked for or not; the others start from base. No specs:
// Defaults.
func ParsePolicies(specs []string, now, base mm.Policy, r mm.Rules, s mm.Sizes) ([]Named, error) {
	if len(specs) == 0 {
		return Defaults(now, base, r, s), nil
	}
	rows := []Named{{Name: Now, Policy: now}}
	seen := map[string]bool{Now: true}
	for _, spec := range specs {
		spec = strings.TrimSpace(spec)
		if seen[spec] {
			continue
		}
		seen[spec] = true
		row, err := parseOne(spec, base, r, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func parseOne(spec string, base mm.Policy, r mm.Rules, s mm.Sizes) (Named, error) {
	p, err := mm.ParsePolicySpec(base, spec, s)
	if err != nil {
		return Named{}, fmt.Errorf("--policy %s: %w", spec, err)
	}
	return Named{Name: spec, Policy: p, Lacks: p.Needs(r, s)}, nil
}

// rulesFor are the rules that a row is predicted with: those of the kernel,
// and for a policy that it lacks the sizes of later kernels.
func (n *Named) rulesFor(r mm.Rules) mm.Rules {
	if len(n.Lacks) > 0 {
		r.MTHP = true
	}
	return r
}
