/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_image.c
 *	  A reader's copy of the segment on another machine (remote_image.h).
 *
 * A change is a run of words: its distance from the end of the previous run (signed) and its length in one number,
 * then each word's difference from its former value, modulo 2^64 (signed).
 */
#include "base/compat.h"

#include <dlfcn.h>
#include <string.h>

#include "common/pg_lzcompress.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "sql/remote_image.h"

#define LENGTH_BITS 3				/* of the first number of a run: words - 1, or the most: more words follow as a number */
#define LENGTH_MOST ((1u << LENGTH_BITS) - 1)

#define FOLDER_BYTES (REMOTE_IMAGE_FOLDER * (uint64) REMOTE_IMAGE_PAGE)

/* A staged change; its bytes follow. */
typedef struct piece
{
	uint64		offset;
	uint64		size;
} piece;

/* ---------------------------------------------------------------- memory */

void
remote_image_open(remote_image *image, uint64 size, uint64 limit)
{
	MemoryContext caller;

	remote_image_close(image);
	image->context = AllocSetContextCreate(TopMemoryContext, "pg_tally remote reader", ALLOCSET_DEFAULT_SIZES);
	image->size = size;
	image->limit = limit;
	image->used = 0;
	caller = MemoryContextSwitchTo(image->context);
	image->folders = palloc0((size / FOLDER_BYTES + 1) * sizeof(char **));
	MemoryContextSwitchTo(caller);
}

void
remote_image_close(remote_image *image)
{
	if (image->context != NULL)
		MemoryContextDelete(image->context);
	memset(image, 0, sizeof(*image));
}

static void *
take_memory(remote_image *image, uint64 size)
{
	if (size > image->limit - image->used)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the segment's image for a remote reader exceeds " UINT64_FORMAT " MB of memory",
						image->limit >> 20),
				 errhint("Read without statements and plans, or as a member of pg_read_all_stats.")));
	image->used += size;
	return MemoryContextAllocZero(image->context, size);
}

/* NULL: nothing was sent of it. */
static char *
known_page(const remote_image *image, uint64 offset)
{
	char	  **folder = image->folders[offset / FOLDER_BYTES];

	return folder == NULL ? NULL : folder[offset / REMOTE_IMAGE_PAGE % REMOTE_IMAGE_FOLDER];
}

static char *
make_page(remote_image *image, uint64 offset)
{
	char	 ***folder = &image->folders[offset / FOLDER_BYTES];
	char	  **page;

	if (*folder == NULL)
		*folder = take_memory(image, REMOTE_IMAGE_FOLDER * sizeof(char *));
	page = &(*folder)[offset / REMOTE_IMAGE_PAGE % REMOTE_IMAGE_FOLDER];
	if (*page == NULL)
		*page = take_memory(image, REMOTE_IMAGE_PAGE);
	return *page;
}

/* Bytes from that offset to the end of its page, or `size` if that is less. */
static inline uint64
within_page(uint64 offset, uint64 size)
{
	return Min(size, REMOTE_IMAGE_PAGE - offset % REMOTE_IMAGE_PAGE);
}

/* Offsets are from the checked header; a mistake of ours must not reach elsewhere. */
static void
check_range(const remote_image *image, uint64 offset, uint64 size)
{
	if (offset % sizeof(uint64) != 0 || offset > image->size || size > image->size - offset)
		elog(ERROR, "offset " UINT64_FORMAT " is outside the segment", offset);
}

void
remote_image_read(const remote_image *image, uint64 offset, void *to, uint64 size)
{
	char	   *next = to;

	check_range(image, offset, size);
	for (uint64 part; size > 0; offset += part, next += part, size -= part)
	{
		const char *page = known_page(image, offset);

		part = within_page(offset, size);
		if (page == NULL)
			memset(next, 0, part);
		else
			memcpy(next, page + offset % REMOTE_IMAGE_PAGE, part);
	}
}

/* ---------------------------------------------------------------- changes */

void
remote_image_begin(remote_image *image, StringInfo changes)
{
	image->changes = changes;
	image->word = 0;
	image->staged = makeStringInfo();
}

void
remote_put_number(StringInfo to, uint64 number)
{
	char		bytes[10];
	int			count = 0;

	while (number >= 0x80)
	{
		bytes[count++] = (char) (number | 0x80);
		number >>= 7;
	}
	bytes[count++] = (char) number;
	appendBinaryStringInfo(to, bytes, count);
}

void
remote_put_signed(StringInfo to, int64 number)
{
	remote_put_number(to, ((uint64) number << 1) ^ (uint64) (number >> 63));
}

static void
put_run(remote_image *image, uint64 at, const uint64 *before, const uint64 *now, uint64 count)
{
	int64		gap = (int64) (at - image->word);
	uint64		distance = ((uint64) gap << 1) ^ (uint64) (gap >> 63);

	remote_put_number(image->changes, distance << LENGTH_BITS | Min(count - 1, LENGTH_MOST));
	if (count > LENGTH_MOST)
		remote_put_number(image->changes, count - 1 - LENGTH_MOST);
	for (uint64 i = 0; i < count; i++)
		remote_put_signed(image->changes, (int64) (now[i] - before[i]));
	image->word = at + count;
}

