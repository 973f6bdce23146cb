/* SPDX-License-Identifier: PostgreSQL */
/*
 * read.c
 *	  Bounded reads of a live segment (tally_read.h).
 *
 * Data guarded by a seq is read in a loop: load the seq, copy, load the seq again. If both are equal and
 * even, the copy is of one instant. Writers make the seq odd before a change and even after it
 * (tally_seq_begin, tally_seq_publish):
 *
 *	  C, in attempt()	pairs with the writer's release store of the even seq
 *	  D, in holds()		pairs with the writer's release fence after its store of the odd seq
 *
 * Copies are made with relaxed loads of whole words.
 */
#include "internal.h"
#include "tally_read.h"

#include <errno.h>
#include <string.h>

#define TRIES 1000					/* copies of one thing ... */
#define SPINS 100					/* ... of which this many without a pause */
#define PAUSE_EVERY 8
#define PAUSE_NS 50000
#define SET_TRIES 200				/* copies of one set and its statements ... */
#define TORN_TRIES 20				/* ... but a copy with a torn statement, which takes 6 ms, counts as this many */

/* Repeated attempts to copy data guarded by a seq. */
typedef struct attempts
{
	const uint64_t *seq;
	uint64_t	begun;
	int			made;
	bool		whole;				/* the last copy is of one instant */
} attempts;

/* The writer may have lost its CPU in the middle of a change. */
static void
pause_after(int made)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int			saved = errno;

	if (made >= SPINS && made % PAUSE_EVERY == 0)
		nanosleep(&pause, NULL);
	errno = saved;
}

/* Is everything copied since `begun` was read of one instant? */
static bool
holds(const attempts *a)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* D */
	return (a->begun & 1) == 0 && __atomic_load_n(a->seq, __ATOMIC_RELAXED) == a->begun;
}

/* Copy again? Not if the last copy is consistent, or after enough attempts. */
static bool
attempt(attempts *a)
{
	a->whole = a->made > 0 && holds(a);
	if (a->whole || a->made == TRIES)
		return false;
	if (a->made > 0)
		pause_after(a->made);
	a->made++;
	a->begun = __atomic_load_n(a->seq, __ATOMIC_ACQUIRE);	/* C */
	return true;
}

static tally_read_result
result_of(const attempts *a)
{
	return a->whole ? TALLY_READ_CONSISTENT : TALLY_READ_TORN;
}

static void
terminate(char *text, size_t size)
{
	text[size - 1] = '\0';
}

/* ---------------------------------------------------------------- raw copies */

void
tally_read_words(void *to, const void *from, size_t size)
{
	tally_copy_words(to, from, size);
}

/* ---------------------------------------------------------------- slots and books */

bool
tally_read_books_begin(const tally_segment *segment, tally_books_mark *mark)
{
	const tally_header *header = segment->header;

	mark->merges = __atomic_load_n(&header->merge_count, __ATOMIC_ACQUIRE);
	mark->resets = tally_resets(segment);
	return __atomic_load_n(&header->merge_active, __ATOMIC_ACQUIRE) == 0;
}

bool
tally_read_books_end(const tally_segment *segment, const tally_books_mark *mark)
{
	const tally_header *header = segment->header;

	/* active before the count, or a merge that ends between the two would be missed */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&header->merge_active, __ATOMIC_ACQUIRE) == 0 &&
		__atomic_load_n(&header->merge_count, __ATOMIC_ACQUIRE) == mark->merges &&
		tally_resets(segment) == mark->resets;
}

static bool
is_entry(const tally_segment *segment, uint32_t index)
{
	return index < segment->cold.slots + segment->cold.groups;
}

static bool
counts(uint32_t state)
{
	return state == TALLY_SLOT_LIVE || state == TALLY_SLOT_RETIRED || state == TALLY_SLOT_MERGING ||
		state == TALLY_SLOT_GROUP;
}

