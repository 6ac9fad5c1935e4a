//go:build darwin || (linux && (amd64 || arm64))

package mac

// mib asks sysctl(3) by numbers, as sysctl(8) and ps do.
const mib = `
def ask(*names):
    m, size = (ctypes.c_int * len(names))(*names), ctypes.c_size_t(1 << 20)
    buf = ctypes.create_string_buffer(size.value)
    r = ctypes.CDLL(None).sysctl(m, len(names), buf, ctypes.byref(size), None, ctypes.c_size_t(0))
    return buf.raw[:size.value] if r == 0 else b""
pid = int(env["PID"])
`

// libproc is what Activity Monitor uses.
const libproc = `
proc = ctypes.CDLL("/usr/lib/libproc.dylib")
buf, pid = ctypes.create_string_buffer(1 << 16), int(env["PID"])
`

// processActs are for python3.
var processActs = []act{
	{"see whether a process is there", always, "os.kill(int(env['PID']), 0); print('ESCAPED')"},
	{"signal a process", always, "os.kill(int(env['PID']), 19); print('ESCAPED') # SIGCONT"},
	{"end a process", never, "os.kill(int(env['PID']), 15); print('ESCAPED')"},
	{"signal the host", always, "os.kill(os.getppid(), 0); print('ESCAPED')"},
	{"signal the group of a process", always, "os.killpg(os.getpgid(int(env['PID'])), 19); print('ESCAPED')"},
	{"arguments and environment", always, mib +
		"if b'TEGMEN_TEST_HELPER' in ask(1, 49, pid): print('ESCAPED') # KERN_PROCARGS2"},
	{"arguments and environment of the host", always, mib + "if len(ask(1, 49, os.getppid())) > 64: print('ESCAPED')"},
	{"a process in the table", always, mib + "if ask(1, 14, 1, pid): print('ESCAPED') # KERN_PROC_PID"},
	{"all processes", always, mib + "if len(ask(1, 14, 0)) > 648 * 8: print('ESCAPED') # KERN_PROC_ALL"},
	{"the list of processes", always, libproc +
		"if proc.proc_listpids(1, 0, buf, len(buf)) > 4 * 8: print('ESCAPED') # PROC_ALL_PIDS"},
	{"facts of a process", always,
		libproc + "if proc.proc_pidinfo(pid, 3, ctypes.c_uint64(0), buf, 136) > 0: print('ESCAPED') # PROC_PIDTBSDINFO"},
	{"the directory of a process", always, libproc +
		"if proc.proc_pidinfo(pid, 9, ctypes.c_uint64(0), buf, 2352) > 0: print('ESCAPED') # PROC_PIDVNODEPATHINFO"},
	{"descriptors of a process", always, libproc +
		"if proc.proc_pidinfo(pid, 1, ctypes.c_uint64(0), buf, 4096) > 0: print('ESCAPED') # PROC_PIDLISTFDS"},
	{"the program of a process", always, libproc + "if proc.proc_pidpath(pid, buf, 4096) > 0: print('ESCAPED')"},
	{"ps", always, `
import subprocess
if "tegmen" in subprocess.run(["/bin/ps", "eww", "-p", env["PID"]], capture_output=True, text=True).stdout.lower(): print("ESCAPED")`},
	{"pgrep", always, `
import subprocess
if subprocess.run(["/usr/bin/pgrep", "-x", "launchd"], stdout=subprocess.DEVNULL).returncode == 0: print("ESCAPED")`},
	{"lsof", always, `
import subprocess
if env["PID"] in subprocess.run(["/usr/sbin/lsof", "-n", "-P", "-p", env["PID"]], capture_output=True, text=True).stdout: print("ESCAPED")`},
	{"the task port", never, `
libc = ctypes.CDLL(None)
port = ctypes.c_uint(0)
if libc.task_for_pid(ctypes.c_uint.in_dll(libc, "mach_task_self_"), int(env["PID"]), ctypes.byref(port)) == 0: print("ESCAPED")`},
	{"the name of the task", always, `
libc = ctypes.CDLL(None)
port = ctypes.c_uint(0)
if libc.task_name_for_pid(ctypes.c_uint.in_dll(libc, "mach_task_self_"), int(env["PID"]), ctypes.byref(port)) == 0: print("ESCAPED")`},
	{"ptrace", never, `
libc = ctypes.CDLL(None)
if libc.ptrace(14, int(env["PID"]), None, 0) == 0: print("ESCAPED"); libc.ptrace(11, int(env["PID"]), None, 0) # PT_ATTACHEXC, PT_DETACH`},
	{"a debugger", never, `
import subprocess
r = subprocess.run(["/usr/bin/lldb", "--batch", "-p", env["PID"], "-o", "detach"], capture_output=True, text=True, timeout=20)
if "stopped" in r.stdout or "Executable" in r.stdout: print("ESCAPED")`},
	{"samples of a process", never, `
import subprocess
r = subprocess.run(["/usr/bin/sample", env["PID"], "1", "-file", "/dev/stdout"], capture_output=True, text=True, timeout=20)
if "Call graph" in r.stdout: print("ESCAPED")`},
	{"dtrace", never, `
import subprocess
if subprocess.run(["/usr/sbin/dtrace", "-l"], capture_output=True, timeout=20).returncode == 0: print("ESCAPED")`},
}
