package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/calibrate"
)

// calibrateFlags are the flags of calibrate.
type calibrateFlags struct {
	out  string
	json bool
	keep bool
	time time.Duration
}

func newCalibrate() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure what this machine charges for memory management",
		Long: `Time small workloads on the running kernel (faults, copies, unmapping, forks, splits,
collapses, system calls), count the same workloads on the model, and fit the cost of
each primitive. The result is this machine's profile; predict finds it by itself.

It takes under 20 seconds. Where it may, it switches one huge-page size at a time on
for memory that its own process advises, for about a second, and puts the settings
back. Without root what the settings allow is measured, and the rest is said.`,
		Example: "  hugelab calibrate --out machine.yaml",
		Args:    argsUsage(cobra.NoArgs),
		RunE:    f.run,
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "",
		"write the profile to `FILE`, - for stdout (default: where predict looks)")
	cmd.Flags().BoolVar(&f.keep, "keep-settings", false, "change no setting: measure what they allow now")
	cmd.Flags().DurationVar(&f.time, "time", calibrate.DefaultTime, "measure for this `TIME`")
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON; 'hugelab schema calibrate' describes it")
	return cmd
}

func (f *calibrateFlags) run(cmd *cobra.Command, _ []string) error {
	if f.json && f.out == "-" {
		return usagef("calibrate: --json and --out -: standard output can take one of them")
	}
	if f.time <= 0 || f.time > time.Hour {
		return usagef("calibrate: --time %v: want up to an hour", f.time)
	}
	path := f.out
	if path == "" {
		var err error
		if path, err = machineProfile(); err != nil {
			return fmt.Errorf("calibrate: %w: give --out FILE", err)
		}
	}
	talk := cmd.ErrOrStderr()
	r, err := calibrate.Run(cmd.Context(), calibrate.Options{
		Time: f.time, Keep: f.keep,
		Progress: func(round int, at time.Duration) {
			fmt.Fprintf(talk, "calibrate: round %d, %.0f of about %.0f s\n", round+1, at.Seconds(), f.time.Seconds())
		},
		Say: func(what string) { fmt.Fprintln(talk, "calibrate:", what) },
	})
	if errors.Is(err, calibrate.ErrNotHere) {
		return notHere(err)
	}
	if err != nil {
		return err
	}
	if path == "-" {
		return r.Profile.Save(cmd.OutOrStdout())
	}
	if err := saveProfile(path, r); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	fmt.Fprintf(talk, "calibrate: profile in %s\n", path)
	return f.write(cmd.OutOrStdout(), r)
}

func (f *calibrateFlags) write(w io.Writer, r *calibrate.Result) error {
	if !f.json {
		return calibrate.Write(w, r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// machineProfile is where this machine's profile is kept.
func machineProfile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "hugelab", "machine.yaml"), nil
}

// saveProfile replaces a profile whole: a reader sees the old one or the new.
func saveProfile(path string, r *calibrate.Result) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".machine-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = r.Profile.Save(tmp)
	if cerr := errors.Join(tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
