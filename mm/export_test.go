package mm

import (
	"testing"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// TestMemory: the snapshot says what the allocator says, before and after it
// is used.
func TestMemory(t *testing.T) {
	if got := (&Machine{}).Memory(); len(got.Zones) != 0 {
		t.Errorf("a machine without memory: %+v", got)
	}
	a, err := buddy.New(buddy.Config{Zones: []buddy.Zone{{Name: "DMA32", Pages: 1 << 16},
		{Name: "Normal", Start: 1 << 20, Pages: 1 << 18}}, CPUs: 2, PageShift: 12, MaxOrder: 10, PMDOrder: 9})
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{alloc: a, pageShift: 12, pmdOrder: 9}
	a.Alloc(0, 0, 9, buddy.Movable, 0)
	mem := m.Memory()
	if mem.Total != 1<<16+1<<18 || mem.Free != mem.Total-1024 {
		t.Errorf("%d pages, %d free", mem.Total, mem.Free)
	}
	z := mem.Zones[1]
	if z.Name != "Normal" || z.Blocks[10] != 255 || z.ByType[1][10] != 255 || z.Pageblocks[1] != 512 ||
		z.PageSets[0].Count != 512 || z.PageSets[1].Count != 0 || z.Unusable[9] != 0 || z.FragReason[9] != -1000 {
		t.Errorf("%+v", z)
	}
	if z.Min == 0 || z.Low <= z.Min || z.High <= z.Low || mem.Zones[0].Protection[2] != 1<<18/256 {
		t.Errorf("watermarks %+v", mem.Zones)
	}
}
