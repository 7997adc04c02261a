package predict

import (
	"path"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Runtimes is what manages a program's memory, as far as a recording shows it:
// by the files that it mapped and its command's name.
type Runtimes struct {
	Java, Go, Jemalloc bool // seen; a library that was loaded later has no name in most recordings
	Static             bool // it maps files, and no dynamic loader among them
	NoAdvice           bool // it is known to have asked for huge pages nowhere
}

// runtimesOf looks at the command and at the names of the regions that are
// files.
func runtimesOf(command []string, files []string) Runtimes {
	var u Runtimes
	loader := false
	for _, f := range files {
		if !strings.HasPrefix(f, "/") {
			continue
		}
		u.Static = true
		switch base := path.Base(f); {
		case strings.HasPrefix(base, "libjvm.so"):
			u.Java = true
		case strings.HasPrefix(base, "libjemalloc"):
			u.Jemalloc = true
		case strings.HasPrefix(base, "ld-"), strings.HasPrefix(base, "ld64"):
			loader = true
		}
	}
	u.Static = u.Static && !loader
	switch programOf(command) {
	case "java":
		u.Java = true
	case "go":
		u.Go = true
	}
	return u
}

// programOf guesses what the command runs from its name alone.
func programOf(command []string) string {
	for _, a := range command {
		switch base := path.Base(a); {
		case base == "env" || strings.Contains(a, "="):
			continue
		case base == "java" || base == "javac" || base == "mvn" || base == "gradle" || base == "sbt":
			return "java"
		case base == "go" || base == "gofmt" || base == "gopls":
			return "go"
		}
		break
	}
	return ""
}

// Programs says what programs read the settings themselves: under another
// setting than the recording's they may behave in another way than recorded.
// Where the recording shows what manages the memory, only that is named.
func Programs(u Runtimes) []string {
	var some []string
	all := []struct {
		used bool
		text string
	}{
		{u.Jemalloc, "jemalloc looks at `enabled` when it starts; with opt.thp or metadata_thp it advises its memory"},
		{false, "glibc: glibc.malloc.hugetlb=1 aligns and advises malloc's memory (the default on aarch64 since 2.43)"},
		{u.Java, "Java: -XX:+UseTransparentHugePages advises the heap and follows `enabled`"},
		{u.Go, "Go reads hpage_pmd_size; 1.21.1 and later advise next to nothing, GODEBUG=disablethp=1 refuses"},
	}
	for _, p := range all {
		if p.used || !u.Java && !u.Go && !u.Jemalloc {
			some = append(some, p.text)
		}
	}
	return some
}

// filesOf are the names of the regions that are no private anonymous memory.
func (u *fileUse) filesOf(name func(mm.Region) string) []string {
	var names []string
	for r, is := range u.region {
		if is {
			names = append(names, name(mm.Region(r)))
		}
	}
	return names
}
