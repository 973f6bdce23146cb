/* SPDX-License-Identifier: PostgreSQL */
/*
 * lwlocks.c
 *	  Lightweight locks: how long each was held, waited for, and by whom others were kept.
 *
 * An acquisition costs one clock reading, after it, and a few stores; a release one, before
 * it. All bookkeeping is done after the release, so that nobody waits for it: what is known
 * of a hold until then is with the hold. An acquisition that found the lock free is counted
 * and not timed; one that had to queue is timed by its sleeps (imports.c, sem_wait).
 *
 * Concurrency contract: the holds are this process's own. The first TALLY_HOLDS of them lie
 * in its slot for others to see; what a reader may have scribbled there can spoil a figure
 * and nothing else, since how many there are is kept here.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/proc.h"
#include "utils/wait_event.h"

#include "blockers.h"
#include "handler.h"
#include "locks.h"
#include "pg_tally.h"

#define MAX_HOLDS 200				/* MAX_SIMUL_LWLOCKS, lwlock.c */
#define MAX_SLEEPS 6				/* of one acquisition; more are added to the last */

/* Modes beyond the server's three: what a name may end in. */
static const char *const mode_names[] = {"exclusive", "shared", "variable"};

/* What an acquisition went through before it had the lock. */
typedef struct trouble
{
	uint64		first;				/* tick of the first sleep */
	uint64		asleep;				/* in this stay in the queue, so far */
	uint32		count;				/* stays in the queue that ended */
	uint64		sleeps[MAX_SLEEPS]; /* ticks of each */
} trouble;

/* A (tranche, mode, phase) and its statistics in the book; TALLY_NONE until touched. */
typedef struct lock_account
{
	uint32		key;				/* 1 + ...; 0 empty */
	uint32		held;
	uint32		acquire;
	uint32		wait;
	uint32		failed;
} lock_account;

#define ACCOUNT_WAYS 2
#define LOCK_SETS 64				/* power of two */

static struct
{
	uint32		count;				/* holds */
	bool		releasing;			/* `done` is to be settled */
	trouble		trouble;			/* of the acquisition going on */
	tally_hold	done;				/* the hold that ends; since: its ticks */
	uint64		done_at;
	trouble		done_trouble;
	uint64		done_acquire;
	lock_account accounts[LOCK_SETS][ACCOUNT_WAYS];
	tally_hold	others[MAX_HOLDS];	/* past the first TALLY_HOLDS */
	struct
	{
		uint64		acquire;		/* ticks from the first sleep to the grant; 0: found free */
		trouble		trouble;
	}			waited[MAX_HOLDS];
}			lwlocks HOT_DATA;

/* A new slot, or the probes are in place again: nothing is known to be held. */
void
lwlocks_begin(void)
{
	lwlocks.count = 0;
	lwlocks.releasing = false;
	memset(&lwlocks.trouble, 0, sizeof(lwlocks.trouble));
	memset(lwlocks.accounts, 0, sizeof(lwlocks.accounts));
	if (tally.claimed)
		tally.slot.book->holding = 0;
}

static inline tally_hold *
hold_at(uint32 i)
{
	return i < TALLY_HOLDS ? &tally.slot.book->holds[i] : &lwlocks.others[i];
}

/* ---------------------------------------------------------------- statistics */

static uint32
touch(const char *part, uint32 key)
{
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), "lwlock::%s::%s::%s::%s",
			 GetLWLockIdentifier(PG_WAIT_LWLOCK, (uint16) (key >> 8)), part,
			 probe_phase_name((tally_phase) (key >> 2 & 63)), mode_names[key & 3]);
	return tally_touch(&tally.slot,
					   tally_register(tally.slot.segment, name, TALLY_TIMER, "ticks"));
}

/* First use of an account: what every release updates. */
static void
touch_account(void *arg)
{
	lock_account *account = arg;
	uint32		key = account->key - 1;
	char		name[TALLY_NAME_MAX];
	int			saved_errno = errno;

	account->held = touch("held", key);
	account->acquire = touch("acquire", key);
	account->wait = account->failed = TALLY_NONE;
	snprintf(name, sizeof(name), "tranche::%u::%s", key >> 8,
			 GetLWLockIdentifier(PG_WAIT_LWLOCK, (uint16) (key >> 8)));
	tally_register(tally.slot.segment, name, TALLY_NAME, "");
	errno = saved_errno;
}

static void
touch_wait(void *arg)
{
	lock_account *account = arg;
	int			saved_errno = errno;

	account->wait = touch("wait", account->key - 1);
	errno = saved_errno;
}

static void
touch_failed(void *arg)
{
	lock_account *account = arg;
	int			saved_errno = errno;

	account->failed = touch("failed", account->key - 1);
	errno = saved_errno;
}

