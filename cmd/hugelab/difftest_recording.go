package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/lab"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/trace"
)

// replayReport is what difftest RECORDING --json writes.
type replayReport struct {
	Recording string          `json:"recording" doc:"the file"`
	Kernel    string          `json:"kernel" doc:"uname -r"`
	Replays   []replayOutcome `json:"replays" doc:"one for each policy"`
	Seconds   float64         `json:"seconds"`
}

type replayOutcome struct {
	Policy      string   `json:"policy"`
	Operations  int      `json:"operations"`
	Spaces      int      `json:"address_spaces" doc:"alive at a time, at most"`
	PageMaps    int      `json:"page_map_comparisons"`
	Pages       int      `json:"pages_compared"`
	Faults      uint64   `json:"faults" doc:"of the touches, as the kernel counts them"`
	FaultsModel uint64   `json:"faults_model" doc:"the same in the model"`
	FileGap     int64    `json:"faults_model_more_on_files" doc:"of the difference of both"`
	Seconds     float64  `json:"seconds" doc:"the settings held"`
	Difference  string   `json:"difference" doc:"the first one, empty for none"`
	Notes       []string `json:"notes,omitempty"`
}

// recordingOf is the recording among the files, "" where they are programs.
func (f *difftestFlags) recordingOf(args []string) (string, error) {
	for _, name := range args {
		if name == "-" || !isRecording(name) {
			continue
		}
		switch {
		case len(args) > 1:
			return "", usagef("difftest: %s is a recording: give it alone", name)
		case f.model || f.against != "" || f.answers != "" || f.print || f.keep != "":
			return "", usagef("difftest: %s is a recording: it takes --policy, --every, --wait and --json alone", name)
		case f.every < 1:
			return "", usagef("difftest: --every %d: want 1 or more", f.every)
		}
		return name, nil
	}
	if len(f.policies) > 0 {
		return "", usagef("difftest: --policy: only for a RECORDING: a program has its policy in it")
	}
	return "", nil
}

// isRecording tells a recording by how it begins.
func isRecording(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return false // whoever reads it says why
	}
	defer file.Close()
	start := make([]byte, trace.MagicLen)
	_, err = io.ReadFull(file, start)
	return err == nil && trace.IsRecording(start)
}

// runRecording is difftest RECORDING.
func (f *difftestFlags) runRecording(cmd *cobra.Command, name string) error {
	if err := canReplay(); err != nil {
		return err
	}
	take := func(ctx context.Context) (*kernel.Session, error) {
		ctx, stop := context.WithTimeout(ctx, f.wait)
		defer stop()
		return kernel.Take(ctx, sessionOptions(cmd, "difftest "+name))
	}
	begun := time.Now()
	in, err := f.replayInput(cmd, name, take)
	if err != nil {
		return err
	}
	all, err := lab.CompareReplay(cmd.Context(), lab.ComparePlan{Input: in, Every: f.every, Take: take})
	if err != nil {
		return err
	}
	rep := replayReport{Recording: name, Kernel: kernel.LiveFacts().Release,
		Seconds: time.Since(begun).Seconds()}
	differ := false
	for _, c := range all {
		o := replayOutcome{Policy: c.Policy, Operations: c.Ops, Spaces: c.Spaces, PageMaps: c.Checks,
			Pages: c.Pages, Faults: c.Faults, FaultsModel: c.Model, FileGap: c.FileGap,
			Seconds: c.Took.Seconds(), Notes: c.Notes}
		if c.Difference != nil {
			o.Difference, differ = c.Difference.String(), true
		}
		rep.Replays = append(rep.Replays, o)
	}
	if err := rep.write(cmd.OutOrStdout(), f.json); err != nil {
		return err
	}
	switch {
	case cmd.Context().Err() != nil:
		return &exitError{code: 130}
	case differ:
		return &exitError{code: exitFailure}
	}
	return nil
}

// replayInput is the recording, by this host's rules, and the policies.
func (f *difftestFlags) replayInput(cmd *cobra.Command, name string,
	take func(context.Context) (*kernel.Session, error)) (predict.Input, error) {
	p := predictFlags{policies: f.policies, settings: "host", memory: "fresh", limit: "none"}
	src := &predictSource{done: func() {}}
	in := predict.Input{MaxMemory: -1}
	err := p.open(cmd, name, src)
	if err != nil {
		return in, err
	}
	in.Open = src.open
	if in.Rules, err = hostRules(); err != nil {
		return in, err
	}
	if len(f.policies) == 0 {
		p.policies = []string{predict.Now}
	}
	if err := p.hostUnheld(cmd.Context(), take, &in, src); err != nil {
		return in, err
	}
	if len(f.policies) > 0 {
		in.Policies = in.Policies[1:] // now, which nobody asked for
	}
	if len(in.Policies) == 0 {
		return in, errors.New("difftest: no policy")
	}
	return in, nil
}

func (r *replayReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	for _, o := range r.Replays {
		fmt.Fprintf(w, "%s: %d operations, %d pages in %d page maps compared; faults: model %d, kernel %d\n",
			o.Policy, o.Operations, o.Pages, o.PageMaps, o.FaultsModel, o.Faults)
		if o.FileGap != 0 {
			fmt.Fprintf(w, "  of the difference, on files and shared memory: %d\n", o.FileGap)
		}
		if o.Difference != "" {
			fmt.Fprintf(w, "  first difference: %s\n", o.Difference)
		}
		for _, n := range o.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
	return nil
}
