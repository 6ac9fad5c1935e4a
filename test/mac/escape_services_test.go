//go:build darwin || (linux && (amd64 || arm64))

package mac

// serviceActs are for sh: programs outside that would act for a guest.
var serviceActs = []act{
	{"launchctl submit", perhaps,
		`launchctl submit -l "$MARK" -- /usr/bin/true && echo ESCAPED; launchctl remove "$MARK"`},
	{"launchctl submit, to write", never,
		`launchctl submit -l "$MARK" -- /usr/bin/touch "$HOST/launched"; sleep 1; launchctl remove "$MARK"`},
	{"launchctl bootstrap", never, `
cat >j.plist <<END
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>$MARK</string><key>ProgramArguments</key><array><string>/usr/bin/touch</string><string>$HOST/launched</string></array><key>RunAtLoad</key><true/></dict></plist>
END
for d in gui user; do launchctl bootstrap $d/$(id -u) "$PWD/j.plist" && echo ESCAPED; launchctl bootout $d/$(id -u)/"$MARK"; done; launchctl load "$PWD/j.plist"; sleep 1; launchctl unload "$PWD/j.plist"`},
	{"launchctl setenv", perhaps,
		`launchctl setenv "$MARK" x; [ "$(launchctl getenv "$MARK")" = x ] && echo ESCAPED; launchctl unsetenv "$MARK"`},
	{"osascript to a program", never,
		`osascript -e 'tell application "Finder" to get name of startup disk' && echo ESCAPED`},
	{"osascript to System Events", never,
		`osascript -e 'tell application "System Events" to get name of first process' && echo ESCAPED`},
	{"open a program of one's own", never, `
mkdir -p "$MARK.app/Contents/MacOS"
printf '#!/bin/sh\n: >"%s"\n' "$HOST/opened" >"$MARK.app/Contents/MacOS/run" && chmod 755 "$MARK.app/Contents/MacOS/run"
cat >"$MARK.app/Contents/Info.plist" <<END
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>CFBundleExecutable</key><string>run</string><key>CFBundleIdentifier</key><string>$MARK</string><key>CFBundlePackageType</key><string>APPL</string><key>LSUIElement</key><true/></dict></plist>
END
open -g -n "$PWD/$MARK.app" && echo ESCAPED; sleep 1`},
	// Nobody misses the content of the ruler pasteboard.
	{"pasteboard", perhaps, `echo "$MARK" | pbcopy -pboard ruler; [ "$(pbpaste -pboard ruler)" = "$MARK" ] && echo ESCAPED; pbcopy -pboard ruler </dev/null`},
	{"the user's pasteboard", never, `[ -n "$(pbpaste)" ] && echo ESCAPED`},
	{"what is in keychains", perhaps, `security dump-keychain 2>/dev/null | grep -q keychain: && echo ESCAPED`},
	{"a password", never, `security add-generic-password -a "$MARK" -s "$MARK" -w x && echo ESCAPED; security find-generic-password -s "$MARK" && echo ESCAPED; security delete-generic-password -s "$MARK"`},
	{"certificates of the system", perhaps,
		`security find-certificate -a /Library/Keychains/System.keychain | grep -q labl && echo ESCAPED`},
	{"write settings", always, `defaults write "$MARK" key value; [ "$(defaults read "$MARK" key)" = value ] && echo ESCAPED; defaults delete "$MARK"`},
	{"read settings", perhaps, `[ -n "$(defaults read -g AppleLocale)" ] && echo ESCAPED`},
	{"settings of another program", perhaps, `defaults read com.apple.finder 2>/dev/null | grep -q = && echo ESCAPED`},
	{"at", never, `n=$(echo : | at now + 60 minutes 2>&1 | sed -n 's/^job \([0-9]*\).*/\1/p'); [ -n "$n" ] && echo ESCAPED && atrm "$n"`},
	{"crontab", always, `crontab -l >c 2>&1; { [ $? = 0 ] || grep -q 'no crontab for' c; } && echo ESCAPED; rm -f c`},
	{"users of the directory", always, `dscl . -list /Users | grep -q root && echo ESCAPED`},
	{"the file index", perhaps,
		`[ "$(mdfind -count 'kMDItemContentType == "com.apple.application-bundle"')" -gt 0 ] && echo ESCAPED`},
	{"disks", always, `diskutil list | grep -q disk && echo ESCAPED`},
	{"the machine's name", perhaps, `[ -n "$(scutil --get ComputerName)" ] && echo ESCAPED`},
	{"the serial number", always,
		`ioreg -d 2 -c IOPlatformExpertDevice | grep -q 'IOPlatformSerialNumber. = .[^"]' && echo ESCAPED`},
	{"a picture of the screen", never, `screencapture -x s.png && [ -s s.png ] && echo ESCAPED`},
	{"the system's log", never, `[ -n "$(log show --last 1s --style compact | tail -n +2)" ] && echo ESCAPED`},
	{"shortcuts", never, `shortcuts list && echo ESCAPED`},
	{"who is logged in", perhaps, `[ -n "$(last -1 2>/dev/null | head -1)" ] && echo ESCAPED`},
}

