/* SPDX-License-Identifier: PostgreSQL */
/*
 * segment.c
 *	  Attaches to a segment's file, or makes one.
 *
 * A new segment is written in full under a name of its own and then renamed, so nobody
 * sees half a header, and of two creators one wins and the other attaches. A file that
 * does not fit is replaced by rename under its own flock, so that two who find it do not
 * replace each other's.
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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif
#ifndef RAMFS_MAGIC
#define RAMFS_MAGIC 0x858458f6
#endif

#define ROUNDS 8					/* of finding the file replaced meanwhile */
#define MISFIT_WAITS 50				/* of 20 ms for another who replaces the same misfit */
#define MISFIT_WAIT_NS 20000000

static void
read_boot_id(char *to, size_t size)
{
	int			fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t		length = fd < 0 ? -1 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	memset(to + (length > 0 ? length : 0), 0, size - (size_t) (length > 0 ? length : 0));
	to[strcspn(to, "\n")] = '\0';
}

static bool
same_region(const tally_region *a, const tally_region *b)
{
	return a->offset == b->offset && a->count == b->count && a->stride == b->stride;
}

/* Is this the header of a segment, whole and of this boot, that we can write? */
static bool
header_fits(const tally_header *header, uint64_t file_size)
{
	tally_options options;
	tally_header layout;
	char		boot_id[sizeof(header->boot_id)];

	if (memcmp(header->magic, TALLY_MAGIC, sizeof(header->magic)) != 0 ||
		header->byte_order != TALLY_BYTE_ORDER || header->version != TALLY_FORMAT_VERSION)
		return false;
	tally_options_init(&options);
	options.slots = header->slots;
	options.groups = header->groups;
	options.stats_per_book = header->stats_per_book;
	options.directory = header->directory.count;
	options.events = header->events.count;
	options.statements = header->sets.count * TALLY_STATEMENTS_PER_SET;
	options.files = header->unsynced.count * TALLY_FILE_WAYS;
	options.relations = header->relations.count == 0 ? 0 : header->relations.count - 1;
	memset(&layout, 0, sizeof(layout));
	if (header->unsynced.count > UINT32_MAX / TALLY_FILE_WAYS ||
		header->sets.count > UINT32_MAX / TALLY_STATEMENTS_PER_SET ||
		tally_layout(&options, &layout) != 0)
		return false;
	if (header->header_size != layout.header_size ||
		header->hist_buckets != layout.hist_buckets ||
		header->segment_size != layout.segment_size || file_size != layout.segment_size ||
		!same_region(&header->probes, &layout.probes) ||
		!same_region(&header->directory, &layout.directory) ||
		!same_region(&header->events, &layout.events) ||
		!same_region(&header->merge_log, &layout.merge_log) ||
		!same_region(&header->journal, &layout.journal) ||
		!same_region(&header->entries, &layout.entries) ||
		!same_region(&header->books, &layout.books) ||
		!same_region(&header->sets, &layout.sets) ||
		!same_region(&header->statements, &layout.statements) ||
		!same_region(&header->texts, &layout.texts) ||
		!same_region(&header->caches, &layout.caches) ||
		!same_region(&header->unsynced, &layout.unsynced) ||
		!same_region(&header->relations, &layout.relations) ||
		!same_region(&header->local_relations, &layout.local_relations))
		return false;
#if !defined(__x86_64__)
	if (header->clock_kind == TALLY_CLOCK_TSC)
		return false;
#endif
	if (header->clock_kind != TALLY_CLOCK_MONOTONIC && header->clock_kind != TALLY_CLOCK_TSC)
		return false;
	read_boot_id(boot_id, sizeof(boot_id));
	return boot_id[0] != '\0' && memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0;
}

int
tally_map(tally_segment *segment)
{
	struct stat st;
	void	   *at;

	if (fstat(segment->fd, &st) != 0)
		return errno;
	if ((uint64_t) st.st_size < segment->size)
		return EINVAL;
	at = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
	if (at == MAP_FAILED)
		return errno;
	segment->header = at;
	return 0;
}

