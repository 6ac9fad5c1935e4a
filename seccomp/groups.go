package seccomp

import "slices"

// allowed is what ordinary programs need, after the facts that docker's default
// profile has gathered, less what denied lists.
func allowed() []Group {
	allow := Action{Kind: Allow}
	return []Group{
		{"files", "reading and writing what the mounts show", allow, words(`
			read write readv writev pread64 pwrite64 preadv preadv2 pwritev pwritev2 lseek open openat openat2 creat close close_range
			stat fstat lstat newfstatat statx statfs fstatfs ustat access faccessat faccessat2 getdents getdents64 readlink readlinkat
			rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir mknod mknodat
			chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat umask
			truncate ftruncate fallocate fadvise64 readahead sync syncfs fsync fdatasync sync_file_range
			sendfile copy_file_range splice tee vmsplice flock fcntl ioctl dup dup2 dup3 pipe pipe2 chdir fchdir getcwd
			file_getattr file_setattr cachestat`)},
		{"attributes", "extended attributes of files", allow, words(`
			getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
			getxattrat setxattrat listxattrat removexattrat`)},
		{"memory", "a program's own memory", allow, words(`
			brk mmap munmap mprotect mremap msync madvise process_madvise mincore mlock mlock2 munlock mlockall munlockall remap_file_pages
			pkey_alloc pkey_free pkey_mprotect memfd_create memfd_secret membarrier map_shadow_stack mseal process_mrelease get_mempolicy`)},
		{"processes", "starting and ending processes and threads", allow, words(`
			clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid set_tid_address
			getpgid setpgid getpgrp getsid setsid kill tkill tgkill pidfd_open pidfd_send_signal
			prctl arch_prctl set_thread_area get_thread_area modify_ldt set_robust_list get_robust_list rseq rseq_slice_yield
			futex futex_waitv futex_wake futex_wait futex_requeue getrlimit setrlimit prlimit64 getrusage times unshare personality uprobe uretprobe
			restart_syscall getcpu`)},
		{"scheduling", "within what the limits allow", allow, words(`
			sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_getattr sched_setattr
			sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set`)},
		{"signals", "between processes of the sandbox", allow, words(`
			rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack
			signalfd signalfd4 pause alarm`)},
		{"time", "reading clocks, timers", allow, words(`
			time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer
			timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime`)},
		{"waiting", "for descriptors", allow, words(`
			select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 epoll_ctl_old epoll_wait_old
			eventfd eventfd2 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_mark
			io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy`)},
		{"ids", "the kernel refuses what would gain anything", allow, words(`
			getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid
			setfsuid setfsgid setgroups capget capset`)},
		{"the system", "what kind of machine this is", allow, words("uname sysinfo getrandom")},
		{"giving up rights", "programs may confine themselves further", allow, words("seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self")},
		{"sockets", "the sandbox's network has loopback only, and sockets in files are as reachable as the files", allow, words(`
			socket socketpair bind listen accept accept4 connect sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown
			getsockname getpeername getsockopt setsockopt`)},
		{"System V and POSIX IPC", "the sandbox has an IPC namespace of its own", allow, words(`
			shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
			mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`)},
	}
}

// denied is what no guest needs, by what it would be good for.
func denied() []Group {
	kill := Action{Kind: KillProcess}
	return []Group{
		{"clone3", "its flags are in memory, where no filter can look, so it could make namespaces; C libraries go on with clone", refuse(enosys), words("clone3")},
		{"io_uring", "does what other calls do past every filter, and 60 % of the exploits handed in to Google's kCTF by 2023 went through it; libraries go on without", refuse(enosys), words("io_uring_setup io_uring_enter io_uring_register")},
		{"namespaces and mounts", "changing what there is to see; kernel code behind nested user namespaces and filesystem contexts (CVE-2022-0185, CVE-2023-0386, CVE-2022-0492)", refuse(eperm), words(`
			mount umount2 pivot_root chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr
			statmount listmount listns`)},
		{"keyrings", "keys are the user's, not the sandbox's (CVE-2016-0728)", refuse(eperm), words("add_key request_key keyctl")},
		{"looking into processes", "reading or driving another's memory and descriptors; the profile debug has them", refuse(eperm), words("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp")},
		{"programs in the kernel", "bpf and perf run or record kernel code, userfaultfd holds the kernel at chosen moments: tools of most exploits", refuse(eperm), words("bpf perf_event_open userfaultfd")},
		{"files by handle", "opens files by number, outside what the mounts show (the attack known as shocker)", refuse(eperm), words("open_by_handle_at name_to_handle_at")},
		{"watching all files", "fanotify sees a whole filesystem", refuse(eperm), words("fanotify_init")},
		{"quotas", "are the host's", refuse(eperm), words("quotactl quotactl_fd")},
		{"memory placement", "moves pages between nodes, which slows neighbours down", refuse(eperm), words("mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages")},
		{"the machine's settings", "clock, names, log, terminals", refuse(eperm), words(`
			settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup
			lsm_get_self_attr lsm_set_self_attr lsm_list_modules`)},
		{"the machine itself", "modules, kexec, reboot, swap, accounting, ports: only the host's root has them, and no program tries them by mistake", kill, words(`
			init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load reboot
			swapon swapoff acct iopl ioperm`)},
		{"gone", "removed or never there; a program that calls them is probing", kill, words(`
			_sysctl sysfs uselib nfsservctl lookup_dcookie afs_syscall tuxcall security getpmsg putpmsg vserver`)},
	}
}

