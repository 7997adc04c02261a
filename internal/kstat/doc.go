// Package kstat parses the text of /proc and /sys. A live host, a saved
// directory, a guest and the model are all Trees to it.
package kstat