/* The file as it is now, and this header as it was found in it or goes into it. */
static int
know(int fd, const tally_header *header, tally_segment *segment)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return errno;
	segment->cold = *header;
	segment->size = header->segment_size;
	segment->fd = fd;
	segment->device = (uint64_t) st.st_dev;
	segment->inode = (uint64_t) st.st_ino;
	segment->clock = (tally_clock_kind) header->clock_kind;
	return 0;
}

static bool
is_wanted(const tally_header *header, const tally_options *options)
{
	if (options->system_id != header->system_id ||
		(options->clock != 0 && header->clock_kind != (uint32_t) options->clock))
		return false;
	/* Of an earlier run of the server nobody lives in it any more. */
	if (options->any_capacities && header->server_pid == options->server_pid)
		return true;
	return (header->slots == options->slots && header->groups == options->groups &&
		header->stats_per_book == options->stats_per_book &&
		header->directory.count == options->directory &&
		header->events.count == options->events &&
		header->sets.count == tally_sets_of(options->statements) &&
		header->unsynced.count == tally_file_sets_of(options->files) &&
		header->relations.count == (options->relations == 0 ? 0 : 1 + options->relations));
}

/* options NULL: any segment does. */
static int
attach_fd(int fd, const tally_options *options, tally_segment *segment)
{
	struct stat st;
	tally_header header;

	if (fstat(fd, &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		pread(fd, &header, sizeof(header), 0) != (ssize_t) sizeof(header) ||
		!header_fits(&header, (uint64_t) st.st_size) ||
		(options != NULL && !is_wanted(&header, options)))
		return EINVAL;
	return know(fd, &header, segment);
}

/* EINVAL leaves the descriptor of the file that does not fit in *misfit, if there is one. */
static int
attach(const char *path, const tally_options *options, tally_segment *segment, int *misfit)
{
	int			fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int			rc;

	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
	*misfit = -1;
	if (fd < 0)
		return errno == ENOENT || errno == EMFILE || errno == ENFILE ? errno : EINVAL;
	rc = attach_fd(fd, options, segment);
	if (rc == EINVAL)
		*misfit = fd;
	else if (rc != 0)
		close(fd);
	return rc;
}

int
tally_attach_unmapped(const char *path, tally_segment *segment)
{
	int			misfit;
	int			rc = attach(path, NULL, segment, &misfit);

	if (misfit >= 0)
		close(misfit);
	return rc;
}

/* Map what has just been opened, or close it. */
static int
map_or_close(tally_segment *segment)
{
	int			rc = tally_map(segment);

	if (rc != 0)
		tally_close(segment);
	return rc;
}

int
tally_attach(const char *path, tally_segment *segment)
{
	int			rc = tally_attach_unmapped(path, segment);

	return rc == 0 ? map_or_close(segment) : rc;
}

static int
open_temporary(const char *path, uint32_t mode, char *name, int *fd)
{
	for (int i = 0; i < 16; i++)
	{
		if (snprintf(name, PATH_MAX, "%s.new.%d.%d", path, (int) getpid(), i) >= PATH_MAX)
			return ENAMETOOLONG;
		*fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t) mode);
		if (*fd >= 0)
			return fchmod(*fd, (mode_t) mode) == 0 ? 0 : errno;		/* whatever the umask */
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

static void
fill_header(tally_header *header, const tally_options *options, const tally_header *layout)
{
	struct timespec now;

	*header = *layout;
	header->byte_order = TALLY_BYTE_ORDER;
	header->version = TALLY_FORMAT_VERSION;
	header->clock_kind = options->clock != 0 ? options->clock : tally_clock_best();
	clock_gettime(CLOCK_REALTIME, &now);
	header->created_realtime_ns = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
	tally_clock_pair((tally_clock_kind) header->clock_kind, &header->clock_tick0,
					 &header->clock_ns0);
	header->pid_namespace = tally_pid_namespace();
	read_boot_id(header->boot_id, sizeof(header->boot_id));
	tally_text(header->host, sizeof(header->host), options->host);
	tally_text(header->producer, sizeof(header->producer), options->producer);
	tally_text(header->server, sizeof(header->server), options->server);
	tally_text(header->socket_dir, sizeof(header->socket_dir), options->socket_dir);
	header->server_pid = options->server_pid;
	header->server_port = options->server_port;
	header->system_id = options->system_id;
	header->flags = options->flags;
	header->level_word = (uint32_t) options->level;
	header->reset_tick = header->clock_tick0;
	memcpy(header->magic, TALLY_MAGIC, sizeof(header->magic));
}

/* Is it in memory? Elsewhere each page that a probe writes goes to a disk sooner or later. */
static bool
is_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
		((unsigned long) fs.f_type == TMPFS_MAGIC || (unsigned long) fs.f_type == RAMFS_MAGIC);
}

