// Package procfs renders a model machine's state as the text of /proc and /sys.
package procfs
