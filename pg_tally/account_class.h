/* SPDX-License-Identifier: PostgreSQL */
/*
 * account_class.h
 *	  The class of an account: decided when its name enters the directory, from which readers take it.
 */
#ifndef PG_TALLY_ACCOUNT_CLASS_H
#define PG_TALLY_ACCOUNT_CLASS_H

#include "tally.h"

/* The class of the account of that name, "execute::wait::IO:DataFileRead". */
extern tally_account_class account_class_of(const char *name);
/* The number of the account of that name in the directory, as tally_register. */
extern uint32_t account_register(tally_segment *segment, const char *name);
/* The class of an account as a head or a statement names it: 1 + its number. */
extern tally_account_class account_class(const tally_segment *segment, uint32_t stat);

#endif
