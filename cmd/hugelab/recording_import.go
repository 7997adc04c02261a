package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/trace"
)

func newRecordingImport() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "import -o FILE TEXT",
		Short: "Make a recording of perf script's text",
		Long: `Read the text of perf script, from a file or from stdin for -, and write its page
faults as a recording. The text must have the addresses of the faults: record
with 'perf record -e page-faults -c 1 -d'. It holds no mappings, so these are
guessed from where the faults lie; a note in the recording says so.`,
		Example: "  hugelab recording import -o app.hlr app.txt",
		Args:    argsUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("recording import: -o FILE says where the recording goes")
			}
			return importText(cmd, args[0], out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the recording to `FILE`")
	return cmd
}

func importText(cmd *cobra.Command, text, out string) error {
	in, done, err := openRecording(cmd, text)
	if err != nil {
		return err
	}
	defer done()
	part := out + ".part" // an earlier recording stays until this one is whole
	f, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("recording import: %w", err)
	}
	err = func() error {
		// The text says nothing of its machine; 4 kB pages are what nearly all have.
		w, err := trace.NewWriter(f, trace.Header{
			Method: trace.MethodImport, PageSize: 4096, Start: time.Now().UTC().Format(time.RFC3339),
			CannotKnow: []string{"the machine, its settings and the mappings: the text has none of them"},
		})
		if err != nil {
			return err
		}
		if err := trace.ImportPerfScript(in, w); err != nil {
			return err
		}
		return w.Close(trace.Footer{})
	}()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part, out)
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("recording import: %s: %w", text, err)
	}
	return nil
}
