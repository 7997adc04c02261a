// Package suite holds the programs of "hugelab predict --suite": a shell script
// each, that makes its input and says what to run. They are in the binary, so
// that it can be taken to another machine alone.
//
//	NAME.sh needs           prints the programs that it needs, one a line
//	NAME.sh make DIR        writes its input below DIR, the same every time
//	NAME.sh prepare DIR     undoes what a run left there
//	NAME.sh command DIR     prints the command, one argument a line
package suite

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.sh
var scripts embed.FS

// Names lists the programs in the order in which they run.
var Names = []string{"gcc", "go", "sort", "python", "git", "node", "xz", "arenas", "server"}

// Script is the text of a program's script. An unknown name is an error.
func Script(name string) ([]byte, error) {
	text, err := scripts.ReadFile(name + ".sh")
	if err != nil {
		return nil, fmt.Errorf("suite: no program %q: want one of %s", name, strings.Join(Names, ", "))
	}
	return text, nil
}
