# what: bpf, with an invalid size
# stops: eBPF verifier bugs (CVE-2021-3490, CVE-2022-23222)
# row: kernel interfaces
# outside: E2BIG
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (an older kernel with unprivileged_bpf_disabled)

from lib.probe import *

with act():
    call("bpf", 0, ctypes.create_string_buffer(8), 1 << 20)