// The numbers of the kernel's headers.
const (
	newNamespaces = 0x7e020000 // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
	cloneParent   = 0x8000
	newTime       = 0x80 // CLONE_NEWTIME, which clone has no room for

	tiocSTI, tiocLINUX, tiocSETD = 0x5412, 0x541c, 0x5423

	afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16
	tcp, udp, udpLite, icmp, icmp6     = 6, 17, 136, 1, 58
	stream, datagram, raw              = 1, 2, 3 // types of sockets
)

// internet are the protocols for which sockets are made; 0 is the default one.
var internet = []uint64{0, icmp, tcp, udp, icmp6}

func family(f uint64) Arg { return Arg{Index: 0, Value: f, Op: OpEqual} }

// rareTypes are those that stand for a transport by themselves: SCTP, DCCP, RDM.
func rareTypes(f uint64) (when [][]Arg) {
	for _, args := range othersOf(1, 0xf, stream, datagram, raw) {
		when = append(when, append(args, family(f)))
	}
	return when
}

const devices = "devices; the kernel lets anyone make one of number 0:0, a whiteout, and so does Landlock in some (6.1.192, 6.12.117)"

// refusals are arguments with which allowed calls are refused.
func refusals() []Refusal {
	return []Refusal{
		{Call: "clone", Why: "namespaces are made outside", Action: refuse(eperm), When: anyBit(0, newNamespaces)},
		{Call: "clone", Why: "CLONE_PARENT makes a child of the parent's, and that of a command is the host process: a dead child that it does not know of would keep the sandbox from ending", Action: refuse(eperm), When: anyBit(0, cloneParent)},
		{Call: "unshare", Why: "namespaces are made outside", Action: refuse(eperm), When: anyBit(0, newNamespaces|newTime)},
		{Call: "ioctl", Why: "types into a terminal or pastes into it (CVE-2017-5226), or loads a line discipline (CVE-2023-6546)", Action: refuse(eperm),
			When: [][]Arg{{is32(1, tiocSTI)}, {is32(1, tiocLINUX)}, {is32(1, tiocSETD)}}},
		{Call: "personality", Why: "switches off protections: memory readable as code, fixed addresses of old layouts. Left are the question, ADDR_NO_RANDOMIZE, which debuggers use, and harmless names", Action: refuse(eperm),
			Unless: [][]Arg{{is32(0, 0xffffffff)}, {is32(0, 0)}, {is32(0, 0x8)}, {is32(0, 0x20000)}, {is32(0, 0x20008)}, {is32(0, 0x40000)}}},
		{Call: "socket", Why: "kernel code that ordinary programs never use: AF_ALG (CVE-2026-31431), AF_KEY, AF_PACKET, AF_VSOCK, AF_RXRPC (CVE-2026-43500), AF_BLUETOOTH, AF_CAN, AF_TIPC, …", Action: refuse(eafnosupport),
			When: others(0, []uint64{afUnix, afInet, afInet6, afNetlink})},
		{Call: "socket", Why: "netlink other than routes: netfilter (CVE-2024-1086), xfrm (CVE-2026-43284), audit, kernel events", Action: refuse(eprotonosupport),
			When: others(2, []uint64{0}, family(afNetlink))},
		{Call: "socket", Why: "transports that ordinary programs do not use: SCTP, DCCP, UDP-Lite, MPTCP, L2TP", Action: refuse(eprotonosupport),
			When: slices.Concat(others(2, internet, family(afInet)), others(2, internet, family(afInet6)), rareTypes(afInet), rareTypes(afInet6))},
		{Call: "socketpair", Why: "only Unix sockets come in pairs", Action: refuse(eafnosupport), When: others(0, []uint64{afUnix})},
		{Call: "setsockopt", Why: "upper protocols on TCP: espintcp (CVE-2026-46300), smc, kernel TLS; libraries go on without", Action: refuse(enoprotoopt),
			When: [][]Arg{{is32(1, tcp), is32(2, 31)}}},
		{Call: "setsockopt", Why: "IPsec and L2TP in UDP", Action: refuse(enoprotoopt), When: [][]Arg{{is32(1, udp), is32(2, 100)}, {is32(1, udpLite), is32(2, 100)}}},
		{Call: "mknod", Why: devices, Action: refuse(eperm), When: [][]Arg{{masked(1, 0o170000, 0o020000)}, {masked(1, 0o170000, 0o060000)}}},
		{Call: "mknodat", Why: devices, Action: refuse(eperm), When: [][]Arg{{masked(2, 0o170000, 0o020000)}, {masked(2, 0o170000, 0o060000)}}},
		{Call: "seccomp", Why: "a supervisor of its own could hold others back, and hide from the host's", Action: refuse(eperm),
			When: [][]Arg{{is32(0, 1), masked(1, 1<<3, 1<<3)}}},
	}
}

