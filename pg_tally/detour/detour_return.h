/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_return.h
 *	  Calls that are followed to their return (DETOUR_AROUND): the code that makes them, and its description for unwinders.
 *
 * The return address of such a call is not on the stack, because handlers have saved it. A stack walk (by a C++ or Rust
 * exception, pthread_exit, backtrace(), gdb) would therefore stop at the call, and an exception would end the process. So the
 * call is made from a *return pad*, which is in this library instead of the stub. There every unwinder finds its description in
 * .eh_frame, even one that is statically linked into a program or library.
 *
 * The description says that the return address is the result of a search in detour_callers for the stack position that the
 * pad returns to. With a tail call, two calls have the same position; the address of the outer one is the real one, and is
 * found first. An address that is no longer there has been put back into its position.
 *
 * Unwinders identify a frame by its canonical frame address (CFA), and libgcc ends the process if two frames of a stack have
 * the same CFA. Pad and function leave the stack alike, so the pad's CFA is 4 bytes off, and a separate rule gives the stack
 * pointer that it restores.
 *
 * The search is the same expression for both processors, so it is defined here, for the assembler. It finds this library's
 * data relative to its own location, the page of the pad. That is why pads do not cross pages.
 */
#ifndef PG_TALLY_DETOUR_RETURN_H
#define PG_TALLY_DETOUR_RETURN_H

#include "detour/detour_stub.h"

#define DETOUR_PAGE 4096			/* no processor has smaller pages */
#define DETOUR_PAD 32				/* bytes of a return pad */
#if defined(__x86_64__)
#define DETOUR_PADS_OF_PAGE 128
#define DETOUR_PAD_PAGES 8
#elif defined(__aarch64__)
#define DETOUR_PADS_OF_PAGE 124		/* followed by their shared code */
#define DETOUR_PAD_PAGES 9
#endif

StaticAssertDecl(DETOUR_RETURNS <= DETOUR_PADS_OF_PAGE * DETOUR_PAD_PAGES, "each call has a return pad");

/* The code of all pads; in detour_return_<processor>.c. */
extern uint8 detour_return_code[] __attribute__((visibility("hidden")));

static inline const uint8 *
detour_return_pad(uint32 number)
{
	return detour_return_code + number / DETOUR_PADS_OF_PAGE * DETOUR_PAGE + number % DETOUR_PADS_OF_PAGE * DETOUR_PAD;
}

/* Is that address in a return pad? */
static inline bool
detour_in_return_pads(uintptr_t address)
{
	return address - (uintptr_t) detour_return_code < DETOUR_PAD_PAGES * DETOUR_PAGE;
}

#define DETOUR_TEXT_OF(number) #number
#define DETOUR_TEXT(number) DETOUR_TEXT_OF(number)

/*
 * detour_return_fde PAGE, RA, BREG: the beginning of the description (DWARF 5, 6.4.1) of a page of pads, before its rows.
 * RA: DWARF's number of the return address column; BREG: DW_OP_breg for it, which is the address in the pad and may be signed.
 * detour_return_fde_end PAGE ends it.
 */
