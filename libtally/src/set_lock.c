/* SPDX-License-Identifier: PostgreSQL */
/*
 * set_lock.c
 *	  The locks of sets of statements. They survive the death of their holders.
 *
 * Concurrency contract: as with the merge lock (merge_lock.c), the word is the holder's pid. To take a lock from
 * a dead holder, a process exchanges the time first, and then repairs the entry that the dead process was changing.
 * A living holder keeps a lock for a microsecond or two, unless it is stopped or has lost its CPU. So a process that
 * executes statements spins for some microseconds and then does without the lock (tally_cache.c); its only system
 * call checks whether the holder is alive. A process that can wait, for a reset or in a helper, yields and then
 * sleeps: for about 25 ms, and up to half a second while the holder only waits for a CPU.
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include <string.h>

#define SPINS 200
#define YIELDS 100
#define SLEEPS 100					/* of 200 us and a little more ... */
#define SLEEPS_MAX 2000			/* ... while the holder is running */
#define SLEEP_NS 200000
#define ROUNDS 16					/* attempts that lock one set without getting the other */
#define PASSED 16					/* after spinning for a holder in vain, only one in this many attempts spins for it again */

static bool
take(tally_set *set, const tally_holder *me)
{
	uint32_t	holder = 0;

	if (__atomic_load_n(&set->lock, __ATOMIC_RELAXED) != 0 ||
		!__atomic_compare_exchange_n(&set->lock, &holder, me->pid, false,
									 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	TALLY_STOP("set's lock taken");
	__atomic_store_n(&set->lock_boot_ns, me->alive_boot_ns, __ATOMIC_RELAXED);
	return true;
}

/*
 * The time is exchanged first. If the lock has had another holder since it was read, the time has
 * changed, and the exchange fails. Until this process writes its own time, the word contains this
 * instant, which is later than the start of any process that could hold the lock.
 */
static bool
take_over(tally_segment *segment, uint32_t number, const tally_holder *me)
{
	tally_set  *set = tally_set_at(segment, number);
	uint32_t	holder = __atomic_load_n(&set->lock, __ATOMIC_ACQUIRE);
	uint64_t	since = __atomic_load_n(&set->lock_boot_ns, __ATOMIC_ACQUIRE);
	uint64_t	mine = tally_pid_namespace();

	if (holder == 0 || mine == 0 || mine != segment->header->pid_namespace ||
		!tally_process_ended((int32_t) holder, since) ||
		!__atomic_compare_exchange_n(&set->lock_boot_ns, &since, tally_boot_ns(), false,
									 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	TALLY_POINT("dead holder's time exchanged");
	if (!__atomic_compare_exchange_n(&set->lock, &holder, me->pid, false,
									 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&set->lock_boot_ns, me->alive_boot_ns, __ATOMIC_RELAXED);
	TALLY_POINT("set taken over");
	tally_set_repair(segment, number);
	return true;
}

static bool
holder_runs(const tally_set *set)
{
	uint32_t	holder = __atomic_load_n(&set->lock, __ATOMIC_RELAXED);

	return holder == 0 || tally_process_runs((int32_t) holder);
}

static bool
spin(tally_set *set, const tally_holder *me)
{
	bool		held = false;

	for (int i = 0; i < SPINS && !held; i++)
	{
		tally_relax();
		held = take(set, me);
	}
	return held;
}

/* Without sleeping. */
static bool
spin_and_yield(tally_set *set, const tally_holder *me)
{
	bool		held = spin(set, me);

	for (int i = 0; i < YIELDS && !held; i++)
	{
		sched_yield();
		held = take(set, me);
	}
	return held;
}

/* For a process that must not wait. */
__attribute__((noinline)) static bool
try_for(tally_segment *segment, uint32_t number, tally_holder *me)
{
	tally_set  *set = tally_set_at(segment, number);
	uint32_t	holder = __atomic_load_n(&set->lock, __ATOMIC_RELAXED);

	if (me->yields)
		return spin_and_yield(set, me) || take_over(segment, number, me);
	/* this holder was spun for in vain recently, so it may be stopped: most attempts give up at once */
	if (holder != 0 && holder == me->kept_by && ++me->passed % PASSED != 0)
		return false;
	if (!spin(set, me))
	{
		me->kept_by = __atomic_load_n(&set->lock, __ATOMIC_RELAXED);
		if (!take_over(segment, number, me))
			return false;
	}
	/* it was released, or its holder has died and keeps no other set's lock: spin the next time, too */
	me->kept_by = 0;
	return true;
}

static bool
wait_for(tally_segment *segment, uint32_t number, const tally_holder *me)
{
	const struct timespec pause = {.tv_nsec = SLEEP_NS};
	tally_set  *set = tally_set_at(segment, number);
	int			saved = errno;
	bool		held = spin_and_yield(set, me);

	for (int i = 0; i < SLEEPS_MAX && !held; i++)
	{
		if (i > 0 && i % SLEEPS == 0 && !holder_runs(set))
			break;
		held = (i % 16 == 0 && take_over(segment, number, me)) || take(set, me);
		if (!held)
			nanosleep(&pause, NULL);
	}
	errno = saved;
	return held;
}

/* For a process that may wait. */
void
tally_holder_self(tally_holder *me)
{
	*me = (tally_holder) {.pid = (uint32_t) getpid(),.alive_boot_ns = tally_boot_ns(),.patient = true};
}

/* The two sets that may contain a statement with that hash, ascending. */
void
tally_sets_for(const tally_segment *segment, uint64_t tag, uint32_t number[2])
{
	uint32_t	count = segment->cold.sets.count;
	uint32_t	a = tally_set_home(segment, tag);
	uint32_t	b = (uint32_t) (tag * UINT64_C(0x9E3779B97F4A7C15) >> 32) % count;

	if (a == b)
		b = (a + 1) % count;		/* there are at least seven */
	number[0] = a < b ? a : b;
	number[1] = a < b ? b : a;
}

/* False if a living process held it for too long. */
bool
tally_set_lock(tally_segment *segment, tally_holder *me, uint32_t number)
{
	bool		held = take(tally_set_at(segment, number), me) ||
		(me->patient ? wait_for(segment, number, me) : try_for(segment, number, me));

	if (held)
		TALLY_POINT("set locked");
	return held;
}

void
tally_set_unlock(tally_set *set)
{
	TALLY_POINT("set to be unlocked");
	__atomic_store_n(&set->lock_boot_ns, 0, __ATOMIC_RELAXED);
	TALLY_STOP("set's lock without its time");
	__atomic_store_n(&set->lock, 0, __ATOMIC_RELEASE);
	TALLY_STOP("set unlocked");
}

/*
 * No process sleeps for one set while it holds the other, so a sleeping holder is stuck, and a holder that
 * others wait for is working. That is why the two can be locked in any order.
 */
bool
tally_sets_lock(tally_segment *segment, tally_holder *me, uint64_t tag, tally_sets *sets)
{
	int			first = 0;
	int			rounds = me->patient ? ROUNDS : 1;

	sets->evicted = NULL;
	tally_sets_for(segment, tag, sets->number);
	sets->set[0] = tally_set_at(segment, sets->number[0]);
	sets->set[1] = tally_set_at(segment, sets->number[1]);
	for (int round = 0; round < rounds; round++)
	{
		tally_set  *other = sets->set[1 - first];

		if (!tally_set_lock(segment, me, sets->number[first]))
			return false;
		if (take(other, me) ||
			(me->patient ? spin_and_yield(other, me) : try_for(segment, sets->number[1 - first], me)))
		{
			TALLY_POINT("sets locked");
			return true;
		}
		tally_set_unlock(sets->set[first]);
		first = 1 - first;
	}
	return false;
}

void
tally_sets_unlock(tally_sets *sets)
{
	tally_set_unlock(sets->set[1]);
	tally_set_unlock(sets->set[0]);
}

/* ---------------------------------------------------------------- leftovers of a dead holder */

/* No statement is in progress. The first store decides, wherever the process dies. */
void
tally_current_clear(tally_current *current)
{
	__atomic_store_n(&current->used, 0, __ATOMIC_RELAXED);
	TALLY_POINT("current released");
	tally_seq_begin_after_any(&current->seq);
	current->begun = 0;
	current->since = 0;
	current->waits = 0;
	memset(&current->key, 0, sizeof(current->key));
	tally_seq_end(&current->seq);
}

/* Is that use still to be flushed? A use is logged once, so it is not mistaken for a later one. */
bool
tally_log_in_use(const tally_segment *segment, uint64_t item)
{
	uint32_t	slot = tally_log_slot(item);
	uint32_t	index = tally_log_index(item);

	if (index == TALLY_LOCAL_STATEMENTS)
	{
		const tally_current *current = tally_current_of(segment, slot);

		return __atomic_load_n(&current->used, __ATOMIC_ACQUIRE) != 0 &&
			tally_log_item(current->seq, index, slot) == item;
	}
	return __atomic_load_n(&tally_local_statements_of(segment, slot)[index].state, __ATOMIC_ACQUIRE) == 1 &&
		tally_log_item(tally_local_statements_of(segment, slot)[index].generation, index, slot) == item;
}

/* Release the local entry that a set's log names, if it is still in use. */
void
tally_cache_release(tally_segment *segment, uint64_t item)
{
	uint32_t	slot = tally_log_slot(item);
	uint32_t	index = tally_log_index(item);
	uint32_t	limit = slot < segment->cold.caches.count ? tally_cache_limit(segment, slot) : 0;

	if (item == 0 || limit == 0 || (index >= limit && index != TALLY_LOCAL_STATEMENTS) ||
		!tally_log_in_use(segment, item))
		return;
	if (index == TALLY_LOCAL_STATEMENTS)
		tally_current_clear(tally_current_of(segment, slot));
	else
		__atomic_store_n(&tally_local_statements_of(segment, slot)[index].state, 0, __ATOMIC_RELEASE);
}

/*
 * Repair after the death of a holder of the set's lock: the entry it was changing is lost, and entries it
 * has flushed are not flushed again.
 */
void
tally_set_repair(tally_segment *segment, uint32_t number)
{
	tally_set  *set = tally_set_at(segment, number);

	for (int i = 0; i < TALLY_SET_LOG; i++)
		tally_cache_release(segment, set->log[i]);
	TALLY_STOP("flushes of a dead holder released");

	for (uint32_t way = 0; set->reserved != 0 && way < TALLY_WAYS; way++)
	{
		uint32_t	n = number * TALLY_WAYS + way;
		tally_statement *statement = tally_statement_at(segment, n);

		if ((statement->seq & 1) != 0)
		{
			/* its text may be half freed; tally_text_repair finds its blocks */
			statement->text = 0;
			TALLY_STOP("lost statement to be removed");
			tally_statement_remove(segment, n);
			tally_count_one(&segment->header->statements_lost);
		}
	}
}
