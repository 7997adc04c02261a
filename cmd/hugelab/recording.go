package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/trace"
)

func newRecording() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recording",
		Short: "Look into recordings, and make one of another tool's output",
		Long: `Look into recordings, and make one of perf script's text. FILE may be - for
stdin. A recording that was cut off is read up to the cut.`,
		Example: "  hugelab recording info sort.hlr",
	}
	needVerb(cmd)
	cmd.AddCommand(newRecordingInfo(), newRecordingCat(), newRecordingCopy(), newRecordingImport())
	return cmd
}

func newRecordingCat() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat FILE",
		Short: "Print the events of a recording, one a line",
		Long: `Print the events of a recording, one a line: seconds, thread/process, CPU, kind,
then the fields as key=value. With --json each line is a JSON object.`,
		Example: "  hugelab recording cat --json sort.hlr",
		Args:    argsUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRecording(cmd, args[0], func(r *trace.Reader) error {
				return catEvents(cmd.OutOrStdout(), r, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	return cmd
}

func catEvents(out io.Writer, r *trace.Reader, asJSON bool) error {
	w := bufio.NewWriterSize(out, 1<<16)
	var line []byte
	var e trace.Event
	for {
		err := r.Next(&e)
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			w.Flush() // what was read is worth showing
			return err
		}
		if asJSON {
			line = e.AppendJSON(line[:0])
		} else {
			line = e.AppendText(line[:0])
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}

// openRecording opens FILE, or stdin for "-". done closes it.
func openRecording(cmd *cobra.Command, file string) (r io.Reader, done func(), err error) {
	if file == "-" {
		return cmd.InOrStdin(), func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("recording: %w", err)
	}
	return f, func() { f.Close() }, nil
}

// withRecording opens a recording, lets f read it, and says on stderr where it
// was cut off.
func withRecording(cmd *cobra.Command, file string, f func(*trace.Reader) error) error {
	in, done, err := openRecording(cmd, file)
	if err != nil {
		return err
	}
	defer done()
	r, err := trace.NewReader(bufio.NewReaderSize(in, 1<<16))
	if err == nil {
		err = f(r)
	}
	if err != nil {
		return fmt.Errorf("recording: %s: %w", file, err)
	}
	if cut, where := r.Cut(); cut {
		fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: %s: %s\n", file, where)
	}
	return nil
}