/* The account of (tranche, mode) in the phase that runs; the caller has cleared tally.on. */
static inline lock_account *
account_of(uint32 tranche, uint32 mode)
{
	uint32		key = 1 + (tranche << 8 | (uint32) tally.phase << 2 | mode);
	lock_account *set = lwlocks.accounts[(key * 2654435761u) >> 26 & (LOCK_SETS - 1)];

	if (likely(set[0].key == key))
		return &set[0];
	if (set[1].key == key)
		return &set[1];
	set[1] = set[0];
	set[0].key = key;
	entry_call_aside(touch_account, &set[0]);
	return &set[0];
}

/* A count without a time. */
static inline void
count_one(uint32 index)
{
	tally_head *head = &tally.slot.heads[index];

	head->count++;
	head->min = 0;
}

/* Stays in the queue, each a wait. */
ENTRY_HANDLER static pg_noinline void
record_sleeps(lock_account *account, const trouble *t)
{
	if (account->wait == TALLY_NONE)
		entry_call_aside(touch_wait, account);
	if (account->wait == TALLY_NONE)
		return;
	for (uint32 i = 0; i < t->count; i++)
		tally_record(&tally.slot, account->wait, t->sleeps[Min(i, MAX_SLEEPS - 1)]);
}

/* ---------------------------------------------------------------- waiting */

/*
 * sem_wait has returned after a sleep for a lightweight lock. The server sleeps again
 * without leaving the queue if the wake-up was meant for something else (LWLockAcquire).
 */
void
lwlocks_slept(uint64 begin, uint64 end)
{
	trouble    *t = &lwlocks.trouble;

	if (t->first == 0)
		t->first = begin;
	t->asleep += end - begin;
	if (MyProc != NULL && MyProc->lwWaiting)
		return;
	if (t->count < MAX_SLEEPS)
		t->sleeps[t->count] = t->asleep;
	t->count++;
	t->asleep = 0;
}

static inline void
copy_trouble(trouble *to, const trouble *from)
{
	to->first = from->first;
	to->count = from->count;
	for (uint32 i = 0; i < Min(to->count, MAX_SLEEPS); i++)
		to->sleeps[i] = from->sleeps[i];
}

/* What the acquisition that has just ended went through, and begin anew. */
static inline void
take_trouble(trouble *to)
{
	copy_trouble(to, &lwlocks.trouble);
	lwlocks.trouble.first = lwlocks.trouble.asleep = 0;
	lwlocks.trouble.count = 0;
}

/* ---------------------------------------------------------------- who kept whom waiting */

static void
tell_blocker(void *arg)
{
	const trouble *t = arg;

	blockers_tell_lwlock(&lwlocks.done, mode_names[lwlocks.done.mode & 3], t->first,
						 lwlocks.done_acquire);
}

/* The lock goes while others wait for it: leave word of how long we had it. */
static inline void
leave_word(LWLock *lock, uint64 now)
{
	tally_book *book = tally.slot.book;
	tally_freed *freed;

	if (likely((pg_atomic_read_u32(&lock->state) & COMPAT_LWLOCK_HAS_WAITERS) == 0))
		return;
	freed = &book->freed[book->freed_next++ % TALLY_FREED];
	freed->lock = 0;
	pg_compiler_barrier();
	freed->since = now - lwlocks.done.since;
	freed->until = now;
	freed->mode = lwlocks.done.mode;
	freed->account = book->run < book->used ? tally.slot.heads[book->run].stat : 0;
	pg_compiler_barrier();
	freed->lock = (uintptr_t) lock;
}

/* ---------------------------------------------------------------- handlers */

/* It is ours now: note since when, and nothing more while we hold it. */
static inline void
begin_hold(LWLock *lock, uint32 mode)
{
	uint32		i = lwlocks.count;
	tally_hold *hold;
	uint64		now = handler_now();

	if (unlikely(!tally.claimed || i >= MAX_HOLDS))
		return;
	hold = hold_at(i);
	hold->lock = (uintptr_t) lock;
	hold->since = now;
	hold->tranche = lock->tranche;
	hold->mode = mode;
	lwlocks.count = i + 1;
	tally.slot.book->holding = i + 1;
	lwlocks.waited[i].acquire = 0;
	if (unlikely(lwlocks.trouble.first != 0))
	{
		lwlocks.waited[i].acquire = now - lwlocks.trouble.first;
		take_trouble(&lwlocks.waited[i].trouble);
	}
}

/* It was not got: a failure, and its sleeps if there were any. */
ENTRY_HANDLER static pg_noinline void
record_failure(LWLock *lock, uint32 mode, bool failed)
{
	trouble		t;
	lock_account *account;

	take_trouble(&t);
	if (!handler_on())
		return;
	tally.on = false;
	account = account_of(lock->tranche, mode);
	if (failed && account->failed == TALLY_NONE)
		entry_call_aside(touch_failed, account);
	if (failed && account->failed != TALLY_NONE)
	{
		uint64		seq = tally_book_begin(tally.slot.book);

		count_one(account->failed);
		tally_book_publish(tally.slot.book, seq);
	}
	if (t.count > 0)
		record_sleeps(account, &t);
	tally.on = true;
}

