package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

func noSuch(path string) error { return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist} }
func denied(path string) error { return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission} }

// able is a machine on which everything works.
func able() Host {
	sizes, _ := mm.SizesOf(4096)
	tree := fstest.MapFS{
		"proc/sys/kernel/perf_event_paranoid":                         {Data: []byte("2\n")},
		"proc/self/status":                                            {Data: []byte("CapEff:\t000001ffffffffff\nSeccomp:\t0\n")},
		"proc/self/cgroup":                                            {Data: []byte("0::/app\n")},
		"sys/fs/cgroup/cgroup.controllers":                            {Data: []byte("memory\n")},
		"sys/fs/cgroup/app/memory.max":                                {Data: []byte("1073741824\n")},
		"proc/buddyinfo":                                              {Data: []byte("Node 0, zone Normal 0 0 0 0 0 0 0 0 0 3 1\n")},
		"proc/sys/vm/hugetlb_optimize_vmemmap":                        {Data: []byte("1\n")},
		"sys/kernel/mm/transparent_hugepage/enabled":                  {Data: []byte("always [madvise] never\n")},
		"sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled":   {Data: []byte("always inherit madvise [never]\n")},
		"sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled": {Data: []byte("always [inherit] madvise never\n")},
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":       {Data: []byte("8\n")},
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":     {Data: []byte("5\n")},
		"sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages":     {Data: []byte("2\n")},
		"sys/kernel/tracing/events/header_page":                       {},
		"boot/vmlinuz-6.18.0":                                         {},
	}
	return Host{
		OS: "linux", FS: tree,
		Facts: kernel.Facts{
			Release: "6.18.0-test", Arch: "amd64", PageSize: 4096, Sizes: sizes, CPUs: 4, MemTotal: 8 << 30,
			Limit: kstat.MemoryLimit{},
		},
		Tracepoint:  func(string) error { return nil },
		FaultEvent:  func(bool) error { return nil },
		PageMap:     func() (bool, error) { return true, nil },
		PageMapScan: func() error { return nil },
		Writable:    func(string) error { return nil },
		KVM:         func() error { return nil },
		LookPath:    func(p string) (string, error) { return "/usr/bin/" + p, nil },
	}
}

// small is a user without rights in a container on an old distribution kernel.
func small() Host {
	h := able()
	h.FS = fstest.MapFS{
		"proc/sys/kernel/perf_event_paranoid":        {Data: []byte("4\n")},
		"proc/sys/kernel/yama/ptrace_scope":          {Data: []byte("1\n")},
		"proc/self/status":                           {Data: []byte("CapEff:\t0000000000000000\nSeccomp:\t2\n")},
		"proc/self/cgroup":                           {Data: []byte("0::/\n")},
		"sys/kernel/security/lockdown":               {Data: []byte("none integrity [confidentiality]\n")},
		"sys/kernel/tracing/events/header_page":      {},
		"sys/kernel/mm/transparent_hugepage/enabled": {Data: []byte("[always] madvise never\n")},
	}
	h.Facts.Release = "5.15.0-100-generic"
	h.Tracepoint = func(n string) error { return denied("/sys/kernel/tracing/events/" + n + "/id") }
	h.FaultEvent = func(bool) error { return denied("perf_event_open") }
	h.PageMap = func() (bool, error) { return false, nil }
	h.PageMapScan = func() error { return errors.New("PAGEMAP_SCAN: inappropriate ioctl for device") }
	h.Writable = denied
	h.KVM = func() error { return fmt.Errorf("/dev/kvm: version 0: %w", errors.ErrUnsupported) }
	h.LookPath = func(string) (string, error) { return "", noSuch("qemu") }
	return h
}

func table(t *testing.T, h Host) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, Run(h)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTable holds the tables of four machines to goldens. HUGELAB_UPDATE=1
// rewrites them.
func TestTable(t *testing.T) {
	darwin := small()
	darwin.OS, darwin.FS, darwin.Facts.Release, darwin.Facts.MemTotal = "darwin", fstest.MapFS{}, "", 0
	noTHP := able()
	tree := noTHP.FS.(fstest.MapFS)
	for p := range tree {
		if strings.HasPrefix(p, "sys/kernel/mm") || strings.HasPrefix(p, "sys/kernel/tracing") || strings.HasPrefix(p, "boot") {
			delete(tree, p)
		}
	}
	noTHP.Tracepoint, noTHP.Writable, noTHP.KVM = noSuch, noSuch, func() error { return noSuch("/dev/kvm") }
	for name, h := range map[string]Host{"able": able(), "small": small(), "darwin": darwin, "nothp": noTHP} {
		got := table(t, h)
		path := filepath.Join("testdata", name+".txt")
		if os.Getenv("HUGELAB_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: the table is\n%s\nwant\n%s", name, got, want)
		}
		for line := range strings.Lines(got) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > Width {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}

// TestAnswers: every answer is one of three, has a reason, and where it is no
// for want of rights, something to type.
func TestAnswers(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append(Run(able()), Run(small())...) {
		if c.Answer != Yes && c.Answer != No && c.Answer != Unknown {
			t.Errorf("%s answers %q", c.Name, c.Answer)
		}
		if c.Why == "" {
			t.Errorf("%s gives no reason", c.Name)
		}
		seen[c.Name] = true
	}
	for _, c := range Run(able()) {
		if c.Answer != Yes {
			t.Errorf("%s: %s on a machine that can do all: %s", c.Name, c.Answer, c.Why)
		}
	}
	if len(seen) != len(probes()) {
		t.Errorf("%d names for %d probes", len(seen), len(probes()))
	}
	for _, c := range Run(small()) {
		if strings.HasPrefix(c.Name, "record.root") && (c.Answer != No || c.Do == "" || !strings.Contains(c.Why, "CAP_PERFMON")) {
			t.Errorf("%+v", c)
		}
	}
}

// TestLive runs every probe on this machine, whatever it can do.
func TestLive(t *testing.T) {
	checks := Run(Live())
	if len(checks) != len(probes()) {
		t.Errorf("%d answers to %d probes", len(checks), len(probes()))
	}
	if _, err := json.Marshal(checks); err != nil {
		t.Error(err)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one", 10, "one"},
		{"one two three", 7, "one two|three"},
		{"one  two", 3, "one|two"},
		{"unbreakable word", 4, "unbreakable|word"},
		{"drei größere", 12, "drei größere"},
	} {
		if got := strings.Join(wrap(c.text, c.width), "|"); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