/* Send the words of a page that differ. The page is made for the first of them. */
static void
send_within_page(remote_image *image, uint64 offset, const uint64 *now, uint64 words)
{
	static const uint64 zeros[REMOTE_IMAGE_PAGE / sizeof(uint64)];
	uint64	   *page = (uint64 *) known_page(image, offset);
	uint64		at = offset % REMOTE_IMAGE_PAGE / sizeof(uint64);
	const uint64 *known = (page != NULL ? page : zeros) + at;

	for (uint64 i = 0; i < words;)
	{
		uint64		count = 0;

		if (now[i] == known[i])
		{
			i++;
			continue;
		}
		while (i + count < words && now[i + count] != known[i + count])
			count++;
		if (page == NULL)
		{
			page = (uint64 *) make_page(image, offset);
			known = page + at;
		}
		put_run(image, offset / sizeof(uint64) + i, known + i, now + i, count);
		memcpy(page + at + i, now + i, count * sizeof(uint64));
		i += count;
	}
}

void
remote_image_put(remote_image *image, uint64 offset, const void *bytes, uint64 size)
{
	piece		put = {.offset = offset,.size = size};

	check_range(image, offset, size);
	Assert(size % sizeof(uint64) == 0);
	appendBinaryStringInfo(image->staged, (char *) &put, sizeof(put));
	appendBinaryStringInfo(image->staged, bytes, (int) size);
}

void
remote_image_send(remote_image *image)
{
	const char *next = image->staged->data;
	const char *end = next + image->staged->len;

	while (next < end)
	{
		const piece *put = (const piece *) next;
		uint64		offset = put->offset;
		uint64		size = put->size;

		CHECK_FOR_INTERRUPTS();
		next += sizeof(*put);
		for (uint64 part; size > 0; offset += part, next += part, size -= part)
		{
			part = within_page(offset, size);
			send_within_page(image, offset, (const uint64 *) next, part / sizeof(uint64));
		}
	}
	remote_image_forget(image);
}

void
remote_image_forget(remote_image *image)
{
	resetStringInfo(image->staged);
}

/* ---------------------------------------------------------------- compression */

/*
 * PostgreSQL's own compression is always there. zstd packs to three fifths of its size in less time; the server's
 * executable links it where it was built with it, so it is looked up among what is loaded, not loaded.
 */

#define COMPRESS_FROM 4096			/* bytes */
#define COMPRESS_UP_TO (64 * 1024 * 1024)
#define ZSTD_LEVEL 3

/* Functions of libzstd, by its stable interface. */
static struct
{
	bool		looked_up;
	size_t		(*bound) (size_t size);
	size_t		(*compress) (void *to, size_t space, const void *from, size_t size, int level);
	unsigned	(*is_error) (size_t result);
} zstd_lib;

static bool
has_zstd(void)
{
	if (!zstd_lib.looked_up)
	{
		*(void **) &zstd_lib.bound = dlsym(RTLD_DEFAULT, "ZSTD_compressBound");
		*(void **) &zstd_lib.compress = dlsym(RTLD_DEFAULT, "ZSTD_compress");
		*(void **) &zstd_lib.is_error = dlsym(RTLD_DEFAULT, "ZSTD_isError");
		zstd_lib.looked_up = true;
	}
	return zstd_lib.bound != NULL && zstd_lib.compress != NULL && zstd_lib.is_error != NULL;
}

bytea *
remote_bytea(const char *bytes, int32 size)
{
	bytea	   *value = palloc(size + VARHDRSZ);

	SET_VARSIZE(value, size + VARHDRSZ);
	memcpy(VARDATA(value), bytes, size);
	return value;
}

/* NULL: it does not help, or there is no memory for it. */
static bytea *
pack_zstd(const StringInfo changes)
{
	size_t		space = zstd_lib.bound(changes->len);
	bytea	   *value = palloc(space + VARHDRSZ);
	size_t		size = zstd_lib.compress(VARDATA(value), space, changes->data, changes->len, ZSTD_LEVEL);

	if (zstd_lib.is_error(size) || size >= (size_t) changes->len)
	{
		pfree(value);
		return NULL;
	}
	SET_VARSIZE(value, size + VARHDRSZ);
	return value;
}

static bytea *
pack_pglz(const StringInfo changes)
{
	bytea	   *value = palloc(PGLZ_MAX_OUTPUT(changes->len) + VARHDRSZ);
	int32		size = pglz_compress(changes->data, changes->len, VARDATA(value), PGLZ_strategy_default);

	if (size < 0)
	{
		pfree(value);
		return NULL;
	}
	SET_VARSIZE(value, size + VARHDRSZ);
	return value;
}

bytea *
remote_pack(const StringInfo changes, bool zstd, int32 *raw_size)
{
	bytea	   *value = NULL;

	*raw_size = 0;
	if (changes->len >= COMPRESS_FROM && changes->len <= COMPRESS_UP_TO)
	{
		if (zstd && has_zstd() && (value = pack_zstd(changes)) != NULL)
			*raw_size = -changes->len;
		else if ((value = pack_pglz(changes)) != NULL)
			*raw_size = changes->len;
	}
	return value != NULL ? value : remote_bytea(changes->data, changes->len);
}
