package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/difftest"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// difftestFlags are the flags of difftest.
type difftestFlags struct {
	programs int
	seed     uint64
	steps    int
	time     time.Duration
	json     bool
	print    bool
	maps     bool
	model    bool
	kernel   string
	keep     string
	stats    bool
	vary     bool
	stop     int
	answers  string
	against  string
	policies []string
	every    int
	wait     time.Duration
}

func newDifftest() *cobra.Command {
	var f difftestFlags
	cmd := &cobra.Command{
		Use:   "difftest [flags] [FILE... | RECORDING]",
		Short: "Hold the model to the running kernel, page for page",
		Long: `Run memory programs on the model and on the running kernel, and compare after
every step: the folio behind every page, who shares it, mappings, faults, and
every counter that only huge pages move. Programs are generated from a seed, or
read from FILEs, - for standard input; docs/programs.md describes their form. A
difference is shrunk to the smallest program that shows it.

A RECORDING is replayed instead, under each --policy: helper processes do what was
recorded, and the folios behind all pages are compared on the way.

The kernel side needs root and sets huge pages for the whole machine while it
runs, a few seconds at a time, and puts them back. With --model the model runs
alone, by the rules of any kernel version. --answers saves what the kernel showed;
--against holds the model to such a file, on any machine.

Exit codes: 0 no difference, 1 differences, 3 not possible on this machine.`,
		Example: "  hugelab difftest --model --programs 20 --seed 1\n" +
			"  hugelab difftest --programs 500 --answers kernel.answers\n" +
			"  hugelab difftest --against kernel.answers\n" +
			"  hugelab difftest --policy never,64k,thp service.hlr",
		RunE: f.run,
	}
	fl := cmd.Flags()
	fl.IntVar(&f.programs, "programs", 300, "generate `N` programs")
	fl.Uint64Var(&f.seed, "seed", 0, "generate them from seed `N` (default: from the clock)")
	fl.IntVar(&f.steps, "steps", 40, "at most `N` steps in each")
	fl.DurationVar(&f.time, "time", 0, "generate programs for this `TIME`, however many")
	fl.BoolVar(&f.json, "json", false, "write JSON; 'hugelab schema difftest' describes it")
	fl.BoolVar(&f.print, "print", false, "show pages after every step")
	fl.BoolVar(&f.maps, "maps", false, "with --print, show mappings too")
	fl.BoolVar(&f.model, "model", false, "run the model alone")
	fl.StringVar(&f.kernel, "kernel", "", "with --model, by the rules of this Linux `VERSION` (default: this host's)")
	fl.StringVar(&f.keep, "keep", "", "save programs that show differences in `DIR`")
	fl.BoolVar(&f.stats, "stats", false, "show how often everything that programs may have occurred")
	fl.BoolVar(&f.vary, "vary", false, "with --model, give every program a kernel and a machine of its own")
	fl.IntVar(&f.stop, "stop", 0, "end after `N` differences (default: go on)")
	fl.StringVar(&f.answers, "answers", "", "save what the kernel showed after every step in `FILE`")
	fl.StringVar(&f.against, "against", "", "hold the model to the answers in `FILE` instead of to this kernel")
	fl.StringArrayVar(&f.policies, "policy", nil, "replay a RECORDING under `POLICY`; may be repeated")
	fl.IntVar(&f.every, "every", 1000, "compare a RECORDING's pages after every `N` operations")
	fl.DurationVar(&f.wait, "wait", 10*time.Minute, "with a RECORDING, wait `TIME` for who holds the settings")
	return cmd
}

func (f *difftestFlags) run(cmd *cobra.Command, args []string) error {
	if recording, err := f.recordingOf(args); err != nil || recording != "" {
		if err != nil {
			return err
		}
		return f.runRecording(cmd, recording)
	}
	o, err := f.options(cmd, args)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.print {
		if f.json {
			return usagef("difftest: --json and --print: give one of them")
		}
		if len(o.Files) == 0 && f.against == "" {
			return usagef("difftest: --print: give FILEs")
		}
		o.Show, o.ShowMaps = out, f.maps
	}
	o.OnMismatch = func(m *difftest.Mismatch) {
		if !f.json {
			fmt.Fprintf(out, "%s: %s\n%s\n", m.From, &m.Difference, m.Program)
		}
	}
	p := newDifftestProgress(cmd.ErrOrStderr())
	o.OnProgress, o.Note = p.show, p.note
	rep, err := f.check(cmd.Context(), o)
	p.end()
	if err != nil {
		return err
	}
	if err := f.save(rep); err != nil {
		return err
	}
	if err := f.write(out, rep); err != nil {
		return err
	}
	if len(rep.Mismatches) > 0 {
		return &exitError{code: exitFailure}
	}
	return nil
}

// check runs the programs on the sides that the flags name.
func (f *difftestFlags) check(ctx context.Context, o difftest.Options) (*difftest.Report, error) {
	if f.model {
		return difftest.CheckModel(ctx, o)
	}
	if f.against != "" {
		file, err := os.Open(f.against)
		if err != nil {
			return nil, fmt.Errorf("difftest: --against: %w", err)
		}
		defer file.Close()
		return difftest.CheckAgainst(ctx, o, file)
	}
	if err := difftest.Available(); err != nil {
		return nil, notHere(err)
	}
	if f.answers == "" {
		return difftest.Check(ctx, o)
	}
	file, err := os.Create(f.answers)
	if err != nil {
		return nil, fmt.Errorf("difftest: --answers: %w", err)
	}
	rep, err := difftest.CheckAndSave(ctx, o, file)
	if cerr := file.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("difftest: --answers: %w", cerr)
	}
	return rep, err
}

