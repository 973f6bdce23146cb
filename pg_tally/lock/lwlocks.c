/* SPDX-License-Identifier: PostgreSQL */
/*
 * lwlocks.c
 *	  Measures lightweight locks: how long each was held and waited for, and who kept others waiting. Since
 *	  PostgreSQL 19, it does the same for locks on buffer contents, which are a separate kind of lock.
 *
 * Both clock readings are outside the hold, so that nobody waits longer for a lock because it is measured. The first
 * is taken, and the hold entered, before the acquisition, after which nothing else happens; the second after the
 * release, together with an entry in a log. The time between the readings and the hold is the same each time. Each
 * process measures it once, on a private lock that nobody waits for, and subtracts it (measure_window). If an
 * acquisition had to wait, its hold begins at the end of its last sleep. If a release wakes others, the hold ends just
 * before that (lwlocks_waking).
 *
 * The log is recorded when no lock is held: before a wait, and when it is nearly full. So no other process waits for
 * our bookkeeping, whose code and data are fetched once for many locks. An acquisition that found the lock free is
 * counted but not timed; one that had to queue is timed by its sleeps (imports.c, sem_wait).
 *
 * A killed process loses its log: at most RELEASES entries since its last wait.
 *
 * If the server's compiler has inlined a function into another one, the detour misses calls. So a process that waits
 * for its client, or for work, must hold no lock, and must not have released a lock since the last such wait that it
 * was not seen to acquire. Otherwise the detours are removed (locks_unbalanced).
 *
 * Concurrency contract: the holds belong to this process. The first TALLY_HOLDS of them are in its slot for readers.
 * Garbage written there can only spoil figures, because the ends of their stack are stored here.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

#include "detour/detour.h"
#include "ledger/detour_handler.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "lock/lock_detours.h"
#include "lock/lock_holders.h"
#include "tally.h"

#define MAX_HOLDS 200				/* MAX_SIMUL_LWLOCKS, lwlock.c */
#define MAX_SLEEPS 6				/* of one acquisition; further sleeps are added to the last */

/* Modes, the last part of a statistic's name. */
enum
{
	MODE_EXCLUSIVE,
	MODE_SHARED,
	MODE_VARIABLE,					/* stands for LWLockWaitForVar */
	MODE_SHARE_EXCLUSIVE			/* of buffer locks */
};

static const char *const mode_names[] = {"exclusive", "shared", "variable", "share-exclusive"};

StaticAssertDecl(LW_EXCLUSIVE == (int) MODE_EXCLUSIVE && LW_SHARED == (int) MODE_SHARED, "modes are numbered alike");

/* The waits of an acquisition before it got the lock. */
typedef struct trouble
{
	uint64		first;				/* tick of the first sleep; 0: did not sleep */
	uint64		granted;			/* tick */
	uint64		asleep;				/* ticks slept so far in the current stay in the queue */
	uint32		count;				/* number of ended stays in the queue */
	uint64		sleeps[MAX_SLEEPS]; /* ticks of each */
} trouble;

/* A (tranche, phase, mode) and its statistics. */
typedef struct lock_account
{
	uint64		key;				/* NO_KEY: empty */
	tally_head *held;				/* updated by every release; points to `nowhere` if not registered */
	uint64	   *histogram;			/* of held */
	tally_head *acquire;
} lock_account;

/* The rest of an account: indexes in the book. */
typedef struct lock_account_rest
{
	uint32		acquire;
	uint32		wait;
	uint32		failed;
} lock_account_rest;

#define ACCOUNT_BITS 10
#define ACCOUNTS (1 << ACCOUNT_BITS)
#define PROBES 8					/* number of positions for a key */

/* A hold that has ended. */
typedef struct release
{
	uint64		ticks;				/* between its clock readings */
	uint64		key;				/* of its account; KEY_WAITED: its acquisition has been recorded */
	/* where the previous log had its account here: transactions repeat, so mostly this key's; never NULL once `used` */
	lock_account *account;
} release;

#define RELEASES 256				/* capacity; when full, settled even if locks are held */
#define RELEASES_MANY 240			/* from here on, settled at the next release that leaves no lock held */

uint64		locks_block_ticks = UINT64_MAX;
lock_imbalance lwlocks_imbalance;

static release releases[RELEASES];

/*
 * The hot part of the state. Holds form a stack, as in the server (held_lwlocks); the first TALLY_HOLDS of
 * them are in the slot, and `next` points behind those. The last hold may not have begun yet (acquiring).
 *
 * An acquisition is simple while next < limit, a release while next > floor. If anything is special, both bounds fail
 * (choose_way). So a release never looks below `first`, whatever others have written to the slot.
 */
static struct
{
	tally_hold *next;
	tally_hold *limit;
	tally_hold *floor;
	release    *log_end;			/* behind the last release in the log */
	release    *log_limit;			/* from here on, a release is not simple */
	uint32_t   *holding;			/* the number of holds, in the slot */
	uintptr_t	releasing;			/* the lock being released; 0: none */
	uint64		until;				/* tick at which the current release ended the hold; 0: unknown until it returns */
	tally_hold *first;				/* in the slot; NULL: no slot */
	uint32		beyond;				/* number of holds that are not in the slot (others) */
	uint32		troubled;			/* number of holds that had to be waited for */
	uint64		asked;				/* tick before an acquisition that may fail; 0: none in progress */
	trouble		trouble;			/* its waits */
	uint64		all_released;		/* tick before LWLockReleaseAll */
	bool		within;				/* inside a function that locks a buffer by calling others */
	/* Has the process been seen to hold nothing? And the releases since then without acquisition. */
	bool		balanced;
	uint32		unacquired;
	bool		unknown;			/* has released an unknown lock since it last balanced */
}			lwlocks HOT_DATA __attribute__((aligned(64)));