// debugging is what the profile debug decides before others do.
func debugging() []Group {
	return []Group{{"debugging", "looking into another process of the same command; Landlock refuses it for others", Action{Kind: Allow},
		words("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp")}}
}

// shared is what the profile of that name decides before others do.
func shared(allow []Group) []Group {
	return []Group{
		{"connected sockets", "pairs lead to nobody else; the descriptor for tool calls is one", Action{Kind: Allow}, words(`
			socketpair sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername getsockopt setsockopt`)},
		{"shared with the host", "without namespaces of its own a guest would meet the host's sockets, queues and shared memory (docker.sock, D-Bus, CVE-2020-15257)", refuse(eperm),
			slices.Concat(find(allow, "sockets"), find(allow, "System V and POSIX IPC"))},
		{"watching files", "Landlock does not look at it: the names of what is made in a directory would tell", refuse(eperm), words("inotify_add_watch fanotify_mark")},
		{"attributes by path", "Landlock does not look at them: a guest could make the user's private files readable to all. By descriptor they can be changed, since it looks at what is opened", refuse(eperm), words(`
			chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat file_setattr
			setxattr lsetxattr setxattrat removexattr lremovexattr removexattrat`)},
	}
}

// sharedRefusals keep a guest, which runs as the same user, from processes of the
// host: these calls are refused for any process but the calling one.
func sharedRefusals() (list []Refusal) {
	const why = "Landlock does not look at it, and by number it reaches processes of the host"
	for _, call := range words("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr") {
		list = append(list, Refusal{Call: call, Why: why, Action: refuse(eperm), When: anyBit(0, 0xffffffff)})
	}
	return append(list,
		Refusal{Call: "setpriority", Why: why, Action: refuse(eperm), When: append(anyBit(1, 0xffffffff), []Arg{is32(0, 2 /* PRIO_USER */)})},
		Refusal{Call: "ioprio_set", Why: why, Action: refuse(eperm), When: append(anyBit(1, 0xffffffff), []Arg{is32(0, 3 /* IOPRIO_WHO_USER */)})},
		Refusal{Call: "utimensat", Why: "as for attributes by path", Action: refuse(eperm), When: [][]Arg{{{Index: 1, Value: 0, Op: OpGreater}}}},
		Refusal{Call: "socketpair", Why: "a pair of datagram sockets can be addressed to anyone", Action: refuse(eafnosupport), When: othersOf(1, 0xf, 1, 5)},
	)
}

// strict is the profile of that name: what remains allowed.
func strict() []Group {
	allow := Action{Kind: Allow}
	return []Group{
		{"files", "reading and writing what the mounts show", allow, words(`
			read write readv writev pread64 pwrite64 preadv preadv2 pwritev pwritev2 lseek open openat openat2 creat close close_range
			stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 readlink readlinkat
			rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir
			chmod fchmod fchmodat fchmodat2 utimensat futimesat utime utimes umask truncate ftruncate fallocate fadvise64 sync_file_range
			fsync fdatasync sendfile copy_file_range splice flock fcntl ioctl dup dup2 dup3 pipe pipe2 chdir fchdir getcwd
			getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr`)},
		{"memory", "a program's own memory", allow, words(`
			brk mmap munmap mprotect mremap msync madvise mincore mlock munlock pkey_alloc pkey_free pkey_mprotect membarrier map_shadow_stack mseal`)},
		{"processes", "starting and ending processes and threads", allow, words(`
			clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid set_tid_address
			getpgid setpgid getpgrp getsid setsid kill tkill tgkill pidfd_open pidfd_send_signal
			prctl arch_prctl set_robust_list get_robust_list rseq rseq_slice_yield futex futex_waitv futex_wake futex_wait futex_requeue
			getrlimit setrlimit prlimit64 getrusage times restart_syscall getcpu
			sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min
			getpriority setpriority`)},
		{"signals", "between processes of the sandbox", allow, words(`
			rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pause alarm`)},
		{"time", "reading clocks, timers", allow, words(`
			time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer
			timer_create timer_settime timer_gettime timer_getoverrun timer_delete`)},
		{"waiting", "for descriptors", allow, words(`
			select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2`)},
		{"ids", "who it is", allow, words("getuid geteuid getgid getegid getresuid getresgid getgroups capget capset")},
		{"the system", "what kind of machine this is", allow, words("uname sysinfo getrandom")},
		{"the descriptor it was given", "tool calls go over a connected socket; no other can be made", allow, words("sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt")},
		{"giving up rights", "programs may confine themselves further", allow, words("seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self")},
	}
}
