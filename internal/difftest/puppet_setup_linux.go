//go:build amd64

package difftest

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapOthers takes away what a helper never uses, its stack and the kernel's
// vdso: mlockall would fault them in, and no program could say how often.
func (p *puppet) unmapOthers(call func(nr uintptr, a ...uint64) error) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return fmt.Errorf("maps: %q: %w", line, err)
		}
		// vsyscall's page lies above what a process can map or unmap.
		if from == p.set.at.area || from == p.set.at.code || from>>47 != 0 {
			continue
		}
		if err := call(unix.SYS_MUNMAP, from, to-from); err != nil {
			return err
		}
	}
	return nil
}
