//go:build linux

package difftest

// puppetCode and puppetSignal are never called here: their instructions are
// copied.
func puppetCode()
func puppetSignal()

var _ = [...]func(){puppetCode, puppetSignal}

// puppetText tells where the two begin.
func puppetText() (code, signal uintptr)
