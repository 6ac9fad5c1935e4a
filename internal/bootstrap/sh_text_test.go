package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/fakehost"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func shText(r *rand.Rand, n int) string {
	pick := []string{"a", "\\", "\"", "\n", "\t", "\r", "\x01", "\x1f", "\x7f", " ", "'", "$x", "`", "*", "%s", "\u0081", "\u00e9", "\u2028", "\U0001f600", "{", "=", "\\n", "\\u0041", "<&>", "\u0100", "\u0201"}
	var b strings.Builder
	for b.Len() < n {
		if r.IntN(4) == 0 {
			b.WriteRune(rune(1 + r.IntN(0xd7ff)))
		} else {
			b.WriteString(pick[r.IntN(len(pick))])
		}
	}
	return b.String()
}

// Any text arrives at the host as it is, and comes back as it is, by awk and
// without.
func TestShellText(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		for _, path := range []string{os.Getenv("PATH"), t.TempDir()} {
			r := rand.New(rand.NewPCG(1, 2))
			var source, want strings.Builder
			var texts []string
			for i := range 60 {
				text := shText(r, i*i)
				texts = append(texts, "."+text)
				fmt.Fprintf(&source, "say '.%s'; say text='.%s'\n", strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `'\''`))
				want.WriteString("." + text + "\n." + text + "\n")
			}
			got := shRun(t, bootstrap.Script{Shell: shell, Source: source.String()}, fakehost.Tools(), func(cmd *exec.Cmd, _ *fakehost.Host) {
				cmd.Env = append(cmd.Env, "PATH="+path, "TMPDIR="+t.TempDir()) // there may be no rm
			})
			if got.status != 0 || got.stderr != "" {
				t.Errorf("status %d, %q", got.status, got.stderr)
			}
			for i, c := range got.host.Calls() {
				var in struct{ Text string }
				if err := json.Unmarshal(c.Arguments, &in); err != nil || in.Text != texts[i/2] {
					t.Fatalf("call %d: %v: got\n%q\nwant\n%q", i, err, in.Text, texts[i/2])
				}
			}
			if len(got.host.Calls()) != 2*len(texts) {
				t.Errorf("%d calls", len(got.host.Calls()))
			}
			if got.stdout != want.String() {
				t.Errorf("printed\n%.3000q\nwant\n%.3000q", got.stdout, want.String())
			}
		}
	})
}

// Any text at all, in every shell there is.
func FuzzShellText(f *testing.F) {
	f.Add("")
	f.Add("a\n\n\t\\\"\x01\x7f\u2028\U0001f600'$x`*")
	f.Add(strings.Repeat("\t\\\n", 400))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			return // no shell can hold it
		}
		for _, shell := range []string{"dash", "bash", "busybox sh"} {
			if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
				continue
			}
			r := shRun(t, bootstrap.Script{Shell: shell, Source: "say text='" + strings.ReplaceAll(text, "'", `'\''`) + "'"}, fakehost.Tools(), nil)
			stdout, stderr, status := text+"\n", "", 0
			if !utf8.ValidString(text) {
				stdout, stderr, status = "", "say: parse_error: not JSON\n", 2
			}
			if r.stdout != stdout || r.stderr != stderr || r.status != status {
				t.Errorf("%s: got %q %q %d, want %q %q %d", shell, r.stdout, r.stderr, r.status, stdout, stderr, status)
			}
		}
	})
}

// What a host may write in a string, other than Go's encoder does.
func TestShellDecodes(t *testing.T) {
	testenv.NoRace(t)
	answers := []string{
		`"\u0041\u00e9\u20AC\ud83d\ude00\uD83D\uDE00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83dx\ude00"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\n"`, `"\ud83d\\ude00"`,
		`"\\"`, `"\\\\"`, `"a\\"`, `"\\n\n"`, `"\/\"\b\f\n\r\t."`, `"."`, `"\n\n"`, `""`, `"\""`, `"a\u0000b"`, `"-n"`, `"%s\n%d"`, `"\u007f\u0080\u07ff\u0800\uffff"`,
	}
	shEach(t, func(t *testing.T, shell string) {
		var want strings.Builder
		next := 0
		got := shRun(t, bootstrap.Script{Shell: shell, Source: strings.Repeat("null\n", len(answers))}, map[string]fakehost.Tool{
			"null": func(fakehost.Call) (any, error) {
				next++
				return fakehost.Raw(answers[next-1]), nil
			},
		}, nil)
		for _, a := range answers {
			var s string
			if err := json.Unmarshal([]byte(a), &s); err != nil {
				t.Fatal(err)
			}
			want.WriteString(s + "\n")
		}
		if got.stdout != want.String() {
			t.Errorf("got\n%q\nwant\n%q", got.stdout, want.String())
		}
	})
}
