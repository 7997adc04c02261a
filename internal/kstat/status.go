package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Status is /proc/PID/status: every line by its name, the value without the
// white space around it.
type Status map[string]string

// ParseStatus reads /proc/PID/status.
func ParseStatus(r io.Reader) (Status, error) {
	s := Status{}
	err := lines(r, func(_ int, line string) error {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("%q: want NAME: VALUE", line)
		}
		s[name] = strings.TrimSpace(value)
		return nil
	})
	return s, err
}

// ReadStatus reads the status of a process; pid 0 is the reader itself.
func ReadStatus(fsys fs.FS, pid int) (Status, error) {
	return read(fsys, procPath(pid, "status"), ParseStatus)
}

// Bytes is a line of kB, and whether it is there.
func (s Status) Bytes(name string) (mm.Bytes, bool) {
	v, unit, err := kB(s[name])
	return mm.Bytes(v), err == nil && unit
}

// Number is a line with a decimal number, and whether it is there.
func (s Status) Number(name string) (uint64, bool) {
	v, err := number(s[name])
	return v, err == nil
}

// Capability is the number of a Linux capability.
type Capability uint

// The capabilities that decide what can be seen of memory.
const (
	CapSysPtrace Capability = 19
	CapSysAdmin  Capability = 21
	CapPerfmon   Capability = 38
	CapBPF       Capability = 39
)

// Has says whether the effective set holds a capability; known is false where
// the line is missing.
func (s Status) Has(c Capability) (has, known bool) {
	set, err := strconv.ParseUint(s["CapEff"], 16, 64)
	return set>>c&1 != 0, err == nil
}

// THPEnabled says whether huge pages are possible for the process: false after
// prctl(PR_SET_THP_DISABLE).
func (s Status) THPEnabled() (enabled, known bool) {
	v, ok := s.Number("THP_enabled")
	return v != 0, ok
}
