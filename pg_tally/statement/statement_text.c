/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_text.c
 *	  Normalises the texts of statements.
 *
 * The server knows where constants begin; our lexer finds where they end. A constant is one token, or a
 * minus sign and one token. The replacements are numbered after the statement's own parameters. If the server
 * merges the constants of a list (since 18), it knows the list's length, and parameters are renumbered.
 *
 * Every stored text comes from here, so this file also decides which parts are hidden (secrets.h): based on the tree of a utility
 * statement, or on the text alone if it contains more than the statement. Up to 17, the text of a statement within EXPLAIN or
 * CREATE TABLE AS is the whole message, including preceding statements.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "mb/pg_wchar.h"
#include "nodes/value.h"

#include "ledger/ledger.h"
#include "ledger/server.h"
#include "statement/secrets.h"
#include "statement/statement.h"
#include "wait/statement_time.h"

const Node	statement_text_unknown = {T_Invalid};

/* ---------------------------------------------------------------- the kind of statement */

/* Does the code consist of SQL's tokens? Nothing is known about other languages. */
static bool
is_sql_language(const List *options)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		const DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "language") == 0 && option->arg != NULL && IsA(option->arg, String))
			return strcmp(strVal(option->arg), "plpgsql") == 0 || strcmp(strVal(option->arg), "sql") == 0;
	}
	return true;					/* without a language, DO is PL/pgSQL and a function is SQL */
}

/* Lists statements whose strings are names, numbers or file names; the strings of all others are hidden. */
static secrets_kind
kind_of_utility(const Node *utility)
{
	switch (nodeTag(utility))
	{
		case T_TransactionStmt:
		case T_VacuumStmt:
		case T_ReindexStmt:
		case T_LockStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_DeallocateStmt:
		case T_CheckPointStmt:
		case T_DiscardStmt:
		case T_TruncateStmt:
		case T_DropStmt:
		case T_RenameStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_LoadStmt:
		case T_VariableShowStmt:
		case T_ConstraintsSetStmt:
		case T_CreateExtensionStmt:
		case T_AlterExtensionStmt:
		case T_CreateTableSpaceStmt:
		case T_CreatedbStmt:
		case T_CreateEnumStmt:
		case T_AlterEnumStmt:
		case T_DefineStmt:
			return SECRETS_NONE;
		case T_VariableSetStmt:
		case T_AlterSystemStmt:
		case T_AlterRoleSetStmt:
		case T_AlterDatabaseSetStmt:
			return SECRETS_SETTING;
		case T_DoStmt:
			return is_sql_language(((const DoStmt *) utility)->args) ? SECRETS_CODE : SECRETS_STRINGS;
		case T_CreateFunctionStmt:
			return is_sql_language(((const CreateFunctionStmt *) utility)->options) ? SECRETS_CODE : SECRETS_STRINGS;
		case T_CopyStmt:
			{
				const CopyStmt *copy = (const CopyStmt *) utility;

				return copy->is_program ? SECRETS_ALL :
					copy->query != NULL || copy->whereClause != NULL ? SECRETS_STRINGS : SECRETS_NONE;
			}
		case T_Invalid:
		case T_CreateRoleStmt:
		case T_AlterRoleStmt:
		case T_CreateUserMappingStmt:
		case T_AlterUserMappingStmt:
		case T_CreateFdwStmt:
		case T_AlterFdwStmt:
		case T_CreateForeignServerStmt:
		case T_AlterForeignServerStmt:
		case T_CreateForeignTableStmt:
		case T_ImportForeignSchemaStmt:
		case T_CreateSubscriptionStmt:
		case T_AlterSubscriptionStmt:
		case T_SecLabelStmt:
			return SECRETS_ALL;
		default:
			return SECRETS_STRINGS;
	}
}

static secrets_kind
kind_of(const Node *utility, const JumbleState *jumble, const secrets_text *text)
{
	secrets_kind by_text = secrets_kind_of_text(text);
	secrets_kind kind;

	if (utility == NULL)
		return by_text == SECRETS_NONE && jumble == NULL ? SECRETS_CONSTANTS : by_text;
	kind = kind_of_utility(utility);
	return by_text == SECRETS_ALL && kind != SECRETS_CODE ? SECRETS_ALL : kind;
}

/*
 * Only strings can be secrets. The purpose of extensions' and applications' settings is unknown, so they count as secret; of the
 * server's own settings, those are secret that are or may contain a password.
 */
static bool
setting_is_shown(const char *name, bool sure)
{
	static const char *const secret[] = {"command", "conninfo", "pass", "secret", "token", "key"};
	const struct config_generic *setting = compat_find_setting(name);

	if (setting == NULL)
		return !sure && strchr(name, '.') == NULL;
	if (setting->vartype != PGC_STRING)
		return true;
	if (setting->group == CUSTOM_OPTIONS)
		return false;
	for (int i = 0; i < (int) lengthof(secret); i++)
		if (strstr(setting->name, secret[i]) != NULL)
			return false;
	return true;
}

/* ---------------------------------------------------------------- the text */

static int
by_location(const void *a, const void *b)
{
	int			one = ((const LocationLen *) a)->location;
	int			other = ((const LocationLen *) b)->location;

	return (one > other) - (one < other);
}

/* Truncate between characters. */
static uint32
clip(const char *bytes, uint32 length, uint32 limit)
{
	return length <= limit ? length : (uint32) pg_mbcliplen(bytes, (int) length, (int) limit);
}

/* The constants located by the server, without duplicates. */
static uint32
find_places(const JumbleState *jumble, LocationLen *constants, int location, int length, secrets_place *places)
{
	uint32		count = 0;

	memcpy(constants, jumble->clocations, sizeof(LocationLen) * jumble->clocations_count);
	qsort(constants, jumble->clocations_count, sizeof(LocationLen), by_location);
	for (int n = 0; n < jumble->clocations_count; n++)
	{
		int			at = constants[n].location - location;

		if (at < 0 || at >= length || !compat_is_replaced(jumble, &constants[n]) ||
			(count > 0 && places[count - 1].at == (uint32) at))
			continue;
		places[count++] = (secrets_place) {
			.at = (uint32) at,
			.length = compat_is_list(&constants[n]) ? (uint32) constants[n].length : 0,
			.list = compat_is_list(&constants[n]),
		};
	}
	return count;
}

void
statement_text_make(const char *source, int location, int length, const Node *utility, const JumbleState *jumble,
					uint32 limit, tally_statement_text *text)
{
	const char *part = CleanQuerytext(source, &location, &length);
	uint32		mark = own_session_false_mark(part, (uint32) length);
	int			count = jumble != NULL ? Max(jumble->clocations_count, 0) : 0;
	secrets_text from = {
		.backslashes = compat_strings_have_escapes(),
		.numbers = utility == NULL && jumble == NULL,
		.is_shown = setting_is_shown,
	};
	secrets_masked masked = {.size = limit + MAX_MULTIBYTE_CHAR_LEN,.allocate = palloc};

	part += mark;
	location += (int) mark;
	length -= (int) mark;
	from.bytes = part;
	from.length = (uint32) length;
	text->encoding = GetDatabaseEncoding();
	text->bytes = part;
	text->whole = (uint32) length;
	text->length = clip(part, (uint32) length, limit);
	from.kind = kind_of(utility, jumble, &from);
	if (count == 0 && from.kind == SECRETS_NONE)
		return;

	if (count > 0)
	{
		LocationLen *constants = palloc(sizeof(LocationLen) * count);
		secrets_place *places = palloc(sizeof(secrets_place) * count);

		from.place_count = find_places(jumble, constants, location, length, places);
		from.places = places;
	}
	masked.number = jumble != NULL ? jumble->highest_extern_param_id : secrets_highest_parameter(&from);
	secrets_mask(&from, &masked);
	if (masked.bytes == NULL)
		return;
	text->bytes = masked.bytes;
	text->whole = (uint32) Min(masked.length, UINT32_MAX);
	text->length = clip(masked.bytes, (uint32) Min(masked.length, masked.size), limit);
}

/* ---------------------------------------------------------------- text of a message before a hook has named its statement */

/*
 * Parse analysis locks relations before the query id is computed, and Bind locks the relations of a prepared statement before any
 * hook is called. A session that waits for such a lock could only show its previous statement. So while it waits, it publishes the
 * message's text. Without a tree, the kind of statement is unknown, so everything that may be a secret is hidden (secrets.h).
 */

#define MOST_READ (64 * 1024)		/* bytes of a message that are processed */

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
