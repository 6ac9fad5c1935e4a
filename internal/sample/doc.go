// Package sample measures the processes of one sandbox from outside, for limits
// of memory, CPU time and processes where no cgroup can be had to enforce them.
//
//	s, err := sample.Open(pid1)
//	for {
//		now, err := s.Sample(limits.Memory)
//		if now.Memory > limits.Memory { kill }
//		time.Sleep(sample.Next(now, limits))
//	}
//
// It only looks: what is done about a sandbox is the caller's. It needs Linux
// 5.8 and no privileges beyond those that made the sandbox.
//
// # Which processes
//
// Those in the sandbox's own procfs, which is opened once, at a time when no guest
// runs, so that nothing a guest does changes what is read. Its owner sees all in
// it in spite of hidepid, but for a process that runs a program which its user may
// not read: see Sample.Hidden. Listing it takes 15 µs and does not depend on what else runs
// on the host; the host's own /proc would take 4 µs for each of its processes to
// read, and walks of /proc/PID/task/TID/children miss what forks while they go on.
//
// Without a pid namespace there is only the host's /proc; OpenTree reads who is
// whose child there.
//
// # What it cannot see
//
//   - buffers of pipes (64 KiB each, 64 MiB a user by default) and of sockets (some
//     200 KiB each), so up to RLIMIT_NOFILE times that a process;
//   - descriptors on the way through a socket (SCM_RIGHTS), and memory of memfds that
//     only these hold;
//   - System V shared memory that nobody has attached, and message queues: procfs
//     shows those of who reads it. kernel.shmall bounds the former in the sandbox's
//     IPC namespace;
//   - huge pages, which are from a pool of the host's that has to be set up, and,
//     until the sum is near its limit, what has been swapped out;
//   - slabs: inodes, dentries, structures of processes (some 20 KiB each);
//   - CPU time of a process that starts and ends between two samples, where its parent
//     does not wait for it: pid 1 and who ignores SIGCHLD do not.
//
// Pages of files are not memory here: the kernel can take them back.
package sample
