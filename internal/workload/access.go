package workload

import (
	"math/rand/v2"

	"github.com/hugelab/hugelab/hw"
)

// RandomAccess is what finding translations costs an access, in nanoseconds on
// average, when a program reads at random places in size bytes that pages of
// one size map. The machine's TLBs and page walker are simulated; the accesses
// that fill them are not counted.
func RandomAccess(m *hw.Machine, size uint64, page hw.PageSize, accesses int, seed uint64) (float64, error) {
	t, err := hw.NewTLB(m)
	if err != nil {
		return 0, err
	}
	x := rand.New(rand.NewPCG(seed, size))
	for range accesses / 4 {
		t.Access(x.Uint64N(size), page)
	}
	sum := 0.0
	for range accesses {
		_, cost := t.Access(x.Uint64N(size), page)
		sum += cost
	}
	return sum / float64(accesses), nil
}
