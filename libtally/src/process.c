/* SPDX-License-Identifier: PostgreSQL */
/*
 * process.c
 *	  Tests whether a process is alive, and identifies the boot and the pid namespace.
 *
 * Process ids are reused, so a process that started after the recorded instant is a different one. A zombie
 * counts as ended, because it will not write again. Async-signal-safe; preserves errno.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct process_status
{
	char		state;
	uint64_t	threads;
	uint64_t	start_ticks;		/* clock ticks since boot */
} process_status;

/* "/proc/PID/stat" */
static void
stat_path(int32_t pid, char *path)
{
	char		digits[12];
	int			n = 0;

	strcpy(path, "/proc/");
	path += 6;
	do
		digits[n++] = (char) ('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (n > 0)
		*path++ = digits[--n];
	strcpy(path, "/stat");
}

/* See proc(5): "pid (name) state ...". The name may contain anything, including blanks and ')'. */
static bool
read_status(int32_t pid, process_status *status)
{
	char		path[32];
	char		text[1024];
	ssize_t		length;
	char	   *at;
	int			fd;

	stat_path(pid, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	at = strrchr(text, ')');
	if (at == NULL || at[1] != ' ')
		return false;
	at += 2;
	status->state = *at;
	for (int field = 3; field < 22; field++)
	{
		at = strchr(at, ' ');
		if (at == NULL)
			return false;
		at++;
		if (field + 1 == 20)
			status->threads = strtoull(at, NULL, 10);
	}
	status->start_ticks = strtoull(at, NULL, 10);
	return true;
}

static uint64_t
start_boot_ns(const process_status *status)
{
	return status->start_ticks * (1000000000u / (uint64_t) sysconf(_SC_CLK_TCK));
}

/* When the process started, clock ticks since boot; 0 if unknown. */
uint64_t
tally_process_started(int32_t pid)
{
	process_status status;
	int			saved = errno;
	uint64_t	ticks = pid > 0 && read_status(pid, &status) ? status.start_ticks : 0;

	errno = saved;
	return ticks;
}

/* since_boot_ns: CLOCK_BOOTTIME at which the process was alive; 0 if unknown. */
bool
tally_process_ended(int32_t pid, uint64_t since_boot_ns)
{
	process_status status;
	bool		ended = false;
	int			saved = errno;

	if (pid <= 0)
		return false;
	if (kill(pid, 0) != 0 && errno == ESRCH)
		ended = true;
	else if (read_status(pid, &status))
		ended = ((status.state == 'Z' || status.state == 'X') && status.threads <= 1) ||
			(since_boot_ns != 0 && start_boot_ns(&status) > since_boot_ns + TALLY_START_SLACK_NS);
	errno = saved;
	return ended;
}

/* Is it running, or only waiting for a CPU, memory or a disk? */
bool
tally_process_runs(int32_t pid)
{
	process_status status;
	int			saved = errno;
	bool		runs = pid > 0 && read_status(pid, &status) &&
		(status.state == 'R' || status.state == 'D');

	errno = saved;
	return runs;
}

/* 0 if unknown. */
uint64_t
tally_pid_namespace(void)
{
	struct stat st;
	int			saved = errno;
	uint64_t	inode = stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t) st.st_ino : 0;

	errno = saved;
	return inode;
}

/* /proc/sys/kernel/random/boot_id. Returns 0 or an errno value; then a segment of this boot cannot be recognised. */
int
tally_boot_id(char *to, size_t size)
{
	int			fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t		length;
	int			error;

	if (fd < 0)
		return errno;
	length = read(fd, to, size - 1);
	error = length < 0 ? errno : length == 0 ? EIO : 0;
	close(fd);
	if (error != 0)
		return error;
	memset(to + length, 0, size - (size_t) length);
	to[strcspn(to, "\n")] = '\0';
	return 0;
}

uint64_t
tally_realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

uint64_t
tally_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}
