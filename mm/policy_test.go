package mm

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sizes4k(t testing.TB) Sizes {
	t.Helper()
	s, err := SizesOf(4096)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rules(t testing.TB, version string) Rules {
	t.Helper()
	r, err := RulesFor(version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		base Bytes
		want string
		dir  string // of the first
	}{
		{0, "16k 32k 64k 128k 256k 512k 1m 2m", "hugepages-16kB"},
		{4096, "16k 32k 64k 128k 256k 512k 1m 2m", "hugepages-16kB"},
		{16384, "64k 128k 256k 512k 1m 2m 4m 8m 16m 32m", "hugepages-64kB"},
		{65536, "256k 512k 1m 2m 4m 8m 16m 32m 64m 128m 256m 512m", "hugepages-256kB"},
	} {
		s, err := SizesOf(c.base)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Names(), " "); got != c.want {
			t.Errorf("base %d: names %s, want %s", c.base, got, c.want)
		}
		if got := s.Dir(MinTHPOrder); got != c.dir {
			t.Errorf("base %d: first directory %s, want %s", c.base, got, c.dir)
		}
		for _, o := range s.Orders() {
			for _, name := range []string{s.Name(o), strings.ToUpper(s.Name(o)), s.Dir(o)} {
				if got, err := s.Order(name); got != o || err != nil {
					t.Errorf("base %d: Order(%q) = %d, %v, want %d", c.base, name, got, err, o)
				}
			}
		}
	}
	if _, err := SizesOf(8192); err == nil {
		t.Error("a base page of 8192 bytes was accepted")
	}
	if _, err := sizes4k(t).Order("8k"); err == nil || !strings.Contains(err.Error(), "16k, 32k") {
		t.Errorf("8k: error %v, want one that lists the sizes", err)
	}
}

// anyPolicy draws a policy that a kernel with the given base page can hold.
func anyPolicy(t *rapid.T, s Sizes) Policy {
	pmd := uint32(s.PMD.Pages())
	p := Policy{
		Enabled:         Mode(rapid.IntRange(0, int(Always)).Draw(t, "enabled")),
		Defrag:          Defrag(rapid.IntRange(0, int(DefragAlways)).Draw(t, "defrag")),
		UseZeroPage:     rapid.Bool().Draw(t, "zero"),
		ShrinkUnderused: rapid.Bool().Draw(t, "shrink"),
		Khugepaged: Khugepaged{
			Defrag:        rapid.Bool().Draw(t, "kdefrag"),
			PagesToScan:   rapid.Uint32Range(1, 1<<32-1).Draw(t, "scan"),
			ScanSleep:     Nanos(rapid.Uint32().Draw(t, "sleep")) * millisecond,
			AllocSleep:    Nanos(rapid.Uint32().Draw(t, "alloc")) * millisecond,
			MaxPTEsNone:   rapid.Uint32Range(0, pmd-1).Draw(t, "none"),
			MaxPTEsSwap:   rapid.Uint32Range(0, pmd-1).Draw(t, "swap"),
			MaxPTEsShared: rapid.Uint32Range(0, pmd-1).Draw(t, "shared"),
		},
		Advise: AdviseRule{
			All:     rapid.Bool().Draw(t, "all"),
			Heap:    rapid.Bool().Draw(t, "heap"),
			AtLeast: Bytes(rapid.Uint64().Draw(t, "least")),
		},
	}
	for _, o := range s.Orders() {
		p.Size[o] = Mode(rapid.IntRange(0, int(Inherit)).Draw(t, "size"))
	}
	p.Shmem = rapid.SampledFrom([]ShmemMode{ShmemNever, ShmemAdvise, ShmemWithinSize, ShmemAlways, ShmemDeny, ShmemForce}).
		Draw(t, "shmem")
	for _, o := range s.ShmemOrders() {
		p.ShmemSize[o] = ShmemMode(rapid.IntRange(0, int(ShmemInherit)).Draw(t, "shmem size"))
	}
	if rapid.Bool().Draw(t, "near a name") {
		p, _ = NamedPolicy(rapid.SampledFrom(specNames(s)).Draw(t, "name"), DefaultPolicy(s), s)
	}
	return p
}

func anySizes(t *rapid.T) Sizes {
	s, _ := SizesOf(rapid.SampledFrom([]Bytes{4096, 16384, 65536}).Draw(t, "base"))
	return s
}

func TestSpecParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySizes(t)
		p, base := anyPolicy(t, s), anyPolicy(t, s)
		for _, spec := range []string{p.Spec(s), p.SpecFrom(base, s), strings.ReplaceAll(p.Spec(s), ",", " ")} {
			got, err := ParsePolicySpec(base, spec, s)
			if err != nil {
				t.Fatalf("%q: %v", spec, err)
			}
			if got != p {
				t.Fatalf("%q parses to another policy: %s", spec, cmp.Diff(p, got))
			}
		}
	})
}

func TestFilesParseBack(t *testing.T) {
	r := rules(t, "6.18")
	rapid.Check(t, func(t *rapid.T) {
		s := anySizes(t)
		p := anyPolicy(t, s)
		got, err := ParsePolicy(p.Files(s, r), s)
		p.Advise = AdviseRule{} // has no file
		if err != nil || got != p {
			t.Fatalf("%v: %s", err, cmp.Diff(p, got))
		}
	})
}

func TestParsePolicyReadForm(t *testing.T) {
	s := sizes4k(t)
	files := map[string]string{
		"enabled":                           "always [madvise] never\n",
		"defrag":                            "always defer [defer+madvise] madvise never\n",
		"use_zero_page":                     "0\n",
		"hpage_pmd_size":                    "2097152\n",
		"shmem_enabled":                     "always within_size advise [never] deny force\n",
		"hugepages-64kB/enabled":            "[always] inherit madvise never\n",
		"hugepages-2048kB/enabled":          "always [inherit] madvise never\n",
		"hugepages-2048kB/stats/split":      "1\n",
		"khugepaged/max_ptes_none":          "64\n",
		"khugepaged/scan_sleep_millisecs":   "500\n",
		"khugepaged/pages_collapsed":        "3\n",
		"hugepages-1048576kB/nr_hugepages":  "0\n",
		"hugepages-64kB/shmem_enabled":      "[always] inherit within_size advise never\n",
		"hugepages-64kB/other":              "x",
		"hugepages-64kB/stats/split_failed": "0",
	}
	want := DefaultPolicy(s)
	want.Enabled, want.Defrag, want.UseZeroPage, want.ShrinkUnderused = Madvise, DefragDeferMadvise, false, false
	want.Size[4], want.ShmemSize[4] = Always, ShmemAlways
	want.Khugepaged.MaxPTEsNone, want.Khugepaged.ScanSleep = 64, 500*millisecond
	got, err := ParsePolicy(files, s)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Error(cmp.Diff(want, got))
	}
	delete(files, "enabled")
	if _, err := ParsePolicy(files, s); err == nil {
		t.Error("a kernel without transparent huge pages gave a policy")
	}
	files["enabled"] = "[sometimes]"
	if _, err := ParsePolicy(files, s); err == nil || !strings.Contains(err.Error(), "always, ") && !strings.Contains(err.Error(), "never") {
		t.Errorf("error %v, want one that lists the modes", err)
	}
}

func TestFilesOfOlderKernels(t *testing.T) {
	s := sizes4k(t)
	for _, c := range []struct{ version, spec, enabled, lack string }{
		{"6.18", "thp", "always", ""},
		{"6.6", "thp", "always", "hugepages-2048kB/enabled"},
		{"6.6", "never", "never", "shrink_underused"},
		{"6.6", "never,2m=madvise", "madvise", "hugepages-64kB/enabled"},
		{"6.6", "enabled=always,2m=never", "never", "shrink_underused"},
		{"5.4", "thp", "always", "khugepaged/max_ptes_shared"},
		{"4.4", "thp", "always", "khugepaged/max_ptes_swap"},
	} {
		p, err := ParsePolicySpec(DefaultPolicy(s), c.spec, s)
		if err != nil {
			t.Fatal(err)
		}
		f := p.Files(s, rules(t, c.version))
		if f["enabled"] != c.enabled {
			t.Errorf("%s on %s: enabled %s, want %s", c.spec, c.version, f["enabled"], c.enabled)
		}
		if _, ok := f[c.lack]; ok {
			t.Errorf("%s on %s: writes %s, which that kernel lacks", c.spec, c.version, c.lack)
		}
	}
}

