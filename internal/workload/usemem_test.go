package workload

import (
	"strings"
	"testing"
)

func TestParseUsemem(t *testing.T) {
	u, err := ParseUsemem(strings.Fields("--runtime 300 -n 88 -O -U --reverse --step=16 2g"))
	if err != nil {
		t.Fatal(err)
	}
	want := Usemem{
		Processes: 88, Bytes: 2 << 30, Step: 16, Repeat: 1, Seconds: 300,
		Reverse: true, Anonymous: true, Hugetlb: true,
	}
	if u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
	if u, err = ParseUsemem(strings.Fields("-j 1 4k")); err != nil || u.Step != Word || u.Bytes != 4096 {
		t.Errorf("%+v %v: steps are words at least", u, err)
	}
	for _, bad := range []string{
		"", "-n", "-n x 1m", "-n 0 1m", "--sleep 3 1m", "-R --reverse 1m", "1q", "99999999t", "-n 9999999 1m",
	} {
		if _, err := ParseUsemem(strings.Fields(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestUsememCredit(t *testing.T) {
	var u Usemem
	if got := u.Credit(1<<20, 1<<17); got != 1<<20+1<<17 {
		t.Errorf("1 MB and as many words credit %d", got)
	}
}
