/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_aside_x86_64.c
 *	  Assembly code for handlers: calling an ordinary function with every register preserved, and reading a
 *	  jump buffer.
 */
#include "base/compat.h"

#include <cpuid.h>
#include <string.h>

#include "detour/detour_stub.h"

#define FXSAVE_SIZE 512

/* Number of bytes that XSAVE may write, and the saved parts of the state: all except AMX tiles. Named in the code below. */
extern uint32 detour_state_size __attribute__((visibility("hidden")));
extern uint32 detour_state_parts __attribute__((visibility("hidden")));
uint32		detour_state_size = FXSAVE_SIZE;
uint32		detour_state_parts = 0;

#define STATE_PARTS 0xe7			/* x87, SSE, AVX, AVX-512 (Intel SDM vol. 1, 13.1) */

/*
 * To be called by ordinary code before the first handler calls detour_call_aside. Without XSAVE, the older FXSAVE is
 * used.
 */
void
detour_prepare_aside(void)
{
	uint32		a,
				b,
				c,
				d,
				enabled,
				high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0 ||
		!__get_cpuid_count(0xd, 0, &a, &b, &c, &d))
		return;
	__asm__ volatile ("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
	detour_state_size = b;
	detour_state_parts = enabled & STATE_PARTS;
}

/* detour_aside(fn, arg): %rdi, %rsi; preserves everything except the flags. */
__asm__(
		".text\n"
		".globl detour_aside\n"
		".hidden detour_aside\n"
		".type detour_aside, @function\n"
		"detour_aside:\n"
		"	push %rbp\n"
		"	mov %rsp, %rbp\n"
		"	push %rax\n"
		"	push %rcx\n"
		"	push %rdx\n"
		"	push %rsi\n"
		"	push %rdi\n"
		"	push %r8\n"
		"	push %r9\n"
		"	push %r10\n"
		"	push %r11\n"
		"	push %rbx\n"
		"	mov detour_state_size(%rip), %eax\n"
		"	sub %rax, %rsp\n"
		"	and $-64, %rsp\n"
		"	mov %rsp, %rbx\n"
		"	mov detour_state_parts(%rip), %eax\n"
		"	test %eax, %eax\n"
		"	jz 1f\n"
		"	movq $0, 512(%rbx)\n"	/* the header, which XRSTOR checks */
		"	movq $0, 520(%rbx)\n"
		"	movq $0, 528(%rbx)\n"
		"	movq $0, 536(%rbx)\n"
		"	movq $0, 544(%rbx)\n"
		"	movq $0, 552(%rbx)\n"
		"	movq $0, 560(%rbx)\n"
		"	movq $0, 568(%rbx)\n"
		"	xor %edx, %edx\n"
		"	xsave64 (%rbx)\n"
		"	jmp 2f\n"
		"1:	fxsave64 (%rbx)\n"
		"2:	mov %rdi, %rax\n"
		"	mov %rsi, %rdi\n"
		"	call *%rax\n"
		"	mov detour_state_parts(%rip), %eax\n"
		"	test %eax, %eax\n"
		"	jz 3f\n"
		"	xor %edx, %edx\n"
		"	xrstor64 (%rbx)\n"
		"	jmp 4f\n"
		"3:	fxrstor64 (%rbx)\n"
		"4:	lea -80(%rbp), %rsp\n"
		"	pop %rbx\n"
		"	pop %r11\n"
		"	pop %r10\n"
		"	pop %r9\n"
		"	pop %r8\n"
		"	pop %rdi\n"
		"	pop %rsi\n"
		"	pop %rdx\n"
		"	pop %rcx\n"
		"	pop %rax\n"
		"	pop %rbp\n"
		"	ret\n"
		".size detour_aside, . - detour_aside\n");

/*
 * glibc keeps the stack pointer in the seventh word of a jump buffer, mangled with a secret
 * of the thread (sysdeps/x86_64/jmpbuf-offsets.h, sysdeps/unix/sysv/linux/x86_64/sysdep.h).
 */
static uintptr_t
demangle(const sigjmp_buf target)
{
	uintptr_t	stack;

	memcpy(&stack, (const char *) target + 6 * sizeof(uintptr_t), sizeof(stack));
	__asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(stack) : : "cc");
	return stack;
}

/* Does this hold for this C library? */
static bool
can_demangle(void)
{
	sigjmp_buf	here;
	uintptr_t	frame = (uintptr_t) __builtin_frame_address(0);
	uintptr_t	stack;

	if (sigsetjmp(here, 0) != 0)
		return false;
	stack = demangle(here);
	return stack <= frame && frame - stack < 4096;
}

bool
detour_jump_target(const sigjmp_buf target, uintptr_t *stack)
{
	static int	can = 0;

	if (can == 0)
		can = can_demangle() ? 1 : -1;
	if (can < 0)
		return false;
	*stack = demangle(target);
	return true;
}
