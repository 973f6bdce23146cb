/* SPDX-License-Identifier: PostgreSQL */
/*
 * lwlocks.c
 *	  Lightweight locks: how long each was held, waited for, and by whom others were kept. From
 *	  PostgreSQL 19 on, the same for the locks on buffers' contents, which are of another kind.
 *
 * An acquisition costs one clock reading, after it, and a few stores; a release costs one, before it, and
 * an entry in a log. The log is recorded when no lock is held: before a wait, and when it is nearly full.
 * So no other process waits for the bookkeeping, and its code and data are fetched once for many locks.
 * An acquisition that found the lock free is counted but not timed; one that had to queue is timed by its
 * sleeps (imports.c, sem_wait).
 *
 * A killed process loses its log: at most RELEASES since its last wait.
 *
 * Where the server's compiler has put a copy of a function into another one, a detour misses calls. So a
 * process that waits for its client, or for work, must hold nothing, and must not have released what it had not
 * acquired since the last such wait. Otherwise the detours are taken off (locks_unbalanced).
 *
 * Concurrency contract: the holds belong to this process. The first TALLY_HOLDS of them are in its slot
 * for readers. Garbage written there can spoil a figure only, since the number of holds is kept here.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

#include "blockers.h"
#include "detour_handler.h"
#include "locks.h"

#define MAX_HOLDS 200				/* MAX_SIMUL_LWLOCKS, lwlock.c */
#define MAX_SLEEPS 6				/* of one acquisition; the time of more is the last one's */

/* Modes: what a name ends in. */
enum
{
	MODE_EXCLUSIVE,
	MODE_SHARED,
	MODE_VARIABLE,					/* stands for LWLockWaitForVar */
	MODE_SHARE_EXCLUSIVE			/* of buffers */
};

static const char *const mode_names[] = {"exclusive", "shared", "variable", "share-exclusive"};

StaticAssertDecl(LW_EXCLUSIVE == (int) MODE_EXCLUSIVE && LW_SHARED == (int) MODE_SHARED, "modes are numbered alike");

/* What an acquisition went through before it had the lock. */
typedef struct trouble
{
	uint64		first;				/* tick of the first sleep; 0: there was none */
	uint64		granted;			/* tick */
	uint64		asleep;				/* in this stay in the queue, so far */
	uint32		count;				/* stays in the queue that ended */
	uint64		sleeps[MAX_SLEEPS]; /* ticks of each */
} trouble;

/* A (tranche, phase, mode) and its statistics: index in the book. */
typedef struct lock_account
{
	uint32		key;				/* 1 + ...; 0 empty */
	uint32		held;
	uint32		acquire;
	uint32		wait;
	uint32		failed;
} lock_account;

#define ACCOUNT_BITS 10
#define ACCOUNTS (1 << ACCOUNT_BITS)
#define PROBES 8					/* positions at which a key may be */

/* A hold that has ended. */
typedef struct release
{
	uint64		ticks;
	uint32		key;				/* of its account */
	bool		waited;				/* its acquisition has been recorded */
} release;

#define RELEASES 256				/* noted at most: then settled, whatever is held */
#define RELEASES_MANY 240			/* settled at the next release that leaves none held */

/*
 * The hot part. Holds form a stack as in the server (held_lwlocks); the first TALLY_HOLDS of
 * them lie in the slot.
 */
static struct
{
	uint32		count;				/* holds */
	uint32		logged;				/* releases in the log */
	uint64		waited;				/* bit i: hold i had to be waited for */
	trouble		trouble;			/* of the acquisition going on */
	/* of the release going on */
	tally_hold	released;
	uint64		released_at;
	bool		released_waited;
	bool		within;				/* a function that locks a buffer, and calls others for it */
	/* Has the process been seen to hold nothing? What it released since without having acquired it. */
	bool		balanced;
	uint32		unacquired;
}			lwlocks HOT_DATA __attribute__((aligned(64)));

#define WAITED_BITS 64				/* holds past them are recorded when they are granted */

static release releases[RELEASES];
static lock_account accounts[ACCOUNTS];
static tally_hold others[MAX_HOLDS];	/* past the first TALLY_HOLDS */
static trouble waited[WAITED_BITS]; /* of the holds whose bit is set */
static trouble done;				/* of the hold or the failure being settled */
static uint32 insertions[PHASE_COUNT];	/* held times of the locks on inserting WAL; by phase */

