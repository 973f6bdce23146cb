/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_packing.h
 *	  Compression of what is sent to a reader elsewhere.
 */
#ifndef PG_TALLY_REMOTE_PACKING_H
#define PG_TALLY_REMOTE_PACKING_H

#include "postgres.h"

#include "lib/stringinfo.h"

extern bytea *remote_bytea(const char *bytes, int32 size);

/*
 * Compressed where that helps: then *raw_size is the size before; positive by pglz, negative by zstd. 0: as it is.
 * zstd: the reader knows it.
 */
extern bytea *remote_pack(const StringInfo changes, bool zstd, int32 *raw_size);

#endif							/* PG_TALLY_REMOTE_PACKING_H */
