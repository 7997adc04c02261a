package main

import (
	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/report"
	"github.com/hugelab/hugelab/mm"
)

// hvoKernels are the first kernels of each generation of vmemmap optimisation.
var hvoKernels = []string{"5.14", "5.18"}

func newSize() *cobra.Command {
	var pool string
	var json bool
	cmd := &cobra.Command{
		Use:   "size --hvo SIZE",
		Short: "Say how much memory a hugetlb pool gives back with HVO",
		Long: `Say how much memory a hugetlb pool of SIZE gives back when the kernel frees the struct
pages that only repeat one another (HugeTLB vmemmap optimisation,
vm.hugetlb_optimize_vmemmap): for pages of 2 MB and 1 GB, by each generation of kernels,
without the page tables that it costs. Arithmetic; this host is not looked at.`,
		Example: "  hugelab size --hvo 1TiB",
		Args:    argsUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pool == "" {
				return usagef("size: say of what: --hvo SIZE")
			}
			r, err := hvoSize(pool)
			if err != nil {
				return usagef("size: --hvo: %w", err)
			}
			if json {
				return report.WriteHVOSizeJSON(cmd.OutOrStdout(), r)
			}
			return report.WriteHVOSize(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().StringVar(&pool, "hvo", "", "a hugetlb pool of `SIZE`, such as 512m, 64g or 1TiB")
	cmd.Flags().BoolVar(&json, "json", false, "write JSON (hugelab schema size)")
	return cmd
}

// hvoSize reckons with a pool of every page size that the pool has room for.
func hvoSize(text string) (*report.HVOSize, error) {
	pool, err := mm.ParseBytes(text)
	if err != nil {
		return nil, err
	}
	s := mm.Sizes{Base: 4096, PMD: 9}
	r := &report.HVOSize{PoolBytes: uint64(pool), EntryBytes: uint64(mm.HVOEntry(s))}
	const pud = 18 // the order of 1 GB
	for _, order := range []mm.Order{s.PMD, pud} {
		if order == pud && pool < s.Bytes(pud) {
			break
		}
		for _, version := range hvoKernels {
			rules, err := mm.RulesFor(version)
			if err != nil {
				return nil, err
			}
			p, err := mm.HVOSize(s, order, pool, rules)
			if err != nil {
				return nil, err
			}
			r.Add(version, p)
		}
	}
	return r, nil
}
