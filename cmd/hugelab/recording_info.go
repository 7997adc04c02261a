package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/trace"
)

func newRecordingInfo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Say what a recording holds, and what its method could not see",
		Long: `Say what was recorded, where and how, how many events of each kind there are, and
what this way of recording could not see.`,
		Example: "  hugelab recording info sort.hlr",
		Args:    argsUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, done, err := openRecording(cmd, args[0])
			if err != nil {
				return err
			}
			defer done()
			info, err := trace.ReadInfo(in)
			if err != nil {
				return fmt.Errorf("recording: %s: %w", args[0], err)
			}
			if info.Cut != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: %s: %s\n", args[0], info.Cut)
			}
			if !asJSON {
				return writeInfo(cmd.OutOrStdout(), &info)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(info)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeInfo(w io.Writer, i *trace.Info) error {
	h := &i.Header
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("command", "%s", quoted(h.Command))
	how := string(h.Method)
	if h.Attached {
		how += ", attached to a running process"
	}
	row("method", "%s", how)
	if h.Kernel != "" {
		row("machine", "Linux %s %s, %d CPUs, %.1f GiB, %dk pages", h.Kernel, h.Arch, h.CPUs,
			float64(h.MemTotal)/(1<<30), h.PageSize>>10)
	}
	if h.Limit != 0 {
		row("limit", "%.1f GiB by a memory cgroup", float64(h.Limit)/(1<<30))
	}
	row("start", "%s", h.Start)
	if f := i.Footer; f != nil {
		row("time", "%v, user %v, system %v (recording included)",
			short(int64(f.Wall)), short(int64(f.User)), short(int64(f.System)))
		row("exit", "%d", f.Exit)
	}
	found := "more found in page maps"
	if h.Attached {
		found = "pages were present at the start"
	}
	row("faults", "%d, %d of them in kernel mode; %d %s, %d more only counted",
		i.Faults, i.KernelFaults, i.FoundPages, found, i.OtherFaults)
	row("lost", "%d", i.Lost)
	row("who", "%d processes, %d threads", i.Processes, i.Threads)
	row("size", "%d bytes, %.1f a fault", i.Bytes, i.BytesPerFault)
	row("events", "%d", i.Events)
	for k := range trace.NumKinds {
		if n := i.Kinds[trace.Kind(k).String()]; n > 0 {
			fmt.Fprintf(&b, "  %-12s %d\n", trace.Kind(k), n)
		}
	}
	for _, s := range h.CannotKnow {
		row("not seen", "%s", s)
	}
	for _, s := range i.Notes {
		row("note", "%s", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// short is a duration with three digits or so.
func short(ns int64) time.Duration {
	d := time.Duration(ns)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// quoted joins a command's words, quoting those a shell would not take whole.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}
