/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_layout.h
 *	  Who may write which part of the segment, and the level word.
 *
 * format/layout.toml defines the layout, from which tally_format.h is generated; format/FORMAT.md describes it. The contracts
 * for statements, files, plans and traces are in the headers with these names.
 *
 * Everything is in the machine's byte order. Times are ticks of the segment's clock.
 *
 * Concurrency contract
 *
 *	  book (accounts, histograms)	exactly one writer: the owner of the slot until it has retired,
 *									then the holder of the merge lock. Plain stores, no lock
 *									prefix. seq is odd while the heads change.
 *	  slot entry					state by compare-and-swap when it is claimed, else by its owner;
 *									identity by its owner, under identity_seq; blocked by its owner,
 *									under its own seq
 *	  group (retired) books			the holder of the merge lock
 *	  directory, events, probes		any writer: reserve by compare-and-swap, fill, publish
 *	  level word, its end			any process that sets the level or resets; read at every probe
 *
 * Readers never write. Two things may tear: a histogram may be ahead of its head by the updates made
 * while they are read, and the texts of a slot entry, which identity_seq guards.
 */
#ifndef TALLY_LAYOUT_H
#define TALLY_LAYOUT_H

#include "tally_format.h"

/* Number of chunks for the histograms of that many statistics. */
#define TALLY_CHUNKS(statistics) (((statistics) + TALLY_CHUNK - 1) / TALLY_CHUNK)

/*
 * The level word: the level in the low 4 bits, and the number of resets in the upper 16. In between are two fields that make all
 * writers look: 4 bits that change when traces are armed or withdrawn (tally_trace.h), 0 while there is none; and the lowest 8
 * bits of extremes_resets.
 */
#define TALLY_LEVEL_OF(word) ((word) & 0xFu)
#define TALLY_TRACES_OF(word) ((word) >> 4 & 0xFu)
#define TALLY_EXTREMES_OF(word) ((word) >> 8 & 0xFFu)
#define TALLY_RESETS_OF(word) ((word) >> 16)
#define TALLY_EXTREMES_RESET 0x100u	/* one more reset of extremes, modulo 2^8 */
#define TALLY_RESET 0x10000u			/* one more reset */

#endif							/* TALLY_LAYOUT_H */