static lock_account accounts[ACCOUNTS];
static lock_account_rest rests[ACCOUNTS];
static struct
{
	tally_head	head;
	uint64		histogram[TALLY_CHUNK_BUCKETS];
}			nowhere;
static tally_hold others[MAX_HOLDS];	/* after the first TALLY_HOLDS */
static trouble troubles[MAX_HOLDS]; /* waits of the holds; first is 0 if there were none */
static trouble done;				/* waits of the hold or failure being settled */
static uint32 insertions[PHASE_COUNT];	/* statistics of held WAL insertion locks, by phase */

/* Ticks between the two clock readings for a lock that is released at once. */
static uint64 window HOT_DATA = 0;
static bool window_measured = false;

/* Has this process, or its parent, counted locks? If not, the tables need not be filled. */
static bool used = false;

static void measure_window(void *unused);

/* Number of holds. */
static inline uint32
held_count(void)
{
	return (uint32) (lwlocks.next - lwlocks.first) + lwlocks.beyond;
}

/* Number of releases in the log. */
static inline uint32
logged(void)
{
	return (uint32) (lwlocks.log_end - releases);
}

static inline void
drop_log(void)
{
	lwlocks.log_end = releases;
}

void
lwlocks_retry_names(void)
{
	if (!used)
		return;
	memset(accounts, 0xff, sizeof(accounts));	/* NO_KEY */
	memset(insertions, PROBE_UNTOUCHED_BYTE, sizeof(insertions));
}

static inline bool
reads_counter(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally.clock == TALLY_CLOCK_COUNTER;
#else
	return false;
#endif
}

/* The fast path needs a clock that is read by one instruction, and nothing special. */
static inline void
choose_way(void)
{
	bool		simple = lwlocks.first != NULL && reads_counter() && lwlocks.troubled == 0 && lwlocks.until == 0;

	lwlocks.limit = simple ? lwlocks.first + TALLY_HOLDS : NULL;
	lwlocks.floor = simple && lwlocks.beyond == 0 ? lwlocks.first : (tally_hold *) UINTPTR_MAX;
}

/* Take a hold off the stack. Its content stays. */
static inline void
drop_hold(void)
{
	if (lwlocks.beyond == 0)
		lwlocks.next--;
	else if (--lwlocks.beyond == 0)
		choose_way();
}

/* No lock is known to be held. */
static void
forget_holds(void)
{
	for (uint32 i = held_count(); i > 0; i--)
		troubles[i - 1].first = 0;
	lwlocks.next = lwlocks.first;
	lwlocks.beyond = lwlocks.troubled = 0;
	if (lwlocks.holding != NULL)
		*lwlocks.holding = 0;
}

/* A new slot or none, or the probes have been installed again: no locks are known to be held. */
void
lwlocks_begin(void)
{
	for (uint32 i = held_count(); i > 0; i--)
		troubles[i - 1].first = 0;
	memset(&lwlocks, 0, sizeof(lwlocks));
	lwlocks.log_limit = releases + RELEASES_MANY;
	drop_log();
	lwlocks_retry_names();
	if (tally.claimed)
	{
		lwlocks.first = lwlocks.next = tally.slot.book->holds;
		lwlocks.holding = &tally.slot.book->holding;
		*lwlocks.holding = 0;
	}
	choose_way();
}

/* The slot is about to be given up: from now on nothing is written to it. The caller has recorded the log. */
void
lwlocks_end(void)
{
	forget_holds();
	lwlocks.first = lwlocks.next = NULL;
	lwlocks.holding = NULL;
	choose_way();
}

uint32
lwlocks_noted(void)
{
	return logged();
}

void
lwlocks_forget_noted(uint32 noted)
{
	lwlocks.log_end = releases + Min(logged(), noted);
}

/* The process has claimed a slot, or follows the level: locks will be counted. */
void
lwlocks_ready(void)
{
	if (!used)
	{
		used = true;
		for (int i = 0; i < RELEASES; i++)
			releases[i].account = &accounts[0];
		lwlocks_retry_names();
	}
	choose_way();
}

static inline tally_hold *
hold_at(uint32 i)
{
	return likely(i < TALLY_HOLDS) ? &tally.slot.book->holds[i] : &others[i];
}

/* ---------------------------------------------------------------- statistics */

/*
 * A key has tranche and mode side by side, like a hold, and the phase in a separate byte, in which no tranche has bits:
 * storing only that byte saves the instructions to shift it. All processors with detours store the low byte first.
 */
#define KEY(tranche, phase, mode) ((uint64) (uint32) (tranche) | (uint64) (phase) << 24 | (uint64) (mode) << 32)
#define KEY_PHASE_BYTE 3
#define KEY_TRANCHE(key) ((uint32) (key) & 0xFFFFFF)
#define KEY_MODE(key) ((uint32) ((key) >> 32) & 3)
#define KEY_PHASE(key) ((tally_phase) ((key) >> 24 & 15))
#define KEY_WAITED (UINT64CONST(1) << 63)
#define NO_KEY UINT64_MAX

