package difftest

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

func TestX(t *testing.T) {
	b, err := os.ReadFile(os.Getenv("PROG"))
	if err != nil {
		t.Skip("no PROG")
	}
	p, err := Parse("x", strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := mm.RulesFor("6.18")
	rules.NoZeroPage = true
	s, err := takeSettings(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	policy, err := policyOf(p.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.apply(policy, rules); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHost()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	out, err := Run(p, func(p *Program) (Executor, error) { return NewModel(p, rules, true) }, func(p *Program) (Executor, error) { return h.Start() }, func(i int, m, h *Seen) {
		t.Log(p.Steps[i].String())
		for k, s := range []*Seen{m, h} {
			t.Log(k, s.Errno, s.Faults, s.Refused, len(s.Procs[0].Pages), s.Procs[0].Pages[max(0, len(s.Procs[0].Pages)-3):])
			for j, q := range s.Procs {
				run := 0
				for i, x := range q.Pages {
					if i+1 < len(q.Pages) && q.Pages[i+1].At == x.At+4096 && run > 0 && strings.Split(q.Pages[i+1].String(), "[")[0] == strings.Split(x.String(), "[")[0] {
						run++
						continue
					}
					run = 1
					if i < 40 {
						t.Logf("    %d %d %x %s", j, run, x.At, x)
					}
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.Difference)
}
