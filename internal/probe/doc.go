// Package probe finds out what this machine can do for hugelab, and says why
// not and what to type.
//
// A probe is data: a question, an answer (yes, no, unknown), the reason, and
// the command that would change the answer. Where asking is free of effect the
// kernel is asked (an event opened and closed) and not second-guessed from its
// settings. Nothing is changed.
package probe