StaticAssertDecl(PHASE_COUNT <= 16, "a phase must fit its bits of the key");
StaticAssertDecl(offsetof(tally_hold, mode) == offsetof(tally_hold, tranche) + 4, "a key takes both at once");

/* The key for the phase in which the lock is released. */
static pg_attribute_always_inline void
set_key(uint64 *key, const tally_hold *hold)
{
	memcpy(key, &hold->tranche, sizeof(*key));
	((uint8 *) key)[KEY_PHASE_BYTE] = (uint8) tally.phase;
}

static inline uint64
key_of(const tally_hold *hold)
{
	uint64		key;

	set_key(&key, hold);
	return key;
}

static uint32
touch(const char *part, uint64 key)
{
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), TALLY_STAT_LWLOCK "%s::%s::%s::%s",
			 compat_tranche_name(KEY_TRANCHE(key)), part,
			 probe_phase_name(KEY_PHASE(key)), mode_names[KEY_MODE(key)]);
	return probe_touch(name, TALLY_TIMER);
}

static inline lock_account_rest *
rest_of(const lock_account *account)
{
	return &rests[account - accounts];
}

/* First use of an account: look up the statistic that every release updates. */
static void
touch_account(void *arg)
{
	lock_account *account = arg;
	lock_account_rest *rest = rest_of(account);
	uint64		key = account->key;
	char		name[TALLY_NAME_MAX];
	int			saved_errno = errno;
	tally_slot *slot = &tally.slot;
	uint32		held = touch(TALLY_STAT_LWLOCK_HELD, key);

	rest->acquire = touch(TALLY_STAT_LWLOCK_ACQUIRE, key);
	rest->wait = rest->failed = PROBE_UNTOUCHED;
	*account = (lock_account) {key, &nowhere.head, nowhere.histogram, &nowhere.head};
	if (held != TALLY_NONE && rest->acquire != TALLY_NONE)
		*account = (lock_account) {key, &slot->heads[held], tally_hist_in(slot->hists, held),
								   &slot->heads[rest->acquire]};
	snprintf(name, sizeof(name), TALLY_STAT_TRANCHE "%u::%s", KEY_TRANCHE(key),
			 compat_tranche_name(KEY_TRANCHE(key)));
	probe_name(name);
	errno = saved_errno;
}

static void
touch_wait(void *arg)
{
	lock_account *account = arg;

	rest_of(account)->wait = touch(TALLY_STAT_LWLOCK_WAIT, account->key);
}

static void
touch_failed(void *arg)
{
	lock_account *account = arg;

	rest_of(account)->failed = touch(TALLY_STAT_LWLOCK_FAILED, account->key);
}

/* The account is not at its first position: search the next positions, or create it there, evicting another account. */
DETOUR_HANDLER static pg_noinline lock_account *
find_account(uint64 key, uint32 first)
{
	lock_account *account;

	for (uint32 i = 0; i < PROBES; i++)
	{
		account = &accounts[(first + i) & (ACCOUNTS - 1)];
		if (account->key == key)
			return account;
		if (account->key == NO_KEY)
			break;
	}
	account->key = key;
	detour_call_aside(touch_account, account);
	return account;
}

/* The account of that key; the caller has cleared tally.on. */
static inline uint32
position_of(uint64 key)
{
	return (uint32) ((key * UINT64CONST(0x9E3779B97F4A7C15)) >> (64 - ACCOUNT_BITS));
}

static inline lock_account *
account_of(uint64 key)
{
	uint32		first = position_of(key);

	if (likely(accounts[first].key == key))
		return &accounts[first];
	return find_account(key, first);
}

/* Record the stays in the queue, each as a wait. */
DETOUR_HANDLER static pg_noinline void
record_sleeps(lock_account *account, const trouble *t)
{
	const uint32 *wait = &rest_of(account)->wait;

	if (*wait == PROBE_UNTOUCHED)
		detour_call_aside(touch_wait, account);
	if (*wait == TALLY_NONE)
		return;
	for (uint32 i = 0; i < Min(t->count, MAX_SLEEPS); i++)
		tally_record(&tally.slot, *wait, t->sleeps[i]);
	for (uint32 i = MAX_SLEEPS; i < t->count; i++)
		handler_count(*wait);
}

/* ---------------------------------------------------------------- waiting */

/*
 * Is a process that sleeps with this wait event acquiring the lock of its last hold, which has not begun yet? Not if
 * the function may return without the lock, or waits for others to unpin a buffer, nor if it was already asleep when
 * the probes were installed.
 */
static inline bool
acquiring(uint32 event)
{
	return held_count() > 0 && lwlocks.asked == 0 && compat_queues_for_lock(event) &&
		(!lwlocks.within || (event & 0xFF000000U) == PG_WAIT_LWLOCK);
}

static void
sleep_ended(trouble *t, uint64 begin, uint64 end)
{
	t->asleep += end - begin;
	t->granted = end;
	if (MyProc != NULL && MyProc->lwWaiting)
		return;
	if (t->count < MAX_SLEEPS)
		t->sleeps[t->count] = t->asleep;
	else
		t->sleeps[MAX_SLEEPS - 1] += t->asleep;
	t->count++;
	t->asleep = 0;
}

static void
begin_trouble(trouble *t, uint64 begin)
{
	t->first = begin;
	t->asleep = 0;
	t->count = 0;
}

