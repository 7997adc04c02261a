package difftest

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// roundTrips says whether a policy reads back as it prints, in all its forms, by
// the rules of a kernel.
func roundTrips(p mm.Policy, r mm.Rules) error {
	s := programSizes()
	never := mm.NeverPolicy(s)
	for _, spec := range []string{p.Spec(s), p.SpecFrom(never, s)} {
		if back, err := mm.ParsePolicySpec(never, spec, s); err != nil || back != p {
			return fmt.Errorf("policy %s: reads back as %s: %w", spec, back, err)
		}
	}
	files := p.Files(s, r)
	back, err := mm.ParsePolicy(files, s)
	if err != nil {
		return err
	}
	back.Pools, back.HVO = p.Pools, p.HVO // in files elsewhere
	if needs := p.Needs(r, s); r.MTHP && r.ShrinkUnderused && len(needs) == 0 && back != p {
		return fmt.Errorf("policy %s: its files read back as %s", p, back)
	}
	if len(p.PoolFiles(s)) != 3 {
		return fmt.Errorf("policy %s: pools in %d files", p, len(p.PoolFiles(s)))
	}
	if d := r.Diff(r); len(d) > 0 {
		return fmt.Errorf("rules differ from themselves: %v", d)
	}
	return bootTrips(&p, r, files)
}

// bootTrips holds boot parameters to the files that they stand for.
func bootTrips(p *mm.Policy, r mm.Rules, files map[string]string) error {
	s := programSizes()
	params, rest := p.Boot(s, r)
	for f, text := range rest {
		if files[f] != text {
			return fmt.Errorf("policy %s: boot leaves %s=%s", p, f, text)
		}
	}
	got := mm.DefaultPolicy(s).Size
	for _, param := range params {
		key, value, _ := strings.Cut(param, "=")
		switch key {
		case "transparent_hugepage":
			if value != files["enabled"] {
				return fmt.Errorf("policy %s: boots with %s", p, param)
			}
		case "thp_anon":
			got = mm.NeverPolicy(s).Size
			for group := range strings.SplitSeq(value, ";") {
				if err := bootGroup(&got, group); err != nil {
					return err
				}
			}
		}
	}
	if r.THPAnonBoot && got != p.Size {
		return fmt.Errorf("policy %s: boot parameters %v say otherwise", p, params)
	}
	return nil
}

// bootGroup applies one group of thp_anon=, such as 16K-64K:always.
func bootGroup(to *[mm.NumOrders]mm.Mode, group string) error {
	s := programSizes()
	sizes, word, _ := strings.Cut(group, ":")
	first, last, isRange := strings.Cut(sizes, "-")
	if !isRange {
		last = first
	}
	from, err := s.Order(strings.ToLower(first))
	if err != nil {
		return err
	}
	end, err := s.Order(strings.ToLower(last))
	if err != nil {
		return err
	}
	for m := mm.Never; m <= mm.Inherit; m++ {
		for o := from; o <= end && m.String() == word; o++ {
			to[o] = m
		}
	}
	return nil
}
