/* SPDX-License-Identifier: PostgreSQL */
/* thirty.c: a program that keeps account of its time in a segment. Usage: thirty SEGMENT */
#include "tally.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	const tally_identity me = {.kind = "example",.application = "thirty"};
	const struct timespec nap = {.tv_nsec = 2000000};
	tally_options options;
	tally_segment segment;
	tally_slot	slot;
	uint32_t	cpu, wait, step;
	int			rc = argc == 2 ? tally_attach(argv[1], &segment) : EINVAL;

	tally_options_init(&options);
	options.any_file_system = true;
	if (rc == ENOENT)			/* there is none yet: create one */
		rc = tally_open(argv[1], &options, &segment);
	if (rc == 0)
		rc = tally_claim(&segment, &me, &slot);
	if (rc != 0)
		return fprintf(stderr, "thirty: could not open the segment named as argument: %s\n", strerror(rc)) > 0;

	cpu = tally_touch(&slot, tally_register(&segment, "work::cpu", TALLY_ACCOUNT, "ticks"));
	wait = tally_touch(&slot, tally_register(&segment, "work::wait::nap", TALLY_ACCOUNT, "ticks"));
	step = tally_touch(&slot, tally_register(&segment, "step::size", TALLY_VALUE, "lines"));
	tally_begin(&slot, cpu);
	for (uint64_t i = 0; i < 10; i++)
	{
		if (slot.word != segment.header->level_word)
			tally_follow(&slot, cpu, tally_now(segment.clock));
		tally_record(&slot, step, i * i);
		tally_switch(&slot, wait, tally_now(segment.clock));
		nanosleep(&nap, NULL);
		tally_switch_later(&slot, cpu, tally_now(segment.clock));
	}
	tally_retire(&slot);
	tally_close(&segment);
	return 0;
}
