//go:build linux

package compat

// The scripts of TestRealWork. They must print the same everywhere.

const pipeline = `head -c 100M /dev/zero | tr '\0' 'x' | sha256sum`

const archives = `
seq 1 400000 | awk '{ print ($1 * 7919) % 400009, $1 }' > numbers
sort -n numbers > sorted
sort -k2 -r numbers | sha256sum
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf a.tar numbers sorted
gzip -nk a.tar
xz -1k a.tar
ls -s --block-size=1M a.tar* | awk '{ print $2 }'
sha256sum a.tar a.tar.gz a.tar.xz
mkdir x && tar -xJf a.tar.xz -C x && cmp numbers x/numbers
gzip -t a.tar.gz && xz -t a.tar.xz && echo good
`

const venv = `
python3 -m venv --without-pip v
. v/bin/activate
python -c '
import os, sys
print(os.path.relpath(sys.prefix), sys.prefix != sys.base_prefix)
open(os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages", "extra.py"), "w").write("answer = 42\n")
'
python -c 'import extra, os; print(extra.answer, os.path.relpath(extra.__file__))'
ls v/bin | sort
`

func python(script string) string { return "python3 -c '" + script + "'" }

// pool needs the semaphores that sem_open(3) keeps in /dev/shm.
const pool = `
import multiprocessing as mp, multiprocessing.shared_memory as sm
def work(n):
    with lock:
        total.value += n
    return n * n
def begin(l, t):
    global lock, total
    lock, total = l, t
if __name__ == "__main__":
    lock, total = mp.Lock(), mp.Value("q", 0, lock=False)
    with mp.Pool(4, begin, (lock, total)) as p:
        print(sum(p.map(work, range(2000), 10)), total.value)
    m = sm.SharedMemory(create=True, size=1 << 20)
    child = mp.Process(target=lambda: m.buf.__setitem__(slice(0, 5), b"child"))
    child.start(); child.join()
    print(bytes(m.buf[:5]), child.exitcode)
    m.close(); m.unlink()
    q = mp.Queue()
    mp.Process(target=q.put, args=({"k": [1, 2]},)).start()
    print(q.get(timeout=30))
`

// sqlite makes two processes write to one database, with locks and shared memory.
const sqlite = `
import sqlite3, subprocess, sys
db = sqlite3.connect("t.db", timeout=60)
print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t(who, n)"); db.commit()
code = """
import sqlite3, sys
db = sqlite3.connect(chr(116) + ".db", timeout=60)
for n in range(200):
    with db: db.execute("insert into t values(?, ?)", (sys.argv[1], n))
"""
writers = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(3)]
print([w.wait() for w in writers])
print(db.execute("select who, count(*), sum(n) from t group by who").fetchall())
print(db.execute("pragma integrity_check").fetchone())
`

const node = `node -e '
const fs = require("fs"), cp = require("child_process"), { Worker } = require("worker_threads");
fs.mkdirSync("d/e", { recursive: true });
fs.writeFileSync("d/e/f", "text\n".repeat(1000));
fs.cpSync("d", "copy", { recursive: true });
console.log(fs.readdirSync("copy", { recursive: true }).sort(), fs.statSync("copy/e/f").size);
console.log(cp.execFileSync("wc", ["-l"], { input: fs.readFileSync("d/e/f") }).toString().trim());
const w = new Worker("const { parentPort: p } = require(\"worker_threads\"); p.on(\"message\", n => { let s = 0n; for (let i = 0n; i < n; i++) s += i; p.postMessage(s); p.close(); })", { eval: true });
w.on("message", s => console.log("worker", s));
w.on("exit", code => cp.spawn("sh", ["-c", "echo done; exit 3"], { stdio: "inherit" }).on("close", c => console.log(code, c)));
w.postMessage(100000n);
'`

const java = `
cat > Main.java <<END
import java.security.MessageDigest;
import java.util.concurrent.*;
public class Main {
    public static void main(String[] args) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        var sum = pool.submit(() -> java.util.stream.LongStream.range(0, 1_000_000).parallel().sum());
        System.out.println(sum.get());
        pool.shutdown();
        System.out.println(java.util.HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest("x".getBytes())));
        System.out.println(javax.net.ssl.SSLContext.getDefault().getProtocol());
    }
}
END
java Main.java
`

const gitSetup = `
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE=@1700000000+0000
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org GIT_COMMITTER_DATE=@1700000000+0000
`

const gitOrigin = `
git init -q -b main .
for i in $(seq 1 200); do mkdir -p d$((i % 7)); seq 1 $i > d$((i % 7))/f$i; done
git add . && git commit -qm first
ln -s d1 link && git add link && git commit -qm link
git tag v1
`

const gitClone = `
git clone "file://$origin" a
git clone -q "$origin" b
cd a
git switch -qc topic v1~1
echo new > new && chmod +x new && git add new && git commit -qm new
git rebase -q main
git log --format='%H %s' --all
git fsck --full && git gc -q && git status --short --branch
git diff --stat v1 topic
cd ../b && git pull -q ../a topic && git rev-parse HEAD HEAD^{tree}
`

// sources are a C project.
var sources = map[string]string{
	"Makefile": "CFLAGS = -O2 -Wall\nhello: main.o sum.o\n\t$(CC) -o $@ $^ -lm\nmain.o sum.o: sum.h\nout/log: hello\n" +
		"\tmkdir -p out\n\t./hello > $@\n",
	"sum.h": "double sum(int n);\n",
	"sum.c": "#include <math.h>\n#include \"sum.h\"\n" +
		"double sum(int n) { double s = 0; for (int i = 1; i <= n; i++) s += sqrt(i); return s; }\n",
	"main.c": "#include <stdio.h>\n#include \"sum.h\"\n" +
		"int main(void) { printf(\"%.6f %s\\n\", sum(1000), __FILE__); return 0; }\n",
}

const makeRun = `make -j2 --no-print-directory out/log | sort && cat out/log && make -q out/log && ./hello`
