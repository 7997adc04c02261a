package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/trace"
)

func newRecordingCopy() *cobra.Command {
	var strip []string
	cmd := &cobra.Command{
		Use:   "copy [flags] FROM TO",
		Short: "Write a recording again, in today's format",
		Long: `Read the recording FROM and write its events as a new recording TO, in the format
that this hugelab writes. With --strip, a text goes from the beginning of file names
and of the command's words and from the end of the kernel's version, so that a
recording can be given away without it.`,
		Example: "  hugelab recording copy --strip \"$PWD/\" sort.hlr public.hlr",
		Args:    argsUsage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeWhole(args[1], func(w io.Writer) error {
				return withRecording(cmd, args[0], func(r *trace.Reader) error { return copyRecording(r, w, strip) })
			})
		},
	}
	cmd.Flags().StringArrayVar(&strip, "strip", nil, "leave out this `TEXT`; may be repeated")
	return cmd
}

// writeWhole writes a file that is there whole or not at all: an earlier one
// stays until then.
func writeWhole(path string, fill func(io.Writer) error) error {
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	err = fill(f)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("recording: %w", cerr)
	}
	if err == nil {
		if err = os.Rename(part, path); err != nil {
			err = fmt.Errorf("recording: %w", err)
		}
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// copyRecording writes what r reads. A recording that was cut off stays one:
// it gets no footer.
func copyRecording(r *trace.Reader, out io.Writer, strip []string) error {
	h := r.Header
	h.Command = make([]string, len(r.Header.Command))
	for i, word := range r.Header.Command {
		h.Command[i] = stripped(word, strip)
	}
	for _, text := range strip {
		h.Kernel = strings.TrimSuffix(h.Kernel, text)
	}
	w, err := trace.NewWriter(out, h)
	if err != nil {
		return err
	}
	var e trace.Event
	for {
		switch err := r.Next(&e); {
		case err == io.EOF && r.Footer == nil:
			return w.Flush()
		case err == io.EOF:
			return w.Close(*r.Footer)
		case err != nil:
			return err
		}
		e.Name = stripped(e.Name, strip)
		if err := w.Write(&e); err != nil {
			return err
		}
	}
}

func stripped(name string, strip []string) string {
	for _, text := range strip {
		name = strings.TrimPrefix(name, text)
	}
	return name
}
