/* SPDX-License-Identifier: PostgreSQL */
/*
 * segment.c
 *	  Attaches to a segment's file, or has it created.
 *
 * A file that does not fit is replaced by rename under its own flock, so that two processes that find it
 * do not replace each other's new file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Have both the same capacities and regions? */
static bool
same_layout(const tally_header *a, const tally_header *b)
{
#define SAME(first, last) \
	(memcmp(&a->first, &b->first, offsetof(tally_header, last) + sizeof(a->last) - offsetof(tally_header, first)) == 0)
	return SAME(header_size, segment_size) && SAME(slots, stats_per_book) && SAME(probes, books) &&
		SAME(sets, caches) && SAME(unsynced, traces);
#undef SAME
}

/* Is this the header of a complete segment that this library can write? */
static bool
header_fits(const tally_header *header, uint64_t file_size)
{
	tally_options options;
	tally_header layout;

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
	options.plans = header->plans.count;
	options.traces = header->traces.count;
	memset(&layout, 0, sizeof(layout));
	if (header->unsynced.count > UINT32_MAX / TALLY_FILE_WAYS ||
		header->sets.count > UINT32_MAX / TALLY_STATEMENTS_PER_SET ||
		tally_layout(&options, &layout) != 0)
		return false;
	if (file_size != layout.segment_size || !same_layout(header, &layout))
		return false;
	return tally_clock_is_known(header->clock_kind);
}

/* Returns 0, EINVAL if it is from another boot, or the error that prevents finding out. */
static int
check_boot(const tally_header *header)
{
	char		boot_id[sizeof(header->boot_id)];
	int			rc = tally_boot_id(boot_id, sizeof(boot_id));

	if (rc == 0 && memcmp(boot_id, header->boot_id, sizeof(boot_id)) != 0)
		rc = EINVAL;
	return rc;
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
#ifdef TALLY_TEST_HOOKS
	if (segment->clock == TALLY_CLOCK_VIRTUAL)
		tally_virtual_tick = &segment->header->virtual_tick;
#endif
	return 0;
}

int
tally_describe(int fd, const tally_header *header, tally_segment *segment)
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
options_fit(const tally_header *header, const tally_options *options)
{
	tally_header layout;

	if (options->system_id != header->system_id ||
		(options->clock != 0 && header->clock_kind != (uint32_t) options->clock))
		return false;
	/* from an earlier run of the server, so no process uses it */
	if (options->any_capacities && header->server_pid == options->server_pid)
		return true;
	memset(&layout, 0, sizeof(layout));
	return tally_layout(options, &layout) == 0 && same_layout(header, &layout);
}

/* EINVAL, and no other error, means that it does not fit. If options is NULL, any segment fits. */
static int
attach_fd(int fd, const tally_options *options, tally_segment *segment)
{
	struct stat st;
	tally_header header;
	ssize_t		length;
	int			rc;

	if (fstat(fd, &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return EINVAL;
	length = pread(fd, &header, sizeof(header), 0);
	if (length < 0)
		return errno;
	if (length != (ssize_t) sizeof(header) || !header_fits(&header, (uint64_t) st.st_size) ||
		(options != NULL && !options_fit(&header, options)))
		return EINVAL;
	rc = check_boot(&header);
	return rc != 0 ? rc : tally_describe(fd, &header, segment);
}

/*
 * Does this error of open(2) mean that something other than a segment has that name? With any other error, the
 * file may be in use.
 */
static bool
means_misfit(int error)
{
	switch (error)
	{
		case EACCES:
		case EPERM:
		case ELOOP:
		case EISDIR:
		case ENXIO:
		case EOPNOTSUPP:
			return true;
		default:
			return false;
	}
}

/* On EINVAL, *misfit is set to the descriptor of the file that does not fit, if there is one. */
int
tally_attach_or_misfit(const char *path, const tally_options *options, tally_segment *segment, int *misfit)
{
	int			fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int			rc;

	memset(segment, 0, sizeof(*segment));
	segment->fd = -1;
	*misfit = -1;
	if (fd < 0)
		return means_misfit(errno) ? EINVAL : errno;
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
	int			rc = tally_attach_or_misfit(path, NULL, segment, &misfit);

	if (misfit >= 0)
		close(misfit);
	return rc;
}

/* Map the segment that was just opened, or close it if that fails. */
int
tally_map_or_close(tally_segment *segment)
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

	return rc == 0 ? tally_map_or_close(segment) : rc;
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
