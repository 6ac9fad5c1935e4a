//go:build linux

package attack_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table in SECURITY.md")

var corpusTable = flag.String("corpus-table", "", "write the table of the escape corpus, in Markdown, to `FILE`")

// escapeRows are the sections of the table, in order.
var escapeRows = []string{
	"kernel entry", "kernel interfaces", "namespaces and mounts", "sockets", "services of the host", "IPC", "processes",
	"files",
	"devices, /proc and /sys", "privileges", "terminals", "limits", "code in a language's own sandbox",
	"starting a sandbox",
}

// escapeTable returns the table of the corpus in SECURITY.md.
func escapeTable(cases []escapeCase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases. Where a cell says nothing, it is as inside.\n\n", len(cases))
	b.WriteString("| act | stopped attack | inside | without namespaces |\n|---|---|---|---|\n")
	for _, row := range escapeRows {
		fmt.Fprintf(&b, "| **%s** | | | |\n", row)
		for _, c := range cases {
			if c.row != row {
				continue
			}
			without := c.landlock.String()
			switch {
			case c.landlock.note != "":
				without = c.landlock.note
			case without == c.inside.String():
				without = ""
			}
			cells := []string{c.what, c.stops, c.inside.String(), without}
			for i, s := range cells {
				cells[i] = strings.ReplaceAll(s, "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.String()
}

// SECURITY.md holds the table that the headers of the cases make.
func TestEscapeTableGolden(t *testing.T) {
	const file, begin, end = "../../SECURITY.md", "<!-- escape corpus -->\n", "<!-- /escape corpus -->"
	table := escapeTable(escapeCases(t))
	if *corpusTable != "" {
		if err := os.WriteFile(*corpusTable, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	had, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no %q and %q", file, begin, end)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if had != table {
		t.Errorf("%s is not what the cases say: make golden", file)
	}
}
