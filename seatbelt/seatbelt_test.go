package seatbelt

import (
	"errors"
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestText(t *testing.T) {
	for name, c := range profiles() {
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + strings.NewReplacer(" ", "", ",", "-").Replace(name) + ".sb"
		testenv.Golden(t, file, p.String()+"; "+strings.Join(p.Params(), "\n; ")+"\n", *update)
		if strings.Contains(p.String(), "/Users/u") || strings.Contains(p.String(), "/private/tmp/") {
			t.Errorf("%s: a path of the caller is in the text", name)
		}
		if again, _ := New(c); again.String() != p.String() || !slices.Equal(again.Args(), p.Args()) {
			t.Errorf("%s: not the same twice", name)
		}
	}
}

func TestArgs(t *testing.T) {
	p, err := New(profiles()["job"])
	if err != nil {
		t.Fatal(err)
	}
	args, params := p.Args(), p.Params()
	if args[0] != "-p" || args[1] != p.String() || len(args) != 2+2*len(params) {
		t.Fatalf("arguments %q", args)
	}
	var order []string
	for _, m := range regexp.MustCompile(`\(param "(\w+)"\)`).FindAllStringSubmatch(p.String(), -1) {
		if !slices.Contains(order, m[1]) {
			order = append(order, m[1])
		}
	}
	for i, param := range params {
		if args[2+2*i] != "-D" || args[3+2*i] != param || !strings.HasPrefix(param, order[i]+"=") {
			t.Errorf("parameter %d is %q, named in the text is %s", i, param, order[i])
		}
	}
	params[0] = "changed"
	if p.Params()[0] == "changed" {
		t.Error("Params hands out its own")
	}
}

func TestInvalid(t *testing.T) {
	long := make([]Path, 300)
	for i := range long {
		long[i] = Path{Name: "/" + strings.Repeat("x", 1000+i)}
	}
	for name, c := range map[string]Config{
		"relative":           {Read: []Path{{Name: "lib"}}},
		"empty":              {Write: []Path{{}}},
		"unclean":            {Write: []Path{{Name: "/w/../etc"}}},
		"trailing slash":     {Keep: []string{"/w/"}},
		"NUL":                {Pin: []string{"/w\x00"}},
		"not UTF-8":          {Hidden: []string{"/w/\xff"}},
		"everything":         {Read: []Path{{Name: "/", Dir: true}}},
		"all devices":        {Read: []Path{{Name: "/dev", Dir: true}}},
		"relative program":   {Program: "perl"},
		"relative launcher":  {Launcher: []string{"sh"}},
		"port 0":             {Ports: []int{0}},
		"negative port":      {Ports: []int{-1}},
		"port above 65535":   {Ports: []int{8080, 65536}},
		"too long for execv": {Read: long},
	} {
		if p, err := New(c); !errors.Is(err, ErrInvalid) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := New(Config{Program: "perl", Ports: []int{0}})
	if err == nil || !strings.Contains(err.Error(), "Program") || !strings.Contains(err.Error(), "Ports") {
		t.Errorf("not everything that is wrong: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	secrets := Secrets("/Users/u")
	for _, want := range []string{"/Users/u/.ssh", "/Users/u/.aws", "/Users/u/Library/Keychains", "/Library/Keychains"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%s is none", want)
		}
	}
	if _, err := New(Config{ReadAll: true, Hidden: secrets}); err != nil {
		t.Error(err)
	}
	for _, name := range Secrets("") {
		if !strings.HasPrefix(name, "/Library/") && !strings.HasPrefix(name, "/private/") {
			t.Errorf("%s is not the system's", name)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(secrets))); len(unique) != len(secrets) {
		t.Error("one is there twice")
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		root, rest string
		is, not    []string
	}{
		{"/w", "/.git/hooks",
			[]string{"/w/.git/hooks", "/w/.GIT/Hooks", "/w/.gIt/hooKs", "/w/.giT/hookſ"},
			[]string{"/w/xgit/hooks", "/w/.git", "/w/.git/hook", "/w/.git/hookss", "/W/.git/hooks", "/w/a/.git/hooks", "/w/.git/höoks"}},
		{"/w", "/office", []string{"/w/office", "/w/OFFICE", "/w/oﬃce", "/w/oﬀice", "/w/ofﬁce"}, []string{"/w/ofce", "/w/ofice", "/w/offices"}},
		{"/w", "/straße", []string{"/w/straße", "/w/STRAẞE"}, []string{"/w/x", "/w/strae"}},
		{"/Jürgen (a+b)", "/x", []string{"/Jürgen (a+b)/x", "/Ju\u0308rgen (a+b)/X"}, []string{"/Jrgen (a+b)/x", "/Jürgen (aab)/x"}},
		{"/w\n[^", "/a.b", []string{"/w\n[^/a.b", "/w\n[^/A.B"}, []string{"/w\n[^/axb"}},
	} {
		re, err := regexp.Compile(fold(c.root, c.rest) + "$")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.is {
			if !re.MatchString(name) {
				t.Errorf("%s does not match %q", re, name)
			}
		}
		for _, name := range c.not {
			if re.MatchString(name) {
				t.Errorf("%s matches %q", re, name)
			}
		}
	}
}

// What is not understood is refused: an evaluator that passes words over would
// call a profile good that no Mac takes.
func TestEvaluatorRefuses(t *testing.T) {
	for _, text := range []string{
		"(version 2)", "(allow nonsense)", "(allow file-test-existence)", "(allow file-link)", "(allow file-read* (path-ancestors \"/x\"))",
		"(allow network-outbound (remote ip \"127.0.0.1:80\"))", "(allow network-outbound (remote tcp \"127.0.0.1:80\"))",
		"(allow file-read* (literal (param \"NO\")))", "(allow process-exec* (with no-sandbox))", "(allow file-read* (literal \"a\" \"b\"))",
		"(allow signal (target others))", "(allow sysctl-read (literal \"hw.ncpu\"))", "(allow file-read*", "(allow file-read* (literal \"/x))",
		"(allow file-read* (literal \"\\q\"))", "(allow)", "(import \"system.sb\")", "allow", "(allow file-read* (regex #\"x\"))",
	} {
		if _, err := load("(version 1)(deny default)"+text, nil); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
	if _, err := load("(version 1)(deny default)", []string{"UNUSED=x"}); err == nil {
		t.Error("a parameter that is not used")
	}
}
