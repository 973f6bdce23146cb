/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_packing.c
 *	  Compression of what is sent to a reader elsewhere (remote_packing.h).
 *
 * PostgreSQL's own compression is always there. zstd packs to three fifths of its size in less time; the
 * server's executable links it where it was built with it, so it is looked up among what is loaded, not loaded.
 */
#include "compat.h"

#include <dlfcn.h>
#include <string.h>

#include "common/pg_lzcompress.h"

#include "remote_packing.h"

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
