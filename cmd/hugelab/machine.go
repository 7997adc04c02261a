package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/report"
)

func newMachine() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "machine",
		Short:   "List and show the machines that models run on",
		Long:    `List and show the machines that come with hugelab, each number with where it comes from.`,
		Example: "  hugelab machine list",
	}
	needVerb(cmd)
	cmd.AddCommand(newMachineList(), newMachineShow())
	return cmd
}

func newMachineList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the machines that come with hugelab",
		Long:    `List the machines that come with hugelab: the name that --machine takes, and what it is.`,
		Example: "  hugelab machine list",
		Args:    argsUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range hw.MachineNames() {
				m, err := hw.LoadMachine(n)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-16s %s\n", m.Name, m.Title)
			}
			return nil
		},
	}
}

func newMachineShow() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show every number of a machine and where it comes from",
		Long: `Show every number of a machine: its key as --set takes it, value, unit, where it comes
from, and what it means. A number comes from independent data, was fitted to a published
base column, or is the default of its key. What a unit of the kernel's work costs is
listed under work.`,
		Example:   "  hugelab machine show vm-2",
		Args:      argsUsage(cobra.ExactArgs(1)),
		ValidArgs: hw.MachineNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := hw.LoadMachine(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if json {
				return report.WriteMachineJSON(cmd.OutOrStdout(), m)
			}
			return report.WriteMachine(cmd.OutOrStdout(), m)
		},
	}
	cmd.Flags().BoolVar(&json, "json", false, "write JSON (hugelab schema machine)")
	return cmd
}
