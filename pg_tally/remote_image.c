/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_image.c
 *	  What a reader elsewhere has of the segment (remote_image.h).
 *
 * A change is a run of words: its distance from the end of the previous run (signed) and its length in one number,
 * then each word's difference from its former value, modulo 2^64 (signed).
 */
#include "postgres.h"

#include <string.h>
#include <sys/mman.h>

#include "remote_image.h"

#define LENGTH_BITS 3				/* of the first number of a run: words - 1, or the most: more words follow as a number */
#define LENGTH_MOST ((1u << LENGTH_BITS) - 1)

void
remote_image_open(remote_image *image, uint64 size)
{
	void	   *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	remote_image_close(image);
	if (bytes == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map " UINT64_FORMAT " bytes for a remote reader: %m", size)));
	image->bytes = bytes;
	image->size = size;
}

void
remote_image_close(remote_image *image)
{
	if (image->bytes != NULL)
		munmap(image->bytes, image->size);
	image->bytes = NULL;
	image->size = 0;
}

void
remote_image_begin(remote_image *image, StringInfo changes)
{
	image->changes = changes;
	image->word = 0;
}

const void *
remote_image_at(const remote_image *image, uint64 offset)
{
	return image->bytes + offset;
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

void
remote_image_put(remote_image *image, uint64 offset, const void *bytes, uint64 size)
{
	uint64	   *known = (uint64 *) (image->bytes + offset);
	const uint64 *now = bytes;
	uint64		words = size / sizeof(uint64);

	/* offsets are from the checked header; a mistake of ours must not write elsewhere */
	if (offset % sizeof(uint64) != 0 || offset > image->size || size > image->size - offset)
		elog(ERROR, "offset " UINT64_FORMAT " is outside of the segment", offset);
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
		put_run(image, offset / sizeof(uint64) + i, known + i, now + i, count);
		memcpy(known + i, now + i, count * sizeof(uint64));
		i += count;
	}
}
