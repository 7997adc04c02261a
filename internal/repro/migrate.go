package repro

import (
	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// thpMigration is a huge page moved whole, against the same memory in small
// pages, and against splitting it first.
func thpMigration() Result {
	return Result{
		Name: "thp-migration", Machine: "xeon-e5-2640v4", Main: "ratio_512x4k_to_2m", Model: migrateModel,
		Did: "one move_pages call each to the other node, with the rules of Linux 4.9 and huge pages moved whole: " +
			"one small page, 512 small pages, one huge page, one huge page split first; then random reads in 1 GiB of " +
			"moved memory through the machine's TLBs",
		NoHost: "moving pages to another node needs two memory nodes, and no run is written for hosts that have them",
		Causes: []string{
			"a huge page moves faster than published: copying to the other node is taken to be as fast as a copy " +
				"within one, but for the latency of the link; a copy by rep movs that waits for the other socket's " +
				"snoops may well be slower",
			"split first: what splitting costs is preset metal's, measured on later kernels; 4.9's was not measured",
		},
		Tries: []Try{
			{"copying twice as fast", []string{"copy.rate=*2"}},
			{"copying half as fast", []string{"copy.rate=*0.5"}},
			{"no work a page beside the copy", []string{"migrate.scale=0", "work.flush=0"}},
			{"no draining of per-CPU lists", []string{"work.lru_drain=0"}},
		},
	}
}

// migrateModel runs the four forms, and the two main ones again with the
// batches of later kernels.
func migrateModel(e Env) (Values, error) {
	rules, err := mm.RulesFor("4.9")
	if err != nil {
		return nil, err
	}
	rules.MigrateTHP = true // what the series brought
	var all [workload.MigrateSplit + 1]*workload.Migration
	for how := range all {
		if all[how], err = workload.Migrate(e.Machine, rules, workload.MigrateHow(how)); err != nil {
			return nil, err
		}
	}
	one, small, whole, split := all[0], all[1], all[2], all[3]
	var v Values
	v.Add("ratio_512x4k_to_2m", small.Total()/whole.Total())
	v.Add("in_kernel_ratio", small.InKernel()/whole.InKernel())
	v.Add("copy_only_ratio", small.CopyAndState()/whole.CopyAndState())
	v.Add("time_1x4k_us", one.Total()/1000)
	v.Add("time_512x4k_us", small.Total()/1000)
	v.Add("time_2m_us", whole.Total()/1000)
	v.Add("time_split_then_move_us", (split.Split+split.Total())/1000)
	v.Add("split_us", split.Split/1000)
	v.Add("ratio_split_then_move_to_2m", (split.Split+split.Total())/whole.Total())
	for _, s := range []struct {
		name string
		m    *workload.Migration
	}{{"512x4k", small}, {"2m", whole}} {
		v.Add("call_and_isolate_"+s.name+"_us", s.m.Call/1000)
		v.Add("unmap_and_flush_"+s.name+"_us", s.m.Unmap/1000)
		v.Add("copy_"+s.name+"_us", s.m.Copy/1000)
		v.Add("state_"+s.name+"_us", s.m.State/1000)
		v.Add("remap_"+s.name+"_us", s.m.Remap/1000)
	}
	v.Add("move_saves_per_2m_us", (small.Total()-whole.Total())/1000)
	return v, pass(e, &v, small.Total()-whole.Total())
}

// The pass over the moved memory: random reads in 1 GiB.
const (
	passBytes    = 1 << 30
	passAccesses = 1 << 18
)

// pass adds what having kept the huge pages is worth to the program afterwards,
// apart from what the move saved: the cost of finding translations, and how
// many accesses to each 2 MB are worth as much as the move.
func pass(e Env, v *Values, saved float64) error {
	small, err := workload.RandomAccess(e.Machine, passBytes, hw.PageBase, passAccesses, e.Seed)
	if err != nil {
		return err
	}
	huge, err := workload.RandomAccess(e.Machine, passBytes, hw.Page2M, passAccesses, e.Seed)
	if err != nil {
		return err
	}
	v.Add("access_translation_4k_ns", small)
	v.Add("access_translation_2m_ns", huge)
	if small > huge {
		v.Add("accesses_per_2m_worth_the_move", saved/(small-huge))
	}
	return nil
}
