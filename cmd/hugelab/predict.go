package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/internal/report"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	record   recordFlags
	policies []string
	knobs    [6]string // by khugepagedKnobs; "" as it is now
	kernel   string
	memory   string
	settings string
	limit    string
	profile  string
	settle   time.Duration
	layouts  int
	seed     uint64
	by       string
	timeline bool
	goal     string
	most     string
	json     bool
	markdown bool
	verify   verifyFlags
}

// khugepagedKnobs are the flags that change a setting of khugepaged in every
// row but now; the key of a policy spec has _ for -.
var khugepagedKnobs = [6]string{
	"max-ptes-none", "max-ptes-shared", "max-ptes-swap", "pages-to-scan", "scan-sleep-ms", "alloc-sleep-ms"}

func newPredict() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict [flags] [FILE | -- COMMAND [ARGUMENT...]]",
		Short: "Predict what each huge-page policy would do for a program",
		Long: `Run a recording through the model of Linux's memory management under every policy
worth trying, and print page faults, kernel time and memory of each against the
settings of this host, then the one setting to choose. FILE is a recording, - for
standard input; with COMMAND the program is recorded first. Without either, a
recording of a compile that comes with hugelab is used.

A POLICY is now, never, a size (64k), thp, or two joined by + (thp+64k); several
names in a list are several rows. Or it is the settings of one row, such as
64k=always,2m=madvise,max_ptes_none=64, over those of now. advise=heap, advise=all
and advise=>=64m are what no setting does: the program advising its own memory.`,
		Example: `  hugelab predict
  hugelab predict --policy never,64k,thp --goal memory
  hugelab predict --policy 2m=madvise,advise=heap --kernel 6.12
  hugelab predict --layouts 5 --policy thp --by mapping --markdown
  hugelab predict -o sort.hlr --quiet -- sort /etc/services
  hugelab predict sort.hlr`,
		RunE: f.run,
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.policies, "policy", nil, "predict this `POLICY`; may be repeated (default: all useful)")
	fl.StringVar(&f.kernel, "kernel", "", "apply the rules of this Linux `VERSION` (default: the recording's)")
	for i, k := range khugepagedKnobs {
		fl.StringVar(&f.knobs[i], k, "", "khugepaged's setting in every row but now, as `N`")
	}
	fl.StringVar(&f.settings, "settings", "host",
		"settings of the row now, of `WHOM`: host or recorded")
	fl.StringVar(&f.memory, "memory-state", "fresh",
		"free memory: fresh, host, or a `FILE` like buddyinfo")
	fl.StringVar(&f.limit, "memory-limit", "", "memory cgroup limit as `BYTES` or none (default: this process's)")
	fl.StringVar(&f.profile, "profile", "", "machine profile that prices the work: vm, metal or a `FILE`")
	fl.DurationVar(&f.settle, "settle", 0, "let khugepaged work for this `TIME` after the end")
	fl.IntVar(&f.layouts, "layouts", 0, "mean and range over `N` random layouts (default: as recorded)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the layouts, as `N`")
	fl.StringVar(&f.by, "by", "", "also list by `WHAT`: mapping")
	fl.BoolVar(&f.timeline, "timeline", false, "also draw memory over time")
	fl.StringVar(&f.goal, "goal", "time", "recommend for this `GOAL`: time, memory or latency")
	fl.StringVar(&f.most, "max-memory", "", "recommend no higher rise of the peak than `PERCENT`, such as +5%")
	fl.BoolVar(&f.json, "json", false, "write JSON (hugelab schema predict)")
	fl.BoolVar(&f.markdown, "markdown", false, "write Markdown")
	fl.StringVarP(&f.record.out, "output", "o", "", "with COMMAND, keep the recording in `FILE`")
	fl.StringVar(&f.record.method, "method", "", "with COMMAND, record by `METHOD`: root, perf or pagemap")
	fl.BoolVarP(&f.record.quiet, "quiet", "q", false, "with COMMAND, throw its output away; show no progress")
	f.verify.flags(fl)
	return cmd
}

func (f *predictFlags) run(cmd *cobra.Command, args []string) error {
	in, err := f.input()
	if err != nil {
		return err
	}
	switch {
	case f.verify.suite:
		return f.runSuite(cmd, args, in)
	case f.verify.replay && !f.verify.on:
		return usagef("predict: --replay: give --verify too")
	case f.verify.on:
		return f.runVerify(cmd, args, in)
	}
	src, err := f.source(cmd, args)
	if err != nil {
		return err
	}
	defer src.done()
	in.Open, in.Example = src.open, src.example
	if err := f.host(&in, src); err != nil {
		return err
	}
	p, err := predict.Run(cmd.Context(), in)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	if err := f.write(cmd.OutOrStdout(), p, src); err != nil {
		return err
	}
	if src.exit != 0 {
		return &exitError{code: src.exit}
	}
	return nil
}

