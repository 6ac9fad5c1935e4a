//go:build darwin || (linux && (amd64 || arm64))

package mac

// fileActs are for sh. Ids are those of advisories, if there is one of the kind.
var fileActs = []act{
	{"read a file of the host", always, `cat "$HOST/secret" | grep -q secret && echo ESCAPED`},
	{"see that a file is there", always, `[ -e "$HOST/secret" ] && echo ESCAPED`},
	{"list a directory of the host", always, `[ -n "$(ls "$HOST")" ] && echo ESCAPED`},
	{"list the home directory", always, `[ -n "$(ls -a "$USERHOME")" ] && echo ESCAPED`},
	{"list /Users", always, `[ -n "$(ls /Users)" ] && echo ESCAPED`},
	{"list /Applications", always, `[ -n "$(ls /Applications)" ] && echo ESCAPED`},
	{"list /private/tmp", always, `ls /private/tmp >/dev/null && echo ESCAPED`},
	{"list /Volumes", always, `[ -n "$(ls /Volumes)" ] && echo ESCAPED`},
	{"ssh keys", perhaps, `ls "$USERHOME/.ssh" >/dev/null && echo ESCAPED`},
	{"the user's keychain", perhaps,
		`[ -n "$(head -c 4 "$USERHOME/Library/Keychains/login.keychain-db")" ] && echo ESCAPED`},
	{"the system's keychain", always, `[ -n "$(head -c 4 /Library/Keychains/System.keychain)" ] && echo ESCAPED`},
	{"preferences of programs", perhaps, `[ -n "$(ls "$USERHOME/Library/Preferences")" ] && echo ESCAPED`},
	{"the shell's history", perhaps, `head -c 1 "$USERHOME/.zsh_history" >/dev/null && echo ESCAPED`},
	{"master.passwd", never, `cat /etc/master.passwd >/dev/null && echo ESCAPED`},
	{"sudoers", never, `cat /etc/sudoers >/dev/null && echo ESCAPED`},
	{"hashes of passwords", never, `ls /private/var/db/dslocal/nodes/Default/users && echo ESCAPED`},
	// Aliases of a path, as in Ona's report of 2026.
	{"the second name of the data volume", always,
		`cat "/System/Volumes/Data$HOST/secret" | grep -q secret && echo ESCAPED`},
	{"a file by device and inode", perhaps, `cat "/.vol/$NODE" | grep -q secret && echo ESCAPED`},
	{"a path in another case", perhaps, `cat "$(echo "$HOST" | tr a-z A-Z)/SECRET" | grep -q secret && echo ESCAPED`},
	{"the way through a descriptor", always, `exec 9<"$HOST" && echo ESCAPED`},
	{"CVE-2024-21626 the directory above", always, `cat "../${HOST##*/}/secret" | grep -q secret && echo ESCAPED`},
	{"a symbolic link to read", always, `ln -s "$HOST/secret" l && cat l | grep -q secret && echo ESCAPED`},
	{"CVE-2025-55345 a symbolic link to write", always, `ln -s "$HOST/new" l && echo x >l && echo ESCAPED`},
	{"a symbolic link to a directory", always, `ln -s "$HOST" d && ls d/ >/dev/null && echo ESCAPED`},
	{"a hard link", always, `ln "$HOST/secret" h && cat h | grep -q secret && echo ESCAPED`},
	{"a clone", always, `cp -c "$HOST/secret" c && cat c | grep -q secret && echo ESCAPED`},
	{"execute a program of the host", always, `"$HOST/prog"`},
	{"source a script of the host", always, `. "$HOST/prog"`},
	{"write to /tmp", always, `: >"/tmp/$MARK" && echo ESCAPED; rm -f "/tmp/$MARK"`},
	{"write to /var/tmp", always, `: >"/var/tmp/$MARK" && echo ESCAPED; rm -f "/var/tmp/$MARK"`},
	{"write to the home directory", always, `: >"$USERHOME/.$MARK" && echo ESCAPED; rm -f "$USERHOME/.$MARK"`},
	{"a program for every login", never, `: >"$USERHOME/Library/LaunchAgents/$MARK.plist" && echo ESCAPED; rm -f "$USERHOME/Library/LaunchAgents/$MARK.plist"`},
	{"write to /Users/Shared", always, `: >"/Users/Shared/$MARK" && echo ESCAPED; rm -f "/Users/Shared/$MARK"`},
	{"write to /etc", never, `: >"/etc/$MARK" && echo ESCAPED; rm -f "/etc/$MARK"`},
	{"write to /usr/local", never,
		`for d in /usr/local /usr/local/bin /opt/homebrew/bin; do : >"$d/$MARK" && echo ESCAPED; rm -f "$d/$MARK"; done`},
	{"write to a directory of the host", always, `: >"$HOST/new" && echo ESCAPED`},
	{"append to a file of the host", always, `echo x >>"$HOST/own" && echo ESCAPED`},
	{"remove a file of the host", always, `rm "$HOST/gone" && echo ESCAPED`},
	{"a mode", always, `chmod 700 "$HOST/own" && echo ESCAPED`},
	{"a time", always, `touch -t 200001010000 "$HOST/own" && echo ESCAPED`},
	{"an extended attribute", always, `xattr -w tegmen.test x "$HOST/own" && echo ESCAPED`},
	{"a flag", always, `chflags nodump "$HOST/own" && echo ESCAPED`},
	{"an access control list", always, `chmod +a "everyone allow read" "$HOST/own" && echo ESCAPED`},
	// Files that the host's tools would execute later.
	{"a hook of git", always, `echo x >.git/hooks/pre-commit && echo ESCAPED`},
	{"CVE-2014-9390 a hook in another case", always,
		`mkdir -p .GIT/Hooks && echo x >.GIT/Hooks/post-commit && echo ESCAPED`},
	{"git's config", always, `echo x >>.git/config && echo ESCAPED`},
	{"git's directory moved", always, `mv .git g && echo ESCAPED`},
	{"git's hooks moved", always, `mv .git/hooks .git/h && echo ESCAPED`},
	{"another directory in git's place", always, `mkdir n && mv .git o && mv n .git && echo ESCAPED`},
	{"CVE-2026-25725 settings that are not there", always, `mkdir .vscode && echo ESCAPED`},
	{"settings that are not there, in another case", always,
		`mkdir .VSCode && echo x >.VSCode/tasks.json && echo ESCAPED`},
	{"settings by a link", always, `mkdir s && ln -s s .vscode && echo ESCAPED`},
	{"set-user-ID", always, `: >f && chmod 4755 f && [ -u f ] && echo ESCAPED`},
	{"set-group-ID", always, `: >f && chmod 2755 f && [ -g f ] && echo ESCAPED`},
	// Devices.
	{"a device", never, `mknod n c 3 2 && echo ESCAPED`},
	{"a disk", never, `for d in /dev/disk0 /dev/rdisk0 /dev/disk1; do head -c 1 $d >/dev/null && echo ESCAPED; done`},
	{"packets of the network", never, `: </dev/bpf0 && echo ESCAPED`},
	{"file system events", never, `: </dev/fsevents && echo ESCAPED`},
	{"the audit's pipe", never, `: </dev/auditpipe && echo ESCAPED`},
	{"a disk image", never, `hdiutil create -quiet -size 1m -fs HFS+ -volname "$MARK" i && hdiutil attach -quiet -nobrowse i.dmg && echo ESCAPED; hdiutil detach -quiet "/Volumes/$MARK"`},
	{"a mount", never, `mkdir m && mount -t devfs devfs m && echo ESCAPED && umount m`},
}