void
lwlocks_retry_names(void)
{
	memset(accounts, 0, sizeof(accounts));
	memset(insertions, PROBE_UNTOUCHED_BYTE, sizeof(insertions));
}

/* A new slot, or the probes are installed again: no lock is known to be held. */
void
lwlocks_begin(void)
{
	memset(&lwlocks, 0, sizeof(lwlocks));
	lwlocks_retry_names();
	if (tally.claimed)
		tally.slot.book->holding = 0;
}

static inline tally_hold *
hold_at(uint32 i)
{
	return likely(i < TALLY_HOLDS) ? &tally.slot.book->holds[i] : &others[i];
}

/* ---------------------------------------------------------------- statistics */

#define KEY(tranche, phase, mode) (1 + ((uint32) (tranche) << 6 | (uint32) (phase) << 2 | (mode)))
#define KEY_TRANCHE(key) (((key) - 1) >> 6)
#define KEY_PHASE(key) ((tally_phase) (((key) - 1) >> 2 & 15))
#define KEY_MODE(key) (((key) - 1) & 3)

StaticAssertDecl(PHASE_COUNT <= 16, "a phase must fit its bits of the key");

static uint32
touch(const char *part, uint32 key)
{
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), "lwlock::%s::%s::%s::%s",
			 compat_tranche_name(KEY_TRANCHE(key)), part,
			 probe_phase_name(KEY_PHASE(key)), mode_names[KEY_MODE(key)]);
	return probe_touch(name, TALLY_TIMER);
}

/* First use of an account: what every release updates. */
static void
touch_account(void *arg)
{
	lock_account *account = arg;
	uint32		key = account->key;
	char		name[TALLY_NAME_MAX];
	int			saved_errno = errno;

	account->held = touch("held", key);
	account->acquire = touch("acquire", key);
	account->wait = account->failed = PROBE_UNTOUCHED;
	snprintf(name, sizeof(name), "tranche::%u::%s", KEY_TRANCHE(key),
			 compat_tranche_name(KEY_TRANCHE(key)));
	probe_name(name);
	errno = saved_errno;
}

static void
touch_wait(void *arg)
{
	lock_account *account = arg;

	account->wait = touch("wait", account->key);
}

static void
touch_failed(void *arg)
{
	lock_account *account = arg;

	account->failed = touch("failed", account->key);
}

/* The account is not at its first position: search the next ones, or create it there, evicting another. */
DETOUR_HANDLER static pg_noinline lock_account *
find_account(uint32 key, uint32 first)
{
	lock_account *account;

	for (uint32 i = 0; i < PROBES; i++)
	{
		account = &accounts[(first + i) & (ACCOUNTS - 1)];
		if (account->key == key)
			return account;
		if (account->key == 0)
			break;
	}
	account->key = key;
	detour_call_aside(touch_account, account);
	return account;
}

/* The account of that key; the caller has cleared tally.on. */
static inline lock_account *
account_of(uint32 key)
{
	uint32		first = (key * 2654435761u) >> (32 - ACCOUNT_BITS);

	if (likely(accounts[first].key == key))
		return &accounts[first];
	return find_account(key, first);
}

/* Stays in the queue, each a wait. */
DETOUR_HANDLER static pg_noinline void
record_sleeps(lock_account *account, const trouble *t)
{
	if (account->wait == PROBE_UNTOUCHED)
		detour_call_aside(touch_wait, account);
	if (account->wait == TALLY_NONE)
		return;
	for (uint32 i = 0; i < Min(t->count, MAX_SLEEPS); i++)
		tally_record(&tally.slot, account->wait, t->sleeps[i]);
	for (uint32 i = MAX_SLEEPS; i < t->count; i++)
		handler_count(account->wait);
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
	else
		t->sleeps[MAX_SLEEPS - 1] += t->asleep;
	t->count++;
	t->asleep = 0;
}

