/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings.c
 *	  The values of the settings, and their texts in a session that defines only some of them.
 */
#include "base/compat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/varlena.h"

#include "base/settings.h"

/* ---------------------------------------------------------------- configuration */

/*
 * The configured value of a setting, ignoring values set by clients.
 *
 * A setting that no library has defined is a placeholder, which any user may set: with SET, in a function's
 * definition, or in connection options. The server remembers the source of a value (GucSource), so a
 * session's value is used if it comes from the configuration. SET preserves the configured value for RESET,
 * but connection options overwrite both. Only in that case is the configuration read again, in the server's
 * order: role and database, the postmaster's command line, the configuration files.
 */

#define COMMAND_LINE_MAX 65536

/* Is a value from that source, set in that context, within the scope? */
static bool
counts(GucSource source, GucContext context, configuration_scope scope)
{
	switch (scope)
	{
		case CONFIGURATION_SERVER:
			return source <= PGC_S_ARGV;
		case CONFIGURATION_SESSION:
			/* Only superusers can set a placeholder for a role or a database. */
			return source <= PGC_S_DATABASE_USER;
		case CONFIGURATION_SUPERUSER:
			return source <= PGC_S_DATABASE_USER ||
				context == PGC_SU_BACKEND || context == PGC_SUSET;
	}
	return false;
}

/* An allocated copy of the value in "name=value", if the name matches. */
static char *
value_in(const char *assignment, const char *name)
{
	char	   *found;
	char	   *value;
	char	   *copy = NULL;

	ParseLongOption(assignment, &found, &value);
	if (value != NULL && pg_strcasecmp(found, name) == 0)
		copy = pstrdup(value);
	compat_free_option(found);
	compat_free_option(value);
	return copy;
}

/* The value set for a role in a database; InvalidOid stands for all roles or databases. */
static char *
value_for(Relation relation, Oid database, Oid role, const char *name)
{
	char	   *value = NULL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(database));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(role));
	scan = systable_beginscan(relation, DbRoleSettingDatidRolidIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		/* not heap_getattr: script/one-place */
		Datum		array = fastgetattr(tuple, Anum_pg_db_role_setting_setconfig,
										RelationGetDescr(relation), &isnull);
		Datum	   *items;
		int			count = 0;

		if (!isnull)
			deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT,
							  &items, NULL, &count);
		for (int i = 0; i < count; i++)
		{
			char	   *found = value_in(TextDatumGetCString(items[i]), name);

			value = found != NULL ? found : value;
		}
	}
	systable_endscan(scan);
	return value;
}

/* The value set by ALTER ROLE or ALTER DATABASE for this session. */
static char *
value_of_role(const char *name)
{
	Oid			role = GetAuthenticatedUserId();
	const struct
	{
		Oid			database;
		Oid			role;
	}			order[] = {
		{MyDatabaseId, role}, {InvalidOid, role}, {MyDatabaseId, InvalidOid}, {InvalidOid, InvalidOid},
	};
	char	   *value = NULL;
	Relation	relation;

	if (!OidIsValid(MyDatabaseId) || !IsTransactionState())
		return NULL;
	relation = table_open(DbRoleSettingRelationId, AccessShareLock);
	for (int i = 0; value == NULL && i < lengthof(order); i++)
		value = value_for(relation, order[i].database, order[i].role, name);
	table_close(relation, AccessShareLock);
	return value;
}

/* The value on the postmaster's command line: -c name=value or --name=value; the last one wins. */
static bool
value_of_command_line(const char *name, char **value)
{
	char	   *text = palloc(COMMAND_LINE_MAX);
	char		path[64];
	ssize_t		length;
	int			fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int) PostmasterPid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, COMMAND_LINE_MAX);
	if (fd >= 0)
		close(fd);
	if (length <= 0 || length == COMMAND_LINE_MAX)
		return false;
	text[length - 1] = '\0';
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
	{
		const char *assignment = NULL;
		char	   *found;

		if (strcmp(at, "-c") == 0 && at + 3 < text + length)
			assignment = at += 3;
		else if (strncmp(at, "-c", 2) == 0 || strncmp(at, "--", 2) == 0)
			assignment = at + 2;
		found = assignment == NULL || strchr(assignment, '=') == NULL ? NULL
			: value_in(assignment, name);
		if (found != NULL)
			*value = found;
	}
	return true;
}

