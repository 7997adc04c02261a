package buddy

import (
	"testing"

	"pgregory.net/rapid"
)

// TestProperties drives a machine of two nodes, several zones, CPUs and types
// and checks everything after each step.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Zones: []Zone{
			{Node: 0, Name: "DMA", Start: 1, Pages: 1023}, {Node: 0, Name: "DMA32", Start: 1024, Pages: 2048},
			{Node: 0, Name: "Normal", Start: 4096, Pages: 3000}, {Node: 1, Name: "Normal", Start: 8192, Pages: 2500},
		}, CPUs: 3, CPUNode: []int{0, 0, 1}, PageShift: 12, MaxOrder: 10, PMDOrder: 9}
		if rapid.Bool().Draw(t, "fragmented") {
			cfg.Zones[2].Free = []uint64{20, 30, 20, 10, 5, 4, 3, 2, 1, 0, 1}
		}
		a, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		a.SetMinFree(rapid.SampledFrom([]uint64{0, 128, 2048}).Draw(t, "min"))
		total := a.FreePages()
		var live []held
		inUse := uint64(0)
		cpu := rapid.IntRange(0, 2)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				order := rapid.Uint8Range(0, 10).Draw(t, "order")
				mt := MigrateType(rapid.IntRange(0, 2).Draw(t, "type"))
				f := Flags(rapid.IntRange(0, 15).Draw(t, "flags"))
				for range rapid.IntRange(1, 40).Draw(t, "times") {
					pfn, ok := a.Alloc(cpu.Draw(t, "cpu"), rapid.IntRange(-1, 1).Draw(t, "node"), order, mt, f)
					if !ok {
						break
					}
					if pfn&(1<<order-1) != 0 {
						t.Fatalf("block %d is not aligned to order %d", pfn, order)
					}
					for _, h := range live {
						if pfn < h.pfn+1<<h.order && h.pfn < pfn+1<<order {
							t.Fatalf("block %d order %d overlaps %+v", pfn, order, h)
						}
					}
					live = append(live, held{pfn, order, mt})
					inUse += 1 << order
				}
			},
			"free": func(t *rapid.T) {
				for range min(len(live), rapid.IntRange(1, 40).Draw(t, "times")) {
					i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
					h := live[i]
					live[i] = live[len(live)-1]
					live = live[:len(live)-1]
					inUse -= 1 << h.order
					if h.order > 0 && rapid.Bool().Draw(t, "split") {
						for p := range uint64(1) << h.order {
							a.Free(cpu.Draw(t, "cpu"), h.pfn+p, 0, h.t)
						}
						continue
					}
					a.Free(cpu.Draw(t, "cpu"), h.pfn, h.order, h.t)
				}
			},
			"drain": func(t *rapid.T) { a.Drain(cpu.Draw(t, "cpu")) },
			"decay": func(t *rapid.T) { a.Decay(cpu.Draw(t, "cpu")) },
			"thp":   func(t *rapid.T) { a.SetTHP(rapid.Bool().Draw(t, "on")); a.SetMinFree(128) },
			"": func(t *rapid.T) {
				if err := a.Check(); err != nil {
					t.Fatal(err)
				}
				if got := a.FreePages() + a.PCPPages() + inUse; got != total {
					t.Fatalf("%d pages of %d", got, total)
				}
			},
		})
		// Given back, all memory merges into what there was at boot.
		for _, h := range live {
			a.Free(0, h.pfn, h.order, h.t)
		}
		a.DrainAll()
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		fresh, _ := New(cfg)
		for i, z := range a.BuddyInfo() {
			if cfg.Zones[i].Free != nil {
				continue
			}
			for o, n := range fresh.BuddyInfo()[i].Blocks {
				if z.Blocks[o] != n {
					t.Fatalf("zone %d order %d: %d blocks at the end, %d at boot", i, o, z.Blocks[o], n)
				}
			}
		}
	})
}
