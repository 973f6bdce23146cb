/* SPDX-License-Identifier: PostgreSQL */
/*
 * file_names.c
 *	  Derives the kind of a file, and its relation, from its name.
 *
 * The server names its files relative to the data directory, its working directory, and files in a
 * tablespace through the link to it. A descriptor's path in /proc has all links resolved, and is
 * translated back to the server's name.
 */
#include "base/compat.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/pg_tablespace_d.h"
#include "common/relpath.h"

#include "file/file_names.h"

#define TABLESPACES "pg_tblspc"
#define DELETED " (deleted)"		/* suffix in /proc of an unlinked file's path */

static const char *const forks[] = {"main", "fsm", "vm", "init"};

/* The path relative to a directory; NULL if it is outside. */
static const char *
within(const char *path, const char *folder)
{
	size_t		length = strlen(folder);

	return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1
		: NULL;
}

const char *
file_names_inside(const char *path)
{
	static char working[MAXPGPATH];
	const char *inside;

	if (*path != '/')
		return strncmp(path, "./", 2) == 0 ? path + 2 : path;
	if (DataDir != NULL && (inside = within(path, DataDir)) != NULL)
		return inside;
	/* with links resolved, as in /proc */
	if (working[0] == '\0' && getcwd(working, sizeof(working)) == NULL)
		working[0] = '\0';
	inside = within(path, working);
	return inside != NULL ? inside : path;
}

bool
file_names_path(int fd, char *path, size_t size)
{
	char		link[32];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	return true;
}

/* "pg_tblspc/16385" for the directory of a tablespace. */
static bool
find_tablespace(const char *folder, char *link, size_t size)
{
	struct stat wanted;
	struct stat st;
	struct dirent *entry;
	DIR		   *links;
	bool		found = false;

	if (stat(folder, &wanted) != 0 || (links = opendir(TABLESPACES)) == NULL)
		return false;
	while (!found && (entry = readdir(links)) != NULL)
	{
		if (!isdigit((unsigned char) entry->d_name[0]))
			continue;
		snprintf(link, size, TABLESPACES "/%s", entry->d_name);
		found = stat(link, &st) == 0 && st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino;
	}
	closedir(links);
	return found;
}

bool
file_names_of(int fd, char *name, size_t size)
{
	char		path[MAXPGPATH];
	char		link[64];
	const char *inside;
	char	   *version;
	char	   *deleted;

	if (!file_names_path(fd, path, sizeof(path)))
		return false;
	deleted = strlen(path) > strlen(DELETED) ? path + strlen(path) - strlen(DELETED) : NULL;
	if (deleted != NULL && strcmp(deleted, DELETED) == 0)
		*deleted = '\0';
	inside = file_names_inside(path);
	version = inside == path ? strstr(path, "/" TABLESPACE_VERSION_DIRECTORY "/") : NULL;
	if (version == NULL)
	{
		strlcpy(name, inside, size);
		return true;
	}
	*version = '\0';
	if (find_tablespace(path, link, sizeof(link)))
		snprintf(name, size, "%s/%s", link, version + 1);
	else
	{
		*version = '/';
		strlcpy(name, path, size);
	}
	return true;
}

/* ---------------------------------------------------------------- kinds */

static bool
starts(const char *path, const char *with, const char **rest)
{
	size_t		length = strlen(with);

	if (path[0] != with[0] || strncmp(path, with, length) != 0)
		return false;
	*rest = path + length;
	return true;
}

void
file_names_kind(const char *name, char *kind, size_t size)
{
	static const struct
	{
		const char *folder;
		const char *kind;
	}			folders[] = {
		{"pg_xact/", "slru Xact"},
		{"pg_subtrans/", "slru Subtrans"},
		{"pg_multixact/offsets/", "slru MultiXactOffset"},
		{"pg_multixact/members/", "slru MultiXactMember"},
		{"pg_commit_ts/", "slru CommitTs"},
		{"pg_serial/", "slru Serial"},
		{"pg_notify/", "slru Notify"},
		{"global/pg_control", "control"},
		{"pg_stat/", "statistics"},
		{"pg_stat_tmp/", "statistics"},
		{"pg_replslot/", "replication"},
		{"pg_logical/", "replication"},
		{"pg_dynshmem/", "shared memory"},
		{"/dev/shm/", "shared memory"},
		{"log/", "log"},
	};
	const char *path = file_names_inside(name);
	const char *rest;
	tally_relation_key key;
	uint32		part;

	strlcpy(kind, "other", size);
	if (starts(path, "pg_wal/", &rest))
	{
		if (strspn(rest, "0123456789ABCDEF") == 24 || strncmp(rest, "xlogtemp.", 9) == 0)
			strlcpy(kind, "wal", size);
		return;
	}
	for (int i = 0; i < lengthof(folders); i++)
		if (starts(path, folders[i].folder, &rest))
		{
			strlcpy(kind, folders[i].kind, size);
			return;
		}
	if (file_names_relation(path, &key, &part))
		snprintf(kind, size, "%s", key.backend != 0 ? "temporary relation" : forks[key.fork]);
	else if (strstr(path, "pgsql_tmp") != NULL &&
			 (starts(path, "base/", &rest) || starts(path, TABLESPACES "/", &rest)))
		strlcpy(kind, "temporary", size);
	else
		return;
	if (starts(path, "global/", &rest))
		strlcat(kind, "@pg_global", size);
	else if (starts(path, TABLESPACES "/", &rest))
	{
		size_t		length = strlen(kind);

		snprintf(kind + length, size - length, "@%.*s", (int) Min(strspn(rest, "0123456789"), 10), rest);
	}
}

/* ---------------------------------------------------------------- relations */

/* Read a number and move past it. */
static bool
number(const char **at, uint32 *n)
{
	const char *from = *at;

	for (*n = 0; **at >= '0' && **at <= '9'; (*at)++)
		*n = *n * 10 + (uint32) (**at - '0');
	return *at != from;
}

/* "16384_fsm.1", "t3_16384" */
static bool
relation_of(const char *file, tally_relation_key *key, uint32 *segment)
{
	if (*file == 't')
	{
		file++;
		if (!number(&file, &key->backend) || *file++ != '_')
			return false;
		key->backend++;
	}
	if (!number(&file, &key->relation))
		return false;
	for (uint32 i = lengthof(forks) - 1; *file == '_' && i > 0; i--)
		if (strncmp(file + 1, forks[i], strlen(forks[i])) == 0)
		{
			key->fork = i;
			file += 1 + strlen(forks[i]);
		}
	*segment = 0;
	if (*file == '.')
	{
		file++;
		if (!number(&file, segment))
			return false;
	}
	return *file == '\0';
}

bool
file_names_relation(const char *name, tally_relation_key *key, uint32 *segment)
{
	const char *path = file_names_inside(name);
	const char *rest;

	memset(key, 0, sizeof(*key));
	if (starts(path, "global/", &rest))
	{
		key->tablespace = GLOBALTABLESPACE_OID;
		return relation_of(rest, key, segment);
	}
	if (starts(path, "base/", &rest))
		key->tablespace = DEFAULTTABLESPACE_OID;
	else
	{
		if (!starts(path, TABLESPACES "/", &rest) || !number(&rest, &key->tablespace) ||
			!starts(rest, "/" TABLESPACE_VERSION_DIRECTORY "/", &rest))
			return false;
	}
	return number(&rest, &key->database) && *rest == '/' && relation_of(rest + 1, key, segment);
}
