package privatedir

// Do calls f: on macOS guests run as this process's user.
func (Owner) Do(f func() error) error { return f() }
