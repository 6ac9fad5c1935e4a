# what: a file of the host by a program that the dynamic linker starts
# stops: Ona: policy by the program's name
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES
# needs: glibc

from lib.probe import *

with act():
    import glob
    linker = [p for p in glob.glob("/lib*/ld-linux*.so.*") + glob.glob("/lib/*/ld-linux*.so.*")][0]
    run(linker, "/bin/cat", host("SECRET"))
