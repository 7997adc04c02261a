package predict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// sysTHP is the directory of the settings of anonymous memory.
const sysTHP = "/sys/kernel/mm/transparent_hugepage/"

// Commands are the lines that bring a host from the policy now to the row's,
// narrowest first: the program's own option, the service unit, the host until
// the next boot, systemd's tmpfiles and the boot line for good. Only what the kernel of r and the recorded
// command have is named; nothing is named for a hypothetical row but what the
// program itself can be told.
func Commands(row *Row, now mm.Policy, r mm.Rules, s mm.Sizes, command []string, use Runtimes) []string {
	if row == nil || row.Name == Now {
		return nil
	}
	want := row.Policy
	if use.NoAdvice {
		want = keepAdvised(want, now, s)
	}
	out := programLines(row, now, s, quote(command), use)
	if row.Hypothetical() {
		want.Advise = mm.AdviseRule{}
		return append(out, hostLines(want, now, r, s)...)
	}
	out = append(out, hostLines(want, now, r, s)...)
	if line := tmpfilesLine(want, now, r, s); line != "" {
		out = append(out, line)
	}
	if boot := bootLine(want, now, r, s); boot != "" {
		out = append(out, boot)
	}
	return out
}

// keepAdvised leaves in want the sizes that now gives only to memory that asks
// for them, where want gives them to none. For a program that asks for nothing
// that is the same, and other programs on the host keep what they ask for.
func keepAdvised(want, now mm.Policy, s mm.Sizes) mm.Policy {
	if want.Enabled == mm.Never && now.Enabled == mm.Madvise && want.Size[s.PMD] != mm.Inherit {
		want.Enabled = now.Enabled
	}
	for _, o := range s.Orders() {
		if want.Effective(o) == mm.Never && now.Effective(o) == mm.Madvise && now.Size[o] != mm.Inherit {
			want.Size[o] = now.Size[o]
		} else if want.Size[o] == mm.Never && now.Size[o] == mm.Inherit && want.Enabled == mm.Madvise {
			want.Size[o] = mm.Inherit
		}
	}
	return want
}

// programLines are the options of the recorded program and its allocator, and
// of its unit. They only help where pages of the PMD's size are concerned:
// that is all that allocators and runtimes know.
func programLines(row *Row, now mm.Policy, s mm.Sizes, line string, use Runtimes) []string {
	want, has := wants(&row.Policy, s), wants(&now, s)
	switch {
	case row.Policy.AnyEnabled() == now.AnyEnabled() && want == has && !row.Hypothetical():
		return nil
	case !row.Policy.AnyEnabled():
		return neverLines(use, line)
	case want && onlyPMD(&row.Policy, s) && (has || now.Effective(s.PMD) == mm.Madvise || row.Hypothetical()):
		return adviseLines(use, line)
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
func adviseLines(use Runtimes, line string) []string {
	const (
		java     = "JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages"
		glibc    = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
		jemalloc = "MALLOC_CONF=thp:always"
	)
	switch {
	case use.Java:
		return []string{java + " " + line, unitLine(java)}
	case use.Go:
		return nil // the Go runtime has no option to advise its heap
	case use.Jemalloc:
		return []string{jemalloc + " " + line + "   # jemalloc 5.1 or later", unitLine(jemalloc)}
	case use.Static:
		return nil // an allocator of its own: nothing is known of its options
	}
	return []string{
		glibc + " " + line + "   # if it uses glibc's malloc, 2.35 or later",
		jemalloc + " " + line + "   # if it uses jemalloc",
		unitLine(glibc),
	}
}

// neverLines keep huge pages from one program.
func neverLines(use Runtimes, line string) []string {
	var out []string
	if use.Go {
		out = append(out, "GODEBUG=disablethp=1 "+line+"   # Go 1.21.6 or later, for its heap")
	}
	return append(out, "systemctl edit UNIT   # [Service] MemoryTHP=disable, where this systemd knows it")
}

func unitLine(env string) string {
	return "systemctl edit UNIT   # [Service] Environment=" + env
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

// tmpfilesLine sets the same at every boot, where systemd runs.
func tmpfilesLine(want, now mm.Policy, r mm.Rules, s mm.Sizes) string {
	files, was := want.Files(s, r), now.Files(s, r)
	var out string
	for _, f := range fileOrder(files, s) {
		if files[f] != was[f] {
			out += " " + sysTHP + f + " '" + files[f] + "'"
		}
	}
	if out == "" {
		return ""
	}
	return `printf 'w %s - - - - %s\n'` + out + " > /etc/tmpfiles.d/hugelab.conf   # at every boot"
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
