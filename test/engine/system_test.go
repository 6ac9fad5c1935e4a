//go:build linux

package engine_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Programs of /usr find their part of /etc, and the directories that they expect.
func TestSystemIsWhole(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	for _, c := range []struct{ program, script, want string }{
		{"sh", ". /etc/os-release && [ -n \"$ID\" ] && echo yes", "yes"},
		{"python3", `python3 -c 'import mimetypes; print(len(mimetypes.guess_all_extensions("text/plain")) > 0)'`, "True"},
		{"mktemp", "rm $(mktemp -p /var/tmp) && echo yes", "yes"},
		{"cat", "echo 1 >/run/x.pid && cat /var/run/x.pid", "1"},
		{"lscpu", "lscpu | grep -c '^CPU(s):'", "1"},
		{"nproc", "[ $(nproc) -gt 0 ] && echo yes", "yes"},
		{"man", "man -w man >/dev/null && echo yes", "yes"},
		{"mvn", "mvn -v | grep -c 'Apache Maven'", "1"},
		{"java", "java -XshowSettings:system -version 2>&1 | grep -c '  Memory Limit: [0-9.]*[MG]'", "1"},
		{"node", "test $(node -p 'process.constrainedMemory()') = $(cat /sys/fs/cgroup/memory.max) && echo yes", "yes"},
		{"php", `php -r 'echo function_exists("mb_strlen") ? "mb" : "no";'`, "mb"},
		{"Rscript", `Rscript -e 'cat(length(rnorm(3)))'`, "3"},
		{"identify", "convert -size 9x9 xc:papayawhip /tmp/a.png && echo yes", "yes"},
		{"pdflatex", `cd /tmp && printf '%s' '\documentclass{article}\begin{document}x\end{document}' >a.tex && pdflatex a.tex >/dev/null && echo yes`, "yes"},
		{"chromium", "cd /tmp && chromium --headless --no-sandbox --disable-gpu --screenshot=/tmp/s.png 'data:text/html,x' " +
			">/dev/null 2>&1; head -c 4 s.png | tail -c 3", "PNG"},
		{"git-lfs", "cd /tmp && git init -q l && cd l && echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes && " +
			"head -c 1000 /dev/urandom >b.bin && git add . && git cat-file -p :b.bin | head -c 7", "version"},
		{"screen", "screen -ls 2>&1 | grep -ci 'no sockets found'", "1"},
		{"bash", "ulimit -Sn && ulimit -n 4096 && ulimit -Sn", "1024\n4096"},
	} {
		t.Run(c.program, func(t *testing.T) {
			testenv.Need(t, testenv.Program(c.program))
			if res := testbox.Run(t, box, "sh", "-c", c.script); strings.TrimSpace(string(res.Stdout)) != c.want {
				t.Errorf("%s: %s, %q, %s; want %q", c.script, res.Outcome, res.Stdout, res.Stderr, c.want)
			}
		})
	}
	for _, hidden := range []string{"/etc/shadow", "/etc/ssh", "/etc/hostname", "/etc/machine-id", "/etc/sudoers", "/etc/ssl/private"} {
		if res := testbox.Run(t, box, "ls", hidden); res.Outcome == engine.OutcomeOK {
			t.Errorf("%s is there", hidden)
		}
	}
}

// Commands have the umask of the process that started them.
func TestUmaskIsTheCallers(t *testing.T) {
	testenv.NoRace(t)
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	testbox.EachLevel(t, func(t *testing.T, l testbox.Level) {
		if got := testbox.Output(t, l.Sandbox(t, engine.Spec{Keep: true}), "umask"); got != "0027" {
			t.Errorf("got %s", got)
		}
	}, testbox.Confined...)
}
