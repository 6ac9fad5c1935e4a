//go:build linux

package compat

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// report is what "python3 -m test" says about one module.
type report struct {
	verdict string            // of the whole module
	tests   map[string]string // id to ok, skipped or failed
	ended   ended
}

// The verdicts of a module.
const (
	passed  = "pass"
	failing = "fail"
	skipped = "skip"
	absent  = "absent" // not part of this Python
)

// command returns the command of a module. The terminal report and the file complement one another: a test that failed
// only in a subtest has no entry in the file.
func command(module string) []string {
	c := []string{"python3", "-m", "test", "-v", "--junit-xml", resultFile}
	for _, pattern := range ignored[module] {
		c = append(c, "--ignore", pattern)
	}
	return append(c, module)
}

// ignored are tests that are not run on either side.
var ignored = map[string][]string{
	// The filter has no UDP-Lite, which these take for granted, and then an
	// error in their servers breaks the runner of all others.
	"test_socket": {"*UDPLITE*"},
}

const resultFile = "result.xml"

var (
	failure = regexp.MustCompile(`(?m)^(?:ERROR|FAIL): \S+ \(([\w.]+)\)`)
	missing = regexp.MustCompile(`(?m)^ModuleNotFoundError: No module named 'test\.`)
	none    = regexp.MustCompile(`(?m)^1 test skipped:`)
)

func newReport(module string, e ended, file []byte) (report, error) {
	r := report{verdict: passed, tests: make(map[string]string), ended: e}
	text := slices.Concat(e.out, e.errOut)
	switch {
	case e.code != 0 && missing.Match(text):
		r.verdict = absent
	case e.code != 0:
		r.verdict = failing
	case none.Match(text):
		r.verdict = skipped
	}
	if err := r.read(file, module); err != nil {
		return r, fmt.Errorf("%s of %s: %w", resultFile, module, err)
	}
	for _, m := range failure.FindAllSubmatch(text, -1) {
		r.tests[short(string(m[1]), module)] = "failed"
	}
	return r, nil
}

// read adds the tests that the file has.
func (r *report) read(file []byte, module string) error {
	// The output of tests goes into the file unescaped.
	file = bytes.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, file)
	d := xml.NewDecoder(bytes.NewReader(file))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := tok.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			continue
		}
		var c struct {
			Name    string    `xml:"name,attr"`
			Outcome string    `xml:"outcome,attr"`
			Skipped *struct{} `xml:"skipped"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		}
		if err := d.DecodeElement(&c, &start); err != nil {
			return err
		}
		state := "ok"
		switch {
		case c.Failure != nil || c.Error != nil || c.Outcome != "":
			state = "failed"
		case c.Skipped != nil:
			state = "skipped"
		}
		if id := short(c.Name, module); c.Name != "" && r.tests[id] != "failed" {
			r.tests[id] = state
		}
	}
}

func short(id, module string) string { return strings.TrimPrefix(id, "test."+module+".") }

// String is the cell of the table.
func (r report) String() string {
	s := r.verdict
	for _, state := range []string{"failed", "skipped"} {
		if n := r.count(state); n > 0 {
			s += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return s
}

func (r report) count(state string) (n int) {
	for _, s := range r.tests {
		if s == state {
			n++
		}
	}
	return n
}

// difference is a test that ended differently inside; "" means that it did not run.
type difference struct{ id, outside, inside string }

func (d difference) String() string {
	return fmt.Sprintf("%s: outside %s, inside %s", d.id, stateText(d.outside), stateText(d.inside))
}

func stateText(state string) string {
	if state == "" {
		return "not run"
	}
	return state
}

// whole is the id of a difference that no single test explains.
const whole = "(module)"

func differences(out, in report) (diffs []difference) {
	ids := maps.Clone(out.tests)
	maps.Copy(ids, in.tests)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if out.tests[id] != in.tests[id] {
			diffs = append(diffs, difference{id, out.tests[id], in.tests[id]})
		}
	}
	if len(diffs) == 0 && out.verdict != in.verdict {
		diffs = append(diffs, difference{whole, out.verdict, in.verdict})
	}
	return diffs
}
