// Package sample measures the processes of one sandbox from outside, to enforce limits of
// memory, CPU time and processes where no cgroup is available.
//
//	s, err := sample.Open(pid1)
//	for {
//		now, err := s.Sample(limits.Memory)
//		if now.Memory > limits.Memory { kill }
//		time.Sleep(sample.Next(now, limits))
//	}
//
// It only measures; the caller acts. It needs Linux 5.8 and no privileges beyond those
// that created the sandbox.
//
// # Which processes
//
// A Sampler reads the sandbox's own procfs. It opens it once, before any guest runs, so
// that a guest cannot change what is read. The sandbox's owner sees all processes there
// in spite of hidepid, except those that run a program which the user may not read: see
// Sample.Hidden. Listing it takes 15 µs, whatever else runs on the host. The host's /proc
// would take 4 µs for each process of the host, and walking /proc/PID/task/TID/children
// misses processes that fork during the walk.
//
// Without a pid namespace there is only the host's /proc, in which OpenTree follows the
// parents of processes.
//
// # What it cannot see
//
//   - buffers of pipes (64 KiB each, by default 64 MiB a user) and of sockets (some 200
//     KiB each), for each process up to RLIMIT_NOFILE times as much;
//   - descriptors in transit through a socket (SCM_RIGHTS), and the memory of memfds that
//     only these hold;
//   - unattached System V shared memory, and message queues: procfs shows those of the
//     reader's IPC namespace. kernel.shmall bounds the former in the sandbox's;
//   - huge pages, which come from a pool that the host must set up; and swapped memory,
//     until the sum is near the limit;
//   - slabs: inodes, dentries, process structures (some 20 KiB each);
//   - CPU time of a process that starts and ends between two samples and whose parent
//     does not wait for it: pid 1, and processes that ignore SIGCHLD.
//
// Page cache is not counted: the kernel can reclaim it.
package sample
