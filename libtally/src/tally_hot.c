/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_hot.c
 *	  Variables set by tests to stop a writer or to advance its clock (tally_hot.h).
 */
#include "tally_hot.h"

#ifdef TALLY_TEST_HOOKS
void		(*tally_test_hook) (const char *where);
const uint64_t *tally_virtual_tick;
#endif
