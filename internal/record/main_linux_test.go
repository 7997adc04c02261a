package record

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Stub()
	if name := os.Getenv("RECORD_TEST_PROGRAM"); name != "" {
		os.Exit(testProgram(name))
	}
	code := m.Run()
	if publicDir != "" {
		os.RemoveAll(publicDir)
	}
	os.Exit(code)
}
