#include "go_asm.h"
#include "textflag.h"

// func spawn(nr, arg0, arg1 uintptr, first *step, rep *report) (pid uintptr)
//
// nr is clone3 or clone. The parent returns from it as from any call. The child
// shares its memory and its stack pointer, so it must not touch the stack: it uses
// R12 (the step) and R13 (the report), which the kernel keeps across SYSCALL.
TEXT ·spawn(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ	nr+0(FP), AX
	MOVQ	arg0+8(FP), DI
	MOVQ	arg1+16(FP), SI
	MOVQ	first+24(FP), R12
	MOVQ	rep+32(FP), R13
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYSCALL
	TESTQ	AX, AX
	JEQ	run
	MOVQ	AX, pid+40(FP)
	RET

run:
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, step_tsc(R12)
	MOVQ	step_kind(R12), BX
	MOVQ	(step_args+0)(R12), DI
	MOVQ	(step_args+8)(R12), SI
	MOVQ	(step_args+16)(R12), DX
	MOVQ	(step_args+24)(R12), R10
	MOVQ	(step_args+32)(R12), R8
	MOVQ	(step_args+40)(R12), R9
	BTQ	$(const_kindRef+0), BX
	JCC	2(PC)
	MOVQ	(DI), DI
	BTQ	$(const_kindRef+1), BX
	JCC	2(PC)
	MOVQ	(SI), SI
	BTQ	$(const_kindRef+2), BX
	JCC	2(PC)
	MOVQ	(DX), DX
	BTQ	$(const_kindRef+3), BX
	JCC	2(PC)
	MOVQ	(R10), R10
	BTQ	$(const_kindRef+4), BX
	JCC	2(PC)
	MOVQ	(R8), R8
	BTQ	$(const_kindRef+5), BX
	JCC	2(PC)
	MOVQ	(R9), R9
	MOVQ	step_nr(R12), AX
	SYSCALL
	CMPQ	AX, $-4095
	JCC	failed // unsigned: -4095 to -1 are errnos

	TESTQ	$const_kindClone, BX
	JEQ	store
	TESTQ	AX, AX
	JNE	store
	MOVQ	step_child(R12), R12 // a new process continues with its own program
	JMP	run

store:
	MOVQ	step_dst(R12), CX
	TESTQ	CX, CX
	JEQ	next
	MOVQ	AX, (CX)

next:
	ADDQ	$step__size, R12
	JMP	run

failed:
	NEGQ	AX
	MOVQ	AX, step_errno(R12)
	TESTQ	$const_kindTry, BX
	JNE	next
	MOVQ	R12, report_step(R13)
	MOVQ	AX, report_errno(R13)
	MOVQ	$const_sysExitGroup, AX
	MOVQ	$1, DI
	SYSCALL
	UNDEF

// pause is pid 1 of a sandbox. It is never called here: its bytes are copied into a
// separate ELF image, so it must not refer to any address. It need not reap its
// children: its launch program ignores SIGCHLD, which execve keeps, so the kernel
// reaps them.
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0
	// prctl(PR_SET_DUMPABLE, 0): guests must not see it in /proc or trace it.
	MOVQ	$157, AX
	MOVQ	$4, DI
	XORL	SI, SI
	SYSCALL

wait:
	// read(0): nobody writes to this pipe, so the call returns when its last
	// writing end is gone, which means that the host process has died.
	XORL	AX, AX
	XORL	DI, DI
	LEAQ	-64(SP), SI
	MOVQ	$1, DX
	SYSCALL
	CMPQ	AX, $-4 // EINTR
	JEQ	wait
	MOVQ	$const_sysExitGroup, AX
	XORL	DI, DI
	SYSCALL
	UNDEF
	LONG	$const_imageEnd

// gate is the program that a command executes first; see Gate. Its bytes are copied
// into a separate ELF image, like those of pause.
//
// On entry SP points to argc, argv, NULL, envp. argv is: the report descriptor as one
// character; a file and the text to write into it; the paths to try; an empty string;
// the command's argv. envp is the cookie and the command's environment.
//
// It has one capability. Guests have none, so they can neither see nor trace it. It
// drops the capability before the execve.
TEXT ·gate(SB), NOSPLIT|NOFRAME, $0
	MOVQ	(SP), R12
	LEAQ	8(SP), R13        // argv
	LEAQ	8(R13)(R12*8), R14 // envp

	MOVQ	(R13), BX
	MOVBQZX	(BX), R15 // report descriptor
	MOVQ	(R14), BX
	MOVQ	(BX), R12 // cookie
	ADDQ	$8, R14

	// openat(AT_FDCWD, argv[1], O_WRONLY|O_CLOEXEC), write(argv[2], 4), close.
	// First, while it is dumpable: otherwise the file would be root's. It may fail.
	MOVL	$257, AX
	MOVQ	$-100, DI
	MOVQ	8(R13), SI
	MOVL	$0x80001, DX
	XORL	R10, R10
	SYSCALL
	TESTQ	AX, AX
	JLT	hide
	MOVQ	AX, BX
	MOVL	$1, AX
	MOVQ	BX, DI
	MOVQ	16(R13), SI
	MOVL	$4, DX
	SYSCALL
	MOVL	$3, AX
	MOVQ	BX, DI
	SYSCALL

hide:
	// prctl(PR_SET_DUMPABLE, 0): no dump until it is the guest's program; execve
	// sets the flag again.
	MOVL	$157, AX
	MOVL	$4, DI
	XORL	SI, SI
	SYSCALL

	// capset({_LINUX_CAPABILITY_VERSION_3, 0}, {}): none in any set.
	PUSHQ	$0
	PUSHQ	$0
	PUSHQ	$0
	MOVL	$126, AX
	MOVQ	SP, SI
	PUSHQ	$0x20080522
	MOVQ	SP, DI
	SYSCALL
	TESTQ	AX, AX
	JNE	dead // the guest's program would keep the capability

	ADDQ	$24, R13
	MOVQ	R13, BX

separator:
	MOVQ	(BX), AX
	ADDQ	$8, BX
	CMPB	(AX), $0
	JNE	separator // then BX is the command's argv

	// fcntl(report, F_SETFD, FD_CLOEXEC): the reader sees the execve as end of file.
	MOVL	$72, AX
	MOVQ	R15, DI
	MOVL	$2, SI
	MOVL	$1, DX
	SYSCALL

	// rt_sigprocmask(SIG_SETMASK, none): only here, where a signal finds nothing of
	// the host's to dump or kill.
	PUSHQ	$0
	MOVL	$14, AX
	MOVL	$2, DI
	MOVQ	SP, SI
	XORL	DX, DX
	MOVL	$8, R10
	SYSCALL

	MOVQ	$-2, R9 // ENOENT, unless a worse error follows

try:
	MOVQ	(R13), DI
	ADDQ	$8, R13
	CMPB	(DI), $0
	JEQ	refused
	MOVQ	BX, SI
	MOVQ	R14, DX
	MOVQ	R12, R10
	MOVL	$59, AX // execve
	SYSCALL
	CMPQ	AX, $-2 // ENOENT
	JEQ	try
	CMPQ	AX, $-20 // ENOTDIR
	JEQ	try
	MOVQ	AX, R9
	CMPQ	AX, $-13 // EACCES: another directory may have a better one
	JEQ	try

refused:
	NEGQ	R9
	PUSHQ	R9
	MOVL	$1, AX // write(report, errno)
	MOVQ	R15, DI
	MOVQ	SP, SI
	MOVL	$8, DX
	SYSCALL

dead:
	MOVQ	$const_sysExitGroup, AX
	MOVL	$127, DI
	SYSCALL
	UNDEF
	LONG	$const_imageEnd

// reaper is the parent of a command without a pid namespace; see Reaper. All signals
// are blocked in it.
TEXT ·reaper(SB), NOSPLIT|NOFRAME, $0
	SUBQ	$256, SP
	MOVQ	$157, AX // prctl(PR_SET_DUMPABLE, 0)
	MOVQ	$4, DI
	XORL	SI, SI
	SYSCALL

	// kill(getppid(), 0) must be refused: only then does kill(-1) stay within the
	// domain.
	MOVQ	$110, AX
	SYSCALL
	MOVQ	AX, DI
	MOVQ	$62, AX
	XORL	SI, SI
	SYSCALL
	CMPQ	AX, $-1 // EPERM
	JNE	unscoped

	// read(0, &pid, 8): the command's pid, into R12. Nothing is reaped before, so
	// the pid is not reused.
	XORL	AX, AX
	XORL	DI, DI
	MOVQ	SP, SI
	MOVQ	$8, DX
	SYSCALL
	CMPQ	AX, $8
	JNE	end
	MOVQ	(SP), R12

loop:
	// rt_sigtimedwait(SIGTERM, 0): first, or processes that keep dying would
	// delay the end for ever.
	MOVQ	$0x4000, AX
	MOVQ	AX, 200(SP)
	MOVQ	$0, 208(SP)
	MOVQ	$0, 216(SP)
	MOVQ	$128, AX
	LEAQ	200(SP), DI
	XORL	SI, SI
	LEAQ	208(SP), DX
	MOVQ	$8, R10
	SYSCALL
	CMPQ	AX, $15
	JEQ	end
	MOVQ	$61, AX // wait4(-1, &status, WNOHANG|__WALL, &rusage)
	MOVQ	$-1, DI
	MOVQ	SP, SI
	MOVQ	$0x40000001, DX
	LEAQ	8(SP), R10
	SYSCALL
	TESTQ	AX, AX
	JEQ	sleep
	JLT	done // ECHILD: nothing is left
	CMPQ	AX, R12
	JNE	loop
	MOVQ	$1, AX // write(1, status and rusage)
	MOVQ	$1, DI
	MOVQ	SP, SI
	MOVQ	$152, DX
	SYSCALL
	MOVQ	$3, AX // close(1)
	MOVQ	$1, DI
	SYSCALL
	JMP	loop

sleep:
	MOVQ	$0x14000, AX // SIGCHLD, SIGTERM
	MOVQ	AX, 200(SP)
	MOVQ	$128, AX // rt_sigtimedwait
	LEAQ	200(SP), DI
	XORL	SI, SI
	XORL	DX, DX
	MOVQ	$8, R10
	SYSCALL
	CMPQ	AX, $15
	JNE	loop

end:
	MOVQ	$62, AX // kill(-1, SIGKILL)
	MOVQ	$-1, DI
	MOVQ	$9, SI
	SYSCALL

collect:
	MOVQ	$61, AX // wait4(-1, &status, __WALL, &rusage)
	MOVQ	$-1, DI
	MOVQ	SP, SI
	MOVQ	$0x40000000, DX
	LEAQ	8(SP), R10
	SYSCALL
	TESTQ	AX, AX
	JLT	done
	CMPQ	AX, R12
	JNE	collect
	MOVQ	$1, AX // write(1, status and rusage)
	MOVQ	$1, DI
	MOVQ	SP, SI
	MOVQ	$152, DX
	SYSCALL
	JMP	collect

done:
	MOVQ	$const_sysExitGroup, AX
	XORL	DI, DI
	SYSCALL

unscoped:
	MOVQ	$const_sysExitGroup, AX
	MOVQ	$3, DI
	SYSCALL
	UNDEF
	LONG	$const_imageEnd

// func reaperCode() unsafe.Pointer
TEXT ·reaperCode(SB), NOSPLIT, $0-8
	LEAQ	·reaper(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func gateCode() unsafe.Pointer
TEXT ·gateCode(SB), NOSPLIT, $0-8
	LEAQ	·gate(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func pauseCode() unsafe.Pointer
TEXT ·pauseCode(SB), NOSPLIT, $0-8
	LEAQ	·pause(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET
