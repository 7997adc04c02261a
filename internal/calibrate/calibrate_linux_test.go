package calibrate

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Helper()
	os.Exit(m.Run())
}
