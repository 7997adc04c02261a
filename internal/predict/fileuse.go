package predict

import "github.com/hugelab/hugelab/mm"

// around is how many pages the kernel maps around a fault on a file, at most.
// Linux: mm/memory.c:fault_around_pages (v6.18).
const around = 16

// fileUse bounds how much file-backed and shared memory a program touched: no
// huge-page policy for anonymous memory has a say there.
//
// A fault on a file maps the pages around it, so what was touched is known to
// windows of 16 pages only, and the sum is an upper bound. Mappings of one file
// in several processes count once each.
type fileUse struct {
	region []bool // of a file or shared memory, by number
	window map[fileWindow]struct{}
	huge   bool // some memory was advised to be huge
}

// fileWindow is 16 pages of a region.
type fileWindow struct {
	region mm.Region
	at     uint64
}

// watch follows one operation.
func (u *fileUse) watch(op *mm.Op) {
	switch op.Kind {
	case mm.OpMap:
		if op.Flags&(mm.MapFile|mm.MapShared) == 0 || op.Flags&mm.MapSpecial != 0 {
			return
		}
		for int(op.Region) >= len(u.region) {
			u.region = append(u.region, false)
		}
		u.region[op.Region] = true
	case mm.OpAdvise:
		u.huge = u.huge || mm.Advice(op.Arg) == mm.AdviseHugePage
	case mm.OpTouch:
		if int(op.Region) >= len(u.region) || !u.region[op.Region] {
			return
		}
		if u.window == nil {
			u.window = map[fileWindow]struct{}{}
		}
		page := op.Page
		for range op.N {
			u.window[fileWindow{op.Region, page / around}] = struct{}{}
			page += uint64(int64(op.Stride))
		}
	}
}

// most is how many pages were touched, at most.
func (u *fileUse) most() mm.Pages { return mm.Pages(len(u.window)) * around }
