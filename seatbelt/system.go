package seatbelt

// systemTrees are what programs are made of: read, mapped and executed.
// /Library is not among them as a whole, it has keychains and settings.
func systemTrees() []string {
	trees := []string{
		"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share",
		"/System/Library", "/System/iOSSupport",
		// Where dyld has its shared cache from macOS 13 on, by link and in fact.
		"/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes",
		"/private/var/db/dyld",
		"/Library/Apple",      // Rosetta
		"/Library/Frameworks", // Python of python.org
		"/Library/Java",
		// git, clang, make and python3 are here, those in /usr/bin start them.
		"/Library/Developer/CommandLineTools", "/Applications/Xcode.app",
	}
	// Homebrew's, and what else installs into /usr/local, is what most people's
	// Python and Node are. Its etc and var have the settings and data of servers,
	// with passwords, and are left out but for what programs ask at start.
	for _, prefix := range []string{"/usr/local", "/opt/homebrew"} {
		for _, name := range []string{
			"bin", "sbin", "lib", "libexec", "share", "include", "opt", "Cellar", "Caskroom", "Frameworks",
			"etc/ca-certificates", "etc/openssl@3", "etc/openssl@1.1",
		} {
			trees = append(trees, prefix+"/"+name)
		}
	}
	return trees
}

// systemData are trees that are only read: time zones, and which sh and which
// developer tools are chosen.
func systemData() []string { return []string{"/private/var/db/timezone", "/private/var/select"} }

// systemFiles are read one by one: /etc also has master.passwd, sudoers and the
// keys of sshd.
func systemFiles() []string {
	files := []string{
		"/",                                 // dyld and getcwd look at it
		"/private/var/run/resolv.conf",      // what /etc/resolv.conf links to
		"/private/var/db/xcode_select_link", // what the stubs in /usr/bin ask
		"/Library/Preferences/com.apple.dt.Xcode.plist", // and whether its licence is agreed to
	}
	for _, name := range []string{
		"passwd", "group", "hosts", "services", "protocols", "networks", "rpc", "shells", "localtime", "resolv.conf",
		"paths", "manpaths", "profile", "bashrc", "zshenv", "zprofile", "zshrc", "ssl/cert.pem", "ssl/openssl.cnf",
	} {
		files = append(files, "/private/etc/"+name)
	}
	return files
}

// systemLinks lead to where things are.
func systemLinks() []string { return []string{"/tmp", "/var", "/etc"} }

// services are the Mach services that can be looked up. Left out, among others:
// securityd and trustd (keys, fetching for others), pasteboard, launchservicesd and
// coreservicesd (starting programs outside), the window server, cfprefsd (settings
// of all programs), notification_center (signals to all programs).
func services() []string {
	return []string{
		"com.apple.system.opendirectoryd.libinfo",    // getpwuid and getgrgid
		"com.apple.system.opendirectoryd.membership", // getgrouplist
		"com.apple.bsd.dirhelper",                    // confstr(_CS_DARWIN_USER_TEMP_DIR), of mktemp and xcrun
		"com.apple.logd",                             // os_log, which libraries call as they please
	}
}

// sysctls are what C libraries, Go, Python and Node ask for at start. Not kern.proc
// and kern.procargs2, which tell of other processes.
func sysctls() []filter {
	return append(each("sysctl-name",
		"kern.argmax", "kern.boottime", "kern.hostname", "kern.iossupportversion", "kern.ipc.somaxconn", "kern.maxfilesperproc", "kern.maxproc",
		"kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.osrevision", "kern.ostype", "kern.osvariant_status",
		"kern.osversion", "kern.secure_kernel", "kern.usrstack64", "kern.version",
		"machdep.tsc.frequency", "sysctl.proc_cputype", "sysctl.proc_translated", "vm.loadavg",
	), each("sysctl-name-prefix", "hw.", "machdep.cpu.")...)
}