/*
 * sem_wait has returned after a sleep for a lightweight lock. If the wake-up was meant for something
 * else, the server sleeps again without leaving the queue (LWLockAcquire).
 */
void
lwlocks_slept(uint64 begin, uint64 end)
{
	uint32		last = held_count() - 1;

	if (acquiring(server_wait_event()))
	{
		if (troubles[last].first == 0)
		{
			begin_trouble(&troubles[last], begin);
			lwlocks.troubled++;
			choose_way();
		}
		sleep_ended(&troubles[last], begin, end);
		hold_at(last)->since = end;
		__atomic_store_n(lwlocks.holding, held_count(), __ATOMIC_RELEASE);
	}
	else if (lwlocks.asked != 0 || lwlocks.within)
	{
		if (lwlocks.trouble.first == 0)
			begin_trouble(&lwlocks.trouble, begin);
		sleep_ended(&lwlocks.trouble, begin, end);
	}
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

/* ---------------------------------------------------------------- blockers */

static void
report_blocker(void *arg)
{
	blockers_report_lwlock(arg, mode_names[((tally_hold *) arg)->mode & 3], done.first,
						 done.granted > done.first ? done.granted - done.first : 0);
}

/* Record the waits in `done` for an acquisition of `lock`, granted or not. */
DETOUR_HANDLER static pg_noinline void
record_done(tally_hold *lock, lock_account *account, bool granted)
{
	/* the clock may have been reset in between */
	uint64		ticks = done.granted > done.first ? done.granted - done.first : 0;

	if (granted)
		tally_record(&tally.slot, rest_of(account)->acquire, ticks);
	record_sleeps(account, &done);
	if (ticks >= locks_block_ticks)
		detour_call_aside(report_blocker, lock);
}

/* The lock is being released while others wait for it: publish how long it was held. */
DETOUR_HANDLER static pg_noinline void
publish_release(const tally_hold *hold, uint64 until)
{
	tally_book *book = tally.slot.book;
	tally_freed *freed = &book->freed[book->freed_next++ % TALLY_FREED];

	/* others read it (blockers.c), so it has no lock address while the rest changes */
	__atomic_store_n(&freed->lock, 0, __ATOMIC_RELAXED);
	tally_fence_stores();
	freed->since = hold->since;
	freed->until = until;
	freed->mode = hold->mode;
	freed->account = book->run < book->used ? tally.slot.heads[book->run].stat : 0;
	__atomic_store_n(&freed->lock, hold->lock, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- settling */

/* The length of a hold, given the ticks between its clock readings. */
static inline uint64
hold_of(uint64 ticks)
{
	int64		held = (int64) (ticks - window);

	/* the clocks of two CPUs may differ slightly */
	return likely(held > 0) ? (uint64) held : 0;
}

/*
 * Count the hold that has ended there. Between tally_seq_begin and tally_seq_publish. A lock that is released at once has been held
 * for no time (window), so both ways are common.
 */
static pg_attribute_always_inline void
add_hold(const lock_account *account, const release *r)
{
	uint64		held = r->ticks - window;

	/* also false if the time is negative */
	if (tally_hist_is_usual(held))
	{
		tally_head_add(account->held, held);
		tally_hist_add_usual(account->histogram, held);
	}
	else
	{
		held = hold_of(r->ticks);
		tally_head_add(account->held, held);
		tally_hist_add(account->histogram, held);
	}
}

/*
 * The account is not at its first position. Returns it, and remembers it at the release's place. If the acquisition has been recorded,
 * counts the hold and returns NULL.
 */
DETOUR_HANDLER static pg_noinline const lock_account *
account_anew(release *r)
{
	lock_account *account = account_of(r->key & ~KEY_WAITED);
	uint64		seq;

	if (likely((r->key & KEY_WAITED) == 0))
		return r->account = account;
	seq = tally_seq_begin(&tally.slot.book->seq);
	add_hold(account, r);
	tally_seq_publish(&tally.slot.book->seq, seq);
	return NULL;
}

/* Record the log; the caller has cleared tally.on. */
static pg_attribute_always_inline void
settle(void)
{
	tally_book *book = tally.slot.book;
	const release *end = lwlocks.log_end;
	uint64		seq;

	if (end == releases)
		return;
	if (unlikely(!window_measured))
		detour_call_aside(measure_window, NULL);
	seq = tally_seq_begin(&book->seq);

	for (release *r = releases; r != end; r++)
	{
		const lock_account *account = r->account;
		tally_head *acquire;

		if (account->key != r->key)
		{
			account = r->account = &accounts[position_of(r->key)];
			if (unlikely(account->key != r->key))
			{
				tally_seq_publish(&book->seq, seq);
				account = account_anew(r);
				seq = tally_seq_begin(&book->seq);
				if (account == NULL)
					continue;
			}
		}
		add_hold(account, r);
		acquire = account->acquire;
		acquire->count++;
		acquire->min = 0;
	}
	tally_seq_publish(&book->seq, seq);
	drop_log();
}

void
lwlocks_settle(void)
{
	settle();
}

DETOUR_HANDLER static pg_noinline void
settle_in_handler(void)
{
	settle();
}

/* A process holds one of the WALInsert locks from reserving space in the WAL until its data is copied. */
void
lwlocks_wal_insertions(uint64 *count, uint64 *ticks)
{
	uint64		key = KEY(LWTRANCHE_WAL_INSERT, tally.phase, MODE_EXCLUSIVE);
	uint32	   *index = &insertions[tally.phase];

	if (unlikely(!window_measured))
		measure_window(NULL);
	*count = *ticks = 0;
	if (*index == PROBE_UNTOUCHED)
		*index = touch(TALLY_STAT_LWLOCK_HELD, key);
	if (*index != TALLY_NONE)
	{
		*count = tally.slot.heads[*index].count;
		*ticks = tally.slot.heads[*index].total;
	}
	for (uint32 i = 0; i < logged(); i++)
		if ((releases[i].key & ~KEY_WAITED) == key)
		{
			(*count)++;
			*ticks += hold_of(releases[i].ticks);
		}
}

/* The level word has changed: notes made before a reset must not be counted after it. */
void
lwlocks_follow(uint32 before, uint32 word, uint64 now)
{
	if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
		drop_log();
}

/* The process waits for work: check that acquisitions and releases balance. */
static pg_noinline void
check_balance(void)
{
	bool		buffer = false;
	uint32		unreleased = held_count();
	uint32		unacquired = lwlocks.unacquired;

#if COMPAT_BUFFER_LOCKS
	buffer = unreleased > 0 && hold_at(0)->tranche == COMPAT_BUFFER_TRANCHE;
#endif
	if (lwlocks.balanced && unacquired == 0)
		lwlocks.unknown = false;
	lwlocks.balanced = true;
	lwlocks.unacquired = 0;
	if (unreleased == 0 && unacquired == 0)
		return;
	forget_holds();
	choose_way();
	lwlocks_imbalance = (lock_imbalance) {
		.found = true,
		.group = buffer ? LOCKS_BUFFER : LOCKS_LIGHTWEIGHT,
		.unreleased = unreleased,
		.unacquired = unacquired,
	};
}

void
lwlocks_before_wait(uint32 event)
{
	bool		acquires;
	uint32		count;

	if (event == WAIT_EVENT_CLIENT_READ || (event & 0xFF000000U) == PG_WAIT_ACTIVITY)
		check_balance();
	acquires = acquiring(event);
	count = held_count();
	if (count == acquires)
	{
		if (heavylocks_pending)
			heavylocks_settle();
		settle();
		if (unlikely(probe_level_until() != 0))
			tally_end_level(tally.slot.segment, probe_now());
	}
	if (acquires)
		*lwlocks.holding = count - 1;
}

/* An error unwinds functions without returning from them. */
DETOUR_HANDLER void
lwlocks_jump(void)
{
	lwlocks.within = false;
	lwlocks.asked = lwlocks.until = 0;
	lwlocks.releasing = 0;
	choose_way();
}

/* ---------------------------------------------------------------- handlers */

/* The current tick, on the fast path. */
static inline uint64
plain_now(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally_counter();
#else
	return 0;
#endif
}

static pg_attribute_always_inline void
write_hold(tally_hold *hold, uintptr_t lock, uint64 since, uint32 tranche, uint32 mode)
{
	hold->lock = lock;
	hold->since = since;
	hold->tranche = tranche;
	hold->mode = mode;
}

/* Begin a hold at that tick, or now if it is 0. */
DETOUR_HANDLER static pg_noinline void
begin_hold_at(uintptr_t lock, uint32 tranche, uint32 mode, uint64 since)
{
	uint32		count = held_count();

	if (lwlocks.first == NULL || count >= MAX_HOLDS)
		return;
	write_hold(hold_at(count), lock, since != 0 ? since : handler_now(), tranche, mode);
	if (count < TALLY_HOLDS)
		lwlocks.next++;
	else if (lwlocks.beyond++ == 0)
		choose_way();
	__atomic_store_n(lwlocks.holding, count + 1, __ATOMIC_RELEASE);
}

/* The lock is about to be acquired unconditionally. False if something is special; then begin_hold_at must be used. */
static pg_attribute_always_inline bool
begin_hold(uintptr_t lock, uint32 tranche, uint32 mode)
{
	tally_hold *hold = lwlocks.next;

	if (unlikely(hold >= lwlocks.limit))
		return false;
	write_hold(hold, lock, plain_now(), tranche, mode);
	lwlocks.next = hold + 1;
	/* a reader that sees the number must see the hold */
	tally_fence_stores();
	(*lwlocks.holding)++;
	return true;
}

/* Before a function that may return without the lock, at that tick. */
static inline void
begin_attempt(uint64 now)
{
	lwlocks.asked = now;
	lwlocks.trouble.first = 0;
	lwlocks.trouble.count = 0;
}

/* The lock was acquired: at `since`, unless it had to be waited for. */
DETOUR_HANDLER static pg_noinline void
attempt_succeeded(uintptr_t lock, uint32 tranche, uint32 mode, uint64 since)
{
	uint32		i = held_count();
	bool		waited = lwlocks.trouble.first != 0;

	lwlocks.asked = 0;
	begin_hold_at(lock, tranche, mode, waited ? lwlocks.trouble.granted : since);
	if (!waited || held_count() == i)
		return;
	copy_trouble(&troubles[i], &lwlocks.trouble);
	lwlocks.trouble.first = 0;
	lwlocks.troubled++;
	choose_way();
}

/* The lock was not acquired: count a failure, and its sleeps. */
DETOUR_HANDLER static pg_noinline void
record_failure(uintptr_t lock, uint32 tranche, uint32 mode, bool failed)
{
	tally_hold	wanted = {.lock = lock, .tranche = tranche, .mode = mode};
	lock_account *account;

	lwlocks.asked = 0;
	copy_trouble(&done, &lwlocks.trouble);
	lwlocks.trouble.first = 0;
	if (!handler_on())
		return;
	tally.on = false;
	account = account_of(key_of(&wanted));
	if (failed && rest_of(account)->failed == PROBE_UNTOUCHED)
		detour_call_aside(touch_failed, account);
	if (failed)
		handler_count(rest_of(account)->failed);
	if (done.count > 0)
		record_done(&wanted, account, false);
	tally.on = true;
}

DETOUR_HANDLER static pg_noinline void
acquire_with_care(LWLock *lock, LWLockMode mode)
{
	begin_hold_at((uintptr_t) lock, lock->tranche, mode, 0);
}

/*
 * Instead of LWLockAcquire, which always gets the lock. Unlike other handlers, this one and that of LWLockRelease need not preserve
 * caller-saved registers, because the functions themselves do not: they may call libc (sem_wait, sem_post), so no compiler
 * can have found registers that they leave alone.
 */
static bool (*original_acquire) (LWLock *, LWLockMode) HOT_SMALL = NULL;

HOT_CODE static bool
acquire_lock(LWLock *lock, LWLockMode mode)
{
	if (unlikely(!begin_hold((uintptr_t) lock, lock->tranche, mode)))
		acquire_with_care(lock, mode);
	return original_acquire(lock, mode);
}

/* The bool that a server function has returned in a register, of which only the low byte is defined. */
static inline bool
is_true(int result)
{
	return (result & 0xFF) != 0;
}

/* Before LWLockConditionalAcquire and LWLockAcquireOrWait. */
DETOUR_HANDLER HOT_CODE static void
before_attempt(LWLock *lock, uint64 ignored)
{
	begin_attempt(handler_now());
}

/* After LWLockConditionalAcquire and LWLockAcquireOrWait. */
DETOUR_HANDLER HOT_CODE static int
after_attempt(LWLock *lock, LWLockMode mode, int result)
{
	if (is_true(result))
		attempt_succeeded((uintptr_t) lock, lock->tranche, mode, lwlocks.asked);
	else
		record_failure((uintptr_t) lock, lock->tranche, mode, true);
	return result;
}

/*
 * Instead of LWLockWaitForVar, which never takes the lock: only its sleeps count, so no clock is read. It may call libc as well.
 * Since PostgreSQL 17 the variable has another type.
 */
static bool (*original_wait_for_var) (LWLock *, void *, uint64, uint64 *) HOT_SMALL = NULL;

HOT_CODE static bool
wait_for_var(LWLock *lock, void *variable, uint64 old, uint64 *new)
{
	bool		result;

	begin_attempt(1);
	result = original_wait_for_var(lock, variable, old, new);
	if (unlikely(lwlocks.trouble.count > 0))
		record_failure((uintptr_t) lock, lock->tranche, MODE_VARIABLE, false);
	lwlocks.asked = 0;
	return result;
}

/* The lock is not the last one acquired. Moves its hold to the end; false if it has none. */
DETOUR_HANDLER static pg_noinline bool
find_hold(uintptr_t lock)
{
	uint32		i = held_count();
	uint32		last = i - 1;
	tally_hold	hold;

	while (i > 0 && hold_at(i - 1)->lock != lock)
		i--;
	if (i == 0)
		return false;
	i--;
	hold = *hold_at(i);
	if (unlikely(lwlocks.troubled > 0))
		copy_trouble(&done, &troubles[i]);
	for (; i < last; i++)
	{
		*hold_at(i) = *hold_at(i + 1);
		if (unlikely(lwlocks.troubled > 0))
			copy_trouble(&troubles[i], &troubles[i + 1]);
	}
	*hold_at(last) = hold;
	if (unlikely(lwlocks.troubled > 0))
		copy_trouble(&troubles[last], &done);
	return true;
}

/* Is the lock known to be held? If so, makes its hold the last one. */
static inline bool
has_hold(uintptr_t lock)
{
	uint32		count = held_count();

	return count > 0 && (likely(hold_at(count - 1)->lock == lock) || find_hold(lock));
}

/* Does anybody wait for the lock? */
static inline bool
is_awaited(uintptr_t lock, uint32 tranche)
{
#if COMPAT_BUFFER_LOCKS
	if (tranche == COMPAT_BUFFER_TRANCHE)
		return compat_buffer_awaited(lock);
#endif
	return (pg_atomic_read_u32(&((LWLock *) lock)->state) & COMPAT_LWLOCK_HAS_WAITERS) != 0;
}

/* A hold of this length is published even if its end woke nobody, because others may still hold the lock in shared mode. */
#define LONG_HOLD (UINT64CONST(1) << 16)	/* ticks */

static void
end_level(void *unused)
{
	tally_end_level(tally.slot.segment, tally_now(tally.clock));
}

/* No process waits for this one now: do the postponed work. The caller has cleared tally.on. */
static inline void
catch_up(void)
{
	bool		none_held = held_count() == 0;

	if (logged() >= (none_held ? RELEASES_MANY : RELEASES))
		settle_in_handler();
	if (none_held)
	{
		if (heavylocks_pending)
			heavylocks_settle();
		if (handler_level_ended(handler_now()))
			detour_call_aside(end_level, NULL);
	}
}

/* The last hold, of this lock, has ended. The address in the slot is not dereferenced, because others may have written it. */
DETOUR_HANDLER static pg_noinline void
end_last_hold(uintptr_t lock, uint64 until, bool published)
{
	uint32		last = held_count() - 1;
	tally_hold	hold = *hold_at(last);
	bool		waited = lwlocks.troubled > 0 && troubles[last].first != 0;

	drop_hold();
	*lwlocks.holding = last;
	if (waited)
	{
		copy_trouble(&done, &troubles[last]);
		troubles[last].first = 0;
		lwlocks.troubled--;
	}
	if (!published && until - hold.since >= LONG_HOLD && is_awaited(lock, hold.tranche))
		publish_release(&hold, until);
	if (*(const volatile uint32 *) tally.level_word != tally.word_seen)
		return;
	if (likely(logged() < RELEASES))
	{
		lwlocks.log_end->ticks = until - hold.since;
		lwlocks.log_end->key = key_of(&hold) | (waited ? KEY_WAITED : 0);
		lwlocks.log_end++;
	}
	if (!tally.on)
		return;
	tally.on = false;
	if (waited)
		record_done(&hold, account_of(key_of(&hold)), true);
	catch_up();
	tally.on = true;
}

/* The lock has been released, and something is special. */
DETOUR_HANDLER static pg_noinline void
end_hold_with_care(uintptr_t lock, uint64 now)
{
	bool		woke = lwlocks.until != 0;

	if (woke)
		now = lwlocks.until;
	else if (!reads_counter())
		now = handler_now();
	lwlocks.until = 0;
	/* An unknown lock was acquired before the probes were installed, or unseen. */
	if (has_hold(lock))
		end_last_hold(lock, now, woke);
	else
	{
		lwlocks.unacquired += lwlocks.balanced;
		lwlocks.unknown = true;
	}
	choose_way();
}

/* The lock has been released. A change of the level since then is followed before the log is recorded, and a reset drops the log. */
static pg_attribute_always_inline void
end_hold(uintptr_t lock)
{
	uint64		now = plain_now();
	tally_hold *next = lwlocks.next;
	tally_hold *hold = next - 1;
	release    *r = lwlocks.log_end;

	lwlocks.releasing = 0;
	/* The slot's list does not contain all possible holds, but it contains the simple ones. */
	if (unlikely(next <= lwlocks.floor || hold->lock != lock || r >= lwlocks.log_limit))
	{
		end_hold_with_care(lock, now);
		return;
	}
	lwlocks.next = hold;
	(*lwlocks.holding)--;
	r->ticks = now - hold->since;
	set_key(&r->key, hold);
	lwlocks.log_end = r + 1;
}

/* Instead of LWLockRelease. */
static void (*original_release) (LWLock *) HOT_SMALL = NULL;

HOT_CODE static void
release_lock(LWLock *lock)
{
	lwlocks.releasing = (uintptr_t) lock;
	original_release(lock);
	end_hold((uintptr_t) lock);
}

#if COMPAT_LWLOCK_DISOWN
/* Before and after LWLockDisown: a hold ends when the lock is given up, because another process releases it. */
DETOUR_HANDLER static void
before_disown(LWLock *lock, uint64 ignored)
{
	lwlocks.releasing = (uintptr_t) lock;
}

DETOUR_HANDLER static int
after_disown(LWLock *lock, uint64 ignored, int result)
{
	end_hold((uintptr_t) lock);
	return result;
}
#endif

/* This process wakes another one. Is it releasing a lock, and is this the first process that it wakes? */
void
lwlocks_waking(void)
{
	uint64		now;

	if (lwlocks.releasing == 0 || lwlocks.until != 0)
		return;
	now = probe_now();
	if (!has_hold(lwlocks.releasing))
		return;
	lwlocks.until = now;
	choose_way();
	/* now, because the other process will look for the holder */
	publish_release(hold_at(held_count() - 1), now);
}

/* Before LWLockReleaseAll, which error recovery calls. */
DETOUR_HANDLER static void
before_release_all(uint64 ignored, uint64 ignored_too)
{
	lwlocks_jump();
	lwlocks.all_released = handler_now();
}

/*
 * After it. If it did not call LWLockRelease (which 18 inlines), the holds are still there. Buffer locks are released
 * a little later by the resource owner, unseen.
 */
DETOUR_HANDLER static int
after_release_all(uint64 ignored, uint64 ignored_too, int result)
{
	for (uint32 count = held_count(); count > 0; count--)
	{
		publish_release(hold_at(count - 1), lwlocks.all_released);
		end_last_hold(0, lwlocks.all_released, true);
	}
	choose_way();
	return result;
}

/* ---------------------------------------------------------------- the window */

#define WINDOWS 16					/* measurements, of which the shortest counts */

/*
 * Measures the time between the two clock readings if a lock is released at once. This uses a private lock, so nobody is
 * kept waiting. It runs when the first holds are to be recorded, because then both functions are known to be seen. Where
 * an error would do harm, it is postponed.
 */
static void
measure_window(void *unused)
{
	release    *log_end = lwlocks.log_end;
	const release first = releases[0];
	uint64		shortest = UINT64_MAX;
	bool		seen = true;
	LWLock		lock;

	choose_way();
	if (MyProc == NULL || CritSectionCount > 0 || InterruptHoldoffCount >= MAX_HOLDS / 2 ||
		(reads_counter() ? lwlocks.next >= lwlocks.limit : held_count() >= TALLY_HOLDS) || logged() == 0 ||
		lwlocks.unknown)
		return;
	LWLockInitialize(&lock, LWTRANCHE_PARALLEL_APPEND);
	for (int i = 0; i < WINDOWS && seen; i++)
	{
		drop_log();
		LWLockAcquire(&lock, LW_EXCLUSIVE);
		LWLockRelease(&lock);
		seen = logged() == 1;
		shortest = Min(shortest, releases[0].ticks);
	}
	releases[0] = first;
	lwlocks.log_end = log_end;
	window = seen ? shortest : 0;
	window_measured = seen;
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

/* Before LockBufferInternal, which LockBuffer calls to acquire a lock. */
DETOUR_HANDLER HOT_CODE static void
before_lock_buffer(Buffer buffer, BufferLockMode mode)
{
	if (is_shared_buffer(buffer) && !begin_hold(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, mode_of(mode)))
		begin_hold_at(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, mode_of(mode), 0);
}

/* Before and after ConditionalLockBuffer. */
DETOUR_HANDLER static void
before_try_buffer(Buffer buffer, uint64 ignored)
{
	if (is_shared_buffer(buffer))
		begin_attempt(handler_now());
}

DETOUR_HANDLER static int
after_try_buffer(Buffer buffer, uint64 ignored, int result)
{
	if (!is_shared_buffer(buffer))
		return result;
	if (is_true(result))
		attempt_succeeded(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, MODE_EXCLUSIVE, lwlocks.asked);
	else
		record_failure(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, MODE_EXCLUSIVE, true);
	return result;
}

/* Before LockBufferForCleanup and ConditionalLockBufferForCleanup, of which only the result counts. */
DETOUR_HANDLER static void
before_cleanup(Buffer buffer, uint64 ignored)
{
	lwlocks.within = true;
	lwlocks.trouble.first = 0;
	lwlocks.trouble.count = 0;
}

DETOUR_HANDLER static int
after_lock_cleanup(Buffer buffer, uint64 ignored, int result)
{
	lwlocks.within = false;
	if (is_shared_buffer(buffer))
		attempt_succeeded(compat_buffer_lock(buffer), COMPAT_BUFFER_TRANCHE, MODE_EXCLUSIVE, 0);
	return result;
}

DETOUR_HANDLER static int
after_try_cleanup(Buffer buffer, uint64 ignored, int result)
{
	lwlocks.within = false;
	lwlocks.asked = 0;
	return after_try_buffer(buffer, 0, result);
}

/* Before UnlockBuffer. */
DETOUR_HANDLER HOT_CODE static void
before_unlock_buffer(Buffer buffer, uint64 ignored)
{
	if (is_shared_buffer(buffer))
		lwlocks.releasing = compat_buffer_lock(buffer);
}

/*
 * After UnlockBuffer and UnlockReleaseBuffer. An unknown lock was taken by the buffer manager itself, for a page that
 * it has created.
 */
DETOUR_HANDLER HOT_CODE static int
after_unlock_buffer(Buffer buffer, uint64 ignored, int result)
{
	uintptr_t	lock;

	if (!is_shared_buffer(buffer))
		return result;
	lock = compat_buffer_lock(buffer);
	lwlocks.releasing = 0;
	if (has_hold(lock))
		end_hold(lock);
	return result;
}
#endif

#define LIGHTWEIGHT(name, before, after, needed) \
	{name, {DETOUR_WRAP, (void *) (before), (void *) (after), 0}, LOCKS_LIGHTWEIGHT, needed}
#define INSTEAD(name, handler, original, needed) \
	{name, {DETOUR_REPLACE, (void *) (handler), NULL, 0, (void **) &(original)}, LOCKS_LIGHTWEIGHT, needed}
#define BUFFER(name, before, after) \
	{name, {DETOUR_WRAP, (void *) (before), (void *) (after), 0}, LOCKS_BUFFER, true}

const lock_detour lwlocks_detours[LWLOCKS_DETOURS] = {
	INSTEAD("LWLockAcquire", acquire_lock, original_acquire, true),
	LIGHTWEIGHT("LWLockConditionalAcquire", before_attempt, after_attempt, true),
	LIGHTWEIGHT("LWLockAcquireOrWait", before_attempt, after_attempt, true),
	INSTEAD("LWLockRelease", release_lock, original_release, true),
	INSTEAD("LWLockWaitForVar", wait_for_var, original_wait_for_var, false),
	LIGHTWEIGHT("LWLockReleaseAll", before_release_all, after_release_all, false),
#if COMPAT_LWLOCK_DISOWN
	LIGHTWEIGHT("LWLockDisown", before_disown, after_disown, false),
#endif
#if COMPAT_BUFFER_LOCKS
	BUFFER("LockBufferInternal", before_lock_buffer, NULL),
	BUFFER("ConditionalLockBuffer", before_try_buffer, after_try_buffer),
	BUFFER("UnlockBuffer", before_unlock_buffer, after_unlock_buffer),
	BUFFER("UnlockReleaseBuffer", before_unlock_buffer, after_unlock_buffer),
	BUFFER("LockBufferForCleanup", before_cleanup, after_lock_cleanup),
	BUFFER("ConditionalLockBufferForCleanup", before_cleanup, after_try_cleanup),
#endif
};