/* Memory for all of it. */
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
	if (rc != 0)
		return rc;
	if (!options->any_file_system && !is_in_memory(fd))
		return EMEDIUMTYPE;
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
	if (rc != 0)
		return rc;
	fill_header(&header, options, &layout);
	rc = know(fd, &header, segment);
	if (rc == 0)
		rc = tally_map(segment);
	if (rc != 0)
		return rc;
	*segment->header = header;
	segment->created = true;
	tally_register(segment, TALLY_OVERFLOW_NAME, TALLY_ACCOUNT, "ticks");
	if (layout.relations.count != 0)
		*tally_relation_at(segment, 0) = (tally_relation) {
			.tag = TALLY_RELATION_OTHERS,.state = TALLY_RELATION_USED,
		};
	return tally_group_open(segment, layout.entries.count - 1, &other);
}

static int
create(const char *path, const tally_options *options, bool replace, tally_segment *segment)
{
	char		name[PATH_MAX];
	int			fd = -1;
	int			rc = open_temporary(path, options->mode, name, &fd);

	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
	if (rc == 0)
		rc = fill(fd, options, segment);
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

/* Bounded: whoever may read the file could hold its flock for ever. */
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

/* Is the misfit still what the path names? */
static bool
still_named(int misfit, const char *path)
{
	struct stat here,
				there;

	return fstat(misfit, &here) == 0 && lstat(path, &there) == 0 &&
		here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/*
 * A segment that was found is of an earlier run of the same server: it goes on, under the
 * pid and port of this run, by which readers tell whether the server is alive.
 */
static void
adopt(tally_segment *segment, const tally_options *options)
{
	tally_header *header = segment->header;

	/* a data directory that was moved has its segment still */
	if (options->host != NULL && !tally_text_is(segment->cold.host, sizeof(segment->cold.host), options->host))
		tally_text(header->host, sizeof(header->host), options->host);
	__atomic_store_n(&header->flags, options->flags, __ATOMIC_RELAXED);
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

		rc = attach(path, options, segment, &misfit);
		if (rc == EINVAL)
		{
			if (misfit >= 0)
				lock_misfit(misfit);
			if (misfit >= 0 && !still_named(misfit, path))
				rc = EEXIST;
			else
				rc = create(path, options, true, segment);
			if (misfit >= 0)
				close(misfit);
		}
		else if (rc == ENOENT)
			rc = create(path, options, false, segment);
		if (rc != EEXIST)
			break;
	}
	if (rc == 0 && !segment->created)
	{
		rc = map_or_close(segment);
		if (rc == 0)
			adopt(segment, options);
	}
	return rc;
}

void
tally_close(tally_segment *segment)
{
	if (segment->header != NULL)
		munmap(segment->header, segment->size);
	if (segment->fd >= 0)
		close(segment->fd);
	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
}
