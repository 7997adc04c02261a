package sim

import (
	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
)

// costs are a machine's numbers as sim uses them, in nanoseconds.
type costs struct {
	work [mm.NumPrims]float64 // without what sim times by itself: entries, locks, flushes

	enter, exit  mm.Nanos // a fault's way into the kernel and out
	call         mm.Nanos // a system call's
	lookup       mm.Nanos // a VMA's
	checks       mm.Nanos // of speculation
	commit       mm.Nanos // the page-table lock is held for
	zoneHold     mm.Nanos // a zone's lock, for one batch
	lruHold      mm.Nanos // the LRU's lock, for one batch
	touch        float64  // a program's access to a page
	pageTransfer float64  // memory is busy with one page cleared or copied

	lineOwn, lineMove           mm.Nanos
	wakeup, wake, sched, slice  mm.Nanos
	spin                        bool
	flush                       mm.Nanos
	ipiSend, ipiWait, ipiHandle mm.Nanos
}

// costsOf reads a machine.
func costsOf(hm *hw.Machine, m *mm.Machine, cpus int) costs {
	get := func(key string) mm.Nanos { return mm.Nanos(hm.Get(key)) }
	factor := hm.Get("kernel.factor")
	c := costs{
		work:    hm.Costs().Nanos,
		touch:   hm.Get("user.touch"),
		lineOwn: get("line.own"), lineMove: mm.Nanos(lineMove(hm, cpus)),
		wakeup: get("lock.wakeup"), wake: get("lock.wake"), spin: hm.Get("lock.spin") != 0,
		sched: get("sched.switch"), slice: max(get("sched.slice"), 1000),
		ipiSend: get("ipi.send"), ipiWait: get("ipi.wait"), ipiHandle: get("ipi.handle"),
	}
	for i := range c.work {
		c.work[i] *= factor
	}
	if rate := hm.Get("clear.rate"); rate > 0 && hm.Get("work.clear_pmd") == 0 {
		c.work[mm.PrimClearPMD] = float64(m.PageSize()) / rate // bytes by GB/s are nanoseconds
	}
	w := &c.work
	scaled := func(f float64) mm.Nanos { return mm.Nanos(f) }
	c.enter, c.exit = scaled(w[mm.PrimFaultUser]*0.6), scaled(w[mm.PrimFaultUser]*0.4)
	c.call = mm.Nanos(hm.Get("call.enter") * factor)
	c.lookup = mm.Nanos(hm.Get("vma.lookup") * factor)
	c.checks = c.lookup
	c.commit = scaled(w[mm.PrimPTELock] + w[mm.PrimRmapAdd] + w[mm.PrimLRUAdd] + w[mm.PrimPTESet])
	c.zoneHold = scaled(w[mm.PrimZoneLock])
	c.lruHold = scaled(w[mm.PrimLRUAdd] * lruBatch / 2)
	c.flush = scaled(w[mm.PrimFlush])
	for _, p := range [...]mm.Prim{mm.PrimFaultUser, mm.PrimFaultKernel, mm.PrimMmapRead, mm.PrimMmapWrite,
		mm.PrimVMALock, mm.PrimPTELock, mm.PrimZoneLock, mm.PrimFlush, mm.PrimFlushFull} {
		w[p] = 0
	}
	if bw := hm.Get("memory.bandwidth") * hm.Get("nodes"); bw > 0 {
		c.pageTransfer = float64(m.PageSize()) * (1 + hm.Get("clear.reads")) / bw
	}
	return c
}

// lineMove is what a line's move takes between two of the processors: they fill
// one package after another.
func lineMove(hm *hw.Machine, cpus int) float64 {
	perPackage := max(hm.Int("cpu.cores")*hm.Int("cpu.threads"), 1)
	k := float64((cpus + perPackage - 1) / perPackage)
	return hm.Get("line.near")/k + hm.Get("line.far")*(k-1)/k
}

// lruBatch is how many folios a processor collects before it takes the LRU's
// lock. Linux: include/linux/pagevec.h:PAGEVEC_SIZE (v4.15).
const lruBatch = 15

// price is how long the work lasts that th did since it was last asked, with
// the waiting for the zone's and the LRU's locks and for memory, from now on.
func (s *Sim) price(th *thread, now mm.Nanos) mm.Nanos {
	w := &th.cur.Work
	var sum float64
	for i, n := range w {
		if n != 0 {
			sum += s.cost.work[i] * float64(n)
		}
	}
	d := mm.Nanos(sum)
	if n := w[mm.PrimZoneLock]; n > 0 {
		d += s.take(&s.zone, th.cpu, now, s.cost.zoneHold*mm.Nanos(n)) - now
	}
	if th.lru -= int(w[mm.PrimLRUAdd]); th.lru <= 0 {
		th.lru = lruBatch
		d += s.take(&s.lru, th.cpu, now, s.cost.lruHold) - now
	}
	// Only huge pages are larger than what the caches before memory absorb.
	if n := w[mm.PrimClearPMD]; n > 0 && s.cost.pageTransfer > 0 {
		s.memory = max(s.memory, now) + mm.Nanos(float64(n)*s.cost.pageTransfer)
		d = max(d, s.memory-now)
	}
	*w = mm.Work{}
	return d
}
