# what: a file of the host by a copied program of another name
# stops: Ona: policy by the program's name
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

copy = temporary("innocent")
with act():
    with open("/bin/cat", "rb") as cat, open(os.open(copy, os.O_CREAT | os.O_WRONLY, 0o755), "wb") as f:
        f.write(cat.read())
    run(copy, host("SECRET"))
