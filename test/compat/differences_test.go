//go:build linux

package compat

import "path"

// An exception is a test that must end differently inside, and why.
type exception struct {
	module string
	id     string // may have path.Match's wildcards
	reason string
}

// Why tests differ.
const (
	oneUser   = "a sandbox has one user and one group: the kernel answers EINVAL where the test allows for EPERM only"
	readOnly  = "unlink below the read-only /usr is EROFS even where there is no such file"
	fileSize  = "writes more than the default Limits.FileSize of 1 GiB"
	hardLimit = "a guest cannot raise limits, and they have hard values by default"
	noLink    = "lo is the only interface, so there is no hardware address"
	noFamily  = "the filter lets sockets of the internet, of Unix and for routes be made, and no others"
)

// exceptions is complete: any other difference fails TestCPython, and so does an entry whose tests pass outside and
// end the same inside. The entries hold for root and for an ordinary user alike.
var exceptions = []exception{
	{"test_os", "ChownFileTests.test_chown_without_permission", oneUser},
	{"test_subprocess", "POSIXProcessTestCase.test_group", oneUser},
	{"test_subprocess", "POSIXProcessTestCase.test_user", oneUser},

	{"test_importlib", "test_threaded_import.ThreadedImportTests.test_circular_imports", readOnly},
	{"test_importlib", "test_threaded_import.ThreadedImportTests.test_side_effect_import", readOnly},
	{"test_pickle", "*.test_unpickle_module_race", readOnly},
	{"test_runpy", "RunModuleTestCase.test_run_*", readOnly},

	{"test_io", "*IOTest.test_large_file_ops", fileSize},
	{"test_mmap", "LargeMmapTests.*", fileSize},

	{"test_resource", "ResourceTest.test_fsize_ismax", hardLimit},
	{"test_resource", "ResourceTest.test_setrusage_refcount", hardLimit},

	{"test_socket", "*RDS*", noFamily},
	{"test_socket", "*CAN*", noFamily},
	{"test_socket", "*J1939*", noFamily},
	{"test_socket", "*ISOTP*", noFamily},
	{"test_socket", "*VSOCK*", noFamily},
	{"test_socket", "*QIPCRTR*", noFamily},
	{"test_socket", "*Bluetooth*", noFamily},
	{"test_socket", "LinuxKernelCryptoAPI.*", noFamily},

	{"test_uuid", "TestInternals*.test_ifconfig_getnode", noLink},
	{"test_uuid", "TestInternals*.test_ip_getnode", noLink},
}

func (e exception) covers(module, id string) bool {
	ok, err := path.Match(e.id, id)
	return e.module == module && ok && err == nil
}

// judge splits the differences of a module into expected ones, whose reasons it returns, and complaints.
func judge(module string, out, in report, diffs []difference) (reasons, complaints []string) {
	seen := make(map[string]bool)
	for _, d := range diffs {
		known := false
		for _, e := range exceptions {
			if e.covers(module, d.id) {
				known = true
				if !seen[e.reason] {
					seen[e.reason] = true
					reasons = append(reasons, e.reason)
				}
			}
		}
		if !known {
			complaints = append(complaints, d.String())
		}
	}
	for _, e := range exceptions {
		if e.module == module && e.stale(out, in) {
			complaints = append(complaints, "no longer differs, so it does not belong into the table: "+e.id)
		}
	}
	return reasons, complaints
}

// stale reports whether an exception is out of date: none of its tests differs, although one passes outside. If none
// passes outside, this machine cannot tell.
func (e exception) stale(out, in report) bool {
	fit := false
	for id, state := range out.tests {
		if !e.covers(e.module, id) {
			continue
		}
		if in.tests[id] != state {
			return false
		}
		fit = fit || state == "ok"
	}
	return fit
}
