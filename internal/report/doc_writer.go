package report

import (
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
)

// doc is a report being written, as text or Markdown.
type doc struct {
	style Style
	b     strings.Builder
}

// line writes one sentence, folded at Width in text.
func (d *doc) line(s string) {
	if d.style == Markdown {
		d.b.WriteString(escape(s) + "\n\n")
		return
	}
	d.b.WriteString(fold(s, "  "))
}

// gap writes an empty line.
func (d *doc) gap() {
	if d.style == Text {
		d.b.WriteByte('\n')
	}
}

// block writes lines that must stay as they are.
func (d *doc) block(s string) {
	if d.style == Markdown {
		d.b.WriteString("```\n" + s + "```\n\n")
		return
	}
	for l := range strings.Lines(s) {
		d.b.WriteString("  " + l)
	}
}

// list writes a title and points; nothing without points.
func (d *doc) list(title string, points []string) {
	if len(points) == 0 {
		return
	}
	d.line(title)
	for _, p := range points {
		if d.style == Markdown {
			d.b.WriteString("- " + escape(p) + "\n")
		} else {
			d.b.WriteString(fold("- "+p, "  "))
		}
	}
	if d.style == Markdown {
		d.b.WriteByte('\n')
	}
}

// table writes a table.
func (d *doc) table(t table.Writer) {
	if d.style == Markdown {
		d.b.WriteString(squeeze(t.RenderMarkdown()) + "\n\n")
		return
	}
	text := t.Render()
	if widest(text) > Width {
		t.Style().Box.PaddingRight = " "
		text = t.Render()
	}
	for l := range strings.Lines(text + "\n") {
		d.b.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
}

// widest is the length of the longest line without blanks at its end.
func widest(s string) int {
	n := 0
	for l := range strings.Lines(s) {
		n = max(n, utf8.RuneCountInString(strings.TrimRight(l, " \n")))
	}
	return n
}

// squeeze makes runs of blanks one: Markdown aligns by itself.
func squeeze(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}

// escape keeps what a recording or a person named from becoming Markdown.
func escape(s string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`, "`", "'").Replace(s)
}

// fold breaks s at blanks into lines of at most Width; later lines begin with
// indent. Control characters, which a recording may hold, become blanks. A
// word longer than a line is cut.
func fold(s, indent string) string {
	var b strings.Builder
	col, fresh := 0, true // fresh: the line has no word yet
	for _, word := range strings.Fields(strings.Map(printable, s)) {
		rest := []rune(word)
		if !fresh && col+1+len(rest) > Width {
			b.WriteString("\n" + indent)
			col, fresh = len(indent), true
		}
		if !fresh {
			b.WriteByte(' ')
			col++
		}
		for col+len(rest) > Width {
			n := Width - col
			b.WriteString(string(rest[:n]) + "\n" + indent)
			rest, col = rest[n:], len(indent)
		}
		b.WriteString(string(rest))
		col, fresh = col+len(rest), false
	}
	return b.String() + "\n"
}

// printable is r, or a blank for a control character.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return ' '
	}
	return r
}
