package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/calibrate"
	"github.com/hugelab/hugelab/internal/difftest"
	"github.com/hugelab/hugelab/internal/report"
)

// schema is the JSON Schema of one verb's --json output.
type schema struct {
	name string // of the verb
	text string
}

// schemas lists every output that has a schema, in the order of the verbs.
func schemas() []schema {
	return []schema{
		{"predict", report.PredictSchema()},
		{"suite", report.SuiteSchema()},
		{"calibrate", report.Schema("hugelab calibrate --json", calibrate.Result{})},
		{"doctor", doctorSchema},
		{"repro", report.Schema("hugelab repro --json", report.Repro{})},
		{"machine", report.Schema("hugelab machine show --json", report.MachineJSON{})},
		{"size", report.Schema("hugelab size --json", report.HVOSize{})},
		{"difftest", report.Schema("hugelab difftest --json", difftest.Report{})},
		{"replay", report.Schema("hugelab difftest RECORDING --json", replayReport{})},
	}
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [VERB]",
		Short: "Print the JSON Schema of a verb's --json output",
		Long: `Print the JSON Schema of what VERB writes with --json. Without VERB, list the
verbs that have one.`,
		Example: "  hugelab schema",
		Args:    argsUsage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range schemas() {
				if len(args) == 0 {
					fmt.Fprintln(cmd.OutOrStdout(), s.name)
				} else if s.name == args[0] {
					_, err := io.WriteString(cmd.OutOrStdout(), s.text)
					return err
				}
			}
			if len(args) == 0 {
				return nil
			}
			return usagef("schema: %q: no such schema: 'hugelab schema' lists them", args[0])
		},
	}
}
