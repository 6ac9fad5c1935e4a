#include "go_asm.h"
#include "textflag.h"

// func spawn(args *cloneArgs, first *step, rep *report) (pid uintptr)
//
// The parent returns from clone3 as from any call. The child shares its memory
// and its stack pointer, so it must not touch the stack: it has R12 (the step)
// and R13 (the report), which the kernel keeps across SYSCALL.
TEXT ·spawn(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ	args+0(FP), DI
	MOVQ	first+8(FP), R12
	MOVQ	rep+16(FP), R13
	MOVQ	$cloneArgs__size, SI
	MOVQ	$const_sysClone3, AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	run
	MOVQ	AX, pid+24(FP)
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
	MOVQ	step_child(R12), R12 // a new process: on with its own program
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

// pause is pid 1 of a sandbox. It is never called here: its bytes are copied
// into an ELF image of their own, so it must not refer to any address.
// Its children need no reaping: its launch program ignores SIGCHLD, which
// execve keeps, and then the kernel reaps them.
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0
	// prctl(PR_SET_DUMPABLE, 0): not to be seen in /proc or traced from inside.
	MOVQ	$157, AX
	MOVQ	$4, DI
	XORL	SI, SI
	SYSCALL

wait:
	// read(0): a pipe that nobody writes to, so it returns when its last
	// writing end is gone, which is when the host process has died.
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

// gate is what a command executes first; see Gate. Its bytes are copied into an
// ELF image of their own, as those of pause are.
//
// On entry SP points to argc, argv, NULL, envp. argv is: the report descriptor
// as one character; the paths to try; an empty string; the command's argv.
TEXT ·gate(SB), NOSPLIT|NOFRAME, $0
	MOVQ	(SP), R12
	LEAQ	8(SP), R13        // argv
	LEAQ	8(R13)(R12*8), R14 // envp

	// prctl(PR_SET_DUMPABLE, 0): not to be seen, traced or dumped until it is
	// the guest's program; execve sets it again.
	MOVQ	$157, AX
	MOVQ	$4, DI
	XORL	SI, SI
	SYSCALL

	MOVQ	(R13), R15
	MOVBQZX	(R15), R15 // report descriptor
	ADDQ	$8, R13
	MOVQ	R13, BX

separator:
	MOVQ	(BX), AX
	ADDQ	$8, BX
	CMPB	(AX), $0
	JNE	separator // then BX is the command's argv

	// fcntl(report, F_SETFD, FD_CLOEXEC): its end tells of the execve to come.
	MOVQ	$72, AX
	MOVQ	R15, DI
	MOVQ	$2, SI
	MOVQ	$1, DX
	SYSCALL

	// rt_sigprocmask(SIG_SETMASK, none): here, where a signal finds nothing of
	// the host's to dump or kill.
	PUSHQ	$0
	MOVQ	$14, AX
	MOVQ	$2, DI
	MOVQ	SP, SI
	XORL	DX, DX
	MOVQ	$8, R10
	SYSCALL

	MOVQ	$-2, R9 // ENOENT, unless something worse is met

try:
	MOVQ	(R13), DI
	ADDQ	$8, R13
	CMPB	(DI), $0
	JEQ	refused
	MOVQ	BX, SI
	MOVQ	R14, DX
	MOVQ	$59, AX // execve
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
	MOVQ	$1, AX // write(report, errno)
	MOVQ	R15, DI
	MOVQ	SP, SI
	MOVQ	$8, DX
	SYSCALL
	MOVQ	$const_sysExitGroup, AX
	MOVQ	$127, DI
	SYSCALL
	UNDEF
	LONG	$const_imageEnd

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