// filePython are for python3.
var filePython = []act{
	{"set-user-ID at creation", perhaps, "os.umask(0); os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o4755)); " +
		"print('ESCAPED' if os.stat('f').st_mode & 0o4000 else '')"},
	{"a file moved out", always, "open('f', 'w').close(); os.rename('f', env['HOST'] + '/moved'); print('ESCAPED')"},
	{"a file moved in", always, "os.rename(env['HOST'] + '/gone', 'in'); print('ESCAPED')"},
	{"two files swapped", always, `
open("f", "w").close()
libc = ctypes.CDLL(None)
if libc.renamex_np(b"f", os.fsencode(env["HOST"] + "/own"), 2) == 0: print("ESCAPED") # RENAME_SWAP`},
	{"the workspace moved", always,
		"at = os.getcwd(); os.rename(at, at + '-moved'); print('ESCAPED'); os.rename(at + '-moved', at)"},
	{"the private directory moved", never,
		"at = env['TMPDIR']; os.rename(at, at + '-moved'); print('ESCAPED'); os.rename(at + '-moved', at)"},
	{"settings of the user's shell", perhaps, `
for name in (".zshrc", ".zprofile", ".zshenv", ".bash_profile", ".profile", ".gitconfig"):
    try: os.close(os.open(env["USERHOME"] + "/" + name, os.O_WRONLY | os.O_APPEND)) # neither made nor changed
    except OSError: continue
    print("ESCAPED")`},
	{"CVE-2017-5226 a terminal of the user", always,
		"os.open(env['TTY'], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK); print('ESCAPED')"},
	{"CVE-2017-5226 keys pushed into the terminal", never, `
import fcntl, termios
fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x80017472, b"x") # TIOCSTI
print("ESCAPED")`},
	{"a message to a terminal", always,
		"os.open(env['TTY'], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK); print('ESCAPED')"},
	{"shared memory of the host", always, `
import _posixshmem
name = "/tg%d" % os.getpid()
_posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
print("ESCAPED")
_posixshmem.shm_unlink(name)`},
	{"System V shared memory", always, `
libc = ctypes.CDLL(None)
i = libc.shmget(0, 4096, 0o1600) # IPC_PRIVATE, IPC_CREAT
if i >= 0: print("ESCAPED"); libc.shmctl(i, 0, None) # IPC_RMID`},
	{"System V queue", always, `
libc = ctypes.CDLL(None)
i = libc.msgget(0, 0o1600)
if i >= 0: print("ESCAPED"); libc.msgctl(i, 0, None)`},
}