static inline void
copy_trouble(trouble *to, const trouble *from)
{
	to->first = from->first;
	to->granted = from->granted;
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

/* ---------------------------------------------------------------- blockers */

static void
report_blocker(void *arg)
{
	blockers_report_lwlock(arg, mode_names[((tally_hold *) arg)->mode & 3], done.first,
						 done.granted - done.first);
}

/* What `done` says of an acquisition of `lock`; granted or not. */
DETOUR_HANDLER static pg_noinline void
record_done(tally_hold *lock, lock_account *account, bool granted)
{
	uint64		ticks = done.granted - done.first;

	if (granted && account->acquire != TALLY_NONE)
		tally_record(&tally.slot, account->acquire, ticks);
	record_sleeps(account, &done);
	if (ticks >= locks_block_ticks)
		detour_call_aside(report_blocker, lock);
}

/* The lock is released while others wait for it: publish how long it was held. */
DETOUR_HANDLER static pg_noinline void
publish_release(void)
{
	tally_book *book = tally.slot.book;
	tally_freed *freed = &book->freed[book->freed_next++ % TALLY_FREED];

	/* others read it (blockers.c): without a lock's address while the rest changes */
	__atomic_store_n(&freed->lock, 0, __ATOMIC_RELAXED);
	tally_fence_stores();
	freed->since = lwlocks.released.since;
	freed->until = lwlocks.released_at;
	freed->mode = lwlocks.released.mode;
	freed->account = book->run < book->used ? tally.slot.heads[book->run].stat : 0;
	__atomic_store_n(&freed->lock, lwlocks.released.lock, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- settling */

/* Record what is in the log; the caller has cleared tally.on. */
DETOUR_HANDLER void
lwlocks_settle(void)
{
	tally_book *book = tally.slot.book;

	for (uint32 i = 0; i < lwlocks.logged; i++)
	{
		const release *r = &releases[i];
		lock_account *account = account_of(r->key);
		uint64		seq;

		if (unlikely(account->held == TALLY_NONE || account->acquire == TALLY_NONE))
			continue;
		seq = tally_seq_begin(&book->seq);
		tally_add(&tally.slot, account->held, r->ticks);
		if (likely(!r->waited))
			handler_add_count(account->acquire);
		tally_seq_publish(&book->seq, seq);
	}
	lwlocks.logged = 0;
}

/* From reserving space in the WAL to the end of the copying a process holds one of the locks WALInsert. */
void
lwlocks_wal_insertions(uint64 *count, uint64 *ticks)
{
	uint32		key = KEY(LWTRANCHE_WAL_INSERT, tally.phase, MODE_EXCLUSIVE);
	uint32	   *index = &insertions[tally.phase];

	*count = *ticks = 0;
	if (*index == PROBE_UNTOUCHED)
		*index = touch("held", key);
	if (*index != TALLY_NONE)
	{
		*count = tally.slot.heads[*index].count;
		*ticks = tally.slot.heads[*index].total;
	}
	for (uint32 i = 0; i < lwlocks.logged; i++)
		if (releases[i].key == key)
		{
			(*count)++;
			*ticks += releases[i].ticks;
		}
}

/* The level word has changed: what was noted before a reset is not to be counted after it. */
void
lwlocks_follow(uint32 before, uint32 word, uint64 now)
{
	if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
		lwlocks.logged = 0;
}

/* The process waits for something to do: do acquisitions and releases balance? */
static pg_noinline void
check_balance(void)
{
	bool		buffer = false;
	uint32		unreleased = lwlocks.count;
	uint32		unacquired = lwlocks.unacquired;

#if COMPAT_BUFFER_LOCKS
	buffer = unreleased > 0 && hold_at(0)->tranche == COMPAT_BUFFER_TRANCHE;
#endif
	lwlocks.balanced = true;
	lwlocks.unacquired = 0;
	if (unreleased == 0 && unacquired == 0)
		return;
	lwlocks.count = 0;
	lwlocks.waited = 0;
	tally.slot.book->holding = 0;
	locks_unbalanced(buffer ? LOCKS_BUFFER : LOCKS_LIGHTWEIGHT, unreleased, unacquired);
}

/* A wait begins; the caller has cleared tally.on. */
void
lwlocks_before_wait(uint32 event)
{
	if (event == WAIT_EVENT_CLIENT_READ || (event & 0xFF000000U) == PG_WAIT_ACTIVITY)
		check_balance();
	if (lwlocks.count == 0 && lwlocks.logged > 0)
		lwlocks_settle();
}

/* An error: functions are left without returning. */
void
lwlocks_jump(void)
{
	lwlocks.within = false;
}

/* ---------------------------------------------------------------- handlers */

/* Record `done` for a hold without a bit, at once. As an acquisition it counts as found free. */
DETOUR_HANDLER static pg_noinline void
record_early(tally_hold *hold)
{
	if (!handler_on())
		return;
	tally.on = false;
	record_done(hold, account_of(KEY(hold->tranche, tally.phase, hold->mode & 3)), false);
	tally.on = true;
}

/* The hold had to be waited for: keep how until it ends. */
DETOUR_HANDLER static pg_noinline void
note_trouble(uintptr_t lock, uint32 tranche, uint32 mode, uint32 i, uint64 now)
{
	tally_hold	hold = {.lock = lock, .tranche = tranche, .mode = mode};

	if (i < WAITED_BITS)
	{
		lwlocks.waited |= (uint64) 1 << i;
		take_trouble(&waited[i]);
		waited[i].granted = now;
		return;
	}
	take_trouble(&done);
	done.granted = now;
	record_early(&hold);
}

/* The lock was acquired: only note when. */
static inline void
begin_hold(uintptr_t lock, uint32 tranche, uint32 mode)
{
	uint32		i = lwlocks.count;
	tally_hold *hold;
	uint64		now = handler_now();

	if (unlikely(!tally.claimed || i >= MAX_HOLDS))
		return;
	if (unlikely(lwlocks.trouble.first != 0))
		note_trouble(lock, tranche, mode, i, now);
	hold = hold_at(i);
	hold->lock = lock;
	hold->since = now;
	hold->tranche = tranche;
	hold->mode = mode;
	lwlocks.count = i + 1;
	/* a reader that sees the number sees the hold */
	__atomic_store_n(&tally.slot.book->holding, i + 1, __ATOMIC_RELEASE);
}

/* It was not acquired: count a failure, and its sleeps. */
DETOUR_HANDLER static pg_noinline void
record_failure(uintptr_t lock, uint32 tranche, uint32 mode, bool failed)
{
	tally_hold	wanted = {.lock = lock, .tranche = tranche, .mode = mode};
	lock_account *account;

	take_trouble(&done);
	done.granted = handler_now();
	if (!handler_on())
		return;
	tally.on = false;
	account = account_of(KEY(wanted.tranche, tally.phase, mode));
	if (failed && account->failed == PROBE_UNTOUCHED)
		detour_call_aside(touch_failed, account);
	if (failed)
		handler_count(account->failed);
	if (done.count > 0)
		record_done(&wanted, account, false);
	tally.on = true;
}

/* After LWLockAcquire. */
DETOUR_HANDLER HOT_CODE static int
after_acquire(LWLock *lock, LWLockMode mode, int result)
{
	begin_hold((uintptr_t) lock, lock->tranche, mode);
	return result;
}

/* After LWLockConditionalAcquire and LWLockAcquireOrWait, which may come back without it. */
DETOUR_HANDLER HOT_CODE static int
after_attempt(LWLock *lock, LWLockMode mode, int result)
{
	if ((bool) result)
		begin_hold((uintptr_t) lock, lock->tranche, mode);
	else
		record_failure((uintptr_t) lock, lock->tranche, mode, true);
	return result;
}

/* After LWLockWaitForVar, which never takes the lock. */
DETOUR_HANDLER static int
after_wait_for_var(LWLock *lock, uint64 ignored, int result)
{
	if (lwlocks.trouble.count > 0)
		record_failure((uintptr_t) lock, lock->tranche, MODE_VARIABLE, false);
	return result;
}

/* The lock is not the last one acquired. Moves its hold to the end; false: it has none. */
DETOUR_HANDLER static pg_noinline bool
find_hold(uintptr_t lock)
{
	int			last = (int) lwlocks.count - 1;
	int			i = last;
	tally_hold	hold;
	bool		had_waited;

	while (i >= 0 && hold_at((uint32) i)->lock != lock)
		i--;
	if (i < 0)
		return false;
	hold = *hold_at((uint32) i);
	had_waited = i < WAITED_BITS && (lwlocks.waited >> i & 1) != 0;
	if (had_waited)
		copy_trouble(&done, &waited[i]);
	for (; i < last; i++)
	{
		*hold_at((uint32) i) = *hold_at((uint32) i + 1);
		if (i >= WAITED_BITS)
			continue;
		lwlocks.waited &= ~((uint64) 1 << i);
		if (i + 1 >= WAITED_BITS)
			continue;				/* what moves here has no bit */
		lwlocks.waited |= (lwlocks.waited >> 1) & ((uint64) 1 << i);
		copy_trouble(&waited[i], &waited[i + 1]);
	}
	*hold_at((uint32) last) = hold;
	if (had_waited && last >= WAITED_BITS)
		record_early(&hold);
	if (last < WAITED_BITS)
	{
		lwlocks.waited &= ~((uint64) 1 << last);
		if (had_waited)
		{
			lwlocks.waited |= (uint64) 1 << last;
			copy_trouble(&waited[last], &done);
		}
	}
	return true;
}

/* A lock is released that is not known to be held: it was taken before the probes were installed, or unseen. */
DETOUR_HANDLER static pg_noinline bool
release_unknown(void)
{
	lwlocks.unacquired += lwlocks.balanced;
	return false;
}

/* Does anybody wait for it? */
static inline bool
is_awaited(uintptr_t lock, uint32 tranche)
{
#if COMPAT_BUFFER_LOCKS
	if (tranche == COMPAT_BUFFER_TRANCHE)
		return compat_buffer_awaited(lock);
#endif
	return (pg_atomic_read_u32(&((LWLock *) lock)->state) & COMPAT_LWLOCK_HAS_WAITERS) != 0;
}

/* The last hold ends. True: there is more to be done after the release. */
static inline bool
end_hold(uint64 now, bool awaited)
{
	uint32		last = lwlocks.count - 1;
	tally_hold *hold = hold_at(last);
	release    *r;
	bool		had_waited;

	lwlocks.count = last;
	tally.slot.book->holding = last;
	had_waited = unlikely(lwlocks.waited != 0) && last < WAITED_BITS &&
		(lwlocks.waited >> last & 1) != 0;
	if (unlikely(awaited || had_waited))
	{
		lwlocks.waited &= ~((uint64) had_waited << (last % WAITED_BITS));
		lwlocks.released = *hold;
		lwlocks.released_at = now;
		if (awaited)
			publish_release();
	}
	if (unlikely(!handler_on() || lwlocks.logged == RELEASES))
		return false;
	r = &releases[lwlocks.logged++];
	r->ticks = now > hold->since ? now - hold->since : 0;
	r->key = KEY(hold->tranche, tally.phase, hold->mode & 3);
	r->waited = had_waited;
	lwlocks.released_waited = had_waited;
	return unlikely(had_waited || lwlocks.logged >= RELEASES_MANY || heavylocks_pending ||
					handler_level_ended(now));
}

/* Is the lock held, as far as we know? Then its hold is the last one. */
static inline bool
has_hold(uintptr_t lock)
{
	return lwlocks.count > 0 &&
		(likely(hold_at(lwlocks.count - 1)->lock == lock) || find_hold(lock));
}

/*
 * Before LWLockRelease. True: there is more to be done after it. The same before LWLockDisown: what is held
 * ends where it is given up, since its releaser is another process.
 */
DETOUR_HANDLER HOT_CODE static bool
before_release(LWLock *lock, uint64 ignored)
{
	uint64		now = handler_now();

	if (unlikely(!has_hold((uintptr_t) lock)))
		return release_unknown();
	return end_hold(now, is_awaited((uintptr_t) lock, 0));
}

static void
end_level(void *unused)
{
	tally_end_level(tally.slot.segment, tally_now(tally.clock));
}

/* After LWLockRelease, if before_release asked for it: no process waits for this one now. */
DETOUR_HANDLER static int
after_release(LWLock *lock, uint64 ignored, int result)
{
	uint32		first = lwlocks.count;	/* where its hold was */

	if (!handler_on())
		return result;
	tally.on = false;
	if (lwlocks.released_waited)
	{
		copy_trouble(&done, &waited[first]);
		record_done(&lwlocks.released, account_of(KEY(lwlocks.released.tranche, tally.phase,
													  lwlocks.released.mode & 3)), true);
	}
	if (lwlocks.logged >= (lwlocks.count == 0 ? RELEASES_MANY : RELEASES))
		lwlocks_settle();
	if (lwlocks.count == 0)
	{
		if (heavylocks_pending)
			heavylocks_settle();
		if (handler_level_ended(handler_now()))
			detour_call_aside(end_level, NULL);
	}
	tally.on = true;
	return result;
}

/* Before LWLockReleaseAll, by which an error ends. True: something is held. */
DETOUR_HANDLER static bool
before_release_all(uint64 ignored, uint64 ignored_too)
{
	lwlocks.within = false;
	lwlocks.released_at = handler_now();
	return lwlocks.count > 0;
}

/*
 * After it. If it did not call LWLockRelease (18 has a copy of that in it), the holds are still there. The locks
 * on buffers are released a little later, by the resource owner, and unseen.
 */
DETOUR_HANDLER static int
after_release_all(uint64 ignored, uint64 ignored_too, int result)
{
	uint64		at = lwlocks.released_at;

	while (lwlocks.count > 0)
		if (end_hold(at, true))
			(void) after_release(NULL, 0, 0);
	return result;
}

/* ---------------------------------------------------------------- buffers */

#if COMPAT_BUFFER_LOCKS
static inline bool
is_shared_buffer(Buffer buffer)
{
	return buffer > 0 && !lwlocks.within;
}

static inline uint32
mode_of(BufferLockMode mode)
{
	return mode == BUFFER_LOCK_SHARE ? MODE_SHARED
		: mode == BUFFER_LOCK_EXCLUSIVE ? MODE_EXCLUSIVE : MODE_SHARE_EXCLUSIVE;
}

/* After LockBufferInternal, which LockBuffer calls to lock. */
DETOUR_HANDLER HOT_CODE static int
after_lock_buffer(Buffer buffer, BufferLockMode mode, int result)
{
	if (is_shared_buffer(buffer))
		begin_hold(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, mode_of(mode));
	return result;
}

/* After ConditionalLockBuffer. */
DETOUR_HANDLER static int
after_try_buffer(Buffer buffer, uint64 ignored, int result)
{
	if (!is_shared_buffer(buffer))
		return result;
	if ((bool) result)
		begin_hold(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, MODE_EXCLUSIVE);
	else
		record_failure(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, MODE_EXCLUSIVE, true);
	return result;
}

/* Before LockBufferForCleanup and ConditionalLockBufferForCleanup: only whether they end with the lock counts. */
DETOUR_HANDLER static bool
before_cleanup(Buffer buffer, uint64 ignored)
{
	lwlocks.within = true;
	return true;
}

DETOUR_HANDLER static int
after_lock_cleanup(Buffer buffer, uint64 ignored, int result)
{
	lwlocks.within = false;
	return after_lock_buffer(buffer, BUFFER_LOCK_EXCLUSIVE, result);
}

DETOUR_HANDLER static int
after_try_cleanup(Buffer buffer, uint64 ignored, int result)
{
	lwlocks.within = false;
	return after_try_buffer(buffer, 0, result);
}

/*
 * Before UnlockBuffer and UnlockReleaseBuffer. A lock that is not known was taken by the buffer manager itself,
 * for a page that it has made.
 */
DETOUR_HANDLER HOT_CODE static bool
before_unlock_buffer(Buffer buffer, uint64 ignored)
{
	uint64		now = handler_now();

	if (!is_shared_buffer(buffer) || !has_hold(compat_buffer_lock(buffer)))
		return false;
	return end_hold(now, compat_buffer_awaited(compat_buffer_lock(buffer)));
}
#endif

#define LIGHTWEIGHT(name, before, after, needed) \
	{name, {DETOUR_WRAP, (void *) (before), (void *) (after), 0}, LOCKS_LIGHTWEIGHT, needed}
#define BUFFER(name, before, after) \
	{name, {DETOUR_WRAP, (void *) (before), (void *) (after), 0}, LOCKS_BUFFER, true}

const lock_detour lwlocks_detours[LWLOCKS_DETOURS] = {
	LIGHTWEIGHT("LWLockAcquire", NULL, after_acquire, true),
	LIGHTWEIGHT("LWLockConditionalAcquire", NULL, after_attempt, true),
	LIGHTWEIGHT("LWLockAcquireOrWait", NULL, after_attempt, true),
	LIGHTWEIGHT("LWLockRelease", before_release, after_release, true),
	LIGHTWEIGHT("LWLockWaitForVar", NULL, after_wait_for_var, false),
	LIGHTWEIGHT("LWLockReleaseAll", before_release_all, after_release_all, false),
#if COMPAT_LWLOCK_DISOWN
	LIGHTWEIGHT("LWLockDisown", before_release, after_release, false),
#endif
#if COMPAT_BUFFER_LOCKS
	BUFFER("LockBufferInternal", NULL, after_lock_buffer),
	BUFFER("ConditionalLockBuffer", NULL, after_try_buffer),
	BUFFER("UnlockBuffer", before_unlock_buffer, after_release),
	BUFFER("UnlockReleaseBuffer", before_unlock_buffer, after_release),
	BUFFER("LockBufferForCleanup", before_cleanup, after_lock_cleanup),
	BUFFER("ConditionalLockBufferForCleanup", before_cleanup, after_try_cleanup),
#endif
};
