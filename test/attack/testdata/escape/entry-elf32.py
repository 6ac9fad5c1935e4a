# what: a 32-bit program
# stops: filters that check only one table of system calls
# row: kernel entry
# outside: ok
# inside: SIGSYS
# landlock: SIGSYS
# arch: amd64
# unproven: ENOEXEC (a kernel without 32-bit programs)

from lib.probe import *

code = bytes.fromhex("b801000000 bb00000000 cd80")  # exit(0)
base = 0x08048000
program = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
program += struct.pack("<IIIIIIII", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 0x1000) + code
path = temporary("elf32")
with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755), "wb") as f:
    f.write(program)
with act():
    pid = os.posix_spawn(path, [path], {})
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        raise Word(signal.Signals(os.WTERMSIG(status)).name)
