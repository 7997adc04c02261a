package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot builds the whole command: one constructor a verb, nothing global.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hugelab",
		Short: "Say, with proof, what Linux huge pages would do for a program",
		Long: `hugelab records a program once, with huge pages off for that program alone, and
runs the recording through a model of Linux's huge-page memory management under
every policy worth trying: page faults, kernel time, peak memory, huge-page
coverage, and the setting it would choose.

Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 not possible
on this machine. A verb that runs a command passes the command's code on.`,
		Example:       "  hugelab doctor",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	needVerb(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(
		newRecord(),
		newRecording(),
		newPredict(),
		newSettings(),
		newCalibrate(),
		newDifftest(),
		newRepro(),
		newMachine(),
		newSize(),
		newDoctor(),
		newSchema(),
		newMan(),
	)
	return root
}

// version is what the Go toolchain stamped into the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := []string{strings.Trim(info.Main.Version, "()")}
	if v[0] == "" {
		v[0] = "devel"
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if rev := set["vcs.revision"]; rev != "" {
		v = append(v, rev[:min(12, len(rev))])
		if set["vcs.modified"] == "true" {
			v = append(v, "modified")
		}
	}
	return strings.Join(append(v, runtime.GOOS+"/"+runtime.GOARCH, info.GoVersion), " ")
}
