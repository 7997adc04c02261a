package kernel

import "errors"

// ErrNotHere is wrapped by every error that says this machine, or this user on
// it, cannot change settings.
var ErrNotHere = errors.New("not possible here")

// SessionOptions say for whom settings are changed.
type SessionOptions struct {
	Command string              // shown to whoever waits for the lock
	Waiting func(holder string) // called once when another holds the lock; may be nil
	Note    func(text string)   // told what the user should know; may be nil

	dir  string // of the lock and the journals, "" for /run
	root string // of the settings, "" for /
}

func (o *SessionOptions) defaults() {
	if o.dir == "" {
		o.dir = "/run"
	}
	if o.root == "" {
		o.root = "/"
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
}

func (o *SessionOptions) lock() string    { return o.dir + "/hugelab.lock" }
func (o *SessionOptions) journal() string { return o.dir + "/hugelab" }
