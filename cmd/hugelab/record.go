package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/trace"
)

// recordFlags are the flags of record; predict has them too where it records.
type recordFlags struct {
	out    string
	pid    int
	stay   time.Duration
	quiet  bool
	method string
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record [flags] [--] COMMAND [ARGUMENT...]",
		Short: "Record what a program does to its memory",
		Long: `Run COMMAND with huge pages switched off for it alone, and write what it and its
children do to their memory to a file: every page fault and every call that
changes a mapping. With --pid, attach to a running process instead; what it did
before is then taken from its page tables.

No setting of the machine is changed. COMMAND's exit code is passed on.`,
		Example: "  hugelab record -o sort.hlr -- sort --version",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			return f.run(cmd, args)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // COMMAND's flags are COMMAND's
	fl.StringVarP(&f.out, "output", "o", "", "write the recording to `FILE` (default: COMMAND's name with .hlr)")
	fl.IntVar(&f.pid, "pid", 0, "attach to the process `PID`")
	fl.DurationVar(&f.stay, "for", 10*time.Second, "with --pid, how long to stay attached, as a `DURATION`")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "throw COMMAND's output away; show no progress")
	fl.StringVar(&f.method, "method", "", "record by `METHOD`: root, perf or pagemap (default: the best possible here)")
	return cmd
}

func (f *recordFlags) check(args []string) error {
	switch {
	case len(args) == 0 && f.pid == 0:
		return usagef("record: nothing to record: give a COMMAND or --pid PID")
	case len(args) > 0 && f.pid != 0:
		return usagef("record: --pid and a COMMAND: give one of them")
	case f.pid < 0:
		return usagef("record: --pid %d: not a process id", f.pid)
	case f.pid != 0 && f.stay <= 0:
		return usagef("record: --for %v: want a duration above zero", f.stay)
	}
	switch trace.Method(f.method) {
	case "", trace.MethodRoot, trace.MethodPerf, trace.MethodPagemap:
	default:
		return usagef("record: --method %s: want root, perf or pagemap", f.method)
	}
	if len(args) > 0 {
		return record.LookUp(args[0]) // before an older recording is overwritten
	}
	return nil
}

// file is where the recording goes.
func (f *recordFlags) file(args []string) string {
	switch {
	case f.out != "":
		return f.out
	case f.pid != 0:
		return fmt.Sprintf("pid-%d.hlr", f.pid)
	}
	return filepath.Base(args[0]) + ".hlr"
}

func (f *recordFlags) run(cmd *cobra.Command, args []string) error {
	method, why := trace.Method(f.method), "as asked"
	if method == "" {
		if method, why = record.Choose(); method == "" {
			return notHere(fmt.Errorf("record: %s: 'hugelab doctor' says more", why))
		}
	}
	if f.pid != 0 {
		if err := record.CanAttach(f.pid, method); err != nil {
			return fmt.Errorf("%w%s", err, f.attachHint(method, why))
		}
	}
	if !f.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: recording by method %s (%s)\n", method, why)
	}
	file := f.file(args)
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	footer, err := f.recordTo(cmd, args, method, out)
	if cerr := out.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("record: %w", cerr)
	}
	if err != nil {
		if footer.Events == 0 { // nothing in it that anybody could read
			os.Remove(file)
		}
		return err
	}
	if !f.quiet {
		size := int64(0)
		if st, err := os.Stat(file); err == nil {
			size = st.Size()
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: %s: %s%d faults in %d events, %d lost, %d bytes\n",
			file, interruptedText(&footer), footer.Faults, footer.Events, footer.Lost, size)
		for _, n := range footer.Notes {
			fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: note: %s\n", n)
		}
	}
	if footer.Exit != 0 {
		return &exitError{code: footer.Exit}
	}
	return nil
}

// recordTo records into w and ends the recording with its footer, also when it
// was interrupted.
func (f *recordFlags) recordTo(cmd *cobra.Command, args []string, method trace.Method, w io.Writer) (trace.Footer, error) {
	opts := record.Options{Command: args, PID: f.pid, For: f.stay, Method: method, Quiet: f.quiet}
	opts.Stdin, _ = cmd.InOrStdin().(*os.File)
	opts.Stderr, _ = cmd.ErrOrStderr().(*os.File)
	if f.pid == 0 {
		opts.For = 0
	}
	if !f.quiet && isTerminal(opts.Stderr) {
		opts.Progress = progressLine(opts.Stderr)
		defer fmt.Fprint(opts.Stderr, "\r\x1b[K")
	}
	tw, err := trace.NewWriter(w, record.Header(opts, method))
	if err != nil {
		return trace.Footer{}, fmt.Errorf("record: %w", err)
	}
	opts.Out = tw
	footer, err := record.Run(cmd.Context(), opts)
	if cerr := tw.Close(footer); cerr != nil && err == nil {
		err = fmt.Errorf("record: %w", cerr)
	}
	if errors.Is(err, context.Canceled) && footer.Interrupted {
		err = nil // an interrupted recording is a good recording of less
	}
	return footer, err
}

func interruptedText(f *trace.Footer) string {
	if f.Interrupted {
		return "interrupted; readable up to there: "
	}
	return ""
}

// attachHint says what to type where attaching was refused.
func (f *recordFlags) attachHint(method trace.Method, why string) string {
	if method == trace.MethodRoot {
		return ""
	}
	hint := fmt.Sprintf(" (%s); as root: sudo hugelab record --pid %d --for %v", why, f.pid, f.stay)
	if f.out != "" {
		hint += " -o " + f.out
	}
	return hint
}

func lostText(lost uint64) string {
	if lost == 0 {
		return ""
	}
	return fmt.Sprintf(", %d events lost", lost)
}

// progressLine rewrites one line of a terminal.
func progressLine(w io.Writer) func(record.Progress) {
	return func(p record.Progress) {
		rate := float64(p.Events) / max(p.Elapsed.Seconds(), 0.001)
		fmt.Fprintf(w, "\r\x1b[Khugelab: %s  %d events  %d faults  %.0f/s%s",
			p.Elapsed.Round(time.Second), p.Events, p.Faults, rate, lostText(p.Lost))
	}
}

// isTerminal says whether f is a terminal, well enough to decide on progress.
func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
