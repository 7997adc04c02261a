package record

import (
	"strings"
	"testing"
)

func TestParseFormat(t *testing.T) {
	const text = `name: page_fault_user
ID: 190
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned long args[6];	offset:16;	size:48;	signed:0;

	field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;

print fmt: "address=%ps", (void *)REC->address
`
	tp, err := parseFormat(text)
	if err != nil {
		t.Fatal(err)
	}
	if tp.id != 190 || tp.fields["args"] != (field{16, 48}) || tp.fields["filename"] != (field{8, 4}) {
		t.Errorf("got %+v", tp)
	}
	for _, bad := range []string{"", "ID: x", "ID: 99999999", "ID: 1\n\tfield:int a; offset:x; size:4;", "ID: 1\nfield:"} {
		if _, err := parseFormat(bad); err == nil {
			t.Errorf("%q was taken for a format", bad)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("ID: 1\n\tfield:int a[2];\toffset:8;\tsize:4;\tsigned:1;\n")
	f.Fuzz(func(t *testing.T, text string) { _, _ = parseFormat(text) })
}

// TestOwnTracefs: where tracefs is not mounted, a mount that nobody else sees does.
func TestOwnTracefs(t *testing.T) {
	needRoot(t)
	fs, err := mountTracefs()
	if err != nil {
		t.Skipf("no mount of our own: %v", err)
	}
	defer fs.close()
	text, err := fs.read("events/raw_syscalls/sys_enter/format")
	if err != nil || !strings.Contains(text, "args[6]") {
		t.Errorf("format %q, %v", text, err)
	}
	if _, err := fs.tracepoint("raw_syscalls/sys_enter", "no_such_field"); err == nil {
		t.Error("a missing field was not noticed")
	}
}

func TestParseCPUList(t *testing.T) {
	cpus, err := parseCPUList("0-2,7")
	if err != nil || len(cpus) != 4 || cpus[3] != 7 {
		t.Errorf("got %v, %v", cpus, err)
	}
	for _, bad := range []string{"", "3-1", "a", "0-99999999"} {
		if _, err := parseCPUList(bad); err == nil {
			t.Errorf("%q was taken for a list", bad)
		}
	}
}
