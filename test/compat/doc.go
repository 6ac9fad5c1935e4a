// Package compat shows that ordinary programs do inside a default sandbox what
// they do outside: modules of CPython's own regression tests, test by test, and
// real work with real tools.
//
// Outside, programs run as the account that a guest has on the host, in a fresh
// directory and with a small environment. What is bound to differ stands in a
// table with its reason, and an entry that is no longer true fails the test.
//
// It takes some minutes, so -short leaves it out:
//
//	go test ./test/compat -v -table compat.md
//
// Linux only. The table of differences was made with CPython 3.11 of Debian 12
// (python3, libpython3.11-testsuite).
package compat