// input checks the flags that need nothing of a recording or the host.
func (f *predictFlags) input() (predict.Input, error) {
	in := predict.Input{
		Settle: f.settle, Layouts: f.layouts, Seed: f.seed,
		ByMapping: f.by == "mapping", Timeline: f.timeline, MaxMemory: -1,
	}
	var err error
	switch {
	case f.json && f.markdown:
		return in, usagef("predict: --json and --markdown: give one of them")
	case f.by != "" && f.by != "mapping":
		return in, usagef("predict: --by %s: want mapping", f.by)
	case f.settings != "host" && f.settings != "recorded":
		return in, usagef("predict: --settings %s: want host or recorded", f.settings)
	case f.layouts < 0 || f.layouts > 1000:
		return in, usagef("predict: --layouts %d: want 1 to 1000", f.layouts)
	case f.settle < 0:
		return in, usagef("predict: --settle %v: want a duration above zero", f.settle)
	}
	if in.Goal, err = predict.ParseGoal(f.goal); err != nil {
		return in, usagef("predict: --goal: %w", err)
	}
	if f.most != "" {
		v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(f.most, "+"), "%"), 64)
		if err != nil || !(v >= 0 && v < 1e6) {
			return in, usagef("predict: --max-memory %s: want a percentage such as +5%%", f.most)
		}
		in.MaxMemory = v / 100
	}
	if f.kernel != "" {
		if in.Rules, err = mm.RulesFor(f.kernel); err != nil {
			return in, usagef("predict: --kernel: %w", err)
		}
	}
	if in.Profile, err = f.loadProfile(); err != nil {
		return in, err
	}
	return in, nil
}

