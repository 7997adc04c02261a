package procfs

import "github.com/hugelab/hugelab/mm"

// state is all that the files show.
type state struct {
	memory   mm.Memory
	counters mm.Counters
	policy   mm.Policy
	rules    mm.Rules
	sizes    mm.Sizes
	pools    []mm.PoolInfo
}

func stateOf(m *mm.Machine) *state {
	return &state{m.Memory(), m.Counters, m.Policy(), m.Rules(), m.Sizes(), m.Pools()}
}

// kB is a number of base pages in kilobytes.
func (s *state) kB(n uint64) uint64 { return n * uint64(s.sizes.Base) >> 10 }