func (f *difftestFlags) options(cmd *cobra.Command, args []string) (o difftest.Options, err error) {
	switch {
	case f.programs < 1 && f.time == 0:
		return o, usagef("difftest: --programs %d: want 1 or more", f.programs)
	case f.steps < 1 || f.steps > 1000:
		return o, usagef("difftest: --steps %d: want 1 to 1000", f.steps)
	case f.time < 0:
		return o, usagef("difftest: --time %v: want a duration above zero", f.time)
	case f.vary && !f.model:
		return o, usagef("difftest: --vary: the kernel side is this host: give --model too")
	case f.stop < 0:
		return o, usagef("difftest: --stop %d: want 1 or more", f.stop)
	case f.against != "" && (f.model || f.answers != "" || len(args) > 0 || cmd.Flags().Changed("seed")):
		return o, usagef("difftest: --against: the programs and the kernel are the file's: " +
			"give no FILE, --seed, --model or --answers")
	case f.answers != "" && f.model:
		return o, usagef("difftest: --answers: saves what the kernel shows: leave out --model")
	case f.kernel != "" && !f.model:
		return o, usagef("difftest: --kernel: the kernel side is this host's: give --model too")
	}
	if !cmd.Flags().Changed("seed") && f.against == "" {
		f.seed = uint64(time.Now().UnixMilli()) % 1e9
	}
	o = difftest.Options{Seed: f.seed, Programs: f.programs, Steps: f.steps, Time: f.time, Paranoid: f.model,
		MaxMismatches: f.stop}
	if f.time > 0 && !cmd.Flags().Changed("programs") {
		o.Programs = 0
	}
	for _, name := range args {
		p, err := readProgram(cmd.InOrStdin(), name)
		if err != nil {
			return o, usagef("difftest: %w", err)
		}
		o.Files = append(o.Files, p)
	}
	o.Vary, o.Split = f.vary, f.vary || !f.model && f.against == "" && difftest.CanSplit() == nil
	if f.against == "" {
		o.Rules, o.Kernel, err = f.rules()
	}
	return o, err
}

func readProgram(stdin io.Reader, name string) (*difftest.Program, error) {
	if name == "-" {
		return difftest.Parse("standard input", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return difftest.Parse(name, file)
}

// rules are those of the version asked for, or of this host with what was
// probed.
func (f *difftestFlags) rules() (mm.Rules, string, error) {
	if f.kernel != "" {
		r, err := mm.RulesFor(f.kernel)
		if err != nil {
			return r, "", usagef("difftest: --kernel: %w", err)
		}
		return r, f.kernel, nil
	}
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		err = fmt.Errorf("difftest: this host's kernel: %w: say which with --model --kernel", err)
		return mm.Rules{}, "", notHere(err)
	}
	release := strings.TrimSpace(string(b))
	r, err := mm.RulesFor(release)
	if err == nil {
		r.NoZeroPage = kernel.NoZeroPage()
	}
	return r, release, err
}

// save writes what --keep asks for: each small program, and what differed.
func (f *difftestFlags) save(rep *difftest.Report) error {
	if f.keep == "" || len(rep.Mismatches) == 0 {
		return nil
	}
	if err := os.MkdirAll(f.keep, 0o777); err != nil {
		return fmt.Errorf("difftest: --keep: %w", err)
	}
	for i, m := range rep.Mismatches {
		text := fmt.Sprintf("# %s, kernel %s\n# %s\n%s", m.From, rep.Kernel, &m.Difference, m.Program)
		name := filepath.Join(f.keep, fmt.Sprintf("seed%d-%d.txt", rep.Seed, i+1))
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			return fmt.Errorf("difftest: --keep: %w", err)
		}
	}
	return nil
}

func (f *difftestFlags) write(w io.Writer, rep *difftest.Report) error {
	if f.json {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(rep)
	}
	if f.print {
		return nil
	}
	fmt.Fprintf(w, "%d programs of seed %d by the rules of Linux %s in %.1f s "+
		"(%.1f of them at work: %.0f a minute): "+
		"%d steps, %d pages and %d counters compared, %d programs run again, %d unsettled, %d differences\n",
		rep.Programs, rep.Seed,
		rep.Kernel, rep.Seconds, rep.Held, rep.Rate, rep.Steps, rep.Pages, rep.Counters, rep.Rerun,
		rep.Unsettled, len(rep.Mismatches))
	tables := []difftest.Table{{Title: "run again because of", Of: rep.Because}}
	if f.stats {
		tables = append(tables, rep.Stats.Tables()...)
	}
	for _, t := range tables {
		if len(t.Of) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", t.Title)
		for _, k := range slices.Sorted(maps.Keys(t.Of)) {
			fmt.Fprintf(w, "  %-48s %d\n", k, t.Of[k])
		}
	}
	return nil
}
