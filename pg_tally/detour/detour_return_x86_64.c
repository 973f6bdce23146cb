/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_return_x86_64.c
 *	  Return pads of x86-64 (detour_return.h).
 *
 * The stub has popped the return address, and the call here pushes the pad's address to the same position. So arguments
 * on the stack are where the function expects them, and each return matches the call that the processor predicts. This
 * file has no C functions, because the compiler would add their descriptions.
 */
#include "base/compat.h"

#include "detour/detour_return.h"

/* A pad: the call (6 bytes); lea (5), push (1), lea (5), call (6), pop (1), ret. The description below counts them. */
__asm__(
		"	.section .text.detour_return, \"ax\", %progbits\n"
		"	.balign " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.globl detour_return_code\n"
		"	.hidden detour_return_code\n"
		"	.type pg_tally_timed_call, %function\n"
		"detour_return_code:\n"
		"pg_tally_timed_call:\n"
		"	.set detour_at, 0\n"
		"	.rept " DETOUR_TEXT(DETOUR_PADS_OF_PAGE) " * " DETOUR_TEXT(DETOUR_PAD_PAGES) "\n"
		"	.balign " DETOUR_TEXT(DETOUR_PAD) ", 0xcc\n"
		"	call *detour_returns + detour_at(%rip)\n"
		"	lea -8(%rsp), %rsp\n"
		"	push %rdi\n"
		"	lea 8(%rsp), %rdi\n"
		"	call *detour_returns + detour_at + 8(%rip)\n"
		"	pop %rdi\n"
		"	ret\n"
		"	.set detour_at, detour_at + 16\n"
		"	.endr\n"
		"	.balign " DETOUR_TEXT(DETOUR_PAGE) ", 0xcc\n"
		"	.size pg_tally_timed_call, . - pg_tally_timed_call\n"

		/* columns: 16 is the return address, 7 is %rsp */
		"	detour_return_cie 16, 7\n"
		"	.irp page, 0, 1, 2, 3, 4, 5, 6, 7\n"
		"	detour_return_fde \\page, 16, 0x80\n"
		"	.rept " DETOUR_TEXT(DETOUR_PADS_OF_PAGE) "\n"
		"	.byte 0x4b, 0x0e, 12\n"		/* behind the lea: DW_CFA_advance_loc 11, DW_CFA_def_cfa_offset */
		"	.byte 0x41, 0x0e, 20\n"		/* behind the push */
		"	.byte 0x4c, 0x0e, 12\n"		/* behind the pop */
		"	.byte 0x48, 0x0e, 4\n"		/* the next pad */
		"	.endr\n"
		"	detour_return_fde_end \\page\n"
		"	.endr\n"
		"	.text\n");
