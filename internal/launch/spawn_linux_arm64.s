#include "go_asm.h"
#include "textflag.h"

// func spawn(nr, arg0, arg1 uintptr, first *step, rep *report) (pid uintptr)
//
// As for amd64: the child must not touch the stack. It uses R19 (the step), R20 (the
// report) and R21 (the kind), which the kernel keeps across SVC.
TEXT ·spawn(SB), NOSPLIT|NOFRAME, $0-48
	MOVD	nr+0(FP), R8
	MOVD	arg0+8(FP), R0
	MOVD	arg1+16(FP), R1
	MOVD	first+24(FP), R19
	MOVD	rep+32(FP), R20
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	CBZ	R0, run
	MOVD	R0, pid+40(FP)
	RET

run:
	MRS	CNTVCT_EL0, R0
	MOVD	R0, step_tsc(R19)
	MOVD	step_kind(R19), R21
	MOVD	(step_args+0)(R19), R0
	MOVD	(step_args+8)(R19), R1
	MOVD	(step_args+16)(R19), R2
	MOVD	(step_args+24)(R19), R3
	MOVD	(step_args+32)(R19), R4
	MOVD	(step_args+40)(R19), R5
	TBZ	$(const_kindRef+0), R21, 2(PC)
	MOVD	(R0), R0
	TBZ	$(const_kindRef+1), R21, 2(PC)
	MOVD	(R1), R1
	TBZ	$(const_kindRef+2), R21, 2(PC)
	MOVD	(R2), R2
	TBZ	$(const_kindRef+3), R21, 2(PC)
	MOVD	(R3), R3
	TBZ	$(const_kindRef+4), R21, 2(PC)
	MOVD	(R4), R4
	TBZ	$(const_kindRef+5), R21, 2(PC)
	MOVD	(R5), R5
	MOVD	step_nr(R19), R8
	SVC
	CMN	$4095, R0
	BCS	failed // unsigned: -4095 to -1 are errnos

	TST	$const_kindClone, R21
	BEQ	store
	CBNZ	R0, store
	MOVD	step_child(R19), R19 // a new process continues with its own program
	B	run

store:
	MOVD	step_dst(R19), R1
	CBZ	R1, next
	MOVD	R0, (R1)

next:
	ADD	$step__size, R19
	B	run

failed:
	NEG	R0, R0
	MOVD	R0, step_errno(R19)
	TST	$const_kindTry, R21
	BNE	next
	MOVD	R19, report_step(R20)
	MOVD	R0, report_errno(R20)
	MOVD	$const_sysExitGroup, R8
	MOVD	$1, R0
	SVC
	UNDEF

// pause is pid 1 of a sandbox; see spawn_linux_amd64.s.
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0
	MOVD	$167, R8 // prctl(PR_SET_DUMPABLE, 0)
	MOVD	$4, R0
	MOVD	$0, R1
	SVC

wait:
	MOVD	$63, R8 // read(0)
	MOVD	$0, R0
	SUB	$64, RSP, R1
	MOVD	$1, R2
	SVC
	CMN	$4, R0 // EINTR
	BEQ	wait
	MOVD	$const_sysExitGroup, R8
	MOVD	$0, R0
	SVC
	UNDEF
	WORD	$const_imageEnd

// gate is the program that a command executes first; see spawn_linux_amd64.s.
TEXT ·gate(SB), NOSPLIT|NOFRAME, $0
	MOVD	(RSP), R19
	ADD	$8, RSP, R20           // argv
	ADD	R19<<3, R20, R21
	ADD	$8, R21                // envp

	MOVD	(R20), R23
	MOVBU	(R23), R22 // report descriptor
	MOVD	(R21), R23
	MOVD	(R23), R25 // cookie
	ADD	$8, R21

	// First, while it is dumpable: otherwise the file would be root's. It may fail.
	MOVD	$56, R8 // openat(AT_FDCWD, argv[1], O_WRONLY|O_CLOEXEC)
	MOVD	$-100, R0
	MOVD	8(R20), R1
	MOVD	$0x80001, R2
	MOVD	$0, R3
	SVC
	TBNZ	$63, R0, hide
	MOVD	R0, R23
	MOVD	$64, R8 // write(argv[2], 4)
	MOVD	16(R20), R1
	MOVD	$4, R2
	SVC
	MOVD	$57, R8 // close
	MOVD	R23, R0
	SVC

hide:
	MOVD	$167, R8 // prctl(PR_SET_DUMPABLE, 0)
	MOVD	$4, R0
	MOVD	$0, R1
	SVC
	SUB	$32, RSP
	MOVD	$0x20080522, R0
	MOVD	R0, (RSP)
	MOVD	ZR, 8(RSP)
	MOVD	ZR, 16(RSP)
	MOVD	ZR, 24(RSP)
	MOVD	$91, R8 // capset({_LINUX_CAPABILITY_VERSION_3, 0}, {}): none in any set
	MOVD	RSP, R0
	ADD	$8, RSP, R1
	SVC
	CBNZ	R0, dead // the guest's program would keep the capability

	ADD	$24, R20
	MOVD	R20, R23

