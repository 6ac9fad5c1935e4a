# what: perf_event_open of the process's own software counter
# stops: CVE-2013-2094, CVE-2022-1729; timing what others do
# row: kernel interfaces
# outside: ok EACCES (perf_event_paranoid above 2)
# inside: EPERM
# landlock: EPERM

from lib.probe import *

# type software, size, config task-clock; flags: disabled, exclude_kernel, exclude_hv
attr = struct.pack("<IIQQQQQ", 1, 112, 1, 0, 0, 0, 1 | 1 << 5 | 1 << 6).ljust(112, b"\0")
with act():
    os.close(call("perf_event_open", attr, 0, -1, -1, 0))