/* After LWLockAcquire. */
ENTRY_HANDLER HOT_CODE static int
after_acquire(LWLock *lock, LWLockMode mode, int result)
{
	begin_hold(lock, mode);
	return result;
}

/* After LWLockConditionalAcquire and LWLockAcquireOrWait, which may come back without it. */
ENTRY_HANDLER HOT_CODE static int
after_attempt(LWLock *lock, LWLockMode mode, int result)
{
	if ((bool) result)
		begin_hold(lock, mode);
	else
		record_failure(lock, mode, true);
	return result;
}

/* After LWLockWaitForVar, which never takes the lock. */
ENTRY_HANDLER static int
after_wait_for_var(LWLock *lock, uint64 ignored, int result)
{
	if (lwlocks.trouble.count > 0)
		record_failure(lock, 2, false);
	return result;
}

/* Before LWLockRelease. */
ENTRY_HANDLER HOT_CODE static void
before_release(LWLock *lock, uint64 ignored)
{
	uint64		now = handler_now();
	uint32		count = lwlocks.count;
	uint32		i = count - 1;
	tally_hold *hold;

	lwlocks.releasing = false;
	if (unlikely(count == 0))
		return;
	hold = hold_at(i);
	if (unlikely(hold->lock != (uintptr_t) lock))
	{
		/* Not the latest; or taken while the probes were not in place. */
		do
		{
			if (i == 0)
				return;
			hold = hold_at(--i);
		} while (hold->lock != (uintptr_t) lock);
	}
	lwlocks.done = *hold;
	lwlocks.done.since = now > hold->since ? now - hold->since : 0;
	lwlocks.done_at = now;
	lwlocks.done_acquire = lwlocks.waited[i].acquire;
	if (unlikely(lwlocks.done_acquire != 0))
		copy_trouble(&lwlocks.done_trouble, &lwlocks.waited[i].trouble);
	for (; unlikely(i + 1 < count); i++)
	{
		*hold_at(i) = *hold_at(i + 1);
		lwlocks.waited[i].acquire = lwlocks.waited[i + 1].acquire;
		if (lwlocks.waited[i].acquire != 0)
			copy_trouble(&lwlocks.waited[i].trouble, &lwlocks.waited[i + 1].trouble);
	}
	lwlocks.count = count - 1;
	tally.slot.book->holding = count - 1;
	lwlocks.releasing = true;
	leave_word(lock, now);
}

static void
end_level(void *now)
{
	tally_end_level(tally.slot.segment, *(uint64 *) now);
}

/* What a hold that had to be waited for has to tell; the caller has cleared tally.on. */
ENTRY_HANDLER static pg_noinline void
record_trouble(lock_account *account)
{
	tally_record(&tally.slot, account->acquire, lwlocks.done_acquire);
	record_sleeps(account, &lwlocks.done_trouble);
	if (lwlocks.done_acquire >= locks_block_ticks)
		entry_call_aside(tell_blocker, &lwlocks.done_trouble);
}

/* After LWLockRelease: now nobody waits for us. */
ENTRY_HANDLER HOT_CODE static int
after_release(LWLock *lock, uint64 ignored, int result)
{
	tally_header *header;
	lock_account *account;

	if (unlikely(!lwlocks.releasing))
		return result;
	lwlocks.releasing = false;
	if (unlikely(!handler_on()))
		return result;
	tally.on = false;
	account = account_of(lwlocks.done.tranche, lwlocks.done.mode & 3);
	if (likely(account->held != TALLY_NONE && account->acquire != TALLY_NONE))
	{
		tally_book *book = tally.slot.book;
		uint64		seq = tally_book_begin(book);

		tally_add(&tally.slot, account->held, lwlocks.done.since);
		if (likely(lwlocks.done_acquire == 0))
			count_one(account->acquire);
		tally_book_publish(book, seq);
		if (unlikely(lwlocks.done_acquire != 0))
			record_trouble(account);
	}
	if (unlikely(heavylocks_pending) && lwlocks.count == 0)
		heavylocks_settle();
	header = tally.slot.segment->header;
	if (unlikely(header->level_until != 0 && lwlocks.done_at >= header->level_until))
		entry_call_aside(end_level, &lwlocks.done_at);
	tally.on = true;
	return result;
}

const locks_entry lwlocks_entries[LWLOCKS_ENTRIES] = {
	{"LWLockAcquire", {ENTRY_WRAP, NULL, (void *) after_acquire, 0}},
	{"LWLockConditionalAcquire", {ENTRY_WRAP, NULL, (void *) after_attempt, 0}},
	{"LWLockAcquireOrWait", {ENTRY_WRAP, NULL, (void *) after_attempt, 0}},
	{"LWLockRelease", {ENTRY_WRAP, (void *) before_release, (void *) after_release, 0}},
	{"LWLockWaitForVar", {ENTRY_WRAP, NULL, (void *) after_wait_for_var, 0}},
};