// loadProfile finds the machine profile: the one asked for, this host's own,
// or the first preset.
func (f *predictFlags) loadProfile() (*hw.Profile, error) {
	if p, ok := hw.Preset(f.profile); ok {
		return &p, nil
	}
	path := f.profile
	if path == "" {
		var err error
		if path, err = machineProfile(); err != nil {
			return nil, nil
		}
		if _, err := os.Stat(path); err != nil {
			return nil, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("predict: --profile: want vm, metal or a file: %w", err)
	}
	defer file.Close()
	p, err := hw.Load(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// host fills in what this host decides: the settings now, free memory and the
// limit.
func (f *predictFlags) host(in *predict.Input, src *predictSource) error {
	var root fs.FS
	if runtime.GOOS == "linux" {
		root = os.DirFS("/")
	}
	sizes, err := mm.SizesOf(mm.Bytes(src.header.PageSize))
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	rules := in.Rules
	if rules.Version == "" {
		if rules, err = mm.RulesFor(src.header.Kernel); err != nil {
			return usagef("recording: %w: say which kernel with --kernel", err)
		}
	}
	if f.settings == "recorded" {
		root = nil // nothing of this host decides anything
	}
	now, from := currentPolicy(root, src.header.Settings, sizes)
	in.NowFrom = from
	base := now
	for i, k := range khugepagedKnobs {
		if f.knobs[i] == "" {
			continue
		}
		if base, err = mm.ParsePolicySpec(base, strings.ReplaceAll(k, "-", "_")+"="+f.knobs[i], sizes); err != nil {
			return usagef("predict: --%s: %w", k, err)
		}
	}
	if in.Policies, err = predict.ParsePolicies(f.policies, now, base, rules, sizes); err != nil {
		return usagef("predict: %w", err)
	}
	if in.Limit, err = f.memoryLimit(root, src); err != nil {
		return err
	}
	return f.freeMemory(in)
}

// currentPolicy is this host's settings, else those of the recording's host,
// else the kernel's defaults; and which of them it is.
func currentPolicy(root fs.FS, recorded map[string]string, s mm.Sizes) (p mm.Policy, from string) {
	if root != nil {
		if p, err := kstat.ReadPolicy(root, s); err == nil {
			return p, "the settings of this host"
		}
	}
	if p, err := mm.ParsePolicy(recorded, s); err == nil {
		return p, "the settings of the host that recorded"
	}
	return mm.DefaultPolicy(s), "the kernel's defaults"
}

func (f *predictFlags) memoryLimit(root fs.FS, src *predictSource) (mm.Bytes, error) {
	switch {
	case f.limit == "none":
		return 0, nil
	case f.limit != "":
		b, err := mm.ParseBytes(f.limit)
		if err != nil {
			return 0, usagef("predict: --memory-limit: %w, or none", err)
		}
		return b, nil
	case src.header.Limit != 0:
		return mm.Bytes(src.header.Limit), nil
	case root != nil:
		if l, err := kstat.ReadMemoryLimit(root, 0); err == nil {
			return l.Limit, nil
		}
	}
	return 0, nil
}

func (f *predictFlags) freeMemory(in *predict.Input) error {
	switch f.memory {
	case "fresh":
		return nil
	case "host":
		if runtime.GOOS != "linux" {
			return notHere(errors.New("predict: --memory-state host: no Linux host: give a copy of /proc/buddyinfo"))
		}
		free, err := kstat.ReadFreeState(os.DirFS("/"))
		if err != nil {
			return fmt.Errorf("predict: --memory-state host: %w", err)
		}
		in.Memory, in.MemoryName = &free, "as free on this host now"
		return nil
	}
	file, err := os.Open(f.memory)
	if err != nil {
		return usagef("predict: --memory-state: want fresh, host or a file: %w", err)
	}
	defer file.Close()
	free, err := kstat.ParseBuddyInfo(file)
	if err != nil {
		return fmt.Errorf("predict: --memory-state %s: %w", f.memory, err)
	}
	in.Memory, in.MemoryName = &free, "as free in "+f.memory
	return nil
}

func (f *predictFlags) write(w io.Writer, p *predict.Prediction, src *predictSource) error {
	if f.json {
		return report.WritePredictJSON(w, p)
	}
	o := report.PredictOptions{Timeline: f.timeline}
	if f.markdown {
		o.Style = report.Markdown
	}
	if src.example {
		o.LastLine = "for a program of your own: hugelab predict -- COMMAND; " + canRecord()
	}
	return report.Predict(w, p, o)
}

// canRecord says what this machine can record, in a clause.
func canRecord() string {
	method, why := record.Choose()
	if method == "" {
		return "this machine cannot record: " + why
	}
	return "this machine can record by method " + string(method)
}

// predictSource is where the recording comes from.
type predictSource struct {
	header  trace.Header
	open    func() (io.ReadCloser, error)
	done    func()
	example bool
	exit    int // of the recorded COMMAND
}

// source finds or makes the recording and reads its header.
func (f *predictFlags) source(cmd *cobra.Command, args []string) (*predictSource, error) {
	src := &predictSource{done: func() {}}
	dash := cmd.ArgsLenAtDash()
	var err error
	switch {
	case dash > 0 || dash < 0 && len(args) > 1:
		return nil, usagef("predict: give one FILE, or -- and a COMMAND")
	case dash == 0 && len(args) == 0:
		return nil, usagef("predict: --: no COMMAND follows")
	case dash == 0:
		err = f.recordFirst(cmd, args, src)
	case len(args) == 0:
		src.example, src.open = true, predict.OpenExample
	default:
		return src, f.open(cmd, args[0], src)
	}
	if err != nil {
		return nil, err
	}
	return src, src.readHeader()
}

// open makes src the recording in a file, - for standard input.
func (f *predictFlags) open(cmd *cobra.Command, name string, src *predictSource) error {
	if name == "-" {
		if err := spool(cmd.InOrStdin(), src); err != nil {
			return err
		}
	} else {
		src.open = func() (io.ReadCloser, error) { return os.Open(name) }
	}
	return src.readHeader()
}

// readHeader reads the header of src's recording. On an error src is done.
func (src *predictSource) readHeader() error {
	file, err := src.open()
	if err != nil {
		src.done()
		return fmt.Errorf("predict: %w", err)
	}
	defer file.Close()
	r, err := trace.NewReader(file)
	if err != nil {
		src.done()
		return fmt.Errorf("predict: %w", err)
	}
	src.header = r.Header
	return nil
}

// spool keeps standard input in a file that goes away with src, because a
// recording may be read more than once.
func spool(r io.Reader, src *predictSource) error {
	return src.temporary(func(file *os.File) error {
		_, err := io.Copy(file, r)
		return err
	})
}

// temporary makes src a temporary file that fill has filled.
func (src *predictSource) temporary(fill func(*os.File) error) error {
	file, err := os.CreateTemp("", "hugelab-*.hlr")
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	src.done = func() { os.Remove(file.Name()) }
	src.open = func() (io.ReadCloser, error) { return os.Open(file.Name()) }
	err = fill(file)
	if cerr := file.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		src.done()
		return fmt.Errorf("predict: %w", err)
	}
	return nil
}

// recordFirst records COMMAND.
func (f *predictFlags) recordFirst(cmd *cobra.Command, args []string, src *predictSource) error {
	if err := f.record.check(args); err != nil {
		return err
	}
	method := trace.Method(f.record.method)
	if method == "" {
		var why string
		if method, why = record.Choose(); method == "" {
			return notHere(fmt.Errorf("predict: cannot record: %s: 'hugelab doctor' says more", why))
		}
	}
	fill := func(file *os.File) error {
		footer, err := f.record.recordTo(cmd, args, method, file)
		src.exit = footer.Exit
		return err
	}
	if f.record.out == "" {
		return src.temporary(fill)
	}
	file, err := os.Create(f.record.out)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	src.open = func() (io.ReadCloser, error) { return os.Open(f.record.out) }
	err = fill(file)
	if cerr := file.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	return nil
}
