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
tally_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

double
tally_seconds_per_tick(const tally_segment *segment)
{
	uint64_t	tick = 0,
				ns = 0;

	if (segment->clock == TALLY_CLOCK_MONOTONIC || segment->clock == TALLY_CLOCK_VIRTUAL)
		return 1e-9;
	tally_clock_pair(segment->clock, &tick, &ns);
	if (tick <= segment->cold.clock_tick0)
		return 0;
	return (double) (ns - segment->cold.clock_ns0) * 1e-9 /
		(double) (tick - segment->cold.clock_tick0);
}
