# what: a file of the host by codecs, io, tokenize, ctypes
# stops: CVE-2026-27952: overlooked functions
# row: code in a language's own sandbox
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

import codecs
import io
import tokenize
secret = host("SECRET")
each(codecs=lambda: codecs.open(secret).close(), io=lambda: io.FileIO(secret).close(), tokenize=lambda: tokenize.open(secret).close(),
     ctypes=lambda: call("openat", AT_FDCWD, secret.encode(), 0))
