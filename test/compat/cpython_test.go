//go:build linux

package compat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// modules are in the order they start in: the longest first, so that the last
// ones are not waited for.
var modules = strings.Fields(`
	test_multiprocessing_fork test_signal test_ssl test_io test_socket
	test_subprocess test_faulthandler test_selectors test_asyncio.test_subprocess
	test_poll test_threading test_ftplib test_venv test_asyncio.test_events
	test_queue test_eintr test_fork1 test_wait3 test_wait4 test_threadsignals
	test_zipfile test_lzma test_pickle test_tarfile test_importlib test_bz2
	test_datetime test_httpservers test_time test_asyncio.test_sock_lowlevel
	test_asyncore test_smtplib test_cmd_line test_select test_decimal
	test_asyncio.test_streams test_asyncio.test_base_events
	test_asyncio.test_unix_events test_asyncio.test_sendfile
	test_asyncio.test_server test_collections test_configparser test_csv
	test_ctypes test_dbm test_epoll test_fcntl test_fileio test_functools test_gc
	test_getpass test_glob test_grp test_gzip test_hashlib test_inspect test_json
	test_mailbox test_mmap test_openpty test_os test_pathlib test_pdb
	test_platform test_posix test_pty test_pwd test_random test_re test_readline
	test_resource test_runpy test_sched test_shutil test_struct test_sys
	test_syslog test_tempfile test_unicodedata test_urllib2_localnet
	test_urlparse test_uuid test_zlib`)

// row is a module of the table.
type row struct {
	module  string
	out, in report
	note    string
}

func TestCPython(t *testing.T) {
	eng := open(t)
	testenv.Need(t, testenv.Program("python3"), testenv.File(suite(t)))
	queue, rows := make(chan string, len(modules)), make(chan row, len(modules))
	for _, m := range modules {
		queue <- m
	}
	close(queue)
	t.Run("modules", func(t *testing.T) {
		var wg sync.WaitGroup
		defer wg.Wait()
		for range workers {
			wg.Go(func() {
				for m := range queue {
					t.Run(m, func(t *testing.T) { testModule(t, eng, m, rows) })
				}
			})
		}
	})
	close(rows)
	publish(t, slices.SortedFunc(all(rows), func(a, b row) int { return strings.Compare(a.module, b.module) }))
}

func publish(t *testing.T, rows []row) {
	t.Log("\n" + plain(rows))
	if *tableFile != "" {
		if err := os.WriteFile(*tableFile, []byte(markdown(rows)), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// suite is a file of the regression tests, wherever this Python has them.
func suite(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import os; print(os.path.dirname(os.__file__))").Output()
	if err != nil {
		t.Skipf("python3: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "test", "test_json", "__init__.py")
}

// compare runs a module outside and inside, and once more if that differs in
// what the table does not explain: some of these tests depend on the time.
func compare(t *testing.T, eng *engine.Engine, module string) (r row, complaints []string) {
	for range 2 {
		r = row{module: module}
		r.out, r.in = both(t, eng, module)
		if r.out.verdict == absent && r.in.verdict == absent {
			r.note = "not part of this Python"
			return r, nil
		}
		var reasons []string
		reasons, complaints = judge(module, r.out, r.in, differences(r.out, r.in))
		r.note = strings.Join(reasons, "; ")
		if len(complaints) == 0 {
			break
		}
		t.Logf("%s: %s", module, strings.Join(complaints, "; "))
	}
	return r, complaints
}

// both runs a module on both sides at once.
func both(t *testing.T, eng *engine.Engine, module string) (out, in report) {
	dir, box := directory(t), start(t, eng, engine.Spec{})
	var wg sync.WaitGroup
	var outErr, inErr error
	wg.Go(func() { out, outErr = moduleOutside(dir, module) })
	wg.Go(func() { in, inErr = moduleInside(box, module) })
	wg.Wait()
	if err := errors.Join(outErr, inErr); err != nil {
		t.Fatal(err)
	}
	return out, in
}

func moduleOutside(dir, module string) (report, error) {
	e, err := outside(dir, command(module)...)
	if err != nil {
		return report{}, err
	}
	file, err := os.ReadFile(filepath.Join(dir, resultFile))
	if err != nil {
		return report{}, err
	}
	return newReport(module, e, file)
}

func moduleInside(box *engine.Sandbox, module string) (report, error) {
	e, err := inside(box, command(module)...)
	if err != nil {
		return report{}, err
	}
	file, err := inside(box, "cat", resultFile)
	if err != nil {
		return report{}, err
	}
	return newReport(module, e, file.out)
}

func (r row) cells() []string {
	took := fmt.Sprintf("%.1f / %.1f s", r.out.ended.took.Seconds(), r.in.ended.took.Seconds())
	return []string{r.module, r.out.String(), r.in.String(), fmt.Sprint(len(r.out.tests)), took, r.note}
}

var header = []string{"module", "outside", "inside", "tests", "time", "note"}

func plain(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	w.Flush()
	return b.String()
}

func markdown(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.ReplaceAll(strings.Join(r.cells(), " | "), "\n", " "))
	}
	return b.String()
}
