package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/record"
)

// Exit codes. A verb that runs a command passes the command's own code on.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // the command line makes no sense
	exitNotHere = 3 // this machine, or this user on it, cannot do it
)

// exitError is an error with an exit code of its own. With a nil err there is
// nothing to say: the code alone is the message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is a command line that makes no sense: exit code 2.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// notHere is what this machine cannot do: exit code 3.
func notHere(err error) error { return &exitError{exitNotHere, err} }

// run is the whole program: it does what args say and returns the exit code.
// Data goes to stdout, talk to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	var ee *exitError
	if !errors.As(err, &ee) || ee.err != nil {
		fmt.Fprintf(stderr, "hugelab: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintf(stderr, "Try '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// exitCode is the code that an error stands for.
func exitCode(err error) int {
	var ee *exitError
	var ce *record.CommandError
	var se *kernel.StartError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ee):
		return ee.code
	case errors.As(err, &ce):
		return ce.Code
	case errors.As(err, &se):
		return se.Code
	case errors.Is(err, record.ErrNotHere), errors.Is(err, kernel.ErrNotHere):
		return exitNotHere
	}
	return exitFailure
}

// argsUsage makes a wrong number of arguments a usage error.
func argsUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w", err)
		}
		return nil
	}
}

// needVerb makes cmd, which has verbs below it and does nothing itself, say
// which verbs there are.
func needVerb(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := ""
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			hint = fmt.Sprintf("; did you mean %s?", s[0])
		}
		return usagef("unknown verb %q for %s%s", args[0], cmd.CommandPath(), hint)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return &exitError{code: exitUsage}
	}
}