// lookUp asks launchd for a service.
func lookUp(service string) string {
	return `
libc = ctypes.CDLL(None)
port = ctypes.c_uint(0)
if libc.bootstrap_look_up(ctypes.c_uint.in_dll(libc, "bootstrap_port"), b"` + service + `", ctypes.byref(port)) == 0: print("ESCAPED")`
}

// servicePython are for python3.
var servicePython = []act{
	{"notification to all", always, `if ctypes.CDLL(None).notify_post(os.fsencode(env["MARK"])) == 0: print("ESCAPED")`},
	{"notification_center", always, lookUp("com.apple.system.notification_center")},
	{"cfprefsd", always, lookUp("com.apple.cfprefsd.agent")},
	{"securityd", always, lookUp("com.apple.SecurityServer")},
	{"trustd", perhaps, lookUp("com.apple.trustd.agent")},
	{"secd", perhaps, lookUp("com.apple.securityd.xpc")},
	{"launchservicesd", perhaps, lookUp("com.apple.coreservices.launchservicesd")},
	{"coreservicesd", perhaps, lookUp("com.apple.CoreServices.coreservicesd")},
	{"quarantine resolver", perhaps, lookUp("com.apple.coreservices.quarantine-resolver")},
	{"pasteboard service", perhaps, lookUp("com.apple.pasteboard.1")},
	{"window server", perhaps, lookUp("com.apple.windowserver.active")},
	{"file system events service", perhaps, lookUp("com.apple.FSEvents")},
	{"tccd", perhaps, lookUp("com.apple.tccd")},
	{"disk arbitration", perhaps, lookUp("com.apple.DiskArbitration.diskarbitrationd")},
	{"configd", perhaps, lookUp("com.apple.SystemConfiguration.configd")},
	{"opendirectoryd", perhaps, lookUp("com.apple.system.opendirectoryd.api")},
	{"power management", perhaps, lookUp("com.apple.PowerManagement.control")},
	{"a service of one's own", perhaps, `
libc = ctypes.CDLL(None)
boot, me, port = ctypes.c_uint.in_dll(libc, "bootstrap_port"), ctypes.c_uint.in_dll(libc, "mach_task_self_"), ctypes.c_uint(0)
libc.mach_port_allocate(me, 1, ctypes.byref(port)) # MACH_PORT_RIGHT_RECEIVE
libc.mach_port_insert_right(me, port, port, 20) # MACH_MSG_TYPE_MAKE_SEND
if libc.bootstrap_register(boot, os.fsencode(env["MARK"]), port) == 0: print("ESCAPED")`},
	{"a driver", perhaps, `
kit, libc = ctypes.CDLL("/System/Library/Frameworks/IOKit.framework/IOKit"), ctypes.CDLL(None)
kit.IOServiceMatching.restype = ctypes.c_void_p
kit.IOServiceGetMatchingService.argtypes = [ctypes.c_uint, ctypes.c_void_p]
service, connection = kit.IOServiceGetMatchingService(0, kit.IOServiceMatching(b"IOSurfaceRoot")), ctypes.c_uint(0)
if service and kit.IOServiceOpen(service, ctypes.c_uint.in_dll(libc, "mach_task_self_"), 0, ctypes.byref(connection)) == 0: print("ESCAPED")`},
	{"another profile for oneself", always, `
box, err = ctypes.CDLL("/usr/lib/libsandbox.1.dylib"), ctypes.c_char_p()
box.sandbox_init(b"(version 1)(allow default)", ctypes.c_uint64(0), ctypes.byref(err))
if open(env["HOST"] + "/secret").read() == "secret": print("ESCAPED")`},
	{"an extension for oneself", always, `
libc = ctypes.CDLL("/usr/lib/system/libsystem_sandbox.dylib")
libc.sandbox_extension_issue_file.restype = ctypes.c_char_p
libc.sandbox_extension_consume.restype = ctypes.c_int64
token = libc.sandbox_extension_issue_file(b"com.apple.app-sandbox.read", os.fsencode(env["HOST"]), ctypes.c_uint32(0))
if token: libc.sandbox_extension_consume(token)
if open(env["HOST"] + "/secret").read() == "secret": print("ESCAPED")`},
}

