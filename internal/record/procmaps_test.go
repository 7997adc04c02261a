package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProcMaps(t *testing.T) {
	const text = `55d0a000-55d0b000 r-xp 00001000 fe:01 42                       /usr/bin/a b
55d0c000-55d2d000 rw-p 00000000 00:00 0                          [heap]
7f00000000-7f00001000 rw-s 00000000 00:01 7                      /memfd:x (deleted)
7ffd0000-7ffd2000 rw-p 00000000 00:00 0                          [stack]
7ffd8000-7ffd9000 ---p 00000000 00:00 0 
`
	got, err := parseProcMaps([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []mmap2{
		{start: 0x55d0a000, end: 0x55d0b000, offset: 0x1000, ident: fileIdent(0xfe, 1, 42), prot: 5, flags: 2, name: "/usr/bin/a b"},
		{start: 0x55d0c000, end: 0x55d2d000, prot: 3, flags: 2, name: "[heap]"},
		{start: 0x7f00000000, end: 0x7f00001000, ident: fileIdent(0, 1, 7), prot: 3, flags: 1, name: "/memfd:x (deleted)"},
		{start: 0x7ffd0000, end: 0x7ffd2000, prot: 3, flags: 0x102, name: "[stack]"},
		{start: 0x7ffd8000, end: 0x7ffd9000, flags: 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mmap2{})); diff != "" {
		t.Errorf("maps (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"x", "1-2", "2-1 rwxp 0 0:0 0", "1-2 rw", "1-2 rwxp 0 0:0 zz", "1-g rwxp 0 0:0 0"} {
		if _, err := parseProcMaps([]byte(bad)); err == nil {
			t.Errorf("%q was taken for a map", bad)
		}
	}
}

func TestSettleMaps(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []mmap2
	}{
		{"a later one replaces the middle", []mmap2{{start: 0, end: 10, prot: 1}, {start: 4, end: 6, prot: 2}},
			[]mmap2{{start: 0, end: 4, prot: 1}, {start: 4, end: 6, prot: 2}, {start: 6, end: 10, offset: 6, prot: 1}}},
		{"a whole one goes", []mmap2{{start: 2, end: 4}, {start: 0, end: 8, prot: 3}}, []mmap2{{start: 0, end: 8, prot: 3}}},
		{"the last stack counts", []mmap2{{start: 90, end: 99, name: "[stack]"}, {start: 70, end: 80, name: "[stack]"}},
			[]mmap2{{start: 70, end: 80, name: "[stack]"}}},
		{"sorted", []mmap2{{start: 5, end: 6}, {start: 1, end: 2}}, []mmap2{{start: 1, end: 2}, {start: 5, end: 6}}},
	} {
		if diff := cmp.Diff(c.want, settleMaps(c.in), cmp.AllowUnexported(mmap2{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func FuzzProcMaps(f *testing.F) {
	f.Add([]byte("7ffd0000-7ffd2000 rw-p 00000000 00:00 0   [stack]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		maps, _ := parseProcMaps(b)
		if len(maps) < 50 {
			for i, m := range settleMaps(maps) {
				if m.start >= m.end || i > 0 && m.start == 0 {
					t.Fatalf("map %d is %+v", i, m)
				}
			}
		}
	})
}
