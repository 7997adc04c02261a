package difftest

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	os.Exit(m.Run())
}

func TestHunt(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("HUNT"), 10, 64)
	if err != nil {
		t.Skip("HUNT is not set to a seed")
	}
	n := 60
	if v, err := strconv.Atoi(os.Getenv("HUNT_N")); err == nil {
		n = v
	}
	rules, _ := mm.RulesFor("6.18")
	rules.NoZeroPage = kernel.NoZeroPage()
	s, err := takeSettings(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	spec := GeneratePolicy(seed, os.Getenv("HUNT_LOUD") == "")
	policy, err := policyOf(spec)
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
	model := func(p *Program) (Executor, error) { return NewModel(p, rules, true) }
	host := func(p *Program) (Executor, error) { return h.Start() }
	kinds := map[string]int{}
	for i := range n {
		p := Generate(seed, uint64(i), spec, 40)
		out, err := Run(p, model, host, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if d := out.Difference; d != nil {
			what := p.Steps[d.Step].Verb.String() + " " + adviceName(p.Steps[d.Step].Advice) + ": " + d.What
			kinds[what]++
			if kinds[what] <= 1 {
				p, d = Shrink(p, func(q *Program) *Difference {
					out, err := Run(q, model, host, nil)
					if err != nil || out.Difference == nil || out.Difference.What != d.What {
						return nil
					}
					return out.Difference
				})
				t.Errorf("%s: %s\n%s", p.Name, d, p)
			}
		}
	}
	t.Log(spec)
	for k, v := range kinds {
		t.Log(v, k)
	}
}
