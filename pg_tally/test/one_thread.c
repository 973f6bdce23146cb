/* SPDX-License-Identifier: PostgreSQL */
/*
 * one_thread.c
 *	  An emulator of another processor runs a test with its own additional threads, which detour_release would take for
 *	  threads of the process. Threads that exist at the start are not counted (linked with --wrap=stat).
 */
#include <string.h>
#include <sys/stat.h>

#define TASKS "/proc/self/task"
#define ONE 3						/* link count of the directory with one thread */

extern int	__real_stat(const char *path, struct stat *st);
extern int	__wrap_stat(const char *path, struct stat *st);

static nlink_t others = 0;

__attribute__((constructor)) static void
count_others(void)
{
	struct stat st;

	if (__real_stat(TASKS, &st) == 0 && st.st_nlink > ONE)
		others = st.st_nlink - ONE;
}

int
__wrap_stat(const char *path, struct stat *st)
{
	int			result = __real_stat(path, st);

	if (result == 0 && strcmp(path, TASKS) == 0)
		st->st_nlink -= others;
	return result;
}
