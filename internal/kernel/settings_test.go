package kernel

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hugelab/hugelab/mm"
)

// fakeTree writes a tree of settings, as a kernel shows them.
func fakeTree(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		thpDir + "/enabled":                                   "always [madvise] never",
		thpDir + "/defrag":                                    "always defer defer+madvise [madvise] never",
		thpDir + "/use_zero_page":                             "1",
		thpDir + "/shrink_underused":                          "1",
		thpDir + "/shmem_enabled":                             "always within_size advise [never] deny force",
		thpDir + "/khugepaged/max_ptes_none":                  "511",
		thpDir + "/khugepaged/scan_sleep_millisecs":           "10000",
		thpDir + "/hugepages-64kB/enabled":                    "always inherit madvise [never]",
		thpDir + "/hugepages-64kB/stats/split":                "7",
		thpDir + "/hugepages-2048kB/enabled":                  "always [inherit] madvise never",
		poolDir + "/hugepages-2048kB/nr_hugepages":            "3",
		poolDir + "/hugepages-2048kB/surplus_hugepages":       "0",
		poolDir + "/hugepages-2048kB/nr_overcommit_hugepages": "4",
		hvoFile: "0",
		minFree: "67584",
	}
	for file, text := range files {
		p := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ro := filepath.Join(root, thpDir, "hpage_pmd_size")
	if err := os.WriteFile(ro, []byte("2097152\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	return root
}

func readFake(t testing.TB, root string) Values {
	t.Helper()
	v, err := ReadValues(root)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReadValues(t *testing.T) {
	root := fakeTree(t)
	pool := filepath.Join(root, poolDir, "hugepages-2048kB")
	for file, text := range map[string]string{"nr_hugepages": "5", "surplus_hugepages": "2"} {
		if err := os.WriteFile(filepath.Join(pool, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v := readFake(t, root)
	for file, want := range map[string]string{
		thpDir + "/enabled": "madvise", thpDir + "/hugepages-2048kB/enabled": "inherit",
		thpDir + "/shmem_enabled": "never", poolDir + "/hugepages-2048kB/nr_hugepages": "3", minFree: "67584",
	} {
		if v[file] != want {
			t.Errorf("%s is %q, want %q", file, v[file], want)
		}
	}
	for _, file := range []string{thpDir + "/hpage_pmd_size", thpDir + "/hugepages-64kB/stats/split"} {
		if _, ok := v[file]; ok {
			t.Errorf("%s is no setting", file)
		}
	}
	if _, err := ReadValues(t.TempDir()); err == nil {
		t.Error("an empty tree has settings")
	}
}

func TestValuesTextParsesBack(t *testing.T) {
	v := readFake(t, fakeTree(t))
	var b bytes.Buffer
	if err := v.WriteText(&b, "one", "two words"); err != nil {
		t.Fatal(err)
	}
	got, header, err := ParseValues(b.Bytes())
	if err != nil || !maps.Equal(got, v) || !slices.Equal(header, []string{"one", "two words"}) {
		t.Errorf("%v, header %q: %s", err, header, cmp.Diff(v, got))
	}
}

func TestParseValuesRefuses(t *testing.T) {
	for _, text := range []string{
		"", "# only a header\n", "/etc/passwd root\n", thpDir + "/../../../etc/passwd x\n", minFree + "\n",
		"sys/kernel/mm/transparent_hugepage/enabled never\n", minFree + " 1\n" + minFree + " 2\n",
		thpDir + "/khugepaged/../enabled never\n", poolDir + "/hugepages-2048kB/demote 1\n",
	} {
		if v, _, err := ParseValues([]byte(text)); err == nil {
			t.Errorf("%q: taken as %v", text, v)
		}
	}
}

func FuzzParseValues(f *testing.F) {
	f.Add([]byte("# h\n" + minFree + " 1\n" + thpDir + "/enabled never\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, _, err := ParseValues(text)
		if err != nil {
			return
		}
		for file := range v {
			known := strings.HasPrefix(file, "/sys/") || strings.HasPrefix(file, "/proc/sys/vm/")
			if !known || strings.Contains(file, "..") {
				t.Errorf("would write %s", file)
			}
		}
	})
}

// TestChangesOrder: pools shrink, the vmemmap setting, pools grow, sizes,
// enabled, and min_free_kbytes last.
func TestChangesOrder(t *testing.T) {
	pool := func(size string) string { return poolDir + "/hugepages-" + size + "/nr_hugepages" }
	now := Values{minFree: "1", thpDir + "/enabled": "never", thpDir + "/defrag": "never", hvoFile: "0",
		pool("64kB"): "0", pool("2048kB"): "9"}
	want := Values{minFree: "2", thpDir + "/enabled": "always", thpDir + "/defrag": "always", hvoFile: "1",
		pool("64kB"): "10", pool("2048kB"): "1"}
	var got []string
	for _, c := range now.Changes(want) {
		got = append(got, c.File)
	}
	order := []string{pool("2048kB"), hvoFile, pool("64kB"), thpDir + "/defrag", thpDir + "/enabled", minFree}
	if !slices.Equal(got, order) {
		t.Error(cmp.Diff(order, got))
	}
}

func TestHostSettings(t *testing.T) {
	root := fakeTree(t)
	now := readFake(t, root)
	s, _ := mm.SizesOf(4096)
	r, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	base, err := now.Policy(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec string
		want Values
		err  string
	}{
		{spec: "64k=always", want: Values{thpDir + "/hugepages-64kB/enabled": "always"}},
		{spec: "hugetlb_2m=10", want: Values{poolDir + "/hugepages-2048kB/nr_hugepages": "10"}},
		{spec: "never,hvo=1,min_free_kbytes=9000,overcommit_2M=0", want: Values{
			thpDir + "/enabled": "never", thpDir + "/hugepages-2048kB/enabled": "never",
			hvoFile: "1", minFree: "9000", poolDir + "/hugepages-2048kB/nr_overcommit_hugepages": "0"}},
		{spec: "hugetlb_1g=1", err: "hugepages-2048kB"},
		{spec: "hugetlb_2m=many", err: "number"},
		{spec: "hvo=2", err: "0 or 1"},
		{spec: "min_free_kbytes=0", err: "above 0"},
		{spec: "advise=all", err: "no kernel"},
		{spec: "bogus", err: "hugetlb_SIZE"},
		{spec: "", err: "empty"},
	} {
		h, err := ParseHostSettings(base, c.spec, s)
		var v Values
		if err == nil {
			v, err = h.Values(now, s, r)
		}
		if c.err != "" || err != nil {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want one with %q", c.spec, err, c.err)
			}
			continue
		}
		got := Values{}
		for _, ch := range now.Changes(v) {
			got[ch.File] = ch.To
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%q: %s", c.spec, cmp.Diff(c.want, got))
		}
	}
}