tally_read_result
tally_read_entry(const tally_segment *segment, uint32_t index, tally_slot_entry *copy)
{
	const tally_slot_entry *entry;
	bool		whole = false;

	if (!is_entry(segment, index))
		return TALLY_READ_ABSENT;
	entry = tally_entry_at(segment, index);
	for (int i = 0; i < TRIES && !whole; i++)
	{
		uint32_t	seq = __atomic_load_n(&entry->identity_seq, __ATOMIC_ACQUIRE);

		if (!counts(__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE)))
			return TALLY_READ_ABSENT;
		tally_copy_words(copy, entry, sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		whole = (seq & 1) == 0 && tally_peek32(&entry->identity_seq) == seq;
		if (!whole)
			pause_after(i);
	}
	terminate(copy->kind, sizeof(copy->kind));
	terminate(copy->database, sizeof(copy->database));
	terminate(copy->user, sizeof(copy->user));
	terminate(copy->application, sizeof(copy->application));
	if (!counts(copy->state))
		return TALLY_READ_ABSENT;
	return whole ? TALLY_READ_CONSISTENT : TALLY_READ_TORN;
}

bool
tally_read_is_same(const tally_segment *segment, uint32_t index, const tally_slot_entry *copy)
{
	const tally_slot_entry *entry = tally_entry_at(segment, index);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_entry(segment, index) && tally_peek32(&entry->state) == copy->state &&
		tally_peek32(&entry->generation) == copy->generation;
}

/* 1 + the directory index of a book's account; 0: none. */
static uint32_t
account_at(const tally_segment *segment, tally_book *book, uint32_t index)
{
	uint32_t	used = tally_peek32(&book->used);

	if (index >= used || index >= segment->cold.stats_per_book)
		return 0;
	return tally_peek32(&tally_heads_of(book)[index].stat);
}

/* Is the running account a wait for a heavyweight lock? */
static bool
waits_for_lock(const tally_segment *segment, uint32_t index)
{
	tally_book *book = tally_book_at(segment, index);
	uint32_t	stat = account_at(segment, book, tally_peek32(&book->run));
	tally_dir_entry entry;

	return stat != 0 && tally_read_name(segment, stat - 1, &entry) != TALLY_READ_ABSENT &&
		entry.account_class == TALLY_CLASS_LOCK;
}

/* Leftovers of an earlier wait do not count, because another account runs between two waits for locks. */
tally_read_result
tally_read_blocked(const tally_segment *segment, uint32_t index, tally_blocked *copy)
{
	const tally_slot_entry *entry;
	attempts	a = {0};

	if (index >= segment->cold.slots)
		return TALLY_READ_ABSENT;
	entry = tally_entry_at(segment, index);
	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != TALLY_SLOT_LIVE)
		return TALLY_READ_ABSENT;
	a.seq = &entry->blocked.seq;
	while (attempt(&a))
		tally_copy_words(copy, &entry->blocked, sizeof(*copy));
	if (copy->since == 0 || !waits_for_lock(segment, index) ||
		tally_process_ended(__atomic_load_n(&entry->pid, __ATOMIC_RELAXED), tally_peek64(&entry->claimed_boot_ns)))
		return TALLY_READ_ABSENT;
	return result_of(&a);
}

tally_read_result
tally_read_book(const tally_segment *segment, uint32_t index, tally_book_copy *copy)
{
	tally_book *book;
	attempts	a = {0};

	if (!is_entry(segment, index))
		return TALLY_READ_ABSENT;
	book = tally_book_at(segment, index);
	a.seq = &book->seq;
	while (attempt(&a))
	{
		tally_copy_words(&copy->book, book, sizeof(tally_book));
		if (copy->book.used > segment->cold.stats_per_book)
			copy->book.used = segment->cold.stats_per_book;
		tally_copy_words(copy->heads, tally_heads_of(book), copy->book.used * sizeof(tally_head));
	}
	terminate(copy->book.client, sizeof(copy->book.client));
	copy->lags_reset = copy->book.resets != tally_resets(segment);
	return result_of(&a);
}

bool
tally_read_is_head(const tally_segment *segment, const tally_book_copy *copy, uint32_t head)
{
	return head < copy->book.used && copy->heads[head].stat != 0 &&
		copy->heads[head].stat <= segment->cold.directory.count;
}

