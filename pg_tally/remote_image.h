/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_image.h
 *	  What a reader elsewhere has of the segment, and the changes that bring it up to date.
 *
 * The image has the segment's size and layout. It holds what was sent, no more; parts that were not sent are zero and
 * take no memory. Changes are words of 8 bytes that differ from it, as differences: counters grow by small numbers.
 */
#ifndef PG_TALLY_REMOTE_IMAGE_H
#define PG_TALLY_REMOTE_IMAGE_H

#include "postgres.h"

#include "lib/stringinfo.h"

typedef struct remote_image
{
	char	   *bytes;				/* a mapping of our own; NULL: none */
	uint64		size;
	StringInfo	changes;			/* of the call in progress */
	uint64		word;				/* number of the word after the last change */
} remote_image;

/* An image of zeros, of so many bytes. An error if there is no memory. */
extern void remote_image_open(remote_image *image, uint64 size);
extern void remote_image_close(remote_image *image);
/* Changes go to that buffer from now on; the receiver begins at word 0 too. */
extern void remote_image_begin(remote_image *image, StringInfo changes);
/* Bring these bytes of the image up to date. Offset and size are multiples of 8. */
extern void remote_image_put(remote_image *image, uint64 offset, const void *bytes, uint64 size);
/* What the image has there. */
extern const void *remote_image_at(const remote_image *image, uint64 offset);
/* An unsigned number: 7 bits a byte, the lowest first; the eighth bit: there are more. */
extern void remote_put_number(StringInfo to, uint64 number);
/* A signed one, with its sign in the lowest bit. */
extern void remote_put_signed(StringInfo to, int64 number);

#endif							/* PG_TALLY_REMOTE_IMAGE_H */
