//go:build linux

package compat

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// modules are in the order in which they start: the longest first, so that nobody waits for the last ones.
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

// plain are modules that take long and need nothing special of a kernel. They run if TEGMEN_TEST_ALL is set, as by
// "make compat".
var plain = strings.Fields(`
	test_ssl test_io test_lzma test_pickle test_tarfile test_zipfile test_bz2
	test_decimal test_datetime test_importlib test_json test_collections
	test_configparser test_csv test_functools test_gc test_inspect test_random
	test_re test_struct test_unicodedata test_urlparse test_zlib`)

// workers is how many modules run at a time, each on both sides. They sleep more than they work.
const workers = 3

func TestCPython(t *testing.T) {
	testenv.Once(t)
	asUser(t)
	eng := open(t)
	testenv.Need(t, testenv.Program("python3"), testenv.File(suite(t)))
	var rows table
	t.Run("modules", func(t *testing.T) {
		queue := make(chan string, len(modules))
		for _, m := range modules {
			if os.Getenv("TEGMEN_TEST_ALL") != "" || !slices.Contains(plain, m) {
				queue <- m
			}
		}
		close(queue)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for m := range queue {
					t.Run(m, func(t *testing.T) { rows.add(testModule(t, eng, m)) })
				}
			})
		}
		wg.Wait()
	})
	t.Log("\n" + rows.text())
	if *tableFile != "" {
		if err := os.WriteFile(*tableFile, []byte(rows.markdown()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// suite returns a file of the regression tests, wherever this Python has them.
func suite(t *testing.T) string {
	t.Helper()
	e, err := outside(directory(t), "python3", "-c", "import os; print(os.path.dirname(os.__file__))")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(e.out)), "test", "test_json", "__init__.py")
}

// testModule runs a module outside and inside, and once more if the results differ beyond the table of exceptions:
// some tests depend on timing.
func testModule(t *testing.T, eng *engine.Engine, module string) (r row) {
	var complaints []string
	for range 2 {
		r = row{module: module}
		r.out, r.in = both(t, eng, module)
		if r.out.verdict == absent && r.in.verdict == absent {
			r.note = "not part of this Python"
			return r
		}
		var reasons []string
		reasons, complaints = judge(module, r.out, r.in, differences(r.out, r.in))
		r.note = strings.Join(reasons, "; ")
		if len(complaints) == 0 {
			return r
		}
		t.Log(strings.Join(complaints, "\n"))
	}
	r.note = "DIFFERS: " + strings.Join(complaints, "; ")
	t.Errorf("%s\n\noutside:\n%s\n\ninside:\n%s", strings.Join(complaints, "\n"), r.out.ended.text(), r.in.ended.text())
	return r
}

// both runs a module on both sides at once.
func both(t *testing.T, eng *engine.Engine, module string) (out, in report) {
	dir, box := directory(t), testbox.Start(t, eng, engine.Spec{})
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
