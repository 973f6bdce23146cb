/* SPDX-License-Identifier: PostgreSQL */
/*
 * create.c
 *	  Creates a segment's file.
 *
 * The file is written completely under a temporary name and then renamed or linked. So no process sees half a
 * header, and of two creators one wins and the other attaches.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <sys/file.h>

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif
#ifndef RAMFS_MAGIC
#define RAMFS_MAGIC 0x858458f6
#endif

static int
open_temporary(const char *path, uint32_t mode, char *name, int *fd)
{
	/*
	 * Until the header is complete, only the name tells whose file it is: readers remove what a killed client has left
	 * (crates/live, ended_clients; LeftSegment.java).
	 */
	unsigned long long namespace = tally_pid_namespace();
	unsigned long long started = tally_process_started((int32_t) getpid());

	for (int i = 0; i < 16; i++)
	{
		if (snprintf(name, PATH_MAX, "%s.new.%llu.%llu.%d.%d", path, namespace, started, (int) getpid(), i) >= PATH_MAX)
			return ENAMETOOLONG;
		*fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t) mode);
		if (*fd >= 0)
			return fchmod(*fd, (mode_t) mode) == 0 ? 0 : errno;		/* regardless of the umask */
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

static int
fill_header(tally_header *header, const tally_options *options, const tally_header *layout)
{
	int			rc;

	*header = *layout;
	header->byte_order = TALLY_BYTE_ORDER;
	header->version = TALLY_FORMAT_VERSION;
	header->clock_kind = options->clock != 0 ? options->clock : tally_clock_best();
	header->created_realtime_ns = tally_realtime_ns();
	tally_clock_pair((tally_clock_kind) header->clock_kind, &header->clock_tick0,
					 &header->clock_ns0);
	header->pid_namespace = tally_pid_namespace();
	rc = tally_boot_id(header->boot_id, sizeof(header->boot_id));
	tally_text(header->host, sizeof(header->host), options->host);
	tally_text(header->producer, sizeof(header->producer), options->producer);
	tally_text(header->server, sizeof(header->server), options->server);
	tally_text(header->socket_dir, sizeof(header->socket_dir), options->socket_dir);
	header->server_pid = options->server_pid;
	header->server_port = options->server_port;
	header->system_id = options->system_id;
	header->statements_since_ns = header->created_realtime_ns;
	header->extremes_resets = 1;
	header->flags = options->flags;
	if (options->flags & TALLY_SEGMENT_TRANSIENT)
		header->process_started = tally_process_started((int32_t) options->server_pid);
	header->level_word = (uint32_t) options->level;
	header->reset_tick = header->clock_tick0;
	if (header->clock_kind == TALLY_CLOCK_VIRTUAL)
		header->virtual_tick = header->clock_tick0;
	memcpy(header->magic, TALLY_MAGIC, sizeof(header->magic));
	return rc;
}

/* On a file system that is not in memory, each page written by a probe goes to disk sooner or later. */
static int
check_in_memory(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return errno;
	return (unsigned long) fs.f_type == TMPFS_MAGIC || (unsigned long) fs.f_type == RAMFS_MAGIC ? 0
		: EMEDIUMTYPE;
}

/* Reserve memory for a whole region. */
static int
reserve_region(const tally_segment *segment, const tally_region *region)
{
	return region->count == 0 ? 0
		: tally_reserve(segment, region->offset, (uint64_t) region->count * region->stride);
}

static int
fill(int fd, const tally_options *options, tally_segment *segment)
{
	static const tally_slot_entry other = {.kind = "other",.database = "other",.user = "other"};
	tally_header layout;
	tally_header header;
	int			rc;

	memset(&layout, 0, sizeof(layout));
	rc = tally_layout(options, &layout);
	if (rc == 0 && !options->any_file_system)
		rc = check_in_memory(fd);
	if (rc != 0)
		return rc;
	if (ftruncate(fd, (off_t) layout.segment_size) != 0)
		return errno;
	segment->fd = fd;
	rc = tally_reserve(segment, 0, layout.books.offset);
	if (rc == 0)
		rc = reserve_region(segment, &layout.sets);
	if (rc == 0)
		rc = reserve_region(segment, &layout.unsynced);
	if (rc == 0)
		rc = reserve_region(segment, &layout.relations);
	if (rc == 0)
		rc = reserve_region(segment, &layout.plan_memory);
	if (rc == 0)
		rc = fill_header(&header, options, &layout);
	if (rc == 0)
		rc = tally_describe(fd, &header, segment);
	if (rc == 0)
		rc = tally_map(segment);
	if (rc != 0)
		return rc;
	*segment->header = header;
	segment->created = true;
	tally_register(segment, TALLY_STAT_OVERFLOW, TALLY_ACCOUNT, "ticks");
	if (layout.relations.count != 0)
		*tally_relation_at(segment, 0) = (tally_relation) {
			.tag = TALLY_RELATION_OTHERS,.state = TALLY_RELATION_USED,
		};
	return tally_group_open(segment, layout.entries.count - 1, &other);
}

