/* SPDX-License-Identifier: PostgreSQL */
/*
 * event.c
 *	  The event ring, and the table of probes.
 *
 * Concurrency contract: a writer takes the next ordinal, sets the number of the ring's entry to 0, fills
 * it, and publishes it by storing the ordinal. A reader ignores an entry whose number is 0, or changed
 * during the copy. Two simultaneous writers that are a whole ring apart may mix their texts.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Size of the payload of such an event, without trailing padding. For a text, its full size. */
static size_t
payload_bytes(uint32_t kind)
{
	switch (kind)
	{
		case TALLY_EVENT_SLOW_OPERATION:
			return sizeof(tally_slow_operation);
		case TALLY_EVENT_CHECKPOINT_STARTED:
			return sizeof(tally_checkpoint_started);
		case TALLY_EVENT_CHECKPOINT_COMPLETED:
			return offsetof(tally_checkpoint_completed, longest_sync_file) +
				sizeof(((tally_checkpoint_completed *) 0)->longest_sync_file);
		case TALLY_EVENT_CHECKPOINT_WRITES:
			return sizeof(tally_checkpoint_writes);
		case TALLY_EVENT_CHECKPOINT_CLIENTS:
			return sizeof(tally_checkpoint_clients);
		case TALLY_EVENT_CHECKPOINT_FAILED:
			return sizeof(tally_checkpoint_failed);
		default:
			return sizeof(((tally_event *) 0)->text);
	}
}

void
tally_event_put(tally_segment *segment, const tally_event *event)
{
	tally_header *header = segment->header;
	uint64_t	number = __atomic_add_fetch(&header->event_count, 1, __ATOMIC_RELAXED);
	tally_event *to = tally_at(segment, &segment->cold.events,
							   (uint32_t) ((number - 1) % segment->cold.events.count));

	TALLY_STOP("event numbered");
	__atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TALLY_STOP("event cleared");
	to->tick = tally_now(segment->clock);
	to->pid = getpid();
	to->kind = event->kind;
	TALLY_STOP("event without its text");
	TALLY_DEFINED(event->text, payload_bytes(event->kind));
	/* initialising a payload leaves the rest of the union undefined (gcc 15) */
	memcpy(to->text, event->text, payload_bytes(event->kind));
	memset(to->text + payload_bytes(event->kind), 0, sizeof(to->text) - payload_bytes(event->kind));
	TALLY_STOP("event to be published");
	__atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
	TALLY_STOP("event published");
}

void
tally_event_add(tally_segment *segment, tally_event_kind kind, const char *text)
{
	tally_event event = {.kind = kind};

	tally_text(event.text, sizeof(event.text), text);
	tally_event_put(segment, &event);
}

static void
compose(tally_probe *probe, const char *name, tally_probe_state state, const char *reason)
{
	memset(probe, 0, sizeof(*probe));
	probe->state = state;
	tally_text(probe->name, sizeof(probe->name), name);
	tally_text(probe->reason, sizeof(probe->reason), reason);
}

/* Writes whole words, so that two processes may write the same value at the same time. */
static void
publish(tally_probe *to, const tally_probe *from)
{
	typedef uint64_t __attribute__((may_alias)) word;

	__atomic_store_n(&to->state, TALLY_PROBE_EMPTY, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (size_t i = offsetof(tally_probe, name) / sizeof(word); i < sizeof(*to) / sizeof(word); i++)
		__atomic_store_n((word *) to + i, ((const word *) from)[i], __ATOMIC_RELAXED);
	__atomic_store_n(&to->state, from->state, __ATOMIC_RELEASE);
}

/* If the segment is not mapped, write to the file, which raises no signal even if it was truncated. */
static void
write_probe(const tally_segment *segment, uint32_t index, const tally_probe *probe)
{
	const tally_region *probes = &segment->cold.probes;
	int			saved = errno;

	if (pwrite(segment->fd, probe, sizeof(*probe),
			   (off_t) (probes->offset + (uint64_t) index * probes->stride)) < 0)
		errno = saved;			/* the table stays incomplete; nothing else depends on it */
}

void
tally_probe_set(tally_segment *segment, uint32_t index, const char *name,
				tally_probe_state state, const char *reason)
{
	tally_probe probe,
				found;

	if (index >= segment->cold.probes.count)
		return;
	compose(&probe, name, state, reason);
	if (segment->header == NULL)
	{
		write_probe(segment, index, &probe);
		return;
	}
	/* every session of a server reports the same, so only the first one needs to write */
	tally_copy_words(&found, tally_probe_at(segment, index), sizeof(found));
	if (memcmp(&found, &probe, sizeof(found)) != 0)
		publish(tally_probe_at(segment, index), &probe);
}
