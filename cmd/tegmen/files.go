package main

import (
	"fmt"
	"io"
	"os"

	"github.com/tegmen-dev/tegmen/engine"
)

// mostText bounds a file that is read whole: /dev/zero has no end.
const mostText = 16 * engine.MiB

// readFile reads a file that the user names. A FIFO is read to its end, as cat does, so a
// shell's <(…) works.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readText(name, f)
}

// readText reads all of r, which messages call name.
func readText(name string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(mostText)+1))
	if err == nil && len(b) > int(mostText) {
		err = fmt.Errorf("%s: more than %s", name, mostText)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
