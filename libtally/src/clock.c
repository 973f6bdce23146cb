/* SPDX-License-Identifier: PostgreSQL */
/*
 * clock.c
 *	  Which clock a segment uses, and how long its tick is.
 *
 * The time stamp counter is used only where the processor calls it invariant and the kernel itself keeps
 * time by it, which it stops doing when the processors' counters diverge.
 */
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

tally_clock_kind
tally_clock_best(void)
{
#if defined(__x86_64__)
	unsigned	a,
				b,
				c,
				d;
	char		name[8];
	ssize_t		length;
	int			fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return TALLY_CLOCK_MONOTONIC;
	length = read(fd, name, sizeof(name));
	close(fd);
	if (length != 4 || memcmp(name, "tsc\n", 4) != 0)
		return TALLY_CLOCK_MONOTONIC;
	/* leaf 0x80000007, EDX bit 8: the counter runs at one rate in every power state */
	if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0)
		return TALLY_CLOCK_TSC;
#endif
	return TALLY_CLOCK_MONOTONIC;
}

/* One instant on both clocks: the tightest of a few pairs of readings. */
void
tally_clock_pair(tally_clock_kind clock, uint64_t *tick, uint64_t *ns)
{
	uint64_t	best = UINT64_MAX;

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

	if (segment->clock == TALLY_CLOCK_MONOTONIC)
		return 1e-9;
	tally_clock_pair(segment->clock, &tick, &ns);
	if (tick <= segment->cold.clock_tick0)
		return 0;
	return (double) (ns - segment->cold.clock_ns0) * 1e-9 /
		(double) (tick - segment->cold.clock_tick0);
}
