package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

func newSettingsApply() *cobra.Command {
	var yes bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "apply [flags] POLICY|FILE [-- COMMAND [ARGUMENT...]]",
		Short: "Change the settings, for one command or until restore",
		Long: `Set a policy ("never", "thp+64k", "64k=always,max_ptes_none=64"), or a file that
'settings save' wrote. Items of the host may stand beside those of a policy:
hugetlb_2m=PAGES, overcommit_2m=PAGES, hvo=0|1, min_free_kbytes=N.

With COMMAND the settings hold while it runs and are put back after it, whatever
happens; its exit code is passed on. Without, they hold until 'settings restore'
or the next boot. Either everything is set or nothing.`,
		Example: "  hugelab settings apply never --yes -- sleep 0",
		RunE: func(cmd *cobra.Command, args []string) error {
			command := []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, command = args[:n], args[n:]
				if len(command) == 0 {
					return usagef("settings apply: no COMMAND after --")
				}
			}
			if len(args) != 1 {
				return usagef("settings apply: want one POLICY or FILE, and a COMMAND after --")
			}
			return settingsApply(cmd, args[0], command, yes, wait)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	waitFlag(cmd, &wait)
	return cmd
}

// wanted are the values that a policy spec or a settings file asks for. A file
// is what has a slash in its name, or exists and is no policy's name: a program
// called thp in the current directory does not stand in thp's way.
func wanted(what string, now kernel.Values) (kernel.Values, error) {
	if !strings.Contains(what, "/") {
		if v, err := wantedPolicy(what, now); err == nil {
			return v, nil
		}
	}
	b, err := os.ReadFile(what)
	switch {
	case err == nil:
		v, _, err := kernel.ParseValues(b)
		if err != nil {
			return nil, fmt.Errorf("settings: %s: %w", what, err)
		}
		return v, nil
	case !errors.Is(err, fs.ErrNotExist) || strings.Contains(what, "/") && !strings.Contains(what, "="):
		return nil, fmt.Errorf("settings: %w", err)
	}
	return wantedPolicy(what, now)
}

// wantedPolicy are the values that a policy spec asks for.
func wantedPolicy(what string, now kernel.Values) (kernel.Values, error) {
	facts := kernel.LiveFacts()
	base, err := now.Policy(facts.Sizes)
	if err != nil {
		return nil, err
	}
	h, err := kernel.ParseHostSettings(base, what, facts.Sizes)
	if err != nil {
		return nil, usagef("%w", err)
	}
	rules, err := mm.RulesFor(facts.Release)
	if err != nil {
		return nil, err
	}
	return h.Values(now, facts.Sizes, rules)
}

func settingsApply(cmd *cobra.Command, what string, command []string, yes bool, wait time.Duration) error {
	now, err := readSettings()
	if err != nil {
		return err
	}
	want, err := wanted(what, now)
	if err != nil {
		return err
	}
	if err := kernel.CanChange(); err != nil {
		return err
	}
	shown := now.Changes(want)
	if err := confirm(cmd, shown, yes); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(cmd.Context(), wait)
	s, err := kernel.Take(ctx, sessionOptions(cmd, "settings apply "+quoted(append([]string{what}, command...))))
	stop()
	if err != nil {
		return err
	}
	defer s.Restore() // where an error or a panic leaves this function
	if !yes && !slices.Equal(s.Before().Changes(want), shown) {
		return errors.New("settings: they changed while you were asked: run it again")
	}
	if err := s.Set(want); err != nil {
		return err
	}
	if command == nil {
		if err := s.Keep(); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "hugelab: set until 'hugelab settings restore' or the next boot")
		return nil
	}
	code, err := runUnder(cmd, command)
	if rerr := s.Restore(); rerr != nil {
		return errors.Join(err, rerr)
	}
	if err == nil && code != 0 {
		err = &exitError{code: code}
	}
	return err
}

// runUnder runs a command with this process's files. An interrupt goes on to
// the command, whose end is waited for.
func runUnder(cmd *cobra.Command, command []string) (code int, err error) {
	o := kernel.StartOptions{Command: command}
	o.Stdin, _ = cmd.InOrStdin().(*os.File)
	o.Stdout, _ = cmd.OutOrStdout().(*os.File)
	o.Stderr, _ = cmd.ErrOrStderr().(*os.File)
	p, err := kernel.Start(o)
	if err != nil {
		return 0, err
	}
	if err := p.Release(); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(cmd.Context(), func() { p.Signal(syscall.SIGTERM) })
	defer stop()
	st, err := p.Wait()
	if err != nil {
		return 0, err
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return st.ExitCode(), nil
}
