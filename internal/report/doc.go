// Package report renders results as a table, Markdown and JSON. It computes
// nothing.
package report