void
tally_read_hist(const tally_segment *segment, uint32_t index, uint32_t head, uint32_t low, uint32_t high,
				uint64_t *sums)
{
	const uint64_t *hist;

	if (!is_entry(segment, index) || head >= segment->cold.stats_per_book)
		return;
	hist = tally_hist_of(segment, tally_book_at(segment, index), head);
	for (uint32_t b = low; b <= high && b < TALLY_HIST_BUCKETS; b++)
		sums[b] += tally_peek64(&hist[tally_bucket_at(b)]);
}

/* The last bucket has all larger values, and the middle that it would have without them. */
static uint64_t
middle_of(uint32_t bucket)
{
	return (tally_bucket_low(bucket) + tally_bucket_low(bucket + 1)) / 2;
}

bool
tally_quantile(const tally_histogram *histogram, double part, uint64_t *value)
{
	const uint64_t *buckets = histogram->buckets;
	uint64_t	all = 0;
	uint64_t	seen = 0;
	uint32_t	found = histogram->low;

	for (uint32_t b = histogram->low; b < histogram->end; b++)
		all += buckets[b - histogram->low];
	if (all == 0 || all < histogram->count / 2)
		return false;
	for (uint32_t b = histogram->low; b < histogram->end; b++)
	{
		uint64_t	here = buckets[b - histogram->low];

		if (here == 0)
			continue;
		found = b;
		seen += here;
		if ((double) seen >= part * (double) all)
			break;
	}
	*value = middle_of(found);
	if (*value < histogram->min)
		*value = histogram->min;
	/* torn extremes may be in the wrong order */
	if (*value > histogram->max)
		*value = histogram->max;
	return true;
}

/* ---------------------------------------------------------------- names, events, probes */

tally_read_result
tally_read_name(const tally_segment *segment, uint32_t number, tally_dir_entry *copy)
{
	const tally_dir_entry *entry;

	if (number >= segment->cold.directory.count)
		return TALLY_READ_ABSENT;
	entry = tally_dir_at(segment, number);
	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != TALLY_NAME_PUBLISHED)
		return TALLY_READ_ABSENT;
	/* a published name never changes; its class may be set once more */
	tally_copy_words(copy, entry, sizeof(*copy));
	terminate(copy->name, sizeof(copy->name));
	terminate(copy->unit, sizeof(copy->unit));
	return TALLY_READ_CONSISTENT;
}

/* Check the texts and the number of entries of a copied event. */
static void
limit_event(tally_event *event)
{
	switch ((tally_event_kind) event->kind)
	{
		case TALLY_EVENT_SLOW_OPERATION:
			terminate(event->slow.operation, sizeof(event->slow.operation));
			terminate(event->slow.path, sizeof(event->slow.path));
			break;
		case TALLY_EVENT_CHECKPOINT_COMPLETED:
			terminate(event->completed.longest_sync_file, sizeof(event->completed.longest_sync_file));
			break;
		case TALLY_EVENT_CHECKPOINT_WRITES:
			if (event->writes.spaces > TALLY_CHECKPOINT_SPACES)
				event->writes.spaces = TALLY_CHECKPOINT_SPACES;
			break;
		default:
			terminate(event->text, sizeof(event->text));
	}
}