// privilegeActs are for sh: other users, the kernel, and the sandbox itself.
var privilegeActs = []act{
	{"sudo", perhaps, `sudo -n true && echo ESCAPED`},
	{"su", never, `su root -c 'echo ESCAPED' </dev/null`},
	{"login", never, `login -f root /bin/echo ESCAPED </dev/null`},
	{"root by a call", never, `python3 -c 'import os; os.setuid(0); print("ESCAPED")'`},
	{"any set-user-ID program", always, `/usr/bin/top -l 1 -n 1 >/dev/null 2>&1 && echo ESCAPED`},
	{"chroot", never, `chroot / /bin/echo ESCAPED`},
	{"set a sysctl", never, `sysctl -w kern.coredump="$(sysctl -n kern.coredump || echo 1)" && echo ESCAPED`},
	{"firmware variables", never, `nvram "$MARK=x" && echo ESCAPED && nvram -d "$MARK"`},
	{"a kernel extension", never, `kextload -b com.apple.filesystems.ntfs && echo ESCAPED`},
	{"the clock", never, `date -f %s "$(date +%s)" >/dev/null && echo ESCAPED`},
	{"the name of the machine", never, `hostname "$(hostname)" && echo ESCAPED`},
	{"a looser sandbox", always,
		`sandbox-exec -p '(version 1)(allow default)' /bin/cat "$HOST/secret" | grep -q secret && echo ESCAPED`},
	// Apple's programs load no libraries from the environment: a guest would get their rights.
	{"a library for a system program", never, `DYLD_INSERT_LIBRARIES=/usr/lib/libproc.dylib DYLD_PRINT_LIBRARIES=1 /bin/ls 2>&1 | grep -q libproc && echo ESCAPED`},
	// Ona's report of 2026: by another name, or as a copy, it is still confined.
	{"a copied program", always, `cp /bin/cat c && ./c "$HOST/secret" | grep -q secret && echo ESCAPED`},
	{"a program by its interpreter", always, `sh "$HOST/prog"`},
	{"a process apart", always, `python3 -c 'import os, sys
if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1]); print("ESCAPED", flush=True)' "$HOST/secret"; sleep 1`},
	{"posix_spawn", always, `python3 -c 'import os, sys; os.waitpid(os.posix_spawn("/bin/sh", ["sh", sys.argv[1]], {}), 0)' "$HOST/prog"`},
}
