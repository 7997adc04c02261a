package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/kernel"
)

func newSettings() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show, save, change and put back this machine's huge-page settings",
		Long: `Show, save, change and put back the settings of huge pages: transparent ones of
every size, khugepaged, defrag, the zero page, hugetlb pools, and the reserve of
free memory (min_free_kbytes) that the kernel moves with them.

Before a change the old values go to a journal in /run/hugelab, and a second
process stands guard: it puts everything back even when hugelab is killed. One
hugelab at a time may change settings; the lock is /run/hugelab.lock.`,
		Example: "  hugelab settings show",
	}
	needVerb(cmd)
	cmd.AddCommand(newSettingsShow(), newSettingsSave(), newSettingsApply(), newSettingsRestore())
	return cmd
}

func newSettingsShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the settings, as a table and as a policy",
		Long:    "Show every huge-page setting and its value, and the policy that --policy takes.",
		Example: "  hugelab settings show",
		Args:    argsUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := readSettings()
			if err != nil {
				return err
			}
			return showSettings(cmd.OutOrStdout(), v)
		},
	}
}

// readSettings reads the settings; a machine that has none cannot do this verb.
func readSettings() (kernel.Values, error) {
	v, err := kernel.ReadValues("/")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, notHere(err)
	}
	return v, err
}

func showSettings(out io.Writer, v kernel.Values) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, file := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(w, "%s\t%s\n", file, v[file])
	}
	s := kernel.LiveFacts().Sizes
	if p, err := v.Policy(s); err == nil {
		fmt.Fprintf(w, "\npolicy\t%s\n", p.Spec(s))
	}
	if old, command := kernel.Kept(); old != nil {
		fmt.Fprintf(w, "\nchanged by '%s'; 'hugelab settings restore' would set:\n", command)
		for _, c := range v.Changes(old) {
			fmt.Fprintf(w, "%s\t%s -> %s\n", c.File, c.From, c.To)
		}
	}
	return w.Flush()
}

func newSettingsSave() *cobra.Command {
	return &cobra.Command{
		Use:     "save FILE",
		Short:   "Write the settings to a file that apply takes",
		Long:    "Write every huge-page setting to FILE, or to stdout for -: one path and value a line.",
		Example: "  hugelab settings save -",
		Args:    argsUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := readSettings()
			if err != nil {
				return err
			}
			host, _ := os.Hostname()
			header := []string{
				fmt.Sprintf("huge-page settings of %s, Linux %s, %s", host, kernel.LiveFacts().Release,
					time.Now().Format(time.DateTime)),
				"put back with: hugelab settings apply FILE",
			}
			if args[0] == "-" {
				return v.WriteText(cmd.OutOrStdout(), header...)
			}
			f, err := os.Create(args[0])
			if err != nil {
				return fmt.Errorf("settings: save: %w", err)
			}
			err = v.WriteText(f, header...)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			return err
		},
	}
}

func newSettingsRestore() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back what settings apply, or a killed hugelab, left changed",
		Long: `Put the settings back to what they were before the first 'settings apply', or
before a hugelab that was killed together with its guardian. With nothing to put
back nothing is done.`,
		Example: "  hugelab settings restore",
		Args:    argsUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeout(cmd.Context(), wait)
			defer stop()
			changes, err := kernel.RestoreKept(ctx, sessionOptions(cmd, "settings restore"))
			for _, c := range changes {
				fmt.Fprintln(cmd.OutOrStdout(), c)
			}
			if err == nil && len(changes) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "hugelab: nothing to put back")
			}
			return err
		},
	}
	waitFlag(cmd, &wait)
	return cmd
}

func waitFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", time.Minute,
		"wait `TIME` for the lock of the settings")
}

// sessionOptions are those of a verb: what it says while it waits, and of what
// it found.
func sessionOptions(cmd *cobra.Command, what string) kernel.SessionOptions {
	return kernel.SessionOptions{
		Command: "hugelab " + what,
		Waiting: func(holder string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: waiting: the settings are held by %s\n", holder)
		},
		Note: func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: %s\n", text) },
	}
}

// bystanderSize is the anonymous memory from which on a process is named before
// settings change under it.
const bystanderSize = 1 << 30

// confirm shows what is to change and whom it touches. On a terminal it asks;
// elsewhere only --yes is an answer.
func confirm(cmd *cobra.Command, changes []kernel.Change, yes bool) error {
	err := cmd.ErrOrStderr()
	for _, c := range changes {
		fmt.Fprintf(err, "  %s\n", c)
	}
	for _, b := range kernel.Bystanders(bystanderSize) {
		fmt.Fprintf(err, "  touches process %d, %s: %.1f GiB of anonymous memory\n", b.PID, b.Name,
			float64(b.Anon)/(1<<30))
	}
	if yes {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) || isNull(in) {
		return usagef("settings of the whole machine would change: give --yes")
	}
	fmt.Fprint(err, "Change these settings of the whole machine? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		b := make([]byte, 64)
		n, _ := in.Read(b)
		answer <- strings.ToLower(strings.TrimSpace(string(b[:n])))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return errors.New("settings: nothing changed")
	case <-cmd.Context().Done():
		return errors.New("settings: nothing changed")
	}
}

// isNull says whether f is the null device, whatever it was opened as.
func isNull(f *os.File) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(os.DevNull)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
