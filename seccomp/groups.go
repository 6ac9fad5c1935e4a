package seccomp

import "slices"

// allowed lists what ordinary programs need: docker's default profile without the
// calls that denied lists.
func allowed() []Group {
	allow := Action{Kind: Allow}
	return []Group{
		group(allow, "files", "read and write the files that the mounts expose", `
			read write readv writev pread64 pwrite64 preadv preadv2 pwritev pwritev2 lseek open openat openat2 creat
			close close_range stat fstat lstat newfstatat statx statfs fstatfs ustat access faccessat faccessat2
			getdents getdents64 readlink readlinkat rename renameat renameat2 link linkat symlink symlinkat unlink
			unlinkat mkdir mkdirat rmdir mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat
			utime utimes utimensat futimesat umask truncate ftruncate fallocate fadvise64 readahead sync syncfs fsync
			fdatasync sync_file_range sendfile copy_file_range splice tee vmsplice flock fcntl ioctl dup dup2 dup3
			pipe pipe2 chdir fchdir getcwd file_getattr file_setattr cachestat`),
		group(allow, "attributes", "extended attributes of files", `
			getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr
			lremovexattr fremovexattr getxattrat setxattrat listxattrat removexattrat`),
		group(allow, "memory", "the program's own memory", `
			brk mmap munmap mprotect mremap msync madvise process_madvise mincore mlock mlock2 munlock mlockall
			munlockall remap_file_pages pkey_alloc pkey_free pkey_mprotect memfd_create memfd_secret membarrier
			map_shadow_stack mseal process_mrelease get_mempolicy`),
		group(allow, "processes", "start and end processes and threads", `
			clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid set_tid_address
			getpgid setpgid getpgrp getsid setsid kill tkill tgkill pidfd_open pidfd_send_signal prctl arch_prctl
			set_thread_area get_thread_area modify_ldt set_robust_list get_robust_list rseq rseq_slice_yield futex
			futex_waitv futex_wake futex_wait futex_requeue getrlimit setrlimit prlimit64 getrusage times unshare
			personality uprobe uretprobe restart_syscall getcpu`),
		group(allow, "scheduling", "scheduling within the sandbox's limits", `
			sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler
			sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min
			sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set`),
		group(allow, "signals", "signals between processes of the sandbox", `
			rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo
			rt_tgsigqueueinfo sigaltstack signalfd signalfd4 pause alarm`),
		group(allow, "time", "read clocks and set timers", `
			time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer timer_create
			timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime`),
		group(allow, "waiting", "wait for events on descriptors", `
			select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
			epoll_ctl_old epoll_wait_old eventfd eventfd2 inotify_init inotify_init1 inotify_add_watch
			inotify_rm_watch fanotify_mark io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy`),
		group(allow, "ids", "the kernel refuses any change that would gain privileges", `
			getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid
			setresgid setfsuid setfsgid setgroups capget capset`),
		group(allow, "the system", "describe the machine", "uname sysinfo getrandom"),
		group(allow, "dropping rights", "programs may confine themselves further",
			"seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
		group(allow, "sockets",
			"the sandbox's network has only loopback; Unix sockets are as reachable as their files", `
			socket socketpair bind listen accept accept4 connect sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg
			shutdown getsockname getpeername getsockopt setsockopt`),
		group(allow, "System V and POSIX IPC", "the sandbox has its own IPC namespace", `
			shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
			mq_timedsend mq_timedreceive mq_notify mq_getsetattr`),
	}
}

// denied lists the calls that no guest needs, by what they do.
func denied() []Group {
	kill := Action{Kind: KillProcess}
	return []Group{
		group(refuse(enosys), "clone3",
			"its flags are in memory, which a filter cannot read, so it could create namespaces; C libraries "+
				"fall back to clone",
			"clone3"),
		group(refuse(enosys), "io_uring",
			"performs other calls without passing through any filter; 60 % of the exploits submitted to "+
				"Google's kCTF by 2023 used it; libraries fall back to ordinary calls",
			"io_uring_setup io_uring_enter io_uring_register"),
		group(refuse(eperm), "namespaces and mounts",
			"change what the sandbox can see, and reach the kernel code behind nested user namespaces and "+
				"filesystem contexts (CVE-2022-0185, CVE-2023-0386, CVE-2022-0492)", `
			mount umount2 pivot_root chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick
			mount_setattr statmount listmount listns`),
		group(refuse(eperm), "keyrings", "keys belong to the user, not to the sandbox (CVE-2016-0728)",
			"add_key request_key keyctl"),
		group(refuse(eperm), "inspecting processes",
			"read or control another process's memory and descriptors; the debug profile allows it",
			"ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp"),
		group(refuse(eperm), "programs in the kernel",
			"bpf and perf run or record kernel code, and userfaultfd pauses the kernel at chosen points: most "+
				"exploits use one of them",
			"bpf perf_event_open userfaultfd"),
		group(refuse(eperm), "files by handle",
			"open files by number, including files outside the mounts (the Shocker attack)",
			"open_by_handle_at name_to_handle_at"),
		group(refuse(eperm), "watching all files", "fanotify can watch a whole filesystem", "fanotify_init"),
		group(refuse(eperm), "quotas", "quotas belong to the host", "quotactl quotactl_fd"),
		group(refuse(eperm), "memory placement",
			"move pages between NUMA nodes, which slows down other processes",
			"mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages"),
		group(refuse(eperm), "the machine's settings",
			"clock, host name, kernel log, terminals, security modules", `
			settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup
			lsm_get_self_attr lsm_set_self_attr lsm_list_modules`),
		group(kill, "the machine itself",
			"modules, kexec, reboot, swap, accounting, I/O ports: only the host's root may use them, and no "+
				"program tries them by mistake", `
			init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load
			kexec_file_load reboot swapon swapoff acct iopl ioperm`),
		group(kill, "obsolete",
			"removed from the kernel or never implemented; a program that calls them is probing", `
			_sysctl sysfs uselib nfsservctl lookup_dcookie afs_syscall tuxcall security getpmsg putpmsg vserver`),
	}
}

// Numbers from the kernel's headers.
const (
	newNamespaces = 0x7e020000 // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
	cloneParent   = 0x8000
	newTime       = 0x80 // CLONE_NEWTIME, which clone cannot pass: its bits are the exit signal

	tiocSTI, tiocLINUX, tiocSETD = 0x5412, 0x541c, 0x5423

	afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16
	tcp, udp, udpLite, icmp, icmp6     = 6, 17, 136, 1, 58
	stream, datagram, raw              = 1, 2, 3 // types of sockets
)

// internet lists the protocols that sockets may have; 0 selects the default.
var internet = []uint64{0, icmp, tcp, udp, icmp6}

func family(f uint64) Arg { return Arg{Index: 0, Value: f, Op: OpEqual} }

// rareTypes matches the socket types that imply a transport: SCTP, DCCP, RDM.
func rareTypes(f uint64) (when [][]Arg) {
	for _, args := range othersOf(1, 0xf, stream, datagram, raw) {
		when = append(when, append(args, family(f)))
	}
	return when
}

const devices = "devices; the kernel lets anyone create number 0:0, a whiteout, and so does Landlock in some " +
	"versions (6.1.192, 6.12.117)"

// refusals lists the arguments with which allowed calls are refused.
func refusals() []Refusal { return slices.Concat(processRefusals(), socketRefusals(), otherRefusals()) }

func processRefusals() []Refusal {
	return []Refusal{
		{
			Call: "clone", Action: refuse(eperm), When: anyBit(0, newNamespaces),
			Why: "namespaces are created outside",
		},
		{
			Call: "clone", Action: refuse(eperm), When: anyBit(0, cloneParent),
			Why: "CLONE_PARENT creates a child of the caller's parent. A command's parent is the host process, and a " +
				"dead child unknown to it would keep the sandbox from ending",
		},
		{
			Call: "unshare", Action: refuse(eperm), When: anyBit(0, newNamespaces|newTime),
			Why: "namespaces are created outside",
		},
		{
			Call: "ioctl", Action: refuse(eperm),
			Why:  "types or pastes into a terminal (CVE-2017-5226), or loads a line discipline (CVE-2023-6546)",
			When: [][]Arg{{is32(1, tiocSTI)}, {is32(1, tiocLINUX)}, {is32(1, tiocSETD)}},
		},
		{
			Call: "personality", Action: refuse(eperm),
			Why: "switches off protections: readable memory becomes executable, addresses become fixed as in old " +
				"layouts. Allowed are querying, ADDR_NO_RANDOMIZE, which debuggers use, and harmless names",
			Unless: [][]Arg{
				{is32(0, 0xffffffff)}, {is32(0, 0)}, {is32(0, 0x8)},
				{is32(0, 0x20000)}, {is32(0, 0x20008)}, {is32(0, 0x40000)},
			},
		},
	}
}

func socketRefusals() []Refusal {
	return []Refusal{
		{
			Call: "socket", Action: refuse(eafnosupport),
			Why: "kernel code that ordinary programs never use: AF_ALG (CVE-2026-31431), AF_KEY, AF_PACKET, " +
				"AF_VSOCK, AF_RXRPC (CVE-2026-43500), AF_BLUETOOTH, AF_CAN, AF_TIPC, …",
			When: others(0, []uint64{afUnix, afInet, afInet6, afNetlink}),
		},
		{
			Call: "socket", Action: refuse(eprotonosupport), When: others(2, []uint64{0}, family(afNetlink)),
			Why: "netlink other than routing: netfilter (CVE-2024-1086), xfrm (CVE-2026-43284), audit, kernel events",
		},
		{
			Call: "socket", Action: refuse(eprotonosupport),
			Why: "transports that ordinary programs do not use: SCTP, DCCP, UDP-Lite, MPTCP, L2TP",
			When: slices.Concat(others(2, internet, family(afInet)), others(2, internet, family(afInet6)),
				rareTypes(afInet), rareTypes(afInet6)),
		},
		{
			Call: "socketpair", Action: refuse(eafnosupport), When: others(0, []uint64{afUnix}),
			Why: "only Unix sockets come in pairs",
		},
		{
			Call: "setsockopt", Action: refuse(enoprotoopt), When: [][]Arg{{is32(1, tcp), is32(2, 31)}},
			Why: "upper-layer protocols on TCP: espintcp (CVE-2026-46300), smc, kernel TLS; libraries work " +
				"without them",
		},
		{
			Call: "setsockopt", Action: refuse(enoprotoopt),
			Why:  "IPsec and L2TP over UDP",
			When: [][]Arg{{is32(1, udp), is32(2, 100)}, {is32(1, udpLite), is32(2, 100)}},
		},
	}
}

func otherRefusals() []Refusal {
	return []Refusal{
		{
			Call: "mknod", Action: refuse(eperm), Why: devices,
			When: [][]Arg{{masked(1, 0o170000, 0o020000)}, {masked(1, 0o170000, 0o060000)}},
		},
		{
			Call: "mknodat", Action: refuse(eperm), Why: devices,
			When: [][]Arg{{masked(2, 0o170000, 0o020000)}, {masked(2, 0o170000, 0o060000)}},
		},
		{
			Call: "seccomp", Action: refuse(eperm), When: [][]Arg{{is32(0, 1), masked(1, 1<<3, 1<<3)}},
			Why: "a guest's own supervisor could block other processes and hide calls from the host's supervisor",
		},
	}
}

// debugging comes before all other groups in the profile debug.
func debugging() []Group {
	return []Group{group(Action{Kind: Allow}, "debugging",
		"inspect another process of the same command; Landlock refuses any other",
		"ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp")}
}

// shared comes before all other groups in the profile shared.
func shared(allow []Group) []Group {
	return []Group{
		group(Action{Kind: Allow}, "connected sockets",
			"a socket pair reaches nobody else; the tool-call descriptor is one end of one", `
			socketpair sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername getsockopt
			setsockopt`),
		{
			Name: "shared with the host", Action: refuse(eperm),
			Why: "without namespaces, a guest would reach the host's sockets, queues and shared memory " +
				"(docker.sock, D-Bus, CVE-2020-15257)",
			Calls: slices.Concat(find(allow, "sockets"), find(allow, "System V and POSIX IPC")),
		},
		group(refuse(eperm), "watching files",
			"Landlock does not check it: a watch would reveal the names of files created in a directory",
			"inotify_add_watch fanotify_mark"),
		group(refuse(eperm), "attributes by path",
			"Landlock does not check them: a guest could make the user's private files world-readable. "+
				"Attributes can still be changed by descriptor, because Landlock checks what is opened", `
			chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat file_setattr setxattr lsetxattr
			setxattrat removexattr lremovexattr removexattrat`),
	}
}

// sharedRefusals keep a guest, which runs as the same user, from processes of the
// host: these calls are refused for any process but the calling one.
func sharedRefusals() (list []Refusal) {
	const why = "Landlock does not check it, and a pid reaches processes of the host"
	for _, call := range words("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr") {
		list = append(list, Refusal{Call: call, Why: why, Action: refuse(eperm), When: anyBit(0, 0xffffffff)})
	}
	return append(list,
		Refusal{
			Call: "setpriority", Action: refuse(eperm), Why: why,
			When: append(anyBit(1, 0xffffffff), []Arg{is32(0, 2 /* PRIO_USER */)}),
		},
		Refusal{
			Call: "ioprio_set", Action: refuse(eperm), Why: why,
			When: append(anyBit(1, 0xffffffff), []Arg{is32(0, 3 /* IOPRIO_WHO_USER */)}),
		},
		Refusal{
			Call: "utimensat", Action: refuse(eperm), Why: "sets attributes by path, which Landlock does not check",
			When: [][]Arg{{{Index: 1, Value: 0, Op: OpGreater}}},
		},
		Refusal{
			Call: "socketpair", Action: refuse(eafnosupport), When: othersOf(1, 0xf, 1, 5),
			Why: "the ends of a datagram pair can send to any address",
		},
	)
}

// strict lists what the profile strict still allows.
func strict() []Group {
	allow := Action{Kind: Allow}
	return []Group{
		group(allow, "files", "read and write the files that the mounts expose", `
			read write readv writev pread64 pwrite64 preadv preadv2 pwritev pwritev2 lseek open openat openat2 creat
			close close_range stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents
			getdents64 readlink readlinkat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat
			mkdir mkdirat rmdir chmod fchmod fchmodat fchmodat2 utimensat futimesat utime utimes umask truncate
			ftruncate fallocate fadvise64 sync_file_range fsync fdatasync sendfile copy_file_range splice flock fcntl
			ioctl dup dup2 dup3 pipe pipe2 chdir fchdir getcwd getxattr lgetxattr fgetxattr listxattr llistxattr
			flistxattr`),
		group(allow, "memory", "the program's own memory", `
			brk mmap munmap mprotect mremap msync madvise mincore mlock munlock pkey_alloc pkey_free pkey_mprotect
			membarrier map_shadow_stack mseal`),
		group(allow, "processes", "start and end processes and threads", `
			clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid set_tid_address
			getpgid setpgid getpgrp getsid setsid kill tkill tgkill pidfd_open pidfd_send_signal prctl arch_prctl
			set_robust_list get_robust_list rseq rseq_slice_yield futex futex_waitv futex_wake futex_wait
			futex_requeue getrlimit setrlimit prlimit64 getrusage times restart_syscall getcpu sched_yield
			sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max
			sched_get_priority_min getpriority setpriority`),
		group(allow, "signals", "signals between processes of the sandbox", `
			rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo
			rt_tgsigqueueinfo sigaltstack pause alarm`),
		group(allow, "time", "read clocks and set timers", `
			time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer timer_create
			timer_settime timer_gettime timer_getoverrun timer_delete`),
		group(allow, "waiting", "wait for events on descriptors", `
			select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
			eventfd eventfd2`),
		group(allow, "ids", "query the process's ids",
			"getuid geteuid getgid getegid getresuid getresgid getgroups capget capset"),
		group(allow, "the system", "describe the machine", "uname sysinfo getrandom"),
		group(allow, "the tool-call socket",
			"tool calls use a socket that is already connected; no other can be created",
			"sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt"),
		group(allow, "dropping rights", "programs may confine themselves further",
			"seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
	}
}
