# what: a file of the host by a shell's built-ins, poisoned variables, another interpreter
# stops: CVE-2026-22708, Ona: policy by the text of a command
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

secret = host("SECRET")
each(redirect=lambda: run("sh", "-c", 'read x < "$0"', secret), source=lambda: run("sh", "-c", 'cat <"$0"', secret),
     variable=lambda: run("sh", "-c", "$PAGER " + secret, env={**os.environ, "PAGER": "cat", "LC_ALL": "C"}),
     interpreter=lambda: run(sys.executable, "-S", "-c", f"open({secret!r})"))
