package main

import (
	"github.com/spf13/cobra"
)

func newRecording() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "recording",
		Short:   "Look into recordings, and make them of other tools' output",
		Long:    "Look into recordings, and make them of other tools' output.",
		Example: "  hugelab recording --help",
	}
	needVerb(cmd)
	return cmd
}
