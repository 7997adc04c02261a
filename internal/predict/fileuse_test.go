package predict

import (
	"testing"

	"github.com/hugelab/hugelab/mm"
)

// TestFileUse: files and shared memory count in whole windows, once each;
// anonymous and special memory does not count.
func TestFileUse(t *testing.T) {
	var u fileUse
	ops := []mm.Op{
		{Kind: mm.OpMap, Region: 1, Flags: mm.MapFile},
		{Kind: mm.OpMap, Region: 2},
		{Kind: mm.OpMap, Region: 5, Flags: mm.MapShared},
		{Kind: mm.OpMap, Region: 6, Flags: mm.MapFile | mm.MapSpecial},
		{Kind: mm.OpTouch, Region: 1, Page: 3, N: 1},
		{Kind: mm.OpTouch, Region: 1, Page: 15, N: 2, Stride: 1},  // windows 0 and 1
		{Kind: mm.OpTouch, Region: 1, Page: 40, N: 2, Stride: -9}, // 2 and 1
		{Kind: mm.OpTouch, Region: 2, Page: 0, N: 100, Stride: 1},
		{Kind: mm.OpTouch, Region: 5, Page: 0, N: 1},
		{Kind: mm.OpTouch, Region: 6, Page: 0, N: 1},
		{Kind: mm.OpTouch, Region: 99, Page: 0, N: 1},
	}
	for i := range ops {
		u.watch(&ops[i])
	}
	if got := u.most(); got != 4*around {
		t.Errorf("%d pages, want %d", got, 4*around)
	}
	if u.huge {
		t.Error("nothing was advised")
	}
	u.watch(&mm.Op{Kind: mm.OpAdvise, Arg: uint64(mm.AdviseHugePage)})
	if !u.huge {
		t.Error("advice was not seen")
	}
}