/* The value in the configuration files. */
static bool
value_of_files(const char *name, char **value)
{
	ConfigVariable *items = NULL;
	ConfigVariable *last = NULL;

	if (!compat_parse_configuration(ConfigFileName, true, &items, &last) ||
		!compat_parse_configuration(PG_AUTOCONF_FILENAME, false, &items, &last))
		return false;
	for (ConfigVariable *item = items; item != NULL; item = item->next)
		if (!item->ignore && pg_strcasecmp(item->name, name) == 0)
			*value = item->value;
	return true;
}

/* Read the configuration itself again. */
static bool
read_again(const char *name, configuration_scope scope, const char **text)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_tally configuration",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext before = MemoryContextSwitchTo(context);
	char	   *value = scope == CONFIGURATION_SERVER ? NULL : value_of_role(name);
	bool		known = value != NULL || value_of_command_line(name, &value);

	if (known && value == NULL)
		known = value_of_files(name, &value);
	MemoryContextSwitchTo(before);
	*text = value == NULL ? NULL : MemoryContextStrdup(TopMemoryContext, value);
	MemoryContextDelete(context);
	return known;
}

bool
configuration_text(const char *name, configuration_scope scope, const char **text)
{
	struct config_generic *setting = compat_find_setting(name);

	*text = NULL;
	if (setting == NULL)
		return true;
	if (setting->vartype != PGC_STRING)
		*text = GetConfigOption(name, true, false);
	else if (counts(setting->source, setting->scontext, scope))
		*text = *compat_string_setting(setting)->variable;
	else if (counts(setting->reset_source, setting->reset_scontext, scope))
		*text = compat_string_setting(setting)->reset_val;
	else
		return read_again(name, scope, text);
	return true;
}

bool
configuration_defined(const char *name)
{
	struct config_generic *setting = compat_find_setting(name);

	return setting != NULL && (setting->flags & GUC_CUSTOM_PLACEHOLDER) == 0;
}

/* ---------------------------------------------------------------- the values */

#define LIBRARY "pg_tally"

settings_values settings_values_now;
const settings_values *const settings = &settings_values_now;

const char *settings_unreadable = NULL;	/* the first setting whose configured value could not be read */

bool
settings_leave_out(const char *probe)
{
	char	   *list;
	List	   *names;
	ListCell   *cell;
	bool		named = false;

	if (settings_values_now.leave_out == NULL || settings_values_now.leave_out[0] == '\0')
		return false;
	list = pstrdup(settings_values_now.leave_out);
	if (SplitIdentifierString(list, ',', &names))
		foreach(cell, names)
			named = named || strcmp((char *) lfirst(cell), probe) == 0;
	list_free(names);
	pfree(list);
	return named;
}

const char *
settings_session_text(const char *name, configuration_scope scope)
{
	const char *text;

	if (!configuration_text(name, scope, &text) && settings_unreadable == NULL)
		settings_unreadable = name;
	return text;
}

const char *
settings_directory_of_session(void)
{
	const char *text = settings_session_text("pg_tally.directory", CONFIGURATION_SESSION);

	return text != NULL ? text : SETTINGS_DIRECTORY;
}

/* Allocates nothing, because it is also called at exit. */
bool
settings_names_library(const char *list)
{
	for (const char *at = list; at != NULL && (at = strstr(at, LIBRARY)) != NULL; at++)
	{
		const char *end = at + strlen(LIBRARY);

		if (strncmp(end, DLSUFFIX, strlen(DLSUFFIX)) == 0)
			end += strlen(DLSUFFIX);
		if ((at == list || strchr("/,\" \t", at[-1]) != NULL) &&
			(*end == '\0' || strchr(",\" \t", *end) != NULL))
			return true;
	}
	return false;
}
