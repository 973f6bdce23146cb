/* SPDX-License-Identifier: PostgreSQL */
/*
 * plans.c
 *	  The table of statements' plans (tally_plans.h).
 *
 * Concurrency contract: any process, by atomic operations. A process that adds to an entry pins it and then checks that it
 * still belongs to that plan. A process that gives an entry to another plan changes its state and then checks that it has no
 * pins. So one of the two sees the other. Two processes that put the same plan at the same time may put it twice: readers add
 * up by key and shape. If a process is killed while it writes or pins an entry, the entry is no longer used.
 */
#include "internal.h"
#include "tally_plans.h"

#include <string.h>

/* The first entry of the set for that statement. */
static uint32_t
set_of(const tally_segment *segment, const tally_statement_key *key)
{
	uint32_t	sets = segment->cold.plans.count / TALLY_PLAN_WAYS;

	return (uint32_t) (tally_statement_hash(key) >> 16) % sets * TALLY_PLAN_WAYS;
}

static uint32_t
state_of(const tally_plan *plan)
{
	return __atomic_load_n(&plan->state, __ATOMIC_SEQ_CST);
}

/* A page without memory must not be touched, not even for reading, which would allocate memory or fail. */
static bool
has_memory(const tally_segment *segment, uint32_t index)
{
	return __atomic_load_n(tally_plan_memory_at(segment, index), __ATOMIC_ACQUIRE) != 0;
}

/* The state of an entry, which is free as long as it has no memory. */
static uint32_t
state_at(const tally_segment *segment, uint32_t index)
{
	return has_memory(segment, index) ? state_of(tally_plan_at(segment, index)) : TALLY_PLAN_FREE;
}

