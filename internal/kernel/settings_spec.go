package kernel

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// HostSettings are the settings of a machine: the policy of transparent huge
// pages, and beside it what a policy does not hold.
type HostSettings struct {
	Policy     mm.Policy
	MinFree    uint64            // vm.min_free_kbytes, 0 for leave it alone
	HVO        *bool             // vm.hugetlb_optimize_vmemmap, nil for leave it alone
	Pools      map[string]uint64 // nr_hugepages by size ("2m"); sizes not named stay
	Overcommit map[string]uint64 // nr_overcommit_hugepages, likewise
}

// hostKeys are the keys that ParseHostSettings takes beside those of a policy.
const hostKeys = "min_free_kbytes=N, hvo=0|1, hugetlb_SIZE=PAGES, overcommit_SIZE=PAGES"

// ParseHostSettings reads a policy spec that may have items of the host
// between those of the policy: min_free_kbytes=N, hvo=0|1, hugetlb_2m=PAGES,
// overcommit_2m=PAGES.
func ParseHostSettings(base mm.Policy, spec string, s mm.Sizes) (HostSettings, error) {
	h := HostSettings{Policy: base, Pools: map[string]uint64{}, Overcommit: map[string]uint64{}}
	var policy []string
	items := strings.FieldsFunc(spec, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	for _, item := range items {
		key, value, _ := strings.Cut(item, "=")
		ours, err := h.set(key, value)
		if err != nil {
			return h, fmt.Errorf("policy: %s: %w", item, err)
		}
		if !ours {
			policy = append(policy, item)
		}
	}
	if len(items) > 0 && len(policy) == 0 {
		return h, nil
	}
	var err error
	if h.Policy, err = mm.ParsePolicySpec(base, strings.Join(policy, ","), s); err != nil {
		return h, fmt.Errorf("%w; or of the host: %s", err, hostKeys)
	}
	return h, nil
}

// set takes one item of the host; ours is false for one of the policy.
func (h *HostSettings) set(key, value string) (ours bool, err error) {
	size, pool := strings.CutPrefix(key, "hugetlb_")
	over, overcommit := strings.CutPrefix(key, "overcommit_")
	if key != "min_free_kbytes" && key != "hvo" && !pool && !overcommit {
		return false, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return true, fmt.Errorf("%q: want a number", value)
	}
	switch {
	case pool:
		h.Pools[strings.ToLower(size)] = n
	case overcommit:
		h.Overcommit[strings.ToLower(over)] = n
	case key == "min_free_kbytes" && n == 0:
		return true, fmt.Errorf("want a number above 0")
	case key == "min_free_kbytes":
		h.MinFree = n
	case n > 1:
		return true, fmt.Errorf("%q: want 0 or 1", value)
	default:
		on := n == 1
		h.HVO = &on
	}
	return true, nil
}

// Values are the files that set h on a machine that now has the settings now,
// does what rules say and has the sizes s. What the machine cannot do is an
// error.
func (h HostSettings) Values(now Values, s mm.Sizes, r mm.Rules) (Values, error) {
	if h.Policy.Advise != (mm.AdviseRule{}) {
		return nil, fmt.Errorf("settings: advise=%v: no kernel has this: only predictions do", h.Policy.Advise)
	}
	if lack := h.Policy.Needs(r, s); len(lack) > 0 {
		return nil, fmt.Errorf("settings: %s", strings.Join(lack, "; "))
	}
	v := Values{}
	for file, text := range h.Policy.Files(s, r) {
		file = thpDir + "/" + file
		if _, ok := now[file]; ok {
			v[file] = text
		}
	}
	if h.MinFree != 0 {
		v[minFree] = strconv.FormatUint(h.MinFree, 10)
	}
	if h.HVO != nil {
		if _, ok := now[hvoFile]; !ok {
			return nil, fmt.Errorf("settings: hvo: this kernel cannot (CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP)")
		}
		v[hvoFile] = map[bool]string{false: "0", true: "1"}[*h.HVO]
	}
	for _, size := range slices.Sorted(maps.Keys(h.Pools)) {
		if err := v.setPool(now, size, poolPages, h.Pools[size]); err != nil {
			return nil, err
		}
	}
	for _, size := range slices.Sorted(maps.Keys(h.Overcommit)) {
		if err := v.setPool(now, size, "nr_overcommit_hugepages", h.Overcommit[size]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// setPool sets one file of the pool of a size; pages are spread over the nodes
// evenly, as the kernel does.
func (v Values) setPool(now Values, size, file string, n uint64) error {
	bytes, err := mm.ParseBytes(size)
	if err != nil {
		return fmt.Errorf("settings: hugetlb: %q: want a size such as 2m", size)
	}
	want := fmt.Sprintf("hugepages-%dkB", bytes>>10)
	var files, sizes []string
	for _, f := range slices.Sorted(maps.Keys(now)) {
		if path.Base(f) != file || strings.HasPrefix(f, thpDir) {
			continue
		}
		dir := path.Base(path.Dir(f))
		if sizes = append(sizes, dir); dir == want {
			files = append(files, f)
		}
	}
	if files == nil {
		has := strings.Join(slices.Compact(sizes), ", ")
		return fmt.Errorf("settings: hugetlb: %s: this kernel has pools %s", size, has)
	}
	for i, f := range files {
		share := n / uint64(len(files))
		if uint64(i) < n%uint64(len(files)) {
			share++
		}
		v[f] = strconv.FormatUint(share, 10)
	}
	return nil
}

// Policy is the part of v that a policy holds.
func (v Values) Policy(s mm.Sizes) (mm.Policy, error) {
	files := map[string]string{}
	for file, text := range v {
		if rel, ok := strings.CutPrefix(file, thpDir+"/"); ok {
			files[rel] = text
		}
	}
	return mm.ParsePolicy(files, s)
}
