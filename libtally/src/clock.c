/* SPDX-License-Identifier: PostgreSQL */
/*
 * clock.c
 *	  Which clock a segment uses, and how long its tick is.
 *
 * The processor's counter is used only where the kernel itself keeps time by it. On x86-64 it stops doing so when the
 * processors' counters diverge, and the processor must call its counter invariant. On aarch64 the counter has one
 * rate by its architecture.
 */
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#ifdef TALLY_TEST_HOOKS
/* Set by tests (tally_hot.h). */
void		(*tally_test_hook) (const char *where);
const uint64_t *tally_virtual_tick;
#endif

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* Does the kernel keep time by the clock source of that name? */
__attribute__((unused)) static bool
kernel_uses(const char *wanted)
{
	char		name[32];
	size_t		length = strlen(wanted);
	ssize_t		got;
	int			fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	got = read(fd, name, sizeof(name));
	close(fd);
	return got == (ssize_t) length + 1 && memcmp(name, wanted, length) == 0 && name[length] == '\n';
}

#if defined(__x86_64__)
/* leaf 0x80000007, EDX bit 8: the counter runs at one rate in every power state */
static bool
counter_is_invariant(void)
{
	unsigned	a,
				b,
				c,
				d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
}
#endif

tally_clock_kind
tally_clock_best(void)
{
#if defined(__x86_64__)
	if (kernel_uses("tsc") && counter_is_invariant())
		return TALLY_CLOCK_TSC;
#elif defined(__aarch64__)
	if (kernel_uses("arch_sys_counter"))
		return TALLY_CLOCK_CNTVCT;
#endif
	return TALLY_CLOCK_MONOTONIC;
}

bool
tally_clock_is_known(uint32_t clock)
{
#ifdef TALLY_CLOCK_COUNTER
	if (clock == TALLY_CLOCK_COUNTER)
		return true;
#endif
#ifdef TALLY_TEST_HOOKS
	if (clock == TALLY_CLOCK_VIRTUAL)
		return true;
#endif
	return clock == TALLY_CLOCK_MONOTONIC;
}

const char *
tally_clock_name(tally_clock_kind clock)
{
	switch (clock)
	{
		case TALLY_CLOCK_TSC:
			return "tsc";
		case TALLY_CLOCK_CNTVCT:
			return "cntvct";
		case TALLY_CLOCK_VIRTUAL:
			return "virtual";
		case TALLY_CLOCK_MONOTONIC:
			break;
	}
	return "clock_gettime(CLOCK_MONOTONIC)";
}

/* One instant on both clocks: the tightest of a few pairs of readings. */
void
tally_clock_pair(tally_clock_kind clock, uint64_t *tick, uint64_t *ns)
{
	uint64_t	best = UINT64_MAX;

#ifdef TALLY_TEST_HOOKS
	/* it begins with its segment, of which it is a part */
	if (clock == TALLY_CLOCK_VIRTUAL)
	{
		*tick = *ns = TALLY_VIRTUAL_START;
		return;
	}
#endif
	for (int i = 0; i < 8; i++)
	{
		uint64_t	before = tally_now(clock);
		uint64_t	between = tally_monotonic_ns();
		uint64_t	after = tally_now(clock);

		if (after - before < best)
		{
			best = after - before;
			*tick = clock == TALLY_CLOCK_MONOTONIC ? between : before + (after - before) / 2;
			*ns = between;
		}
	}
}

uint64_t
tally_realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

uint64_t
tally_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

/* ---------------------------------------------------------------- how long a tick is */

#define SHORT_NS 200000				/* long enough to measure a tick to a thousandth ... */
#define SETTLED_NS 100000000		/* ... and to a millionth */
#define OFF 0.01					/* by more than this share no counter differs from itself */

typedef struct instant
{
	uint64_t	tick;
	uint64_t	ns;
} instant;

static instant
instant_now(tally_clock_kind clock)
{
	instant		now = {0, 0};

	tally_clock_pair(clock, &now.tick, &now.ns);
	return now;
}

/* Nanoseconds; 0: no counter has such a tick, so the two are not of one clock. */
static double
tick_between(instant from, instant to)
{
	double		tick;

	if (to.tick <= from.tick || to.ns <= from.ns)
		return 0;
	tick = (double) (to.ns - from.ns) / (double) (to.tick - from.tick);
	return tick >= 0.02 && tick <= 1000 ? tick : 0;
}

