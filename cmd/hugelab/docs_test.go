package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/internal/predict"
)

// TestDocs runs every "$ hugelab ..." of the console blocks in README.md and
// docs/ and compares what it writes with what the block shows. A line "..."
// stands for all that follows. REWRITE=1 rewrites the blocks instead.
//
// The commands run where compile.hlr is the example recording. A document must
// show only what no machine decides: "--settings recorded" sees to that.
func TestDocs(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", dir) // no machine profile of this host
	t.Setenv("HOME", dir)
	copyExample(t, filepath.Join(dir, "compile.hlr"))
	ran := 0
	for _, path := range append(docs, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := consoleBlocks(string(text), func(command string, shown []string) []string {
			ran++
			return runShown(command, shown)
		})
		switch {
		case got == string(text):
		case os.Getenv("REWRITE") != "":
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s differs (-shown +got); REWRITE=1 rewrites it:\n%s", filepath.Base(path),
				cmp.Diff(string(text), got))
		}
	}
	if ran < 3 {
		t.Errorf("only %d commands in the documents: were the blocks found?", ran)
	}
}

func copyExample(t *testing.T, to string) {
	t.Helper()
	r, err := predict.OpenExample()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// consoleBlocks replaces the output of each command in the console blocks of a
// Markdown text by what output gives for it.
func consoleBlocks(text string, output func(command string, shown []string) []string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if lines[i] != "```console" {
			continue
		}
		for i++; i < len(lines) && lines[i] != "```"; {
			command, ours := strings.CutPrefix(lines[i], "$ hugelab")
			out = append(out, lines[i])
			i++
			var shown []string
			for ; i < len(lines) && lines[i] != "```" && !strings.HasPrefix(lines[i], "$ "); i++ {
				shown = append(shown, lines[i])
			}
			if ours {
				shown = output(command, shown)
			}
			out = append(out, shown...)
		}
		if i < len(lines) {
			out = append(out, lines[i])
		}
	}
	return strings.Join(out, "\n")
}

// runShown runs a command and returns its output as a block shows it: cut off
// where the block had "...".
func runShown(command string, shown []string) []string {
	var b bytes.Buffer
	run(context.Background(), strings.Fields(command), strings.NewReader(""), &b, &b)
	got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if n := len(shown) - 1; n >= 0 && shown[n] == "..." && n <= len(got) {
		got = append(got[:n:n], "...")
	}
	return got
}

func TestConsoleBlocks(t *testing.T) {
	const text = "a\n```console\n$ hugelab x\nold\n$ ls\nkept\n$ hugelab y\n```\n```\n$ hugelab z\n```\n"
	var ran []string
	got := consoleBlocks(text, func(command string, shown []string) []string {
		ran = append(ran, command+":"+strings.Join(shown, "/"))
		return []string{"new"}
	})
	if d := cmp.Diff([]string{" x:old", " y:"}, ran); d != "" {
		t.Error(d)
	}
	want := "a\n```console\n$ hugelab x\nnew\n$ ls\nkept\n$ hugelab y\nnew\n```\n```\n$ hugelab z\n```\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