tally_read_result
tally_read_event(const tally_segment *segment, uint32_t index, tally_event *copy)
{
	const tally_event *event;
	uint64_t	number;

	if (index >= segment->cold.events.count)
		return TALLY_READ_ABSENT;
	event = tally_event_at(segment, index);
	number = __atomic_load_n(&event->number, __ATOMIC_ACQUIRE);
	tally_copy_words(copy, event, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	limit_event(copy);
	return number != 0 && tally_peek64(&event->number) == number ? TALLY_READ_CONSISTENT
		: TALLY_READ_ABSENT;
}

tally_read_result
tally_read_probe(const tally_segment *segment, uint32_t index, tally_probe *copy)
{
	const tally_probe *probe;
	uint32_t	state;

	if (index >= segment->cold.probes.count)
		return TALLY_READ_ABSENT;
	probe = tally_probe_at(segment, index);
	state = __atomic_load_n(&probe->state, __ATOMIC_ACQUIRE);
	tally_copy_words(copy, probe, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	terminate(copy->name, sizeof(copy->name));
	terminate(copy->reason, sizeof(copy->reason));
	return state != TALLY_PROBE_EMPTY && tally_peek32(&probe->state) == state ? TALLY_READ_CONSISTENT
		: TALLY_READ_ABSENT;
}

/* ---------------------------------------------------------------- statements */

uint32_t
tally_read_local_limit(const tally_segment *segment, uint32_t slot)
{
	return slot < segment->cold.caches.count ? tally_cache_limit(segment, slot) : 0;
}

tally_read_result
tally_read_local_statement(const tally_segment *segment, uint32_t slot, uint32_t index,
						   tally_local_statement *copy)
{
	const tally_local_statement *entry;
	attempts	a = {0};

	if (index >= tally_read_local_limit(segment, slot))
		return TALLY_READ_ABSENT;
	entry = &tally_local_statements_of(segment, slot)[index];
	if (tally_peek32(&entry->state) != 1)
		return TALLY_READ_ABSENT;
	a.seq = &entry->seq;
	while (attempt(&a))
	{
		const tally_moments *exec = &copy->counts.exec;
		uint32_t	low,
					high;

		tally_copy_words(copy, entry, offsetof(tally_local_statement, hist));
		low = tally_bucket(exec->min) & ~1u;	/* whole words */
		high = tally_bucket(exec->max) | 1u;
		if (exec->count != 0 && low < high)
			tally_copy_words(&copy->hist[low], &entry->hist[low], (high + 1 - low) * sizeof(uint32_t));
	}
	if (copy->state != 1 || copy->drop == copy->generation)
		return TALLY_READ_ABSENT;
	return result_of(&a);
}

static bool
copy_running(const tally_segment *segment, uint32_t slot, tally_flight *flight)
{
	tally_book *book = tally_book_at(segment, slot);
	attempts	a = {.seq = &book->seq};

	while (attempt(&a))
	{
		uint32_t	pend = tally_peek32(&book->pend);

		flight->run = account_at(segment, book, tally_peek32(&book->run));
		flight->pend = account_at(segment, book, tally_pend_account(pend));
		flight->pend_count = tally_pend_is_open(pend) ? 0 : 1;
		flight->run_start = tally_peek64(&book->run_start);
		flight->pend_ticks = flight->pend != 0 ? tally_peek64(&book->pend_ticks) : 0;
	}
	return a.whole;
}

/* No wait may be noted between the two copies, or it would be missing or counted twice. */
tally_read_result
tally_read_flight(const tally_segment *segment, uint32_t slot, tally_flight *flight)
{
	const tally_current *current;
	attempts	a = {0};
	bool		copied = false;

	if (tally_read_local_limit(segment, slot) == 0)
		return TALLY_READ_ABSENT;
	current = tally_current_of(segment, slot);
	a.seq = &current->seq;
	while (attempt(&a))
	{
		tally_copy_words(&flight->current, current, sizeof(*current));
		if (!holds(&a))
			continue;
		if (!copy_running(segment, slot, flight))
			return TALLY_READ_ABSENT;
		copied = true;
		flight->now = tally_now(segment->clock);
	}
	if (!copied || (flight->current.begun == 0 && flight->current.used == 0))
		return TALLY_READ_ABSENT;
	return result_of(&a);
}

tally_read_result
tally_read_current(const tally_segment *segment, uint32_t slot, tally_current *copy)
{
	attempts	a = {0};

	if (tally_read_local_limit(segment, slot) == 0)
		return TALLY_READ_ABSENT;
	a.seq = &tally_current_of(segment, slot)->seq;
	while (attempt(&a))
		tally_copy_words(copy, tally_current_of(segment, slot), sizeof(*copy));
	return result_of(&a);
}

/* The key remains when the message has ended. */
tally_session_statement
tally_session_statement_of(const tally_current *current)
{
	if (current->begun != 0 && current->key.before != 0)
		return TALLY_SESSION_UNNAMED;
	if (current->key.id == 0)
		return TALLY_SESSION_NONE;
	return current->begun != 0 ? TALLY_SESSION_RUNS : TALLY_SESSION_RAN;
}

tally_read_result
tally_read_message_text(const tally_segment *segment, uint32_t slot, const tally_current *current, tally_message_text *copy)
{
	const tally_message_text *text;

	if (slot >= segment->cold.caches.count || segment->cold.caches.stride < TALLY_CACHE_SIZE || current->has_text == 0 ||
		current->begun == 0)
		return TALLY_READ_ABSENT;
	text = tally_message_text_of(segment, slot);
	if (__atomic_load_n(&text->begun, __ATOMIC_ACQUIRE) != current->begun)
		return TALLY_READ_ABSENT;
	tally_copy_words(copy, text, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&text->begun, __ATOMIC_RELAXED) != current->begun || copy->bytes > sizeof(copy->text))
		return TALLY_READ_ABSENT;
	return TALLY_READ_CONSISTENT;
}

tally_read_result
tally_read_statement_parts(const tally_segment *segment, uint32_t number, tally_statement_copy *copy)
{
	const tally_statement *statement;
	attempts	a = {0};

	if (number >= segment->cold.statements.count ||
		tally_peek32(&tally_set_at(segment, number / TALLY_WAYS)->reserved) == 0)
		return TALLY_READ_ABSENT;
	statement = tally_statement_at(segment, number);
	a.seq = &statement->seq;
	copy->number = number;
	copy->result = TALLY_READ_ABSENT;
	while (attempt(&a))
	{
		tally_copy_words(&copy->entry, statement, sizeof(copy->entry));
		if (copy->entry.more != 0)
			tally_copy_words(&copy->figures, tally_rest_at(segment, number), sizeof(copy->figures));
		else
			memset(&copy->figures, 0, sizeof(copy->figures));
	}
	if (copy->entry.state == 1)
		copy->result = result_of(&a);
	return copy->result;
}

tally_read_result
tally_read_statement(const tally_segment *segment, uint32_t number, tally_statement_copy *copy)
{
	tally_read_result result = tally_read_statement_parts(segment, number, copy);

	if (result != TALLY_READ_ABSENT)
		tally_statement_add_near(&copy->entry, &copy->figures);
	return result;
}

bool
tally_read_statement_is_same(const tally_segment *segment, const tally_statement_copy *copy)
{
	const attempts a = {
		.seq = &tally_statement_at(segment, copy->number)->seq,
		.begun = copy->entry.seq
	};

	return copy->result == TALLY_READ_CONSISTENT && holds(&a);
}

uint32_t
tally_read_text_size(const tally_segment *segment, const tally_statement_copy *copy)
{
	uint64_t	most = (uint64_t) segment->cold.texts.count * TALLY_TEXT_BLOCK;

	if (copy->entry.text == 0)
		return 0;
	return copy->entry.text_bytes < most ? copy->entry.text_bytes : (uint32_t) most;
}

tally_read_result
tally_read_text(const tally_segment *segment, const tally_statement_copy *copy, char *to,
				uint32_t size, uint32_t *bytes)
{
	*bytes = 0;
	if (copy->number >= segment->cold.statements.count || copy->entry.text == 0)
		return TALLY_READ_ABSENT;
	*bytes = tally_statement_text_copy(segment, &copy->entry, to, size);
	return tally_read_statement_is_same(segment, copy) ? TALLY_READ_CONSISTENT : TALLY_READ_TORN;
}

uint64_t
tally_read_set_flushes(const tally_segment *segment, uint32_t number)
{
	return number < segment->cold.sets.count
		? __atomic_load_n(&tally_set_at(segment, number)->flushes, __ATOMIC_ACQUIRE) : 0;
}

tally_read_result
tally_read_set_begin(const tally_segment *segment, uint32_t number, tally_set *copy)
{
	uint64_t	flushes;

	if (number >= segment->cold.sets.count)
		return TALLY_READ_ABSENT;
	flushes = tally_read_set_flushes(segment, number);
	tally_copy_words(copy, tally_set_at(segment, number), sizeof(*copy));
	copy->flushes = flushes;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return copy->reserved != 0 ? TALLY_READ_CONSISTENT : TALLY_READ_ABSENT;
}

bool
tally_read_set_end(const tally_segment *segment, uint32_t number, const tally_set *copy)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return tally_peek64(&tally_set_at(segment, number)->flushes) == copy->flushes;
}

