// Package trace is the recording: what a program did to its memory, as it was
// seen, and the reader that turns it into operations of package mm.
//
// A recording keeps raw events with raw addresses. Writer and Reader stream:
// memory use does not grow with the length. Replay is an mm.Stream over a
// Reader; it follows every address space so that operations come out relative
// to regions.
//
// This package does not record (internal/record does) and does not judge.
package trace
