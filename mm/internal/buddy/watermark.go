package buddy

import "math"

// Indices of zone.wmark.
const (
	wmarkMin = iota
	wmarkLow
	wmarkHigh
	wmarkPromo
)

// watermarkScale is vm.watermark_scale_factor's default, in 1/10000 of a zone.
const watermarkScale = 10

// lowmemRatio is vm.lowmem_reserve_ratio's default by zone.
//
// Linux: mm/page_alloc.c:sysctl_lowmem_reserve_ratio (v6.18).
var lowmemRatio = [numKinds]uint64{zoneDMA: 256, zoneDMA32: 256, zoneNormal: 32}

// ok says whether a zone can serve an order and keep the mark, and what is
// reserved for requests that cannot go higher.
//
// Linux: mm/page_alloc.c:zone_watermark_fast, __zone_watermark_ok (v6.18).
func (z *zone) ok(order uint8, mark uint64, c zoneKind) bool {
	if z.free <= mark+z.reserve[c]+1<<order-1 {
		return false
	}
	return order == 0 || (z.mask[0]|z.mask[1]|z.mask[2])>>order != 0
}

// setBelowHigh notes whether free memory was seen below the high watermark,
// and with it the mark that the fast path tests.
func (z *zone) setBelowHigh(below bool) {
	z.belowHigh = below
	mark := z.wmark[wmarkHigh]
	if below {
		mark = z.wmark[wmarkLow]
	}
	z.fast = [2]uint64{mark + z.reserve[zoneNormal], mark + z.reserve[zoneMovable]}
	if z.kind == zoneMovable {
		z.fast[0] = ^uint64(0)
	}
}

// SetTHP says whether PMD-size THP is enabled in any way: any write to one of
// the enabled files recomputes min_free_kbytes and the watermarks.
//
// Linux: mm/khugepaged.c:set_recommended_min_free_kbytes,
// mm/page_alloc.c:calculate_min_free_kbytes (v6.18).
func (a *Allocator) SetTHP(on bool) {
	lowmem := a.bufferPages()
	kb := lowmem << (a.cfg.PageShift - 10)
	a.minFree = min(max(isqrt(16*kb), 128), 262144)
	if on {
		nz := uint64(0)
		for i := range a.zones {
			if a.zones[i].kind <= zoneNormal {
				nz++
			}
		}
		const types = NumTypes * NumTypes
		want := min(nz*(2+types)<<a.pbOrder, lowmem/20) << (a.cfg.PageShift - 10)
		a.minFree = max(a.minFree, want)
	}
	a.setWatermarks()
}

// SetMinFree sets vm.min_free_kbytes.
func (a *Allocator) SetMinFree(kB uint64) {
	a.minFree = kB
	a.setWatermarks()
}

// MinFree is vm.min_free_kbytes.
func (a *Allocator) MinFree() uint64 { return a.minFree }

// bufferPages is the memory of the zones up to Normal above their high marks.
//
// Linux: mm/page_alloc.c:nr_free_buffer_pages (v6.18).
func (a *Allocator) bufferPages() (n uint64) {
	for i := range a.zones {
		z := &a.zones[i]
		if z.kind <= zoneNormal && z.managed > z.wmark[wmarkHigh] {
			n += z.managed - z.wmark[wmarkHigh]
		}
	}
	return n
}

// setWatermarks spreads min_free_kbytes over the zones.
//
// Linux: mm/page_alloc.c:__setup_per_zone_wmarks (v6.18).
func (a *Allocator) setWatermarks() {
	pagesMin, lowmem := a.minFree>>(a.cfg.PageShift-10), uint64(0)
	for i := range a.zones {
		if a.zones[i].kind != zoneMovable {
			lowmem += a.zones[i].managed
		}
	}
	for i := range a.zones {
		z := &a.zones[i]
		share := pagesMin * z.managed / max(lowmem, 1)
		w := &z.wmark
		w[wmarkMin] = share
		if z.kind == zoneMovable {
			w[wmarkMin] = min(max(z.managed/1024, 32), 128)
		}
		gap := max(share/4, z.managed*watermarkScale/10000)
		w[wmarkLow] = w[wmarkMin] + gap
		w[wmarkHigh] = w[wmarkLow] + gap
		w[wmarkPromo] = w[wmarkHigh] + gap
		z.setBelowHigh(z.belowHigh)
		a.setPCP(z)
	}
}

// setReserves computes what each zone keeps from requests that could go higher.
//
// Linux: mm/page_alloc.c:setup_per_zone_lowmem_reserve (v6.18).
func (a *Allocator) setReserves() {
	for i := range a.zones {
		z := &a.zones[i]
		for c := z.kind + 1; c < numKinds; c++ {
			above := uint64(0)
			for j := range a.zones {
				if o := &a.zones[j]; o.node == z.node && o.kind > z.kind && o.kind <= c {
					above += o.managed
				}
			}
			if r := lowmemRatio[z.kind]; r != 0 {
				z.reserve[c] = above / r
			}
		}
	}
}

// setPCP computes the bounds of a zone's per-CPU lists.
//
// Linux: mm/page_alloc.c:zone_batchsize, zone_highsize (v6.18).
func (a *Allocator) setPCP(z *zone) {
	b := min(z.managed>>10, 1<<20>>a.cfg.PageShift) / 4
	b = max(b, 1)
	b += b / 2
	batch := int32(1)
	for uint64(batch)*2 <= b {
		batch *= 2
	}
	batch = max(batch-1, 1)
	local := uint64(0)
	for _, n := range a.cpuNode {
		if n == z.node {
			local++
		}
	}
	if local == 0 {
		local = uint64(len(a.cpuNode))
	}
	highMin := max(int32(min(z.wmark[wmarkLow]/local, math.MaxInt32)), batch*4)
	highMax := max(int32(min(z.managed/8/local, math.MaxInt32)), batch*4)
	for i := range z.pcp {
		p := &z.pcp[i]
		p.batch, p.highMin, p.highMax = batch, highMin, max(highMin, highMax)
		p.high = min(max(p.high, p.highMin), p.highMax)
	}
}

// isqrt is the integer square root, rounded down.
func isqrt(n uint64) uint64 {
	r := uint64(math.Sqrt(float64(n)))
	for r*r > n {
		r--
	}
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}
