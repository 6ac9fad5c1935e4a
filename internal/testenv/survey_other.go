//go:build !linux

package testenv

import "errors"

func tryUserNamespace() error { return errors.ErrUnsupported }

func tryCgroup() error { return errors.ErrUnsupported }

func landlockVersion() int { return 0 }

func nosuid(string) bool { return false }

type state struct{}

func survey() state           { return state{} }
func (state) leaks() []string { return nil }