__asm__(
		".macro detour_return_fde page, ra, breg\n"
		".Ldetour_fde_\\page:\n"
		"	.long .Ldetour_fde_end_\\page - .Ldetour_fde_begin_\\page\n"
		".Ldetour_fde_begin_\\page:\n"
		"	.long .Ldetour_fde_begin_\\page - .Ldetour_cie\n"
		"	.long detour_return_code + \\page * " DETOUR_TEXT(DETOUR_PAGE) " - .\n"
		"	.long " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.uleb128 0\n"
		"	.byte 0x16\n"				/* DW_CFA_val_expression */
		"	.uleb128 \\ra, .Ldetour_end_\\page - .Ldetour_begin_\\page\n"
		".Ldetour_begin_\\page:\n"
		"	.byte 0x3c, 0x1c, 0x12\n"	/* lit12, minus: from the CFA to the stack position; dup: libgcc cannot pick the first */
		"	.byte \\breg, 0, 0x0e\n"	/* breg 0, const8u */
		"	.quad 0x0000fffffffff000\n"
		"	.byte 0x1a, 0x0d\n"			/* and: the page of the pad; const4s */
		"	.long detour_callers - .\n"
		"	.byte 0x22, 0x0d\n"			/* plus, const4s */
		"	.long detour_return_code + \\page * " DETOUR_TEXT(DETOUR_PAGE) " - .\n"
		"	.byte 0x1c, 0x36, 0x1c\n"	/* minus; lit6, minus: the second distance is counted from 6 bytes further on */
		"	.byte 0x12, 0x06, 0x16\n"	/* dup, deref, swap: position, frames, &detour_callers */
		"	.byte 0x23, 8, 0x06\n"		/* plus_uconst 8, deref */
		"	.byte 0x94, 4\n"			/* deref_size 4: position, frames, depth */
		"	.byte 0x08, " DETOUR_TEXT(DETOUR_CALLER_SIZE) ", 0x1e\n"	/* const1u, mul */
		"	.byte 0x14, 0x22\n"			/* over, plus: position, frame, end */
		".Ldetour_loop_\\page:\n"
		"	.byte 0x14, 0x14, 0x2d\n"	/* over, over, lt */
		"	.byte 0x28, 3, 0, 0x2f\n"	/* bra over the skip; skip */
		"	.short .Ldetour_absent_\\page - . - 2\n"
		"	.byte 0x14, 0x06, 0x15, 3\n"	/* over, deref, pick 3 */
		"	.byte 0x29, 0x28\n"			/* eq, bra */
		"	.short .Ldetour_found_\\page - . - 2\n"
		"	.byte 0x16, 0x23, " DETOUR_TEXT(DETOUR_CALLER_SIZE) ", 0x16\n"	/* swap, plus_uconst, swap */
		"	.byte 0x2f\n"				/* skip */
		"	.short .Ldetour_loop_\\page - . - 2\n"
		".Ldetour_found_\\page:\n"
		"	.byte 0x13, 0x23, 8, 0x06\n"	/* drop, plus_uconst 8, deref */
		"	.byte 0x2f\n"				/* skip */
		"	.short .Ldetour_end_\\page - . - 2\n"
		".Ldetour_absent_\\page:\n"
		"	.byte 0x13, 0x13, 0x06\n"	/* drop, drop, deref: what is in the position */
		"	.byte 0x12, \\breg, 0, 0x0e\n"	/* dup; is it a pad, whose call was forgotten? */
		"	.quad 0x0000fffffffff000\n"
		"	.byte 0x1a, 0x0c\n"			/* and, const4u */
		"	.long \\page * " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.byte 0x1c, 0x1c\n"			/* minus: the first page; minus */
		"	.byte 0x12, 0x30, 0x2a\n"	/* dup, lit0, ge */
		"	.byte 0x16, 0x0c\n"			/* swap, const4u */
		"	.long " DETOUR_TEXT(DETOUR_PAD_PAGES) " * " DETOUR_TEXT(DETOUR_PAGE) "\n"
		"	.byte 0x2d, 0x1a\n"			/* lt, and */
		"	.byte 0x20, 0x31, 0x1a\n"	/* not, lit1, and */
		"	.byte 0x28, 2, 0\n"			/* bra to the end */
		"	.byte 0x13, 0x30\n"			/* drop, lit0: unwinders stop */
		".Ldetour_end_\\page:\n"
		".endm\n"
		".macro detour_return_fde_end page\n"
		"	.balign 8\n"				/* DW_CFA_nop */
		".Ldetour_fde_end_\\page:\n"
		".endm\n"

		/* detour_return_cie RA, SP: the common part of the descriptions; both are columns */
		".macro detour_return_cie ra, sp\n"
		"	.section .eh_frame, \"a\", %progbits\n"
		"	.balign 8\n"
		".Ldetour_cie:\n"
		"	.long .Ldetour_cie_end - .Ldetour_cie_begin\n"
		".Ldetour_cie_begin:\n"
		"	.long 0\n"
		"	.byte 1\n"
		"	.asciz \"zR\"\n"
		"	.uleb128 1\n"
		"	.sleb128 -8\n"
		"	.byte \\ra\n"
		"	.uleb128 1\n"
		"	.byte 0x1b\n"				/* addresses are 32-bit distances */
		"	.byte 0x0c\n"				/* DW_CFA_def_cfa */
		"	.uleb128 \\sp, 4\n"
		"	.byte 0x16\n"				/* DW_CFA_val_expression: lit4, minus */
		"	.uleb128 \\sp, 2\n"
		"	.byte 0x34, 0x1c\n"
		"	.balign 8\n"
		".Ldetour_cie_end:\n"
		".endm\n");

#endif							/* PG_TALLY_DETOUR_RETURN_H */
