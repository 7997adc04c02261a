package predict

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// sysTHP is the directory of the settings of anonymous memory.
const sysTHP = "/sys/kernel/mm/transparent_hugepage/"

// Commands are the lines that bring a host from the policy now to the row's,
// narrowest first: the program's own option, the service unit, the host until
// the next boot, the boot line. Only what the kernel of r and the recorded
// command have is named; nothing is named for a hypothetical row but what the
// program itself can be told.
func Commands(row *Row, now mm.Policy, r mm.Rules, s mm.Sizes, command []string) []string {
	if row == nil || row.Name == Now {
		return nil
	}
	out := programLines(row, now, r, s, command)
	if row.Hypothetical() {
		want := row.Policy
		want.Advise = mm.AdviseRule{}
		return append(out, hostLines(want, now, r, s)...)
	}
	out = append(out, hostLines(row.Policy, now, r, s)...)
	if boot := bootLine(row.Policy, now, r, s); boot != "" {
		out = append(out, boot)
	}
	return out
}

// programLines are the options of the recorded program and its allocator, and
// of its unit. They only help where pages of the PMD's size are concerned:
// that is all that allocators and runtimes know.
func programLines(row *Row, now mm.Policy, r mm.Rules, s mm.Sizes, command []string) []string {
	want, has := wants(&row.Policy, s), wants(&now, s)
	kind := programOf(command)
	line := quote(command)
	switch {
	case row.Policy.AnyEnabled() == now.AnyEnabled() && want == has && !row.Hypothetical():
		return nil
	case !row.Policy.AnyEnabled():
		return neverLines(kind, line)
	case want && onlyPMD(&row.Policy, s) && (has || now.Effective(s.PMD) == mm.Madvise || row.Hypothetical()):
		return adviseLines(kind, line)
	}
	return nil
}

// wants says whether p gives pages of the PMD's size to memory that asks for
// nothing, or to what the hypothetical program would advise.
func wants(p *mm.Policy, s mm.Sizes) bool {
	e := p.Effective(s.PMD)
	return e == mm.Always || e == mm.Madvise && p.Advise != mm.AdviseRule{}
}

// onlyPMD says that p has no other size than the PMD's.
func onlyPMD(p *mm.Policy, s mm.Sizes) bool {
	for _, o := range s.Orders() {
		if o != s.PMD && p.Effective(o) != mm.Never {
			return false
		}
	}
	return true
}

// adviseLines make a program advise its own memory, which is enough where the
// host's setting is madvise.
func adviseLines(kind, line string) []string {
	var opt string
	switch kind {
	case "java":
		opt = "-XX:+UseTransparentHugePages"
		return []string{"JAVA_TOOL_OPTIONS=" + opt + " " + line, unitLine("JAVA_TOOL_OPTIONS=" + opt)}
	case "go":
		return nil // the Go runtime has no option to advise its heap
	}
	glibc := "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
	return []string{
		glibc + " " + line + "   # glibc 2.35 or later, for malloc",
		"MALLOC_CONF=thp:always " + line + "   # if it uses jemalloc",
		unitLine(glibc),
	}
}

// neverLines keep huge pages from one program.
func neverLines(kind, line string) []string {
	var out []string
	if kind == "go" {
		out = append(out, "GODEBUG=disablethp=1 "+line+"   # Go 1.21.6 or later, for its heap")
	}
	return append(out, "systemctl edit UNIT   # [Service] MemoryTHP=disable, where this systemd knows it")
}

func unitLine(env string) string {
	return "systemctl edit UNIT   # [Service] Environment=" + env
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

// plainBytes need no quoting.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=+:,@%"

// quote prints a command as a shell takes it; COMMAND where none is known.
func quote(command []string) string {
	if len(command) == 0 {
		return "COMMAND"
	}
	parts := make([]string, len(command))
	for i, a := range command {
		if a == "" || strings.Trim(a, plainBytes) != "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		parts[i] = a
	}
	return strings.Join(parts, " ")
}

// hostLines set the files that differ, until the next boot. enabled comes
// first and the sizes after it by length.
func hostLines(want, now mm.Policy, r mm.Rules, s mm.Sizes) []string {
	files, was := want.Files(s, r), now.Files(s, r)
	var out []string
	for _, f := range fileOrder(files, s) {
		if files[f] != was[f] {
			out = append(out, fmt.Sprintf("echo %s > %s%s", files[f], sysTHP, f))
		}
	}
	return out
}

// fileOrder lists the files: enabled, the sizes from small to large, the rest
// by name.
func fileOrder(files map[string]string, s mm.Sizes) []string {
	order := []string{"enabled"}
	for _, o := range s.Orders() {
		order = append(order, s.Dir(o)+"/enabled")
	}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains(order, f) {
			order = append(order, f)
		}
	}
	return slices.DeleteFunc(order, func(f string) bool { _, ok := files[f]; return !ok })
}

// bootLine sets the same for good, where boot parameters can.
func bootLine(want, now mm.Policy, r mm.Rules, s mm.Sizes) string {
	params, _ := want.Boot(s, r)
	was, _ := now.Boot(s, r)
	if len(params) == 0 || slices.Equal(params, was) {
		return ""
	}
	for i, p := range params {
		if strings.Contains(p, ";") {
			params[i] = `"` + p + `"`
		}
	}
	return "boot: " + strings.Join(params, " ")
}

// Programs says what programs read the settings themselves: under another
// setting than the recording's they may behave in another way than recorded.
func Programs(command []string) []string {
	all := []string{
		"jemalloc looks at `enabled` when it starts; with opt.thp or metadata_thp it advises its memory",
		"glibc: glibc.malloc.hugetlb=1 aligns and advises malloc's memory (the default on aarch64 since 2.43)",
		"Java: -XX:+UseTransparentHugePages advises the heap and follows `enabled`",
		"Go reads hpage_pmd_size; 1.21.1 and later advise next to nothing, GODEBUG=disablethp=1 refuses",
	}
	switch programOf(command) {
	case "java":
		return all[2:3]
	case "go":
		return all[3:4]
	}
	return all
}
