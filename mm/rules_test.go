package mm

import (
	"slices"
	"testing"
)

func TestParseRelease(t *testing.T) {
	for _, c := range []struct {
		text string
		want Release
	}{
		{"6.18", Release{6, 18, 0}},
		{"6.18.44", Release{6, 18, 44}},
		{"v6.8.0-45-generic", Release{6, 8, 0}},
		{"5.14.0-427.el9.x86_64", Release{5, 14, 0}},
		{"6.12-rc5", Release{6, 12, 0}},
		{"6.1.", Release{6, 1, 0}},
		{"4.4.302+\n", Release{4, 4, 302}},
	} {
		if got, err := ParseRelease(c.text); got != c.want || err != nil {
			t.Errorf("%q: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "6", "six.one", "v", "6.", "6.x", "99999.1", "-6.1"} {
		if got, err := ParseRelease(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
	if _, err := RulesFor("3.10.0-1160.el7"); err == nil {
		t.Error("3.10 gave rules")
	}
}

// TestRulesFor tells each switch by the release before it and the first with
// it. The releases stand here again, by hand, against a slip in the table.
func TestRulesFor(t *testing.T) {
	for _, c := range []struct{ without, with, field string }{
		{"4.5.7", "4.6", "Defer"},
		{"4.7", "4.8", "KhugepagedSwap"},
		{"4.10", "4.11", "DeferMadvise"},
		{"5.7.19", "5.8", "CowSplitsPMD"},
		{"5.7", "5.8", "KhugepagedShared"},
		{"6.0", "6.1.0-13-amd64", "Collapse"},
		{"5.19.17", "6.0", "ProtectAllows"},
		{"6.1.192", "6.2", "ProtectClean"},
		{"6.1.192", "6.2", "ProtectPMD"},
		{"6.1.192", "6.2", "SplitDirty"},
		{"6.9", "6.10", "FreeWhole"},
		{"6.3", "6.4", "PerVMALock"},
		{"6.7", "6.8.0-45-generic", "MTHP"},
		{"6.7.5", "6.7.6", "StackNoHuge"},
		{"6.7", "6.8", "StackNoHuge"},
		{"6.8", "6.9", "BatchedZap"},
		{"6.9", "6.10", "PMDChargeStats"},
		{"6.9", "6.10", "SizeStats"},
		{"6.9", "6.10", "CopyLarge"},
		{"6.10", "6.11", "SizeSplitStats"},
		{"6.11", "6.12", "SizeGauges"},
		{"6.11", "6.12", "THPAnonBoot"},
		{"6.11", "6.12", "ShrinkUnderused"},
		{"6.11", "6.12", "FastDeferred"},
		{"6.11", "6.12", "ZeroOnSplit"},
		{"6.12.50", "6.13", "GuardRegions"},
		{"6.12.117", "6.13", "UpgradeZeroPMD"},
		{"6.12.117", "5.7", "UpgradeZeroPMD"},
		{"6.13", "6.14", "PTReclaim"},
		{"6.15", "6.16", "MergeFaulted"},
		{"6.0", "6.1", "HeapApart"},
		{"6.16", "6.17", "MoveSeveral"},
		{"6.16", "6.17", "KeepUnlocksAll"},
		{"6.17", "6.18", "CollapseReadOnly"},
		{"6.14", "6.15", "MMIDs"},
		{"6.14", "6.15", "LargeReuse"},
		{"6.17", "6.18.3", "ExceptAdvised"},
	} {
		has := func(version string) bool {
			for _, f := range rules(t, version).Features() {
				if f.Name == c.field {
					return f.Has
				}
			}
			t.Fatalf("no feature %s", c.field)
			return false
		}
		if has(c.without) || !has(c.with) {
			t.Errorf("%s: %s %v, %s %v, want false, true", c.field, c.without, has(c.without), c.with, has(c.with))
		}
	}
}

func TestAlignRule(t *testing.T) {
	for version, want := range map[string]AlignRule{
		"6.6": AlignNone, "6.6.100": AlignNone, "6.7": AlignLong, "6.8": AlignLong, "6.11.6": AlignLong,
		"6.11.7": AlignMultiple, "6.12": AlignMultiple, "6.18.44": AlignMultiple, "7.0": AlignMultiple,
	} {
		if got := rules(t, version).AlignTHP; got != want {
			t.Errorf("%s aligns %v, want %v", version, got, want)
		}
	}
}

func TestRulesDiff(t *testing.T) {
	got := rules(t, "6.8").Diff(rules(t, "6.6"))
	want := []string{
		"6.8 has huge pages smaller than the PMD's size (since 6.8), 6.6 does not",
		"6.8 keeps huge pages out of MAP_STACK mappings (since 6.8), 6.6 does not",
		"6.8 flushes once for all hugetlb pages whose struct pages it gives back (since 6.7), 6.6 does not",
		"6.8 aligns every anonymous mapping of at least the huge page size, 6.6 aligns no anonymous mapping to the " +
			"huge page size",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if d := rules(t, "6.18").Diff(rules(t, "6.18.44")); len(d) != 0 {
		t.Errorf("6.18 differs from 6.18.44: %q", d)
	}
}
