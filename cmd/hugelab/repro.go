package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/report"
	"github.com/hugelab/hugelab/internal/repro"
)

// reproFlags are the flags of repro.
type reproFlags struct {
	options  repro.Options
	noHost   bool
	json     bool
	markdown bool
}

func newRepro() *cobra.Command {
	var f reproFlags
	cmd := &cobra.Command{
		Use:   "repro [NAME...]",
		Short: "Do published huge-page results again in the model",
		Long: `Do published results about huge pages again in the model, and on this host where one
thread of system calls can, and print them beside what was published: how far off,
how far the main figure moves when a number fitted to the published base moves by 30 %,
what happens without the effect's cause, and what is known of what is not reached.

Without NAME all results are done:
  anon-w-seq-hugetlb   clearing hugetlb pages with the faulting part last
  ebizzy-thp           speculative faults and huge pages
  ebizzy-mTRp-16       speculative faults, one page a record
  ebizzy-mTt-16        speculative faults, 512 kB a record
  page-fault3          speculative faults where they cannot help
  thp-migration        a huge page moved whole, or in 512 parts
  folio-sizes          a compile with pages of 16 kB to 256 kB
  hvo                  struct pages of hugetlb pages given back
  gup-1g               pinning hugetlb pages

--set changes a number of the machine for this run; 'hugelab machine show NAME' lists
them. No published figure is known to a model.`,
		Example: `  hugelab repro --no-host thp-migration
  hugelab repro --no-host --set copy.rate=*2 thp-migration`,
		RunE: f.run,
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.options.Set, "set", nil, "change a number of the machine: `KEY=VALUE|*FACTOR`; may be repeated")
	fl.StringVar(&f.options.Machine, "machine", "", "the model's machine is `NAME` for all results (default: as published)")
	fl.Uint64Var(&f.options.Seed, "seed", 1, "seed of the model's runs, as `S`")
	fl.BoolVar(&f.noHost, "no-host", false, "run nothing on this host")
	fl.BoolVar(&f.json, "json", false, "write JSON (hugelab schema repro)")
	fl.BoolVar(&f.markdown, "markdown", false, "write Markdown")
	cmd.ValidArgs = repro.Names()
	return cmd
}

func (f *reproFlags) run(cmd *cobra.Command, args []string) error {
	if f.json && f.markdown {
		return usagef("repro: --json and --markdown: give one of them")
	}
	f.options.Names, f.options.Host = args, !f.noHost
	outs, err := repro.Run(cmd.Context(), f.options)
	switch {
	case errors.Is(err, repro.ErrUsage):
		return usagef("%w", err)
	case err != nil:
		return fmt.Errorf("repro: %w", err)
	}
	r := repro.Report(outs, f.options.Seed)
	if f.json {
		return report.WriteReproJSON(cmd.OutOrStdout(), r)
	}
	style := report.Text
	if f.markdown {
		style = report.Markdown
	}
	return report.WriteRepro(cmd.OutOrStdout(), r, style)
}
