// Package kstat parses the text of /proc and /sys. A live host, a saved
// directory, a guest and the model are all Trees to it.
//
// Each kernel file has a Go file. ParseX reads its text; ReadX finds it in a
// file system whose paths start with proc/ and sys/. Values are integers in the
// unit their type says. A key that this package does not know is kept. A file
// that is missing means not known: the error is fs.ErrNotExist, and no value is
// made up for it. A kernel may add lines and columns, so a line of a shape that
// is not known is an error only where what follows would be misread.
//
// It opens files and changes none.
package kstat
