/* SPDX-License-Identifier: PostgreSQL */
/*
 * clock.c
 *	  Chooses the clock of a segment, and measures its tick.
 *
 * The CPU's counter is used only if the kernel itself uses it as its clock source. On x86-64 the kernel stops using it when
 * the counters of the CPUs diverge; and the CPU must declare its counter invariant. On aarch64 the architecture guarantees
 * a constant rate.
 */
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* Does the kernel use the clock source with that name? */
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
/* CPUID leaf 0x80000007, EDX bit 8: the counter's rate is the same in all power states */
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

/* One instant on both clocks: the closest of a few pairs of readings. */
void
tally_clock_pair(tally_clock_kind clock, uint64_t *tick, uint64_t *ns)
{
	uint64_t	best = UINT64_MAX;

#ifdef TALLY_TEST_HOOKS
	/* this clock is a part of its segment, and starts with it */
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

/* ---------------------------------------------------------------- the length of a tick */

#define SHORT_NS 200000				/* long enough to measure a tick with a precision of 1/1000 */

tally_instant
tally_instant_now(tally_clock_kind clock)
{
	tally_instant now = {0, 0};

	tally_clock_pair(clock, &now.tick, &now.ns);
	return now;
}

/* In nanoseconds; 0 if no counter has such a tick, so that the two instants are not of the same clock. */
double
tally_tick_between(tally_instant from, tally_instant to)
{
	double		tick;

	if (to.tick <= from.tick || to.ns <= from.ns)
		return 0;
	tick = (double) (to.ns - from.ns) / (double) (to.tick - from.tick);
	return tick >= 0.02 && tick <= 1000 ? tick : 0;
}

/* The current length, measured in a fifth of a millisecond; 1 if the counter does not advance. */
double
tally_measure_tick(tally_clock_kind clock)
{
	tally_instant from = tally_instant_now(clock);
	tally_instant to;
	double		tick;

	do
		to = tally_instant_now(clock);
	while (to.ns - from.ns < SHORT_NS);
	tick = tally_tick_between(from, to);
	return tick != 0 ? tick : 1;
}

/* The instant at which the clock started, or was reset; a process without a mapping only knows the former. */
tally_instant
tally_clock_origin(const tally_segment *segment)
{
	const tally_header *header = segment->header != NULL ? segment->header : &segment->cold;
	tally_instant from;

	from.ns = __atomic_load_n(&header->clock_ns0, __ATOMIC_ACQUIRE);
	from.tick = __atomic_load_n(&header->clock_tick0, __ATOMIC_ACQUIRE);
	return from;
}

/* Never 0, whatever happens to the clock, because callers divide by it. */
double
tally_seconds_per_tick(const tally_segment *segment)
{
	static double known = 0;		/* measured by this process over a longer time */
	tally_instant from;
	tally_instant now;
	double		tick;

	if (segment->clock == TALLY_CLOCK_MONOTONIC || segment->clock == TALLY_CLOCK_VIRTUAL)
		return 1e-9;
	from = tally_clock_origin(segment);
	now = tally_instant_now(segment->clock);
	tick = tally_tick_between(from, now);
	if (tick != 0 && now.ns - from.ns >= TALLY_SETTLED_NS)
		known = tick;
	else if (known != 0)
		tick = known;
	return (tick != 0 ? tick : tally_measure_tick(segment->clock)) * 1e-9;
}
