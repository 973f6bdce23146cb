/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_message.c
 *	  What a message says, while no hook has named its statement.
 *
 * A relation is locked in parse analysis, before the statement's id is computed, and those of a prepared statement in Bind,
 * before any hook. A session that waits there has no statement to show but the one before. So while it waits it publishes
 * its text. No tree says what kind of statement it is, so all that may be a secret in any is left out (secrets.h).
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "mb/pg_wchar.h"
#include "parser/parser.h"
#include "tcop/tcopprot.h"

#include "own_session.h"
#include "secrets.h"
#include "statement_message.h"
#include "statement_time.h"

#define MOST_READ (64 * 1024)		/* bytes of a message that are looked at */

void
statement_message_publish(void)
{
	tally_current *current = statement_time.cache.current;
	const char *query = *server.query;
	int			saved_errno = errno;
	int			security;
	uint32		length;
	uint32		mark;
	secrets_masked masked;
	tally_message_text *to;

	if (!statement_time.ready || current->begun == 0 || current->key.before == 0 || query == NULL)
		return;
	to = tally_message_text_open(&statement_time.cache);
	errno = saved_errno;
	if (to == NULL || to->begun == current->begun)
		return;
	__atomic_store_n(&to->begun, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	length = (uint32) strnlen(query, MOST_READ);
	mark = own_session_false_mark(query, length);
	masked = (secrets_masked) {.bytes = to->text,.size = sizeof(to->text)};
	secrets_mask_message(query + mark, length - mark, compat_strings_have_escapes(), &masked);
	to->whole = (uint32) masked.length + (length == MOST_READ);
	to->bytes = Min((uint32) masked.length, masked.size);
	to->bytes = (uint32) pg_mbcliplen(to->text, (int) to->bytes, (int) to->bytes);
	to->encoding = GetDatabaseEncoding();
	to->database_id = MyDatabaseId;
	GetUserIdAndSecContext(&to->user_id, &security);
	__atomic_store_n(&to->begun, current->begun, __ATOMIC_RELEASE);
}