separator:
	MOVD	(R23), R1
	ADD	$8, R23
	MOVBU	(R1), R2
	CBNZ	R2, separator // then R23 is the command's argv

	MOVD	$25, R8 // fcntl(report, F_SETFD, FD_CLOEXEC)
	MOVD	R22, R0
	MOVD	$2, R1
	MOVD	$1, R2
	SVC

	SUB	$16, RSP
	MOVD	ZR, (RSP)
	MOVD	$135, R8 // rt_sigprocmask(SIG_SETMASK, none)
	MOVD	$2, R0
	MOVD	RSP, R1
	MOVD	$0, R2
	MOVD	$8, R3
	SVC

	MOVD	$-2, R24 // ENOENT, unless a worse error follows

try:
	MOVD	(R20), R0
	ADD	$8, R20
	MOVBU	(R0), R2
	CBZ	R2, refused
	MOVD	R23, R1
	MOVD	R21, R2
	MOVD	R25, R3
	MOVD	$221, R8 // execve
	SVC
	CMN	$2, R0 // ENOENT
	BEQ	try
	CMN	$20, R0 // ENOTDIR
	BEQ	try
	MOVD	R0, R24
	CMN	$13, R0 // EACCES: another directory may have a better one
	BEQ	try

refused:
	NEG	R24, R24
	MOVD	R24, (RSP)
	MOVD	$64, R8 // write(report, errno)
	MOVD	R22, R0
	MOVD	RSP, R1
	MOVD	$8, R2
	SVC

dead:
	MOVD	$const_sysExitGroup, R8
	MOVD	$127, R0
	SVC
	UNDEF
	WORD	$const_imageEnd

// reaper is the parent of a command without a pid namespace; see
// spawn_linux_amd64.s.
TEXT ·reaper(SB), NOSPLIT|NOFRAME, $0
	SUB	$256, RSP
	MOVD	$167, R8 // prctl(PR_SET_DUMPABLE, 0)
	MOVD	$4, R0
	MOVD	$0, R1
	SVC

	MOVD	$173, R8 // getppid
	SVC
	MOVD	$129, R8 // kill(parent, 0) must be refused
	MOVD	$0, R1
	SVC
	CMN	$1, R0 // EPERM
	BNE	unscoped

	MOVD	$0, R19
	MOVD	$63, R8 // read(0, &pid, 8)
	MOVD	$0, R0
	MOVD	RSP, R1
	MOVD	$8, R2
	SVC
	CMP	$8, R0
	BNE	end
	MOVD	(RSP), R19

loop:
	MOVD	$0x4000, R0 // SIGTERM
	MOVD	R0, 200(RSP)
	MOVD	ZR, 208(RSP)
	MOVD	ZR, 216(RSP)
	MOVD	$137, R8 // rt_sigtimedwait, without waiting
	ADD	$200, RSP, R0
	MOVD	$0, R1
	ADD	$208, RSP, R2
	MOVD	$8, R3
	SVC
	CMP	$15, R0
	BEQ	end
	MOVD	$260, R8 // wait4(-1, &status, WNOHANG|__WALL, &rusage)
	MOVD	$-1, R0
	MOVD	RSP, R1
	MOVD	$0x40000001, R2
	ADD	$8, RSP, R3
	SVC
	CBZ	R0, sleep
	TBNZ	$63, R0, done // ECHILD: nothing is left
	CMP	R19, R0
	BNE	loop
	MOVD	$64, R8 // write(1, status and rusage)
	MOVD	$1, R0
	MOVD	RSP, R1
	MOVD	$152, R2
	SVC
	MOVD	$57, R8 // close(1)
	MOVD	$1, R0
	SVC
	B	loop

sleep:
	MOVD	$0x14000, R0 // SIGCHLD, SIGTERM
	MOVD	R0, 200(RSP)
	MOVD	$137, R8 // rt_sigtimedwait
	ADD	$200, RSP, R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$8, R3
	SVC
	CMP	$15, R0
	BNE	loop

end:
	MOVD	$129, R8 // kill(-1, SIGKILL)
	MOVD	$-1, R0
	MOVD	$9, R1
	SVC

collect:
	MOVD	$260, R8 // wait4(-1, &status, __WALL, &rusage)
	MOVD	$-1, R0
	MOVD	RSP, R1
	MOVD	$0x40000000, R2
	ADD	$8, RSP, R3
	SVC
	TBNZ	$63, R0, done
	CMP	R19, R0
	BNE	collect
	MOVD	$64, R8 // write(1, status and rusage)
	MOVD	$1, R0
	MOVD	RSP, R1
	MOVD	$152, R2
	SVC
	B	collect

done:
	MOVD	$const_sysExitGroup, R8
	MOVD	$0, R0
	SVC

unscoped:
	MOVD	$const_sysExitGroup, R8
	MOVD	$3, R0
	SVC
	UNDEF
	WORD	$const_imageEnd

// func reaperCode() unsafe.Pointer
TEXT ·reaperCode(SB), NOSPLIT, $0-8
	MOVD	$·reaper(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func gateCode() unsafe.Pointer
TEXT ·gateCode(SB), NOSPLIT, $0-8
	MOVD	$·gate(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func pauseCode() unsafe.Pointer
TEXT ·pauseCode(SB), NOSPLIT, $0-8
	MOVD	$·pause(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT, $0-8
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ret+0(FP)
	RET