int
tally_create(const char *path, const tally_options *options, bool replace, tally_segment *segment)
{
	char		name[PATH_MAX];
	int			fd = -1;
	int			rc = open_temporary(path, options->mode, name, &fd);

	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
	if (rc == 0)
		rc = fill(fd, options, segment);
	if (rc == 0 && options->prepare != NULL)
		options->prepare(segment);
	if (rc == 0)
	{
		if (replace ? rename(name, path) == 0 : link(name, path) == 0)
		{
			if (!replace)
				unlink(name);
			return 0;
		}
		rc = errno == EACCES ? EPERM : errno;
	}
	if (segment->header != NULL)
		munmap(segment->header, segment->size);
	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
	if (fd >= 0)
	{
		unlink(name);
		close(fd);
	}
	return rc;
}

#define ROUNDS 8					/* attempts if the file is replaced meanwhile */
#define MISFIT_WAITS 50				/* waits of 20 ms for another process that replaces the same misfit */
#define MISFIT_WAIT_NS 20000000

/* Bounded, because any process that may read the file could hold its flock forever. */
static void
lock_misfit(int misfit)
{
	const struct timespec pause = {.tv_nsec = MISFIT_WAIT_NS};

	for (int i = 0; i < MISFIT_WAITS; i++)
	{
		if (flock(misfit, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
}

/* Returns 0 if the path still names the misfit, EEXIST if not, or the error that prevents finding out. */
static int
check_named(int misfit, const char *path)
{
	struct stat here,
				there;

	if (fstat(misfit, &here) != 0)
		return errno;
	if (lstat(path, &there) != 0)
		return errno == ENOENT ? EEXIST : errno;
	return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? 0 : EEXIST;
}

/*
 * An existing segment is from an earlier run of the same server. It stays in use, with the pid and port
 * of this run, which tell readers whether the server is alive.
 */
static void
adopt(tally_segment *segment, const tally_options *options)
{
	tally_header *header = segment->header;
	char		host[sizeof(header->host)];

	/* the data directory may have been moved since */
	tally_text(host, sizeof(host), options->host);
	if (options->host != NULL && memcmp(host, segment->cold.host, sizeof(host)) != 0)
		memcpy(header->host, host, sizeof(host));
	__atomic_store_n(&header->flags, options->flags, __ATOMIC_RELAXED);
	__atomic_store_n(&header->ended_tick, 0, __ATOMIC_RELAXED);
	if (options->server_pid != 0)
		__atomic_store_n(&header->server_pid, options->server_pid, __ATOMIC_RELAXED);
	if (options->server_port != 0)
		__atomic_store_n(&header->server_port, options->server_port, __ATOMIC_RELAXED);
}

int
tally_open(const char *path, const tally_options *options, tally_segment *segment)
{
	int			rc = EAGAIN;

	for (int i = 0; i < ROUNDS; i++)
	{
		int			misfit;

		rc = tally_attach_or_misfit(path, options, segment, &misfit);
		if (rc == EINVAL)
		{
			rc = 0;
			if (misfit >= 0)
			{
				lock_misfit(misfit);
				rc = check_named(misfit, path);
			}
			if (rc == 0)
				rc = tally_create(path, options, true, segment);
			if (misfit >= 0)
				close(misfit);
		}
		else if (rc == ENOENT)
			rc = tally_create(path, options, false, segment);
		if (rc != EEXIST)
			break;
	}
	if (rc == 0 && !segment->created)
	{
		rc = tally_map_or_close(segment);
		if (rc == 0)
			adopt(segment, options);
	}
	return rc;
}
