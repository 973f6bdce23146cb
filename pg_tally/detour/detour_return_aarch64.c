/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_return_aarch64.c
 *	  Return pads of aarch64 (detour_return.h).
 *
 * The stub has freed x30, and the function is called with its caller's stack. So arguments on the stack are where it expects
 * them, and each return matches the call that the processor predicts. A pad changes only x16, which a linker's veneer may change
 * at any call anyway. The code after a return is the same for all pads, and exists once per page. This file has no C functions,
 * because the compiler would add their descriptions.
 */
#include "base/compat.h"

#include "detour/detour_return.h"

__asm__(
		"	.section .text.detour_return, \"ax\", %progbits\n"
		"	.balign " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.globl detour_return_code\n"
		"	.hidden detour_return_code\n"
		"	.type pg_tally_timed_call, %function\n"
		"detour_return_code:\n"
		"pg_tally_timed_call:\n"
		"	.set detour_at, 0\n"
		"	.rept " DETOUR_TEXT(DETOUR_PAD_PAGES) "\n"
		"	.rept " DETOUR_TEXT(DETOUR_PADS_OF_PAGE) "\n"
		"	hint #34\n"				/* bti c */
		"	adrp x16, detour_returns + detour_at\n"
		"	ldr x16, [x16, :lo12:detour_returns + detour_at]\n"
		"	blr x16\n"
		"	adrp x16, detour_returns + detour_at + 8\n"
		"	ldr x16, [x16, :lo12:detour_returns + detour_at + 8]\n"
		"	b 1f\n"
		"	udf #0\n"
		"	.set detour_at, detour_at + 16\n"
		"	.endr\n"
		/* save what handlers may change, as the stub does (detour_aarch64.c); x30 is saved in the stack slot */
		"1:	stp x0, x1, [sp, #-144]!\n"
		"	stp x2, x3, [sp, #16]\n"
		"	stp x4, x5, [sp, #32]\n"
		"	stp x6, x7, [sp, #48]\n"
		"	stp x8, x9, [sp, #64]\n"
		"	stp x10, x11, [sp, #80]\n"
		"	stp x12, x13, [sp, #96]\n"
		"	stp x14, x15, [sp, #112]\n"
		"	stp x18, x30, [sp, #128]\n"
		"	add x0, sp, #136\n"
		"	blr x16\n"
		"	ldp x18, x30, [sp, #128]\n"
		"	ldp x2, x3, [sp, #16]\n"
		"	ldp x4, x5, [sp, #32]\n"
		"	ldp x6, x7, [sp, #48]\n"
		"	ldp x8, x9, [sp, #64]\n"
		"	ldp x10, x11, [sp, #80]\n"
		"	ldp x12, x13, [sp, #96]\n"
		"	ldp x14, x15, [sp, #112]\n"
		"	ldp x0, x1, [sp], #144\n"
		"	ret\n"
		"	.balign " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.endr\n"
		"	.size pg_tally_timed_call, . - pg_tally_timed_call\n"

		/* columns: 30 is x30, 31 the stack pointer */
		"	detour_return_cie 30, 31\n"
		"	.irp page, 0, 1, 2, 3, 4, 5, 6, 7, 8\n"
		"	detour_return_fde \\page, 30, 0x8e\n"
		"	.byte 0x03\n"				/* DW_CFA_advance_loc2: behind the first stp of what all pads share */
		"	.short " DETOUR_TEXT(DETOUR_PADS_OF_PAGE) " * " DETOUR_TEXT(DETOUR_PAD) " + 4\n"
		"	.byte 0x0e\n"				/* DW_CFA_def_cfa_offset */
		"	.uleb128 148\n"
		"	.byte 0x02, 76, 0x0e, 4\n"	/* DW_CFA_advance_loc1: behind the last ldp */
		"	detour_return_fde_end \\page\n"
		"	.endr\n"
		"	.text\n");
