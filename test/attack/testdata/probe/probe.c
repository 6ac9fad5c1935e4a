// probe makes every system call of one entry to the kernel, each in a process
// of its own, with arguments that are all ones, and again with all zeros, so
// that nothing comes of it. It prints a line for each:
//
//	nr arg0 … arg5 answer
//
// with the answer "ok", "errno N", "signal N" for what killed the process,
// "exit" where it ended, or "timeout".
//
//	probe native|x32|i386 first last
//
// or asks for calls with arguments of the caller's choice, seven words each:
//
//	probe native|x32|i386 nr arg0 arg1 arg2 arg3 arg4 arg5 …
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ONES UINT64_MAX
#define X32 0x40000000L

struct shared {
	volatile int answered;
	volatile long result;
	uint64_t args[6];
};

enum entry { NATIVE, I386 };

static inline __attribute__((always_inline)) long call(enum entry entry, long nr, const uint64_t a[6])
{
#if defined(__x86_64__)
	if (entry == I386) {
		struct { uint64_t nr, bx, cx, dx, si, di, bp; } r = {nr, a[0], a[1], a[2], a[3], a[4], a[5]};
		uint64_t *p = &r.nr, result;
		// rbp and rbx are the compiler's, and no call may use the red zone.
		asm volatile("sub $128, %%rsp; push %%rbp; push %%rbx\n\t"
			"mov 8(%1), %%rbx; mov 16(%1), %%rcx; mov 24(%1), %%rdx\n\t"
			"mov 32(%1), %%rsi; mov 40(%1), %%rdi; mov 48(%1), %%rbp; mov 0(%1), %%rax\n\t"
			"int $0x80\n\t"
			"pop %%rbx; pop %%rbp; add $128, %%rsp"
			: "=&a"(result), "+r"(p) : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "memory");
		return (int32_t)result;
	}
	long result;
	register uint64_t r10 asm("r10") = a[3], r8 asm("r8") = a[4], r9 asm("r9") = a[5];
	asm volatile("syscall" : "=a"(result) : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	(void)entry;
	register uint64_t x0 asm("x0") = a[0], x1 asm("x1") = a[1], x2 asm("x2") = a[2], x3 asm("x3") = a[3], x4 asm("x4") = a[4], x5 asm("x5") = a[5];
	register long x8 asm("x8") = nr;
	asm volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory");
	return x0;
#endif
}

// special says which arguments a call gets that would do something with those
// of the pass: the kinds are of interprocess communication, which would be
// created or removed, kill, which would reach others, and sigsuspend with a mask
// that lets nothing in.
enum { PLAIN, ONES_ONLY, ZEROS_ONLY, GET, KILL };

static const struct { long native, i386; int kind; } specials[] = {
	{SYS_kill, 37, KILL},
	{SYS_msgget, 399, GET}, {SYS_shmget, 395, GET}, {SYS_semget, 393, GET},
	{SYS_msgctl, 402, ONES_ONLY}, {SYS_shmctl, 396, ONES_ONLY}, {SYS_semctl, 394, ONES_ONLY},
	{SYS_msgsnd, 400, ONES_ONLY}, {SYS_msgrcv, 401, ONES_ONLY}, {SYS_shmat, 397, ONES_ONLY},
	{SYS_semop, -1, ONES_ONLY}, {SYS_semtimedop, 420, ONES_ONLY}, {-1, 117 /* ipc */, ONES_ONLY},
	{-1, 72 /* sigsuspend */, ZEROS_ONLY},
};

static void arguments(enum entry entry, long nr, uint64_t value, uint64_t a[6])
{
	int kind = PLAIN;
	for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
		if ((entry == I386 ? specials[i].i386 : specials[i].native) == (nr & ~X32))
			kind = specials[i].kind;
	for (int i = 0; i < 6; i++)
		a[i] = kind == PLAIN ? value : kind == ONES_ONLY ? ONES : 0;
	if (kind == KILL)
		a[0] = getpid();
	if (kind == GET)
		a[0] = 0x7e573e57; // a key that nobody has; without a flag to create it
	for (int i = 0; entry == I386 && i < 6; i++)
		a[i] &= UINT32_MAX;
}

static void nothing(int sig) { (void)sig; }

// child makes the call. What blocks is interrupted.
static void child(enum entry entry, long nr, const uint64_t a[6], struct shared *s)
{
	struct sigaction act = {.sa_handler = nothing};
	struct itimerval soon = {.it_value.tv_usec = 100000, .it_interval.tv_usec = 100000};
	pid_t me = getpid();
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	long r = call(entry, nr, a);
	// One that was just made, perhaps on this very stack, goes at once.
	if (r == 0) {
#if defined(__x86_64__)
		long self;
		asm volatile("syscall" : "=a"(self) : "a"(SYS_getpid) : "rcx", "r11", "memory");
		if (self != me)
			asm volatile("syscall" : : "a"(SYS_exit_group), "D"(0L) : "rcx", "r11", "memory");
#else
		if (syscall(SYS_getpid) != me)
			syscall(SYS_exit_group, 0);
#endif
	}
	s->result = r;
	s->answered = 1;
	syscall(SYS_exit_group, 0);
}

// probe asks for one call with arguments, or, where they are NULL, with those
// that are all like value.
static void probe(enum entry entry, long nr, const uint64_t *args, uint64_t value, struct shared *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	*s = (struct shared){0};
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		uint64_t a[6];
		arguments(entry, nr, value, a);
		memcpy(s->args, args ? args : a, sizeof a);
		child(entry, nr, s->args, s);
	}
	struct timespec patience = {.tv_sec = 10}; // nothing needs that long
	int status, ended, late = 0;
	while ((ended = waitpid(pid, &status, WNOHANG)) == 0)
		if (sigtimedwait(&set, NULL, &patience) < 0 && errno == EAGAIN) {
			late = 1;
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			break;
		}
	printf("%ld", nr);
	for (int i = 0; i < 6; i++)
		printf(" %#lx", (unsigned long)s->args[i]);
	if (late)
		printf(" timeout\n");
	else if (s->answered && s->result < 0 && s->result >= -4095)
		printf(" errno %ld\n", -s->result);
	else if (s->answered)
		printf(" ok\n");
	else if (WIFSIGNALED(status))
		printf(" signal %d\n", WTERMSIG(status));
	else
		printf(" exit\n");
}

int main(int argc, char **argv)
{
	if (argc != 4 && (argc < 9 || (argc - 2) % 7))
		return 2;
	enum entry entry = strcmp(argv[1], "i386") ? NATIVE : I386;
	long bit = strcmp(argv[1], "x32") ? 0 : X32;
	// Descriptor 0 is of the same kind everywhere, and nobody else's.
	int p[2];
	if (pipe(p) || dup2(p[0], 0) < 0)
		return 3;
	close(p[0]);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return 4;
	if (argc != 4) {
		for (char **word = argv + 2; *word; word += 7) {
			uint64_t args[6];
			for (int i = 0; i < 6; i++)
				args[i] = strtoul(word[1 + i], NULL, 0);
			probe(entry, strtol(*word, NULL, 0) | bit, args, 0, s);
		}
		return 0;
	}
	for (long nr = atol(argv[2]); nr <= atol(argv[3]); nr++) {
		probe(entry, nr | bit, NULL, ONES, s);
		probe(entry, nr | bit, NULL, 0, s);
	}
	return 0;
}
