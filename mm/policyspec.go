package mm

import (
	"fmt"
	"slices"
	"strings"
)

/*
A policy spec is what a person types:

	spec    = item { ("," | " ") item }
	item    = name | key "=" value
	name    = "current" | "default" | "never" | part { "+" part }       whole rows, see NamedPolicy
	part    = "thp" | size
	key     = size | "enabled" | "defrag" | "use_zero_page" | ... | "pool" | "overcommit" | "advise"
	pool    = "none" | size ":" pages { "+" size ":" pages }           hugetlb; overcommit likewise
	advise  = "none" | rule { ("|" | "+") rule }
	rule    = "all" | "heap" | [">="] length

Items apply from left to right to the base policy.
*/

// NamedPolicy makes a whole row of a comparison from base, of which everything
// but the sizes stays:
//
//	current   base itself
//	default   upstream's defaults, nothing of base
//	never     no huge page of any size
//	64k       that size always, all others and enabled never
//	thp       enabled=always with the PMD's size inheriting it
//	thp+64k   both; 16k+64k two sizes
func NamedPolicy(name string, base Policy, s Sizes) (Policy, error) {
	switch name {
	case "current":
		return base, nil
	case "default":
		return DefaultPolicy(s), nil
	case "never":
		return base.allNever(), nil
	}
	p := base.allNever()
	for part := range strings.SplitSeq(name, "+") {
		if part == "thp" {
			p.Enabled, p.Size[s.PMD] = Always, Inherit
			continue
		}
		o, err := s.Order(part)
		if err != nil {
			return base, fmt.Errorf("policy: %q: want one of %s, two of them joined by +, or KEY=VALUE with a KEY of %s",
				name, strings.Join(PolicyNames(s), ", "), strings.Join(policyKeys(s), ", "))
		}
		p.Size[o] = Always
	}
	return p, nil
}

// PolicyNames lists the simple names that NamedPolicy takes.
func PolicyNames(s Sizes) []string {
	return append(append([]string{"current", "default", "never"}, s.Names()...), "thp")
}

func policyKeys(s Sizes) []string {
	var keys []string
	for _, set := range policySettings(&Policy{}, s) {
		keys = append(keys, set.key)
	}
	return append(append(keys, poolKeys...), "hvo", "advise")
}

// ParsePolicySpec applies a spec such as "never,64k=always,max_ptes_none=64"
// to base. An unknown name, key or value is an error that lists what is
// allowed. A key may also be the kernel's file name.
func ParsePolicySpec(base Policy, spec string, s Sizes) (Policy, error) {
	p := base
	items := strings.FieldsFunc(spec, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(items) == 0 {
		return base, fmt.Errorf("policy: empty: want one of %s, or KEY=VALUE", strings.Join(PolicyNames(s), ", "))
	}
	for _, item := range items {
		key, value, ok := strings.Cut(item, "=")
		var err error
		if ok {
			err = p.set(key, value, s)
		} else {
			p, err = NamedPolicy(item, p, s)
		}
		if err != nil {
			return base, err
		}
	}
	return p, nil
}

// set applies one KEY=VALUE.
func (p *Policy) set(key, value string, s Sizes) error {
	switch {
	case key == "advise":
		return p.Advise.parse(value)
	case key == "hvo":
		return boolSetting("", "hvo", &p.HVO).parse(value)
	case slices.Contains(poolKeys, key):
		return p.setPools(key, value, s)
	}
	if o, err := s.Order(key); err == nil {
		key = s.Name(o)
	}
	for _, set := range policySettings(p, s) {
		if key == set.key || key == set.file {
			if err := set.parse(value); err != nil {
				return fmt.Errorf("policy: %s: %w", key, err)
			}
			return nil
		}
	}
	return fmt.Errorf("policy: %q: unknown key: want one of %s", key, strings.Join(policyKeys(s), ", "))
}

func (a *AdviseRule) parse(text string) error {
	var rule AdviseRule
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '|' || r == '+' }) {
		switch part {
		case "none":
		case "all":
			rule.All = true
		case "heap":
			rule.Heap = true
		default:
			b, err := ParseBytes(strings.TrimPrefix(part, ">="))
			if err != nil || b == 0 {
				return fmt.Errorf("policy: advise: %q: want none, all, heap or a least length such as >=64m, joined by |", part)
			}
			rule.AtLeast = b
		}
	}
	*a = rule
	return nil
}

// String is the rule as a policy spec writes it: "none", "all", "heap|>=64m".
func (a AdviseRule) String() string {
	var parts []string
	if a.All {
		parts = append(parts, "all")
	}
	if a.Heap {
		parts = append(parts, "heap")
	}
	if a.AtLeast != 0 {
		parts = append(parts, ">="+shortBytes(a.AtLeast))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, "|")
}

// String is Spec for a base page of 4 kB.
func (p Policy) String() string { return p.Spec(Sizes{4096, 9}) }

// Spec is the canonical short spec of p: it starts with "default", so that
// ParsePolicySpec makes p of it whatever the base.
func (p Policy) Spec(s Sizes) string {
	base := DefaultPolicy(s)
	if d := p.SpecFrom(base, s); d != "current" {
		return "default," + d
	}
	return "default"
}

// SpecFrom is the shortest spec that makes p of base: a name where that saves
// items, then what differs.
func (p Policy) SpecFrom(base Policy, s Sizes) string {
	best := p.diff(base, s)
	if len(best) == 0 {
		return "current"
	}
	for _, name := range specNames(s) {
		from, _ := NamedPolicy(name, base, s)
		if d := p.diff(from, s); len(d)+1 < len(best) || len(d) == 0 && len(best) == 1 {
			best = append([]string{name}, d...)
			if len(d) == 0 {
				break
			}
		}
	}
	return strings.Join(best, ",")
}

// specNames lists the names that SpecFrom tries, simplest first.
func specNames(s Sizes) []string {
	names := PolicyNames(s)
	for _, n := range s.Names() {
		names = append(names, "thp+"+n)
	}
	return names
}

// diff lists what must be set to make p of base.
func (p Policy) diff(base Policy, s Sizes) []string {
	var items []string
	was := policySettings(&base, s)
	for i, set := range policySettings(&p, s) {
		if v := set.print(); v != was[i].print() {
			items = append(items, set.key+"="+v)
		}
	}
	items = append(items, p.diffPools(&base, s)...)
	if p.HVO != base.HVO {
		items = append(items, "hvo="+bit(p.HVO))
	}
	if p.Advise != base.Advise {
		items = append(items, "advise="+p.Advise.String())
	}
	return items
}
