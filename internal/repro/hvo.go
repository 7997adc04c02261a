package repro

import (
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// The published results of giving back the struct pages of hugetlb pages: how
// many, what it costs the pool, and what taking and releasing all pages of a
// region costs with and without.

// gup1G is gup_test on 16 GB of 1 GB pages.
func gup1G() Result {
	return Result{
		Name: "gup-1g", Machine: "xeon-e5-2699v4", Main: "get_ratio", Model: modelGUP,
		Did: "takes and releases every page of 16 GB of hugetlb memory, 512 pages a call, longterm pins, and plays each " +
			"look at a struct page through one core's caches and TLBs; a call takes the longer of its work and its " +
			"waiting for lines; this host: longterm pins of 1 GiB of 2 MB pages by registering it as a buffer of " +
			"io_uring, a few small pages amid them so that each pin is released by itself (host_register_ratio and " +
			"host_unregister_ratio: without those, where io_uring keeps one pin a huge page)",
		Host: gupHost,
		NoHost: "gup_test is a part of few kernels, and of the system calls io_uring's alone come near: it releases pins one " +
			"by one, and its times are of 1 GiB in 2 MB pages (host_*), not of 16 GB in 1 GB pages",
		Tries: []Try{
			{What: "a last-level cache that holds all struct pages", Set: []string{"llc.size=1g"}},
			{What: "memory that answers at once", Set: []string{"memory.latency=*0"}},
		},
		Causes: []string{
			"unpin_ratio_single: two atomic operations a page take longer than its struct page, so that in the model nothing " +
				"is left to gain; the published 7 % say that the two did not overlap wholly",
			"the published times are of a machine that is not stated; the model's is a server of those years",
		},
	}
}

// gupCase runs gup_test with HVO off and on.
func gupCase(env Env, how mm.GUP, group bool) (off, on workload.GUPTimes, err error) {
	rules, err := mm.RulesFor("5.12") // the kernel it was measured on, and the series
	if err != nil {
		return off, on, err
	}
	rules.HVO, rules.UnpinGroups = true, group
	g := workload.GUP{Machine: env.Machine, Rules: rules, Size: 16 << 30, Page: 1 << 30, PerCall: 512, How: how,
		GetOnly: env.MainOnly}
	if off, err = g.Run(); err != nil {
		return off, on, err
	}
	g.HVO = true
	on, err = g.Run()
	return off, on, err
}

func modelGUP(env Env) (Values, error) {
	const pin = mm.GUPPin | mm.GUPWrite | mm.GUPLongterm
	off, on, err := gupCase(env, pin, false)
	if err != nil {
		return nil, err
	}
	var v Values
	us := func(t mm.Nanos) float64 { return float64(t) / 1000 }
	v.Add("get_ratio", us(off.Get)/us(on.Get))
	if env.MainOnly {
		return v, nil
	}
	goff, gon, err := gupCase(env, pin, true)
	if err != nil {
		return nil, err
	}
	v.Add("unpin_ratio_single", us(off.Put)/us(on.Put))
	v.Add("unpin_ratio_grouped", us(goff.Put)/us(gon.Put))
	v.Add("get_us_base", us(off.Get))
	v.Add("get_us_hvo", us(on.Get))
	v.Add("unpin_single_us_base", us(off.Put))
	v.Add("unpin_single_us_hvo", us(on.Put))
	v.Add("unpin_grouped_us_base", us(goff.Put))
	v.Add("unpin_grouped_us_hvo", us(gon.Put))
	v.Add("struct_page_lines", float64(off.PutLines.Looked))
	return v, nil
}

// hvo is what giving struct pages back saves, and what it costs the pool.
func hvo() Result {
	return Result{
		Name: "hvo", Machine: "xeon-e5-2699v4", Main: "grow_ratio", Model: modelHVO,
		Did: "makes pools in a machine that keeps its struct pages in its own memory and counts what comes free; grows and " +
			"shrinks a pool of 10,240 pages of 2 MB with and without, by Linux 5.14 and (batched) 6.7; this host: a pool " +
			"of 512 pages, the median of three",
		Host: hvoHost,
		NoHost: "a host's kernel is of one generation, keeps one or two pages and has batches or none; and its run makes a " +
			"pool of 1 GiB of 2 MB pages, no more",
		Tries: []Try{
			{What: "flushes that interrupt nobody", Set: []string{"ipi.wait=*0", "ipi.send=*0"}},
			{What: "one processor", Set: []string{"cpu.sockets=1", "cpu.cores=1", "cpu.threads=1"}},
			{What: "32 hardware threads", Set: []string{"cpu.cores=8"}},
		},
		Causes: []string{
			"grow_ratio, shrink_ratio: with 5.14 each page of the pool has flushes that interrupt every processor, and the " +
				"published machine is not stated: the model's has 88 hardware threads; with 32 growing comes out as " +
				"published, and shrinking, which copies struct pages back, half as high again",
			"saved_1tib_1g_gib: the published 16 is rounded; exact is what 4094 pages of each 1 GB page make",
		},
	}
}

// saved is what a page of a pool gives back, in pages.
func saved(version string, page mm.Order, of mm.Pages) (float64, error) {
	p, err := workload.NewPool(version, true, (of+4)*page.Pages())
	if err != nil {
		return 0, err
	}
	if _, err := p.Resize(page, uint64(of)); err != nil {
		return 0, err
	}
	return float64(p.Saved()) / float64(of), nil
}

func modelHVO(env Env) (Values, error) {
	var v Values
	if env.MainOnly {
		return v, poolTimes(env, &v)
	}
	for _, gen := range []struct{ version, suffix string }{{"5.14", ""}, {"5.18", "_one_kept"}} {
		const tib = 1 << 40
		small, err := saved(gen.version, 9, 512)
		if err != nil {
			return nil, err
		}
		large, err := saved(gen.version, 18, 4)
		if err != nil {
			return nil, err
		}
		v.Add("pages_freed_2m"+gen.suffix, small)
		v.Add("pages_freed_1g"+gen.suffix, large)
		v.Add("saved_1tib_2m_gib"+gen.suffix, small*(tib>>21)*4096/(1<<30))
		v.Add("saved_1tib_1g_gib"+gen.suffix, large*(tib>>30)*4096/(1<<30))
	}
	return v, poolTimes(env, &v)
}

// poolTimes adds what growing and shrinking take, before and after flushes were
// batched.
func poolTimes(env Env, v *Values) error {
	const pages = 10240
	for _, k := range []struct{ version, suffix string }{{"5.14", ""}, {"6.7", "_batched"}} {
		var grow, shrink [2]float64
		for i, on := range []bool{false, true} {
			p, err := workload.NewPool(k.version, on, (pages+2048)*512)
			if err != nil {
				return err
			}
			g, err := p.Resize(9, pages)
			if err != nil {
				return err
			}
			s, err := p.Resize(9, 0)
			if err != nil {
				return err
			}
			grow[i], shrink[i] = workload.PoolNanos(env.Machine, g), workload.PoolNanos(env.Machine, s)
		}
		addPoolTimes(v, k.suffix, grow, shrink, pages)
		if env.MainOnly {
			break
		}
	}
	return nil
}

// addPoolTimes adds what growing and shrinking a pool by so many pages took,
// in nanoseconds, without vmemmap optimisation and with it.
func addPoolTimes(v *Values, suffix string, grow, shrink [2]float64, pages float64) {
	if grow[0] <= 0 || shrink[0] <= 0 {
		return
	}
	v.Add("grow_ratio"+suffix, grow[1]/grow[0])
	v.Add("shrink_ratio"+suffix, shrink[1]/shrink[0])
	v.Add("grow_us_per_page_off"+suffix, grow[0]/pages/1000)
	v.Add("grow_us_per_page_on"+suffix, grow[1]/pages/1000)
	v.Add("shrink_us_per_page_off"+suffix, shrink[0]/pages/1000)
	v.Add("shrink_us_per_page_on"+suffix, shrink[1]/pages/1000)
}