static bool
change_state(tally_plan *plan, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&plan->state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static bool
is_of(const tally_plan *plan, const tally_statement_key *key)
{
	tally_statement_key found;

	tally_copy_words(&found, &plan->key, sizeof(found));
	return tally_statement_same(&found, key);
}

static void
raise_to(uint64_t *word, uint64_t value)
{
	uint64_t	seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (seen < value &&
		   !__atomic_compare_exchange_n(word, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Adds the execution if the entry belongs to that plan. */
static bool
add_to(tally_plan *plan, const tally_statement_key *key, uint64_t shape, const tally_plan_use *use)
{
	bool		same;

	__atomic_fetch_add(&plan->pins, 1, __ATOMIC_SEQ_CST);
	TALLY_POINT("plan pinned");
	same = state_of(plan) == TALLY_PLAN_USED && tally_peek64(&plan->shape) == shape && is_of(plan, key);
	if (same)
	{
		__atomic_fetch_add(&plan->count, 1, __ATOMIC_RELAXED);
		TALLY_STOP("execution half added to its plan");
		__atomic_fetch_add(&plan->ticks, use->ticks, __ATOMIC_RELAXED);
		__atomic_fetch_add(&plan->rows, use->rows, __ATOMIC_RELAXED);
		raise_to(&plan->max, use->ticks);
		raise_to(&plan->last, use->now);
	}
	TALLY_STOP("plan to be unpinned");
	__atomic_fetch_sub(&plan->pins, 1, __ATOMIC_SEQ_CST);
	return same;
}

bool
tally_plan_add(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
			   const tally_plan_use *use)
{
	uint32_t	first;

	if (segment->cold.plans.count == 0)
		return false;
	first = set_of(segment, key);
	for (uint32_t way = 0; way < TALLY_PLAN_WAYS; way++)
	{
		tally_plan *plan = tally_plan_at(segment, first + way);

		if (state_at(segment, first + way) == TALLY_PLAN_USED &&
			tally_peek64(&plan->shape) == shape && add_to(plan, key, shape, use))
			return true;
	}
	return false;
}

/* The entry belongs to this process, in state WRITING. */
static void
fill(tally_plan *plan, const tally_statement_key *key, uint64_t shape, const tally_plan_text *text,
	 const tally_plan_use *use)
{
	uint32_t	size = text->size < sizeof(plan->text) ? text->size : sizeof(plan->text);

	/* after the state, which is no longer USED for those who see this, and before all stores below */
	__atomic_store_n(&plan->generation, plan->generation + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TALLY_STOP("plan of a new generation");
	plan->key = *key;
	TALLY_STOP("plan has its key");
	plan->shape = shape;
	plan->born = plan->last = use->now;
	plan->count = 1;
	plan->ticks = plan->max = use->ticks;
	plan->rows = use->rows;
	plan->cost = text->cost;
	plan->encoding = text->encoding;
	plan->text_bytes = size;
	plan->text_whole = text->whole > text->size ? text->whole : text->size;
	TALLY_DEFINED(text->bytes, size);
	memcpy(plan->text, text->bytes, size / 2);
	TALLY_STOP("plan has half its text");
	memcpy(plan->text + size / 2, text->bytes + size / 2, size - size / 2);
	/* the entry's former text may belong to another role */
	memset(plan->text + size, 0, sizeof(plan->text) - size);
	TALLY_POINT("plan written");
	__atomic_store_n(&plan->state, TALLY_PLAN_USED, __ATOMIC_RELEASE);
	TALLY_STOP("plan used");
}

/* Takes the entry for a new plan. False if another process has taken it, or adds to it. */
static bool
take(tally_segment *segment, uint32_t index, uint32_t state)
{
	tally_plan *plan = tally_plan_at(segment, index);

	if (!has_memory(segment, index))
	{
		if (tally_reserve(segment, tally_offset(&segment->cold.plans, index), TALLY_PLAN_SIZE) != 0)
		{
			tally_count_one(&segment->header->overflow_memory);
			return false;
		}
		__atomic_store_n(tally_plan_memory_at(segment, index), 1, __ATOMIC_RELEASE);
	}
	if (!change_state(plan, state, TALLY_PLAN_WRITING))
		return false;
	TALLY_POINT("plan taken");
	if (__atomic_load_n(&plan->pins, __ATOMIC_SEQ_CST) == 0)
		return true;
	__atomic_store_n(&plan->state, state, __ATOMIC_RELEASE);
	return false;
}

/* The shape that the statement used last; 0 if none is in its set. */
static uint64_t
last_shape(const tally_segment *segment, uint32_t first, const tally_statement_key *key)
{
	uint64_t	latest = 0;
	uint64_t	shape = 0;

	for (uint32_t way = 0; way < TALLY_PLAN_WAYS; way++)
	{
		const tally_plan *plan = tally_plan_at(segment, first + way);

		if (state_at(segment, first + way) == TALLY_PLAN_USED && tally_peek64(&plan->last) >= latest && is_of(plan, key))
		{
			latest = tally_peek64(&plan->last);
			shape = tally_peek64(&plan->shape);
		}
	}
	return shape;
}

/*
 * Takes a free entry of the set, or else the least recently used one that nobody adds to. Returns its number, or
 * TALLY_NONE.
 */
static uint32_t
take_one(tally_segment *segment, uint32_t first)
{
	uint32_t	refused = 0;		/* a bit for each way */

	for (uint32_t tries = 0; tries < TALLY_PLAN_WAYS; tries++)
	{
		uint32_t	chosen = TALLY_PLAN_WAYS;
		uint64_t	oldest = UINT64_MAX;

		for (uint32_t way = 0; way < TALLY_PLAN_WAYS; way++)
		{
			const tally_plan *plan = tally_plan_at(segment, first + way);
			uint32_t	state = state_at(segment, first + way);
			/* a free entry counts as the oldest */
			uint64_t	last = state == TALLY_PLAN_FREE ? 0 : tally_peek64(&plan->last);

			if (state != TALLY_PLAN_WRITING && (refused >> way & 1) == 0 && last < oldest)
			{
				oldest = last;
				chosen = way;
			}
		}
		if (chosen == TALLY_PLAN_WAYS)
			break;
		if (take(segment, first + chosen, TALLY_PLAN_FREE) || take(segment, first + chosen, TALLY_PLAN_USED))
			return first + chosen;
		refused |= 1u << chosen;
	}
	return TALLY_NONE;
}

bool
tally_plan_put(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
			   const tally_plan_text *text, const tally_plan_use *use, uint64_t *before)
{
	uint32_t	taken;

	*before = 0;
	if (segment->cold.plans.count == 0)
		return false;
	*before = last_shape(segment, set_of(segment, key), key);
	taken = take_one(segment, set_of(segment, key));
	if (taken == TALLY_NONE)
	{
		tally_count_one(&segment->header->overflow_plans);
		return false;
	}
	fill(tally_plan_at(segment, taken), key, shape, text, use);
	return true;
}

void
tally_plans_reset(tally_segment *segment, const tally_statement_filter *filter)
{
	for (uint32_t i = 0; i < segment->cold.plans.count; i++)
	{
		tally_plan *plan = tally_plan_at(segment, i);
		tally_statement_key key;

		if (state_at(segment, i) != TALLY_PLAN_USED)
			continue;
		tally_copy_words(&key, &plan->key, sizeof(key));
		if (tally_statement_matches(&key, filter) && take(segment, i, TALLY_PLAN_USED))
		{
			__atomic_store_n(&plan->generation, plan->generation + 1, __ATOMIC_RELEASE);
			TALLY_STOP("plan to be freed");
			__atomic_store_n(&plan->state, TALLY_PLAN_FREE, __ATOMIC_RELEASE);
		}
	}
}

void
tally_plans_repair(tally_segment *segment)
{
	for (uint32_t i = 0; i < segment->cold.plans.count; i++)
	{
		tally_plan *plan = tally_plan_at(segment, i);

		if (!has_memory(segment, i))
			continue;
		plan->pins = 0;
		if (plan->state != TALLY_PLAN_USED)
			plan->state = TALLY_PLAN_FREE;
	}
}

uint32_t
tally_plans_count(const tally_segment *segment)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < segment->cold.plans.count; i++)
		count += state_at(segment, i) == TALLY_PLAN_USED;
	return count;
}
