//go:build linux

package compat

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// row is a module of the table.
type row struct {
	module  string
	out, in report
	note    string
}

func (r row) cells() []string {
	took := fmt.Sprintf("%.1f / %.1f s", r.out.ended.took.Seconds(), r.in.ended.took.Seconds())
	return []string{r.module, r.out.String(), r.in.String(), fmt.Sprint(len(r.out.tests)), took, r.note}
}

// table collects rows from goroutines.
type table struct {
	mu   sync.Mutex
	rows []row
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
	slices.SortFunc(t.rows, func(a, b row) int { return strings.Compare(a.module, b.module) })
}

var header = []string{"module", "outside", "inside", "tests", "time", "note"}

func (t *table) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush() // into memory
	return b.String()
}

func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	return b.String()
}
