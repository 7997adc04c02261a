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

// ParsePolicies reads what --policy was given. An element is a list of names of
// Defaults, each a row ("never,64k,thp"), or one row's settings over base
// ("64k=always,2m=madvise"), which may begin with default or current. The row
// now comes first whether asked for or not. No specs: Defaults.
func ParsePolicies(specs []string, now, base mm.Policy, r mm.Rules, s mm.Sizes) ([]Named, error) {
	if len(specs) == 0 {
		return Defaults(now, base, r, s), nil
	}
	rows := []Named{{Name: Now, Policy: now}}
	seen := map[string]bool{Now: true}
	for _, spec := range specs {
		list, err := rowsOf(spec)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			if seen[name] {
				continue
			}
			seen[name] = true
			row, err := parseOne(name, base, r, s)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rowsOf splits one --policy into the specs of its rows.
func rowsOf(spec string) ([]string, error) {
	items := strings.FieldsFunc(spec, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	settings := 0
	for _, item := range items {
		if strings.Contains(item, "=") {
			settings++
		}
	}
	switch {
	case len(items) == 0:
		return []string{""}, nil // parseOne says what is allowed
	case settings == 0:
		return items, nil
	case settings == len(items), settings == len(items)-1 && (items[0] == "default" || items[0] == "current"):
		return []string{strings.Join(items, ",")}, nil
	}
	return nil, fmt.Errorf("--policy %s: names and settings in one list: want names alone, each a row (never,64k,thp), "+
		"or the settings of one row (64k=always,2m=madvise), which may begin with default or current; "+
		"--policy may be repeated", spec)
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
