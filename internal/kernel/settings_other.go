//go:build !linux

package kernel

import (
	"context"
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Guardian does nothing here.
func Guardian() {}

// CanChange says that this system has no such settings.
func CanChange() error { return fmt.Errorf("settings: %w: %w", errNotLinux, ErrNotHere) }

// Session is the right to change settings; there is none here.
type Session struct{}

// Take is not possible here.
func Take(context.Context, SessionOptions) (*Session, error) { return nil, CanChange() }

// Before is empty here.
func (*Session) Before() Values { return nil }

// Now is not possible here.
func (*Session) Now() (Values, error) { return nil, CanChange() }

// Sizes are none here.
func (*Session) Sizes() mm.Sizes { return mm.Sizes{} }

// Apply is not possible here.
func (*Session) Apply(mm.Policy) error { return CanChange() }

// ApplyHost is not possible here.
func (*Session) ApplyHost(HostSettings) error { return CanChange() }

// Set is not possible here.
func (*Session) Set(Values) error { return CanChange() }

// Restore has nothing to do here.
func (*Session) Restore() error { return nil }

// Keep is not possible here.
func (*Session) Keep() error { return CanChange() }

// RestoreKept is not possible here.
func RestoreKept(context.Context, SessionOptions) ([]Change, error) { return nil, CanChange() }

// Kept are none here.
func Kept() (Values, string) { return nil, "" }

// HeldError says who holds the machine's settings.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return "settings: held by " + e.Holder }

// Bystander is another process that a change of settings touches.
type Bystander struct {
	PID  int
	Name string
	Anon mm.Bytes
}

// Bystanders are not known here.
func Bystanders(mm.Bytes) []Bystander { return nil }
