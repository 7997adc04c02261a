package repro

import (
	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// touchPages is how much memory is touched, page by page: what one thread of a
// host can do of folio-sizes without a compiler.
const touchPages = 8192

// touchModel adds the time to touch memory with folios of each size, against
// pages of 4 kB. A loop that does nothing but fault finds the kernel in its
// caches.
func touchModel(m *hw.Machine, v *Values) error {
	rules, err := folioRules()
	if err != nil {
		return err
	}
	warm, err := m.With("kernel.cold", "0")
	if err != nil {
		return err
	}
	price := foldedCosts(warm)
	var base float64
	for _, row := range folioRows[:6] {
		p, err := row.policy()
		if err != nil {
			return err
		}
		w, err := workload.Touch(rules, p, touchPages)
		if err != nil {
			return err
		}
		addTouch(v, row.name, float64(price.PriceSum(w)), &base)
	}
	return nil
}

// addTouch adds one size's time; the first is the base.
func addTouch(v *Values, name string, time float64, base *float64) {
	if *base <= 0 {
		*base = time
		return
	}
	v.Add("touch_kernel_time_"+name+"_percent", 100*(time / *base - 1))
}

// policy is the row's settings, all others being the kernel's defaults.
func (r *folioRow) policy() (mm.Policy, error) {
	return mm.ParsePolicySpec(mm.DefaultPolicy(folioPages), r.spec, folioPages)
}
