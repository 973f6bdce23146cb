/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_cache.h
 *	  The owner's side of a slot's statements: finding, entering and flushing its local entries.
 *
 * Concurrency contract: a tally_cache is in the owner's memory, for the slot's thread only. The local entries
 * themselves are in the segment (tally_statements.h).
 */
#ifndef TALLY_CACHE_H
#define TALLY_CACHE_H

#include "tally_statements.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The first TALLY_PASSING local entries are for statements that were not seen recently, in the order of
 * their arrival. When all of them are in use, they are flushed together (tally_cache_settle), so that the
 * code is fetched only once. So statements that never recur do not evict others from the cache. A
 * statement that recurs before some dozens of others have arrived gets one of the other local entries.
 */
#define TALLY_PASSING 16u
#define TALLY_SEEN 64u				/* power of two */

/* One per claimed slot; for the slot's thread only. */
typedef struct tally_cache
{
	tally_current *current;			/* this field, the next three and `latest` are used by every statement */
	tally_local_statement *local;
	uint32_t	clock;				/* counts uses */
	uint32_t	passing;			/* number of the first TALLY_PASSING entries in use */
	uint64_t	strays;				/* bit n: local entry n could not be flushed, or is not in its statement's place */
	tally_segment *segment;			/* NULL: not open */
	uint32_t	slot;
	uint32_t	limit;				/* number of local entries that have memory */
	uint8_t		latest[TALLY_SEEN] __attribute__((aligned(64)));	/* the local entry found last, by the id's lowest bits */
	uint32_t	stamps[TALLY_LOCAL_STATEMENTS];	/* the clock at its last use */
	uint64_t	tags[TALLY_LOCAL_STATEMENTS]; /* hash of each local entry's key; 0: free */
	uint32_t	hints[TALLY_LOCAL_STATEMENTS];	/* number of each one's shared entry, or TALLY_NONE if unknown */
	uint16_t	seen[TALLY_SEEN];	/* upper 16 bits of the hashes of statements that passed through */
	tally_holder holder;			/* the slot's owner */
	uint32_t	turn;				/* the stray tried last */
} tally_cache;

#ifndef __cplusplus
TALLY_ASSERT(TALLY_LOCAL_STATEMENTS <= 64);	/* bits of tally_cache.strays */
#endif

/*
 * Open the cache of a claimed slot. ENOENT: the segment has no statements; ENOSPC: no memory
 * (counted in overflow_memory).
 */
extern int	tally_cache_open(tally_slot *slot, tally_cache *cache);

/* Where the cache's owner writes its message's text; NULL if there is no memory for it. */
extern tally_message_text *tally_message_text_open(tally_cache *cache);

/*
 * A local entry for a statement that tally_cache_find did not find. With a text, the statement is also
 * entered in the table with that text, unless it has one there; a statement seen recently is found or
 * entered there in any case. `known` is the result of tally_statement_known, or TALLY_NONE. Flushes the
 * previous contents of the local entry. Does not wait: while another process holds the locks needed, the statement
 * counts in a local entry without a shared one, and gets its text at its next execution. NULL if the table is full, or
 * all local entries are in that state (counted in statements_dropped).
 */
extern tally_local_statement *tally_cache_enter(tally_cache *cache, const tally_statement_key *key,
									   const tally_statement_text *text, uint32_t known);

/* Flush the first TALLY_PASSING local entries. */
extern void tally_cache_flush_passing(tally_cache *cache);

/* The same if all of them are in use. To be called at the end of a statement. */
static inline void
tally_cache_settle(tally_cache *cache)
{
	if (__builtin_expect(cache->passing == TALLY_PASSING, 0))
		tally_cache_flush_passing(cache);
}

/* Flush all of this cache's local entries, and current. */
extern void tally_cache_flush(tally_cache *cache);

/*
 * From now on, no statement is found in the cache: each gets a new local entry at its next execution. The old entries stay
 * until a statement needs their place, or the slot ends. Changes nothing that others see, so it may be called at any time.
 */
extern void tally_cache_forget(tally_cache *cache);

/* tally_cache_find among the strays. */
extern tally_local_statement *tally_cache_find_stray(tally_cache *cache, const tally_statement_key *key, uint64_t tag);

#define TALLY_CACHE_WAYS 4u
#define TALLY_CACHE_GROUPS ((TALLY_LOCAL_STATEMENTS - TALLY_PASSING) / TALLY_CACHE_WAYS)

/* Index of the first of the TALLY_CACHE_WAYS local entries for a statement with that hash. */
static inline uint32_t
tally_cache_first(uint64_t tag)
{
	return TALLY_PASSING + ((uint32_t) (tag >> 8 & 0xFFFF) * TALLY_CACHE_GROUPS >> 16) * TALLY_CACHE_WAYS;
}

/* The local entry at that index belongs to the statement. */
static inline tally_local_statement *
tally_cache_found(tally_cache *cache, const tally_statement_key *key, uint32_t index)
{
	cache->latest[key->id % TALLY_SEEN] = (uint8_t) index;
	cache->stamps[index] = ++cache->clock;
	return &cache->local[index];
}

/* tally_cache_find, wherever the local entry is. */
__attribute__((noinline, unused)) static tally_local_statement *
tally_cache_search(tally_cache *cache, const tally_statement_key *key)
{
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	first = tally_cache_first(tag);

	for (uint32_t i = first; i < first + TALLY_CACHE_WAYS; i++)
		if (cache->tags[i] == tag && tally_local_statement_is(&cache->local[i], key))
			return tally_cache_found(cache, key, i);
	for (uint32_t i = 0; i < cache->passing; i++)
		if (cache->tags[i] == tag && tally_local_statement_is(&cache->local[i], key))
			return tally_cache_found(cache, key, i);
	return __builtin_expect(cache->strays != 0, 0) ? tally_cache_find_stray(cache, key, tag) : NULL;
}

/*
 * The local entry of a statement, if it was the latest of its kind to be found, else NULL. By the key's members: they are
 * compared where they are, and no key is made of them. `variant`: tally_statement_variant.
 */
TALLY_HOT tally_local_statement *
tally_cache_latest(tally_cache *cache, uint64_t id, uint32_t database_id, uint32_t user_id, uint32_t variant)
{
	uint32_t	index = cache->latest[id % TALLY_SEEN];
	tally_local_statement *local = &cache->local[index];

	/* a different statement, or a free entry */
	if (__builtin_expect(local->key.id != id || local->key.database_id != database_id || local->key.user_id != user_id ||
						 tally_statement_variant(&local->key) != variant || local->state != 1 || !tally_local_statement_usable(local), 0))
		return NULL;
	cache->stamps[index] = ++cache->clock;
	return local;
}

/* The statement's local entry, or NULL. `drop` is the only field written by others that it reads. */
TALLY_HOT tally_local_statement *
tally_cache_find(tally_cache *cache, const tally_statement_key *key)
{
	tally_local_statement *local = key->toplevel == 1 ?
		tally_cache_latest(cache, key->id, key->database_id, key->user_id, tally_statement_variant(key)) : NULL;

	return __builtin_expect(local != NULL, 1) ? local : tally_cache_search(cache, key);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_CACHE_H */
