package mm

import (
	"maps"
	"strings"
)

// Boot gives the boot parameters that set p, and the files (as Files names
// them) that differ from the kernel's defaults and that no parameter sets:
// write those after boot.
//
// Linux: mm/huge_memory.c:setup_transparent_hugepage, setup_thp_anon (v6.18).
func (p Policy) Boot(s Sizes, r Rules) (params []string, rest map[string]string) {
	rest = p.Files(s, r)
	def := DefaultPolicy(s)
	params = []string{"transparent_hugepage=" + rest["enabled"]}
	delete(rest, "enabled")
	if r.THPAnonBoot {
		if p.Size != def.Size {
			params = append(params, "thp_anon="+p.thpAnon(s))
		}
		for _, o := range s.Orders() {
			delete(rest, s.Dir(o)+"/enabled")
		}
	}
	defaults := def.Files(s, r)
	maps.DeleteFunc(rest, func(file, text string) bool { return defaults[file] == text })
	return params, rest
}

// thpAnon is the value of thp_anon=. The parameter takes away the PMD size's
// built-in inherit, and a size that it does not name is never; never is
// spelled out only where nothing else is left.
func (p Policy) thpAnon(s Sizes) string {
	var groups []string
	orders := s.Orders()
	for i := 0; i < len(orders); {
		j := i
		for j+1 < len(orders) && p.Size[orders[j+1]] == p.Size[orders[i]] {
			j++
		}
		if mode := p.Size[orders[i]]; mode != Never || i == 0 && j == len(orders)-1 {
			size := bootSize(s, orders[i])
			if j > i {
				size += "-" + bootSize(s, orders[j])
			}
			groups = append(groups, size+":"+mode.String())
		}
		i = j + 1
	}
	return strings.Join(groups, ";")
}

func bootSize(s Sizes, o Order) string { return strings.ToUpper(s.Name(o)) }