tally_read_result
tally_read_set(const tally_segment *segment, uint32_t number, tally_set_copy *copy)
{
	copy->count = copy->torn = 0;
	if (number >= segment->cold.sets.count)
		return TALLY_READ_ABSENT;
	for (int i = 0; i < SET_TRIES; i += copy->torn != 0 ? TORN_TRIES : 1)
	{
		if (tally_read_set_begin(segment, number, &copy->set) == TALLY_READ_ABSENT)
			return TALLY_READ_CONSISTENT;
		copy->count = copy->torn = 0;
		for (uint32_t way = 0; way < TALLY_WAYS; way++)
		{
			tally_read_result result = copy->set.tags[way] == 0 ? TALLY_READ_ABSENT
				: tally_read_statement(segment, number * TALLY_WAYS + way,
									   &copy->statements[copy->count]);

			copy->count += result != TALLY_READ_ABSENT;
			copy->torn += result == TALLY_READ_TORN;
		}
		if (tally_read_set_end(segment, number, &copy->set))
			return TALLY_READ_CONSISTENT;
	}
	return TALLY_READ_TORN;
}

bool
tally_read_log_covers(const tally_set *copy, uint64_t flushes)
{
	return copy->flushes - flushes <= TALLY_SET_LOG;
}

/* ---------------------------------------------------------------- relations */

