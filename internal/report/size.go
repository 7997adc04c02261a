package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hugelab/hugelab/mm"
)

// HVOSize is what giving back the struct pages of a hugetlb pool saves. Its
// names in JSON are a contract.
type HVOSize struct {
	PoolBytes  uint64        `json:"pool_bytes" doc:"as asked for"`
	EntryBytes uint64        `json:"entry_bytes" doc:"memory whose struct pages one page table maps once it is split"`
	Pools      []HVOSizePool `json:"pools" doc:"a pool of each page size by each kernel generation"`
}

// HVOSizePool is a pool of one page size under one generation of kernels.
type HVOSizePool struct {
	Since            string  `json:"since" doc:"the first Linux of this generation"`
	PageBytes        uint64  `json:"page_bytes" doc:"of the pool's pages"`
	Pages            uint64  `json:"pages" doc:"whole pages in the pool"`
	StructPageBytes  uint64  `json:"struct_page_bytes" doc:"of struct pages without the optimisation"`
	FreedPages       uint64  `json:"freed_pages_per_page" doc:"pages of struct pages that come free of one of the pool's"`
	SavedBytes       uint64  `json:"saved_bytes" doc:"all that come free"`
	PageTableBytes   uint64  `json:"page_table_bytes" doc:"of page tables that split the mapping of struct pages"`
	NetBytes         uint64  `json:"net_bytes" doc:"saved_bytes without page_table_bytes"`
	PercentOfThePool float64 `json:"net_percent" doc:"net_bytes in percent of the pool"`
}

// Add adds a pool.
func (r *HVOSize) Add(since string, p mm.PoolMemory) {
	r.Pools = append(r.Pools, HVOSizePool{
		Since: since, PageBytes: uint64(p.Page), Pages: p.Pages, StructPageBytes: uint64(p.StructPages),
		FreedPages: p.FreedAPage, SavedBytes: uint64(p.Saved), PageTableBytes: uint64(p.Tables),
		NetBytes: uint64(p.Net), PercentOfThePool: 100 * float64(p.Net) / float64(uint64(p.Page)*p.Pages),
	})
}

// WriteHVOSizeJSON writes it as JSON.
func WriteHVOSizeJSON(w io.Writer, r *HVOSize) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteHVOSize writes it for people.
func WriteHVOSize(w io.Writer, r *HVOSize) error {
	d := doc{style: Text}
	d.line("A hugetlb pool of " + binary(r.PoolBytes) + ", its struct pages given back " +
		"(vm.hugetlb_optimize_vmemmap=1; x86-64, base pages of 4 kB)")
	d.gap()
	t := newTable("Linux from", "page", "pages", "struct pages", "freed a page", "saved", "page tables", "net", "of the pool")
	for i := range r.Pools {
		p := &r.Pools[i]
		t.AppendRow(table.Row{p.Since, binary(p.PageBytes), strconv.FormatUint(p.Pages, 10), binary(p.StructPageBytes),
			strconv.FormatUint(p.FreedPages, 10), binary(p.SavedBytes), binary(p.PageTableBytes), binary(p.NetBytes),
			number(p.PercentOfThePool) + " %"})
	}
	d.table(t)
	d.line("The mapping of struct pages is split from 2 MB entries to tables, one table for the struct pages of " +
		binary(r.EntryBytes) + " of memory. Tables stay when the pool shrinks. A pool that is scattered over memory " +
		"needs more of them.")
	d.line("Not saved: pages of the pool that must stay whole because memory for their tables was not to be had, and " +
		"hot-added memory whose struct pages lie in itself (memmap_on_memory).")
	_, err := io.WriteString(w, d.b.String())
	return err
}

// binary is a number of bytes in the largest binary unit that is not above it.
func binary(b uint64) string {
	x, unit := float64(b), " B"
	for _, u := range []string{" KiB", " MiB", " GiB", " TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, u
	}
	return number(x) + unit
}
