/* SPDX-License-Identifier: PostgreSQL */
/*
 * helper.h
 *	  Functions of the library that the tests import from.
 */
#ifndef PG_TALLY_TEST_HELPER_H
#define PG_TALLY_TEST_HELPER_H

extern int	helper_plain(void);
extern int	helper_chosen(void);
extern int	helper_compared(void);

/* Programs linked with the library's first version still get its function. */
extern int	helper_versioned(void);
__asm__(".symver helper_versioned, helper_versioned@HELPER_1");

#endif							/* PG_TALLY_TEST_HELPER_H */