tally_read_result
tally_read_local_relation(const tally_segment *segment, uint32_t slot, uint32_t index,
						  tally_local_relation *copy)
{
	const tally_local_relation *entry;
	attempts	a = {0};

	if (slot >= segment->cold.local_relations.count || index >= TALLY_LOCAL_RELATIONS ||
		__atomic_load_n(&tally_entry_at(segment, slot)->local_relations, __ATOMIC_ACQUIRE) == 0 ||
		tally_peek32(&tally_book_at(segment, slot)->resets) != tally_resets(segment))
		return TALLY_READ_ABSENT;
	entry = &tally_local_relations_of(segment, slot)[index];
	a.seq = &entry->seq;
	while (attempt(&a))
		tally_copy_words(copy, entry, sizeof(*copy));
	if (copy->state == TALLY_LOCAL_FREE || copy->entry >= segment->cold.relations.count)
		return TALLY_READ_ABSENT;
	return result_of(&a);
}

tally_read_result
tally_read_plan(const tally_segment *segment, uint32_t number, tally_plan *copy)
{
	const tally_plan *plan;
	uint64_t	generation;

	if (number >= segment->cold.plans.count ||
		__atomic_load_n(tally_plan_memory_at(segment, number), __ATOMIC_ACQUIRE) == 0)
		return TALLY_READ_ABSENT;
	plan = tally_plan_at(segment, number);
	/* before the state: the generation of a plan being written is not in use yet */
	generation = __atomic_load_n(&plan->generation, __ATOMIC_ACQUIRE);
	TALLY_POINT("plan to be read");
	if (__atomic_load_n(&plan->state, __ATOMIC_ACQUIRE) != TALLY_PLAN_USED)
		return TALLY_READ_ABSENT;
	tally_copy_words(copy, plan, sizeof(*copy));
	TALLY_POINT("plan copied");
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&plan->state, __ATOMIC_RELAXED) != TALLY_PLAN_USED ||
		tally_peek64(&plan->generation) != generation)
		return TALLY_READ_ABSENT;
	if (copy->text_bytes > sizeof(copy->text))
		copy->text_bytes = sizeof(copy->text);
	if (copy->text_whole < copy->text_bytes)
		copy->text_whole = copy->text_bytes;
	return TALLY_READ_CONSISTENT;
}

uint64_t
tally_read_relation_flushes(const tally_segment *segment, uint32_t number)
{
	return number < segment->cold.relations.count
		? __atomic_load_n(&tally_relation_at(segment, number)->flushes, __ATOMIC_SEQ_CST) : 0;
}

tally_read_result
tally_read_relation(const tally_segment *segment, uint32_t number, uint64_t flushes,
					tally_relation *copy)
{
	if (number >= segment->cold.relations.count)
		return TALLY_READ_ABSENT;
	tally_copy_words(copy, tally_relation_at(segment, number), sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (copy->state != TALLY_RELATION_USED && copy->state != TALLY_RELATION_UNLINKED)
		return TALLY_READ_ABSENT;
	return tally_read_relation_flushes(segment, number) == flushes ? TALLY_READ_CONSISTENT
		: TALLY_READ_TORN;
}