/* Of now, in a fifth of a millisecond; 1: the counter does not advance. */
static double
measure_tick(tally_clock_kind clock)
{
	instant		from = instant_now(clock);
	instant		to;
	double		tick;

	do
		to = instant_now(clock);
	while (to.ns - from.ns < SHORT_NS);
	tick = tick_between(from, to);
	return tick != 0 ? tick : 1;
}

/* The instant with which the clock began, or began anew; a process that has no mapping knows the first alone. */
static instant
origin(const tally_segment *segment)
{
	const tally_header *header = segment->header != NULL ? segment->header : &segment->cold;
	instant		from;

	from.ns = __atomic_load_n(&header->clock_ns0, __ATOMIC_ACQUIRE);
	from.tick = __atomic_load_n(&header->clock_tick0, __ATOMIC_ACQUIRE);
	return from;
}

/* Never 0, whatever became of the clock: others divide by it. */
double
tally_seconds_per_tick(const tally_segment *segment)
{
	static double known = 0;		/* to this process, from when it was measured over a longer time */
	instant		from;
	instant		now;
	double		tick;

	if (segment->clock == TALLY_CLOCK_MONOTONIC || segment->clock == TALLY_CLOCK_VIRTUAL)
		return 1e-9;
	from = origin(segment);
	now = instant_now(segment->clock);
	tick = tick_between(from, now);
	if (tick != 0 && now.ns - from.ns >= SETTLED_NS)
		known = tick;
	else if (known != 0)
		tick = known;
	return (tick != 0 ? tick : measure_tick(segment->clock)) * 1e-9;
}

/* ---------------------------------------------------------------- a clock that begins anew */

/* Is `now` of another clock than the origin? A counter that has begun anew may have passed the origin again. */
static bool
is_another(tally_clock_kind clock, instant from, instant now)
{
	double		since,
				current;

	if (now.tick < from.tick || clock == TALLY_CLOCK_MONOTONIC || clock == TALLY_CLOCK_VIRTUAL)
		return now.tick < from.tick;
	since = tick_between(from, now);
	current = measure_tick(clock);
	return since < current * (1 - OFF) || since > current * (1 + OFF);
}

/*
 * A writer follows a reset. If it is one that tally_clock_back has announced, what else belongs to a reset is not done, which
 * shows in the group of all others. Without waiting: the next one that follows does it as well. A process that
 * was stopped between the two stores leaves an origin that the next one corrects.
 */
void
tally_clock_anew(tally_segment *segment)
{
	tally_header *header = segment->header;
	const tally_book *others = tally_book_at(segment, segment->cold.slots + segment->cold.groups - 1);
	instant		from;
	instant		now;

	if (tally_peek32(&others->resets) == tally_resets(segment) || !tally_merge_try_lock(segment))
		return;
	now.tick = tally_now(segment->clock);
	now.ns = tally_monotonic_ns();
	from = origin(segment);
	if (is_another(segment->clock, from, now))
	{
		__atomic_store_n(&header->clock_ns0, now.ns, __ATOMIC_RELEASE);
		TALLY_STOP("origin half set anew");
		__atomic_store_n(&header->clock_tick0, now.tick, __ATOMIC_RELEASE);
		TALLY_STOP("origin set anew");
		tally_event_add(segment, TALLY_EVENT_WARNING, now.tick < from.tick
						? "the clock went back, as after hibernation: all figures begin anew"
						: "the clock has another rate, as on another host: all figures begin anew");
		/* it would come too late */
		tally_end_level(segment, UINT64_MAX);
	}
	if (tally_peek32(&others->resets) != tally_resets(segment))
		tally_reset_locked(segment);
	tally_merge_unlock(segment);
}

/* Its rate since the origin is known only after some time. */
static bool
seems_another(const tally_segment *segment)
{
	instant		from = origin(segment);
	instant		now = instant_now(segment->clock);

	return now.tick < from.tick || (now.ns > from.ns + SETTLED_NS && is_another(segment->clock, from, now));
}

bool
tally_clock_check(tally_segment *segment)
{
	/* twice: a reading may have been interrupted */
	if (segment->clock == TALLY_CLOCK_MONOTONIC || !seems_another(segment) || !seems_another(segment))
		return false;
	tally_announce_clock(segment, tally_now(segment->clock));
	tally_clock_anew(segment);
	return true;
}
