// What programs ask a kernel for, each part with a line of output that is the
// same everywhere. A part that does not work says where and with which errno.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wrong;

#define WANT(what)                                                            \
	do {                                                                  \
		errno = 0;                                                    \
		if (!(what)) {                                                \
			printf("%s:%d: %s: %s\n", __func__, __LINE__, #what, strerror(errno)); \
			wrong = 1;                                            \
			return;                                               \
		}                                                             \
	} while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int count;

static void *worker(void *arg)
{
	long me = (long)arg;
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		while (count % 4 != me)
			pthread_cond_wait(&turn, &lock);
		count++;
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		WANT(pthread_create(&t[i], NULL, worker, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_join(t[i], NULL) == 0);
	printf("threads %d\n", count);
}

static void *keep(void *arg)
{
	pthread_mutex_lock(arg); // and end with it
	return NULL;
}

static void robust(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	pthread_t t;
	WANT(!pthread_mutexattr_init(&a) && !pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	WANT(!pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT) && !pthread_mutex_init(&m, &a));
	WANT(!pthread_create(&t, NULL, keep, &m) && !pthread_join(t, NULL));
	WANT(pthread_mutex_lock(&m) == EOWNERDEAD);
	printf("robust mutex\n");
}

static void processes(void)
{
	extern char **environ;
	char *argv[] = {"sh", "-c", "exit 7", NULL};
	pid_t pid;
	int status;
	WANT(posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) == 0);
	WANT(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	WANT((pid = fork()) >= 0);
	if (pid == 0)
		abort();
	WANT(setpgid(pid, pid) == 0 || errno == ESRCH);
	WANT(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGABRT);
	siginfo_t info = {0};
	WANT((pid = fork()) >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	int fd = syscall(SYS_pidfd_open, pid, 0);
	WANT(fd >= 0);
	WANT(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
	WANT(waitid(P_PIDFD, fd, &info, WEXITED) == 0);
	printf("processes %d %d\n", info.si_status, prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0));
}

static volatile sig_atomic_t seen;
static volatile int value;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	seen++;
	value = info->si_value.sival_int;
}

static void *stack_fault(void *arg)
{
	(void)arg;
	stack_t s = {.ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ};
	sigaltstack(&s, NULL);
	raise(SIGUSR2);
	return NULL;
}

static void signals(void)
{
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	WANT(sigaction(SIGUSR1, &a, NULL) == 0 && sigaction(SIGUSR2, &a, NULL) == 0);
	WANT(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42}) == 0);
	WANT(seen == 1 && value == 42);
	pthread_t t;
	WANT(!pthread_create(&t, NULL, stack_fault, NULL) && !pthread_join(t, NULL) && seen == 2);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	WANT(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
	timer_t timer;
	WANT(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
	struct itimerspec when = {.it_value.tv_nsec = 1000000};
	WANT(timer_settime(timer, 0, &when, NULL) == 0);
	siginfo_t info;
	WANT(sigwaitinfo(&set, &info) == SIGRTMIN && info.si_value.sival_int == 5);
	WANT(timer_delete(timer) == 0);
	signal(SIGALRM, SIG_DFL);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct itimerval it = {.it_value.tv_usec = 1000};
	WANT(setitimer(ITIMER_REAL, &it, NULL) == 0 && sigwaitinfo(&set, NULL) == SIGALRM);
	printf("signals %d\n", (int)seen);
}

static void descriptors(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	WANT(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	int sfd = signalfd(-1, &set, SFD_CLOEXEC), tfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int efd = eventfd(3, EFD_SEMAPHORE), ep = epoll_create1(EPOLL_CLOEXEC), p[2], left = 3;
	WANT(sfd >= 0 && tfd >= 0 && efd >= 0 && ep >= 0 && pipe2(p, O_CLOEXEC) == 0);
	for (int i = 0, fds[] = {sfd, tfd, efd}; i < 3; i++) {
		struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fds[i]};
		WANT(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e) == 0);
	}
	struct itimerspec when = {.it_value.tv_nsec = 1000000};
	WANT(timerfd_settime(tfd, 0, &when, NULL) == 0 && kill(getpid(), SIGUSR1) == 0);
	while (left > 0) {
		struct epoll_event e[4];
		int n = epoll_wait(ep, e, 4, 10000);
		WANT(n > 0);
		left -= n;
	}
	struct signalfd_siginfo info;
	uint64_t n;
	WANT(read(sfd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
	WANT(read(efd, &n, sizeof n) == sizeof n && n == 1);
	WANT(write(p[1], "x", 1) == 1 && poll(&(struct pollfd){.fd = p[0], .events = POLLIN}, 1, 10000) == 1);
	WANT(syscall(SYS_close_range, ep, ep, 0) == 0 && fcntl(ep, F_GETFD) < 0);
	printf("descriptors\n");
}

static void files(void)
{
	int watch = inotify_init1(IN_CLOEXEC);
	WANT(watch >= 0 && inotify_add_watch(watch, ".", IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO) >= 0);
	int f = open("f", O_RDWR | O_CREAT | O_EXCL, 0644);
	WANT(f >= 0 && write(f, "0123456789", 10) == 10 && fallocate(f, 0, 0, 8192) == 0);
	WANT(flock(f, LOCK_EX) == 0 && fcntl(f, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK}) == 0);
	char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	WANT(m != MAP_FAILED);
	memcpy(m + 4, "mapped", 6);
	WANT(msync(m, 8192, MS_SYNC) == 0 && madvise(m, 8192, MADV_DONTNEED) == 0 && fsync(f) == 0);
	int g = open("g", O_RDWR | O_CREAT, 0600), h = memfd_create("m", MFD_ALLOW_SEALING);
	WANT(g >= 0 && h >= 0);
	WANT(copy_file_range(f, &(off_t){0}, g, NULL, 10, 0) == 10 && sendfile(h, f, &(off_t){0}, 10) == 10);
	WANT(close(g) == 0 && rename("g", "G") == 0 && symlink("G", "link") == 0 && link("G", "hard") == 0);
	WANT(fcntl(h, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0 && write(h, "x", 1) < 0 && errno == EPERM);
	char text[11] = "";
	WANT(pread(h, text, 10, 0) == 10);
	struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
	WANT(syscall(SYS_openat2, AT_FDCWD, "G", &how, sizeof how) >= 0);
	struct statx st;
	WANT(statx(AT_FDCWD, "hard", 0, STATX_NLINK | STATX_BTIME, &st) == 0);
	char buf[4096] __attribute__((aligned(8)));
	int events = 0;
	ssize_t n = read(watch, buf, sizeof buf);
	for (char *p = buf; p < buf + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len)
		events++;
	struct stat links;
	WANT(lstat("link", &links) == 0 && S_ISLNK(links.st_mode));
	printf("files %s, %u links, %d events\n", text, st.stx_nlink, events);
}

static void memory(void)
{
	unsigned char *m = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	WANT(m != MAP_FAILED && mprotect(m, 1 << 20, PROT_READ | PROT_WRITE) == 0);
	memset(m, 7, 1 << 20);
	WANT((m = mremap(m, 1 << 20, 2 << 20, MREMAP_MAYMOVE)) != MAP_FAILED && m[100] == 7);
	WANT(mlock(m, 4096) == 0 && munlock(m, 4096) == 0);
	// As a just-in-time compiler does.
#if defined(__x86_64__)
	static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
#elif defined(__aarch64__)
	static const unsigned char code[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif
	memcpy(m, code, sizeof code);
	WANT(mprotect(m, 4096, PROT_READ | PROT_EXEC) == 0);
	__builtin___clear_cache((char *)m, (char *)m + sizeof code);
	unsigned char random[16] = {0}, zero[16] = {0};
	WANT(getrandom(random, 16, 0) == 16 && memcmp(random, zero, 16) != 0);
	printf("memory %d\n", ((int (*)(void))m)());
}

static void ipc(void)
{
	int shm = shmget(IPC_PRIVATE, 4096, 0600), sem = semget(IPC_PRIVATE, 1, 0600), msg = msgget(IPC_PRIVATE, 0600);
	WANT(shm >= 0 && sem >= 0 && msg >= 0);
	int *shared = shmat(shm, NULL, 0);
	WANT(shared != (void *)-1 && shmctl(shm, IPC_RMID, NULL) == 0);
	sem_t *named = sem_open("/work", O_CREAT | O_EXCL, 0600, 0);
	WANT(named != SEM_FAILED && sem_unlink("/work") == 0);
	pid_t pid = fork();
	WANT(pid >= 0);
	if (pid == 0) {
		struct { long type; char text[4]; } m = {1, "msg"};
		*shared = 99;
		_exit(msgsnd(msg, &m, 4, 0) || semop(sem, &(struct sembuf){0, 1, 0}, 1) || sem_post(named));
	}
	struct { long type; char text[4]; } m;
	int status;
	WANT(msgrcv(msg, &m, 4, 0, 0) == 4 && semop(sem, &(struct sembuf){0, -1, 0}, 1) == 0);
	WANT(sem_wait(named) == 0);
	WANT(waitpid(pid, &status, 0) == pid && status == 0);
	WANT(semctl(sem, 0, IPC_RMID) == 0 && msgctl(msg, IPC_RMID, NULL) == 0);
	printf("ipc %d %s\n", *shared, m.text);
}

static void sockets(void)
{
	int pair[2], sent[1] = {0};
	WANT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 && (sent[0] = open("/dev/null", O_RDWR)) >= 0);
	char control[CMSG_SPACE(sizeof sent)] __attribute__((aligned(8))), byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof sent)};
	memcpy(CMSG_DATA(c), sent, sizeof sent);
	WANT(sendmsg(pair[0], &h, 0) == 1 && recvmsg(pair[1], &h, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&h));
	for (int family = AF_INET; family != 0; family = family == AF_INET ? AF_INET6 : 0) {
		union { struct sockaddr a; struct sockaddr_in in; struct sockaddr_in6 in6; } at = {0};
		socklen_t len = sizeof at;
		at.a.sa_family = family;
		if (family == AF_INET)
			at.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		else
			at.in6.sin6_addr = in6addr_loopback;
		int l = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), s = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (l < 0 && family == AF_INET6)
			continue; // a kernel without
		WANT(bind(l, &at.a, len) == 0 && listen(l, 8) == 0 && getsockname(l, &at.a, &len) == 0);
		WANT(connect(s, &at.a, len) == 0 || errno == EINPROGRESS);
		int a = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		WANT(a >= 0 && send(a, "hello", 5, MSG_NOSIGNAL) == 5 && shutdown(a, SHUT_WR) == 0);
		char text[6] = "";
		WANT(poll(&(struct pollfd){.fd = s, .events = POLLIN}, 1, 10000) == 1 && recv(s, text, 5, MSG_WAITALL) == 5);
		printf("socket %s\n", text);
		close(l), close(s), close(a);
	}
}

static void scheduling(void)
{
	cpu_set_t set;
	struct rlimit r;
	struct timespec t;
	WANT(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0);
	WANT(setpriority(PRIO_PROCESS, 0, 5) == 0 && getpriority(PRIO_PROCESS, 0) == 5);
	WANT(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0);
	WANT(getrlimit(RLIMIT_NOFILE, &r) == 0 && (r.rlim_cur = 64) && setrlimit(RLIMIT_NOFILE, &r) == 0);
	WANT(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000}, NULL) == 0);
	WANT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0 && clock_getres(CLOCK_REALTIME, &t) == 0);
	WANT(prctl(PR_SET_NAME, "work", 0, 0, 0) == 0 && sched_yield() == 0);
	printf("scheduling %d\n", (int)r.rlim_cur);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	threads(), robust(), processes(), signals(), descriptors(), files(), memory(), ipc(), sockets(), scheduling();
	return wrong;
}
