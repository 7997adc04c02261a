package mm

import (
	"fmt"
	"strconv"
	"strings"
)

// Files gives the policy as text for the kernel's own files: the path below
// /sys/kernel/mm/transparent_hugepage, and what to write to it. A kernel
// without a file (by r) has no entry for it; Needs says what is lost.
//
// Where sizes have no files of their own (before 6.8) enabled carries what the
// PMD's size is to do. Advise has no file.
func (p Policy) Files(s Sizes, r Rules) map[string]string {
	k := p.Khugepaged
	f := map[string]string{
		"enabled":                          p.Enabled.String(),
		"defrag":                           p.Defrag.String(),
		"use_zero_page":                    bit(p.UseZeroPage),
		"khugepaged/defrag":                bit(k.Defrag),
		"khugepaged/pages_to_scan":         num(k.PagesToScan),
		"khugepaged/scan_sleep_millisecs":  strconv.FormatInt(int64(k.ScanSleep/millisecond), 10),
		"khugepaged/alloc_sleep_millisecs": strconv.FormatInt(int64(k.AllocSleep/millisecond), 10),
		"khugepaged/max_ptes_none":         num(k.MaxPTEsNone),
	}
	if r.KhugepagedSwap {
		f["khugepaged/max_ptes_swap"] = num(k.MaxPTEsSwap)
	}
	if r.KhugepagedShared {
		f["khugepaged/max_ptes_shared"] = num(k.MaxPTEsShared)
	}
	if r.ShrinkUnderused {
		f["shrink_underused"] = bit(p.ShrinkUnderused)
	}
	if r.Shmem {
		f["shmem_enabled"] = p.Shmem.String()
	}
	if r.ShmemMTHP {
		for _, o := range s.ShmemOrders() {
			f[s.Dir(o)+"/shmem_enabled"] = p.ShmemSize[o].String()
		}
	}
	if !r.MTHP {
		f["enabled"] = p.Effective(s.PMD).String()
		return f
	}
	for _, o := range s.Orders() {
		f[s.Dir(o)+"/enabled"] = p.Size[o].String()
	}
	return f
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func num(v uint32) string { return strconv.FormatUint(uint64(v), 10) }

// ParsePolicy reads the files below transparent_hugepage, as Files writes them
// or as the kernel shows them ("always [madvise] never"). Paths that are no
// setting of anonymous memory are passed over. A file that is missing means a
// kernel without it: its value is what that kernel does. Without enabled there
// are no transparent huge pages, which is an error.
func ParsePolicy(files map[string]string, s Sizes) (Policy, error) {
	p := DefaultPolicy(s)
	if _, ok := files["enabled"]; !ok {
		return p, fmt.Errorf("transparent_hugepage/enabled: missing: the kernel was built without transparent " +
			"huge pages, or its settings were not saved")
	}
	_, p.ShrinkUnderused = files["shrink_underused"]
	for _, set := range policySettings(&p, s) {
		text, ok := files[set.file]
		if !ok {
			continue
		}
		if err := set.parse(chosen(text)); err != nil {
			return p, fmt.Errorf("transparent_hugepage/%s: %w", set.file, err)
		}
	}
	return p, nil
}

// chosen is the word in brackets of "always [madvise] never", or the text
// itself when there are none.
func chosen(text string) string {
	if _, after, ok := strings.Cut(text, "["); ok {
		if in, _, ok := strings.Cut(after, "]"); ok {
			return in
		}
	}
	return strings.TrimSpace(text)
}

// setting is one knob of a policy under its two names.
type setting struct {
	file  string // below transparent_hugepage
	key   string // in a policy spec
	parse func(string) error
	print func() string
}

// policySettings lists every knob of p that has a file, in canonical order.
func policySettings(p *Policy, s Sizes) []setting {
	k := &p.Khugepaged
	pmd := uint32(s.PMD.Pages())
	all := []setting{modeSetting("enabled", "enabled", &p.Enabled, modeNames[:Inherit])}
	for _, o := range s.Orders() {
		all = append(all, modeSetting(s.Dir(o)+"/enabled", s.Name(o), &p.Size[o], modeNames[:]))
	}
	all = append(all, modeSetting("shmem_enabled", "shmem", &p.Shmem, shmemGlobal()))
	for _, o := range s.ShmemOrders() {
		all = append(all, modeSetting(s.Dir(o)+"/shmem_enabled", "shmem_"+s.Name(o), &p.ShmemSize[o], shmemSize()))
	}
	return append(all,
		modeSetting("defrag", "defrag", &p.Defrag, defragNames[:]),
		boolSetting("use_zero_page", "use_zero_page", &p.UseZeroPage),
		boolSetting("shrink_underused", "shrink_underused", &p.ShrinkUnderused),
		boolSetting("khugepaged/defrag", "khugepaged_defrag", &k.Defrag),
		numSetting("khugepaged/pages_to_scan", "pages_to_scan", &k.PagesToScan, 1, 1<<32-1),
		sleepSetting("khugepaged/scan_sleep_millisecs", "scan_sleep_ms", &k.ScanSleep),
		sleepSetting("khugepaged/alloc_sleep_millisecs", "alloc_sleep_ms", &k.AllocSleep),
		numSetting("khugepaged/max_ptes_none", "max_ptes_none", &k.MaxPTEsNone, 0, pmd-1),
		numSetting("khugepaged/max_ptes_swap", "max_ptes_swap", &k.MaxPTEsSwap, 0, pmd-1),
		numSetting("khugepaged/max_ptes_shared", "max_ptes_shared", &k.MaxPTEsShared, 0, pmd-1),
	)
}

func modeSetting[T ~uint8](file, key string, v *T, names []string) setting {
	return setting{file, key, func(text string) error {
		for i, n := range names {
			if n == text && n != "" {
				*v = T(i)
				return nil
			}
		}
		return fmt.Errorf("%q: want one of %s", text, strings.Join(strings.Fields(strings.Join(names, " ")), ", "))
	}, func() string { return word(names, int(*v)) }}
}

func boolSetting(file, key string, v *bool) setting {
	return setting{file, key, func(text string) error {
		switch text {
		case "1", "on", "yes", "true":
			*v = true
		case "0", "off", "no", "false":
			*v = false
		default:
			return fmt.Errorf("%q: want 0 or 1", text)
		}
		return nil
	}, func() string { return bit(*v) }}
}

// numSetting's bounds are those beyond which the kernel refuses the write.
func numSetting(file, key string, v *uint32, low, high uint32) setting {
	return setting{file, key, func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || uint32(n) < low || uint32(n) > high {
			return fmt.Errorf("%q: want a number from %d to %d", text, low, high)
		}
		*v = uint32(n)
		return nil
	}, func() string { return num(*v) }}
}

func sleepSetting(file, key string, v *Nanos) setting {
	var ms uint32
	n := numSetting(file, key, &ms, 0, 1<<32-1)
	return setting{file, key, func(text string) error {
		err := n.parse(text)
		if err == nil {
			*v = Nanos(ms) * millisecond
		}
		return err
	}, func() string { return strconv.FormatInt(int64(*v/millisecond), 10) }}
}