func TestParsePolicySpec(t *testing.T) {
	s := sizes4k(t)
	for _, c := range []struct{ spec, canonical string }{
		{"default", "default"},
		{"thp", "default"}, // upstream's default is thp
		{"never", "default,never"},
		{"64K", "default,64k"},
		{"64k=always", "default,thp+64k"},
		{"never 64kB=always", "default,64k"},
		{"enabled=never,64k=always", "default,enabled=never,64k=always"},
		{"thp+64k", "default,thp+64k"},
		{"2m", "default,2m"},
		{"16k+64k", "default,16k,64k=always"},
		{"hugepages-128kB=madvise,defrag=defer+madvise", "default,128k=madvise,defrag=defer+madvise"},
		{"khugepaged/max_ptes_none=64,scan_sleep_ms=0", "default,scan_sleep_ms=0,max_ptes_none=64"},
		{"use_zero_page=off,shrink_underused=0", "default,use_zero_page=0,shrink_underused=0"},
		{"advise=heap|>=64M", "default,advise=heap|>=64m"},
		{"advise=64m+heap", "default,advise=heap|>=64m"},
		{"advise=all,advise=none", "default"},
	} {
		p, err := ParsePolicySpec(DefaultPolicy(s), c.spec, s)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if got := p.String(); got != c.canonical {
			t.Errorf("%s: canonical %s, want %s", c.spec, got, c.canonical)
		}
	}
}

func TestParsePolicySpecErrors(t *testing.T) {
	s := sizes4k(t)
	for _, c := range []struct{ spec, says string }{
		{"", "never, 16k"},
		{"hugh", "thp"},
		{"48k=always", "16k, 32k"},
		{"64k=sometimes", "inherit"},
		{"enabled=inherit", "always"},
		{"defrag=maybe", "defer+madvise"},
		{"max_ptes_none=512", "0 to 511"},
		{"pages_to_scan=0", "1 to"},
		{"advise=stack", "heap"},
		{"bogus=1", "max_ptes_none"},
	} {
		p, err := ParsePolicySpec(DefaultPolicy(s), c.spec, s)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v, want one that says %q", c.spec, err, c.says)
		}
		if p != DefaultPolicy(s) {
			t.Errorf("%q: the base changed", c.spec)
		}
	}
}

func TestBoot(t *testing.T) {
	s := sizes4k(t)
	for _, c := range []struct {
		version, spec, params string
		rest                  map[string]string
	}{
		{"6.18", "default", "transparent_hugepage=always", nil},
		{"6.18", "never", "transparent_hugepage=never thp_anon=16K-2M:never", nil},
		{"6.18", "64k", "transparent_hugepage=never thp_anon=64K:always", nil},
		{"6.18", "enabled=madvise,16k=always,32k=always,64k=always,256k=madvise,max_ptes_none=0",
			"transparent_hugepage=madvise thp_anon=16K-64K:always;256K:madvise;2M:inherit",
			map[string]string{"khugepaged/max_ptes_none": "0"}},
		{"6.8", "thp+64k", "transparent_hugepage=always", map[string]string{"hugepages-64kB/enabled": "always"}},
		{"5.15", "never", "transparent_hugepage=never", nil},
	} {
		p, err := ParsePolicySpec(DefaultPolicy(s), c.spec, s)
		if err != nil {
			t.Fatal(err)
		}
		params, rest := p.Boot(s, rules(t, c.version))
		if got := strings.Join(params, " "); got != c.params {
			t.Errorf("%s on %s: %s, want %s", c.spec, c.version, got, c.params)
		}
		if !maps.Equal(rest, c.rest) {
			t.Errorf("%s on %s: rest %v, want %v", c.spec, c.version, rest, c.rest)
		}
	}
}

func TestNeeds(t *testing.T) {
	s := sizes4k(t)
	for _, c := range []struct{ version, spec, want string }{
		{"6.18", "thp+64k,max_ptes_none=0", ""},
		{"6.6", "default", ""},
		{"6.6", "64k", "64k=always needs Linux 6.8 or later; this is 6.6"},
		{"6.8", "64k", ""},
		{"6.6", "max_ptes_none=0", "shrink_underused=1 needs Linux 6.12 or later; this is 6.6"},
		{"6.6", "never,max_ptes_none=0", ""},
		{"4.4", "defrag=defer", "defrag=defer needs Linux 4.6 or later; this is 4.4"},
		{"5.4", "max_ptes_shared=0", "max_ptes_shared=0 needs Linux 5.8 or later; this is 5.4"},
		{"4.4", "advise=all", ""},
	} {
		p, err := ParsePolicySpec(DefaultPolicy(s), c.spec, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Needs(rules(t, c.version), s), "; "); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.spec, c.version, got, c.want)
		}
	}
}
