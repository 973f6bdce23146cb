/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_message.h
 *	  What a message says, while no hook has named its statement.
 */
#ifndef PG_TALLY_STATEMENT_MESSAGE_H
#define PG_TALLY_STATEMENT_MESSAGE_H

#pragma GCC visibility push(hidden)

/* Publishes it, if it is not known which statement the message is for. For a process that waits, and has done so for a while. */
extern void statement_message_publish(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_MESSAGE_H */
