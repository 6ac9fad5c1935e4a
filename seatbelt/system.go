package seatbelt

// systemTrees lists the directories of programs and libraries, which can be read, mapped
// and executed. /Library as a whole is not one: it has keychains and settings.
func systemTrees() []string {
	trees := []string{
		"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share",
		"/System/Library", "/System/iOSSupport",
		// dyld's shared cache from macOS 13 on: the link and its target.
		"/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes",
		"/private/var/db/dyld",
		"/Library/Apple",      // Rosetta
		"/Library/Frameworks", // Python of python.org
		"/Library/Java",
		// git, clang, make and python3; those in /usr/bin are stubs that start these.
		"/Library/Developer/CommandLineTools", "/Applications/Xcode.app",
	}
	// Most people's Python and Node come from Homebrew or /usr/local. Of etc, which has
	// server settings with passwords, only files that programs read at start are listed;
	// var, which has server data, is left out.
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

// systemData lists trees that are only read: time zones, and the selection of sh and
// developer tools.
func systemData() []string { return []string{"/private/var/db/timezone", "/private/var/select"} }

// systemFiles lists single files: /etc also has master.passwd, sudoers and sshd's keys.
func systemFiles() []string {
	files := []string{
		"/",                                 // dyld and getcwd read it
		"/private/var/run/resolv.conf",      // the target of /etc/resolv.conf
		"/private/var/db/xcode_select_link", // where the stubs in /usr/bin find the tools,
		"/Library/Preferences/com.apple.dt.Xcode.plist", // and whether the licence is accepted
	}
	for _, name := range []string{
		"passwd", "group", "hosts", "services", "protocols", "networks", "rpc", "shells", "localtime", "resolv.conf",
		"paths", "manpaths", "profile", "bashrc", "zshenv", "zprofile", "zshrc", "ssl/cert.pem", "ssl/openssl.cnf",
	} {
		files = append(files, "/private/etc/"+name)
	}
	return files
}

// systemLinks lists the symbolic links in common paths.
func systemLinks() []string { return []string{"/tmp", "/var", "/etc"} }

// services lists the Mach services that can be looked up. Some that are left out:
// securityd and trustd (keys; fetch URLs for others), pasteboard, launchservicesd and
// coreservicesd (start programs outside), the window server, cfprefsd (settings of all
// programs), notification_center (notifies all programs).
func services() []string {
	return []string{
		"com.apple.system.opendirectoryd.libinfo",    // getpwuid and getgrgid
		"com.apple.system.opendirectoryd.membership", // getgrouplist
		"com.apple.bsd.dirhelper",                    // confstr(_CS_DARWIN_USER_TEMP_DIR), for mktemp and xcrun
		"com.apple.logd",                             // os_log, which any library may call
	}
}

// sysctls matches what C libraries, Go, Python and Node read at start. It leaves out
// kern.proc and kern.procargs2, which reveal other processes.
func sysctls() []filter {
	return append(each("sysctl-name",
		"kern.argmax", "kern.boottime", "kern.hostname", "kern.iossupportversion", "kern.ipc.somaxconn",
		"kern.maxfilesperproc", "kern.maxproc", "kern.ngroups", "kern.osproductversion", "kern.osrelease",
		"kern.osrevision", "kern.ostype", "kern.osvariant_status", "kern.osversion", "kern.secure_kernel",
		"kern.usrstack64", "kern.version",
		"machdep.tsc.frequency", "sysctl.proc_cputype", "sysctl.proc_translated", "vm.loadavg",
	), each("sysctl-name-prefix", "hw.", "machdep.cpu.")...)
}
