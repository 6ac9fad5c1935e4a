//go:build !linux

package testenv

import "errors"

func tryUserNamespace() error { return errors.ErrUnsupported }

type state struct{}

func survey() state           { return state{} }
func (state) leaks() []string { return nil }
