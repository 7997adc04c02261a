package probe

import (
	"fmt"
	"io"
	"strings"
)

// Answer is what a probe found.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Check is one question and what was found.
type Check struct {
	Name   string `json:"name"` // stable, for programs: "record.root"
	What   string `json:"what"` // for people
	Answer Answer `json:"answer"`
	Why    string `json:"why,omitempty"` // a fact or a reason
	Do     string `json:"do,omitempty"`  // what to type, or to do, to change the answer
}

func yes(why string) Check { return Check{Answer: Yes, Why: why} }

func no(why, do string) Check { return Check{Answer: No, Why: why, Do: do} }

func unknown(why, do string) Check { return Check{Answer: Unknown, Why: why, Do: do} }

// Width is the widest line that Write makes.
const Width = 100

// Columns of the table.
const (
	whatWidth   = 30
	answerWidth = 9
)

// Write prints checks as a table of at most Width columns: a word or a path
// that is longer than a column alone may go over.
func Write(w io.Writer, checks []Check) error {
	for _, c := range checks {
		text := wrap(c.Why, Width-whatWidth-answerWidth)
		for i, l := range wrap(c.Do, Width-whatWidth-answerWidth-3) {
			mark := "   "
			if i == 0 {
				mark = "-> "
			}
			text = append(text, mark+l)
		}
		if len(text) == 0 {
			text = []string{""}
		}
		for i, l := range text {
			what, answer := c.What, string(c.Answer)
			if i > 0 {
				what, answer = "", ""
			}
			line := fmt.Sprintf("%-*s%-*s%s", whatWidth, what, answerWidth, answer, l)
			if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrap breaks text at spaces into lines of at most width runes where it can.
func wrap(text string, width int) []string {
	var all []string
	line, n := "", 0
	for word := range strings.FieldsSeq(text) {
		k := len([]rune(word))
		if n > 0 && n+1+k > width {
			all, line, n = append(all, line), "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+k
	}
	if n > 0 {
		all = append(all, line)
	}
	return all
}
