package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/calibrate"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/lab"
	"github.com/hugelab/hugelab/internal/probe"
	"github.com/hugelab/hugelab/internal/record"
)

func TestMain(m *testing.M) {
	kernel.Guardian()
	lab.Decoy()
	record.Stub()
	calibrate.Helper()
	testscript.Main(m, map[string]func(){"hugelab": main})
}

// TestScripts runs testdata/script/*.txtar; UPDATE=1 rewrites what cmp compares.
// The condition [record] holds where this machine can record, [settings] where
// its settings may be changed.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Condition: func(cond string) (bool, error) {
			if cond == "record" {
				method, _ := record.Choose()
				return method != "", nil
			}
			if cond == "settings" {
				return kernel.CanChange() == nil && !testing.Short(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code},
	})
}

// code runs a program and holds its exit code: code N PROGRAM [ARG...].
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var exit interface{ ExitCode() int }
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{usagef("x"), 2},
		{fmt.Errorf("verb: %w", usagef("x")), 2},
		{notHere(errors.New("x")), 3},
		{fmt.Errorf("record: %w: x", record.ErrNotHere), 3},
		{&record.CommandError{Name: "x", Code: 127}, 127},
		{&exitError{code: 130}, 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// verbs calls f with every verb that is ours.
func verbs(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Name() != "completion" && sub.Name() != "help" {
			f(sub)
			verbs(sub, f)
		}
	}
}

// TestHelp: every verb explains itself within 100 columns and ends with one
// example that runs this program.
func TestHelp(t *testing.T) {
	verbs(newRoot(), func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Args == nil && cmd.Flags().NFlag() > 0 {
			t.Errorf("%s does not explain itself", cmd.CommandPath())
		}
		if !cmd.Hidden && !strings.HasPrefix(cmd.Example, "  hugelab ") {
			t.Errorf("%s: example %q", cmd.CommandPath(), cmd.Example)
		}
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := run(context.Background(), args, nil, &out, &out); code != 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(line)) - 1; n > 100 {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
	})
}

// TestDoctorSchema: what doctor writes has the fields of its schema and no
// others. It is a check of names, not a validator.
func TestDoctorSchema(t *testing.T) {
	for _, name := range []string{"checks", "name", "what", "answer", "why", "do"} {
		if !strings.Contains(doctorSchema, `"`+name+`":`) {
			t.Errorf("the schema lacks %s", name)
		}
	}
	for _, a := range []probe.Answer{probe.Yes, probe.No, probe.Unknown} {
		if !strings.Contains(doctorSchema, `"`+string(a)+`"`) {
			t.Errorf("the schema lacks the answer %s", a)
		}
	}
	if s := schemas(); !slices.ContainsFunc(s, func(s schema) bool { return s.name == "doctor" }) {
		t.Error("no schema for doctor")
	}
}

func TestQuoted(t *testing.T) {
	for want, words := range map[string][]string{
		"ls -l":          {"ls", "-l"},
		"sh -c 'a; b'":   {"sh", "-c", "a; b"},
		`'it'\''s' ''`:   {"it's", ""},
		"env A=1 /bin/x": {"env", "A=1", "/bin/x"},
	} {
		if got := quoted(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
