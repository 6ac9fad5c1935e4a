//go:build linux

package compat

import (
	"slices"
	"strings"
	"testing"
)

// TestCPython relies on judge to notice differences.
func TestJudge(t *testing.T) {
	const module = "test_mmap" // any that has an exception
	const known = "LargeMmapTests.test_large_offset"
	for _, tc := range []struct {
		name    string
		out, in map[string]string
		verdict string // inside; outside it passes
		want    string // part of the complaint, or none
	}{
		{"the same", map[string]string{"A.a": "ok", known: "skipped"}, map[string]string{"A.a": "ok", known: "skipped"},
			passed, ""},
		{"failed", map[string]string{"A.a": "ok"}, map[string]string{"A.a": "failed"}, failing,
			"A.a: outside ok, inside failed"},
		{"skipped", map[string]string{"A.a": "ok"}, map[string]string{"A.a": "skipped"}, passed,
			"A.a: outside ok, inside skipped"},
		{"not run", map[string]string{"A.a": "ok"}, nil, passed, "A.a: outside ok, inside not run"},
		{"better", map[string]string{"A.a": "failed"}, map[string]string{"A.a": "ok"}, passed,
			"A.a: outside failed, inside ok"},
		{"verdict", map[string]string{"A.a": "ok"}, map[string]string{"A.a": "ok"}, failing, whole},
		{"exception", map[string]string{known: "ok"}, map[string]string{known: "skipped"}, passed, ""},
		{"stale exception", map[string]string{known: "ok"}, map[string]string{known: "ok"}, passed, "no longer differs"},
		{"exception without its test", map[string]string{"A.a": "ok"}, map[string]string{"A.a": "ok"}, passed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, in := report{verdict: passed, tests: tc.out}, report{verdict: tc.verdict, tests: tc.in}
			reasons, complaints := judge(module, out, in, differences(out, in))
			got := strings.Join(complaints, "\n")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("complaints %q, want %q", got, tc.want)
			}
			if excused := tc.name == "exception"; slices.Contains(reasons, fileSize) != excused {
				t.Errorf("reasons %q", reasons)
			}
		})
	}
}

func TestExceptionsAreTested(t *testing.T) {
	for _, e := range exceptions {
		if !slices.Contains(modules, e.module) {
			t.Errorf("%s %s: the module is not among those that run", e.module, e.id)
		}
	}
}

func TestReport(t *testing.T) {
	const file = `<testsuites><testsuite>` +
		`<testcase name="test.test_x.A.ok" status="run" result="completed" />` +
		`<testcase name="test.test_x.A.skip" status="run"><skipped>why</skipped></testcase>` +
		`<testcase name="test.test_x.A.bad" status="run"><failure type="E">` + "\x1b[m" + `</failure></testcase>` +
		`<testcase /></testsuite></testsuites>`
	const text = "ERROR: sub (test.test_x.A.sub) (i=1)\nTests result: FAILURE\n"
	r, err := newReport("test_x", ended{code: 2, out: []byte(text)}, []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), "fail, 2 failed, 1 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for id, want := range map[string]string{"A.ok": "ok", "A.skip": "skipped", "A.bad": "failed", "A.sub": "failed"} {
		if got := r.tests[id]; got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}
