/* SPDX-License-Identifier: PostgreSQL */
/*
 * gap.c
 *	  A library with an unreadable gap between its segments, and functions that refer to it (test_x86_64.c).
 */

/* Linked for 2 MB pages, so that the next segment begins 2 MB further. */
__asm__(
		".text\n\t.balign 16\n"
		".globl switches_in_a_gap\n\t.type switches_in_a_gap, @function\n"
		"switches_in_a_gap:\n"
		".Lswitches:\n"
		"	push %rbx\n	mov %rdi, %rbx\n	nop\n	nop\n	nop\n"
		"	lea .Lswitches + 0x100000(%rip), %rax\n"
		"	pop %rbx\n	jmp *%rax\n"
		".size switches_in_a_gap, . - switches_in_a_gap\n"

		".globl calls_into_a_gap\n\t.type calls_into_a_gap, @function\n"
		"calls_into_a_gap:\n"
		"	push %rbx\n	call .Lswitches + 0x100000\n	pop %rbx\n	ret\n"
		".size calls_into_a_gap, . - calls_into_a_gap\n"

		".globl lies_in_a_gap\n\t.type lies_in_a_gap, @function\n"
		".set lies_in_a_gap, .Lswitches + 0x100000\n"
		".size lies_in_a_gap, 64\n");
