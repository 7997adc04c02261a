package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages",
		Long:   "Write one page of section 1 for each verb into DIR, which must exist.",
		Args:   argsUsage(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManTree(cmd.Root(), args[0])
		},
	}
}

func writeManTree(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Name() == "help" {
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	f, err := os.Create(filepath.Join(dir, name+".1"))
	if err != nil {
		return fmt.Errorf("man: %w", err)
	}
	writeMan(f, cmd, name)
	if err := f.Close(); err != nil {
		return fmt.Errorf("man: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if err := writeManTree(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// writeMan writes one page in the man macros of roff. The date is left out so
// that the same program always writes the same page.
func writeMan(w io.Writer, cmd *cobra.Command, name string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p(`.TH %s 1 "" hugelab "hugelab manual"`, roff(strings.ToUpper(name)))
	p(".SH NAME\n%s \\- %s", roff(name), roff(cmd.Short))
	p(".SH SYNOPSIS\n.B %s", roff(cmd.UseLine()))
	if cmd.Long != "" {
		p(".SH DESCRIPTION\n%s", strings.ReplaceAll(roff(cmd.Long), "\n\n", "\n.PP\n"))
	}
	writeManFlags(w, "OPTIONS", cmd.NonInheritedFlags())
	if cmd.Example != "" {
		p(".SH EXAMPLE\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			also = append(also, sub.CommandPath())
		}
	}
	for i, path := range also {
		also[i] = `\fB` + roff(strings.ReplaceAll(path, " ", "-")) + `\fR(1)`
	}
	if also != nil {
		p(".SH SEE ALSO\n%s", strings.Join(also, ",\n"))
	}
}

func writeManFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		head := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			head = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + head
		}
		if value != "" {
			head += ` \fI` + roff(value) + `\fR`
		}
		fmt.Fprintf(w, ".TP\n%s\n%s\n", head, roff(usage))
	})
}

// roff keeps text from being read as commands: a backslash, a hyphen, and a dot
// or quote at the start of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
