package workload

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Touch writes once to each page of fresh anonymous memory of n pages under a
// policy, and returns the kernel's work from the first fault to the last.
func Touch(rules mm.Rules, p mm.Policy, n mm.Pages) (*mm.WorkSum, error) {
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 4 << 30}}, Rules: rules, Policy: p})
	if err != nil {
		return nil, fmt.Errorf("touch: %w", err)
	}
	if _, err := m.Exec([]mm.Op{
		{Kind: mm.OpExec, Space: 1},
		{Kind: mm.OpMap, Space: 1, Region: 1, N: n, Access: mm.Read | mm.Write},
	}, nil); err != nil {
		return nil, fmt.Errorf("touch: %w", err)
	}
	before, _ := m.WorkDone()
	was := *before
	touch := mm.Op{Kind: mm.OpTouch, Space: 1, Region: 1, N: n, Stride: 1, Access: mm.Write}
	if _, err := m.Exec([]mm.Op{touch}, nil); err != nil {
		return nil, fmt.Errorf("touch: %w", err)
	}
	after, _ := m.WorkDone()
	done := *after
	for i := range done {
		done[i] -= was[i]
	}
	return &done, nil
}
