//go:build !linux

package testenv

import "errors"

func tryUserNamespace() error { return errors.ErrUnsupported }

func tryCgroup() error { return errors.ErrUnsupported }

func landlockVersion() int { return 0 }

func nosuid(string) bool { return false }

type snapshot struct{}

func takeSnapshot() snapshot     { return snapshot{} }
func (snapshot) leaks() []string { return nil }
