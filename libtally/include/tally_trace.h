/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_trace.h
 *	  Traces: rings in which single processes write down everything that they do, in order.
 *
 * A reader that wants a trace arms one ring for each process that it will follow: it writes the request, reserves the
 * ring's memory and changes the level word, at which all writers look. A process that the request is for takes the
 * ring and writes until it ends, the request is withdrawn, or the reader has not renewed it.
 *
 * Concurrency contract
 *
 *	  claim			the reader arms (FREE to ARMED) and withdraws (any to FREE, with the next generation); one writer takes
 *					(ARMED to RUNNING) and leaves (RUNNING to ENDED). By compare-and-swap. What is below belongs to
 *					whoever made the last change: a writer that sees another claim than its own has lost the ring.
 *	  request		the reader, before it arms
 *	  until			the reader, at any time
 *	  owner, head	the writer that has taken the ring
 *	  records		the same. number is 0 while a record changes.
 *
 * A writer that was withdrawn in the middle of a record may still complete it. It has the old generation in its number, so that
 * the next trace of the ring loses one record and is never wrong. Writers compute addresses from their own copies of the
 * ring's number and position, and believe nothing here but the claim.
 */
#ifndef TALLY_TRACE_H
#define TALLY_TRACE_H

#include "tally_hot.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TALLY_TRACE_RECORDS 16384u	/* of a ring; power of two */
#define TALLY_TRACES_MAX 64u

/* tally_trace.claim: the state, and above it the generation. */
#define TALLY_TRACE_STATE(claim) ((claim) & 0xFFu)
#define TALLY_TRACE_GENERATION(claim) ((claim) >> 8)
#define TALLY_TRACE_CLAIM(generation, state) ((uint32_t) (generation) << 8 | (uint32_t) (state))

typedef enum tally_trace_state
{
	TALLY_TRACE_FREE = 0,
	TALLY_TRACE_ARMED = 1,			/* waits for a process that the request is for */
	TALLY_TRACE_RUNNING = 2,
	TALLY_TRACE_ENDED = 3			/* the process has left */
} tally_trace_state;

/* tally_trace.flags */
#define TALLY_TRACE_WORKERS 1u		/* for parallel workers of `pid` only */
#define TALLY_TRACE_NODES 2u		/* with the nodes of plans */

typedef enum tally_trace_kind
{
	TALLY_TRACE_BEGIN = 1,			/* from tick on; stat runs */
	TALLY_TRACE_END = 2,			/* op: tally_trace_reason */
	TALLY_TRACE_WAIT = 3,			/* from tick on, for ticks: stat; then next runs; a file's operation: see below */
	TALLY_TRACE_MESSAGE = 4,		/* arrived: op: its kind, as the producer numbers them; stat runs; more: tally_trace_transaction; word[0..1]: its ordinal */
	TALLY_TRACE_SWITCH = 5,			/* stat runs, without a wait or message */
	TALLY_TRACE_STATEMENT = 6,		/* the server has analysed it; as the next two */
	TALLY_TRACE_STEP_BEGIN = 7,		/* op: tally_trace_step; word[0..1]: the statement's id; more: how many it is within */
	TALLY_TRACE_STEP_END = 8,		/* the same; word[2..3]: rows; failed: 1: an error ends it */
	TALLY_TRACE_LOCK = 9,			/* the wait in progress is for a heavyweight lock: see below */
	TALLY_TRACE_COMMIT = 10,		/* from tick on, for ticks; op: tally_trace_commit */
	TALLY_TRACE_NODE = 11,			/* of a plan that starts: node, stat: its parent's; word: a part of its name; failed: 1 + its encoding */
	TALLY_TRACE_NODE_END = 12,		/* node; word[0..1]: rows; word[2..3]: calls */
	TALLY_TRACE_RESET = 13,			/* all totals begin again at zero */
	TALLY_TRACE_CONTEXT = 14,		/* of the client's trace, for the statement that follows or was just analysed: op: its flags; word[0..3]: its id; word[4..5]: the span */
	TALLY_TRACE_CALL = 15,			/* of a client, from tick on, for ticks: see below */
	TALLY_TRACE_CALL_WAIT = 16		/* of it, from tick on, for ticks; next, word[0..1]: as of the call */
} tally_trace_kind;

typedef enum tally_trace_transaction
{
	TALLY_TRANSACTION_NOT_KNOWN = 0,
	TALLY_TRANSACTION_NONE = 1,		/* the messages before have left none open */
	TALLY_TRANSACTION_OPEN = 2
} tally_trace_transaction;

typedef enum tally_trace_reason
{
	TALLY_TRACE_WITHDRAWN = 1,
	TALLY_TRACE_EXITED = 2,
	TALLY_TRACE_LEVEL_OFF = 3,
	TALLY_TRACE_NOT_RENEWED = 4
} tally_trace_reason;

typedef enum tally_trace_step
{
	TALLY_STEP_PLAN = 1,
	TALLY_STEP_START = 2,
	TALLY_STEP_RUN = 3,
	TALLY_STEP_FINISH = 4,
	TALLY_STEP_END = 5,
	TALLY_STEP_UTILITY = 6
} tally_trace_step;

typedef enum tally_trace_commit
{
	TALLY_COMMIT_LEADER = 1,
	TALLY_COMMIT_GROUP_COMMITTED = 2,
	TALLY_COMMIT_ASYNCHRONOUS = 3
} tally_trace_commit;

/*
 * A wait that was an operation on a file: op: 1 + the operation, as the producer numbers them; failed: its errno value;
 * word[4..5]: bytes moved. Of a relation: word[0..2]: tablespace, database and number of its file; more: 1 + fork; word[3]:
 * block of the relation, TALLY_NONE: not known. Else more is 0, and word[0]: 1 + directory number of the kind of file.
 *
 * A client's call: op: 1 execution, 2 fetch; failed: 1: by an error; stat: a statistic whose name ends with the statement's id;
 * next: the server's process; word[0..1]: ordinal of its first message, without data of COPY, 0: not known; word[2]: messages;
 * word[3]: rows; word[4..5]: ticks for which garbage was collected meanwhile. Its waits come before it.
 *
 * A heavyweight lock: op, more, word[0..2], node: LOCKTAG's type, method, fields 1 to 3 and 4; word[3]: mode; failed: how
 * many block it; stat, next, word[4], word[5]: pids of the first of them.
 */
typedef struct tally_trace_record	/* a cache line */
{
	uint64_t	number;				/* 0: generation << 40 | 1 + position; 0 while the record changes */
	uint64_t	tick;				/* 8 */
	uint64_t	ticks;				/* 16 */
	uint8_t		kind;				/* 24: tally_trace_kind */
	uint8_t		op;					/* 25 */
	uint8_t		more;				/* 26 */
	uint8_t		failed;				/* 27 */
	uint16_t	node;				/* 28: 1 + number of the plan's node that runs; 0: none */
	uint16_t	pad;				/* 30 */
	uint32_t	stat;				/* 32: 1 + directory number of an account; 0: none */
	uint32_t	next;				/* 36: the same */
	uint32_t	word[6];			/* 40 */
} tally_trace_record;

typedef struct tally_trace		/* 4096 bytes, then the records */
{
	uint32_t	claim;				/* 0: state and generation */
	uint32_t	flags;				/* 4: the request: TALLY_TRACE_* */
	int32_t		pid;				/* 8: this process, or its workers; 0: any session */
	int32_t		reader_pid;			/* 12: who has armed it */
	uint64_t	reader_boot_ns;		/* 16: a process with this pid that started later is another */
	uint64_t	until;				/* 24: tick; the reader renews it */
	char		application[TALLY_TEXT_MAX];	/* 32: empty: any, as the next two */
	char		user[TALLY_TEXT_MAX];			/* 96 */
	char		database[TALLY_TEXT_MAX];		/* 160 */
	unsigned char pad0[256 - 224];
	int32_t		owner_pid;			/* 256: who has taken it */
	int32_t		leader_pid;			/* 260: of a parallel worker, else 0 */
	uint32_t	slot;				/* 264: its slot ... */
	uint32_t	slot_generation;	/* 268: ... and which owner of the slot it is */
	uint64_t	begun;				/* 272: tick */
	uint32_t	node;				/* 280: 1 + number of the plan's node that runs now; 0: none */
	unsigned char pad1[320 - 284];
	uint64_t	head;				/* 320: records written in this generation */
	unsigned char pad2[4096 - 328];
} tally_trace;

/* A ring that this process has taken. */
typedef struct tally_tracer
{
	tally_trace *trace;				/* NULL: none */
	tally_trace_record *records;
	uint32_t	claim;
	uint64_t	position;
} tally_tracer;

/* Who asks for a ring. */
typedef struct tally_traced
{
	int32_t		pid;
	int32_t		leader_pid;			/* of a parallel worker, else 0 */
	bool		session;			/* of a client, or a parallel worker of one */
	const char *application;
	const char *user;
	const char *database;
} tally_traced;

#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_trace_record) == 64);
TALLY_ASSERT(offsetof(tally_trace_record, stat) == 32);
TALLY_ASSERT(sizeof(tally_trace) == 4096);
TALLY_ASSERT(offsetof(tally_trace, database) == 160);
TALLY_ASSERT(offsetof(tally_trace, owner_pid) == 256);
TALLY_ASSERT(offsetof(tally_trace, begun) == 272);
TALLY_ASSERT(offsetof(tally_trace, node) == 280);
TALLY_ASSERT(offsetof(tally_trace, head) == 320);
#endif

/* Take a ring whose request this process answers. False: there is none. */
extern bool tally_trace_take(const tally_slot *slot, const tally_traced *who, tally_tracer *tracer);
/* Give it back, with what was written in it. */
extern void tally_trace_leave(tally_tracer *tracer);

/* Is the ring still this process's, and read? */
static inline bool
tally_trace_wanted(const tally_tracer *tracer, uint64_t now)
{
	return __atomic_load_n(&tracer->trace->claim, __ATOMIC_RELAXED) == tracer->claim &&
		now <= __atomic_load_n(&tracer->trace->until, __ATOMIC_RELAXED);
}

/* The next record: everything but its number, which this sets. The reader pairs with both stores (crates/segment/src/trace.rs). */
static inline void
tally_trace_put(tally_tracer *tracer, const tally_trace_record *record)
{
	tally_trace_record *to = &tracer->records[tracer->position & (TALLY_TRACE_RECORDS - 1)];
	uint64_t	number = (uint64_t) TALLY_TRACE_GENERATION(tracer->claim) << 40 | ++tracer->position;

	__atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
	tally_fence_stores();
	TALLY_STOP("trace record cleared");
	to->tick = record->tick;
	to->ticks = record->ticks;
	to->kind = record->kind;
	to->op = record->op;
	to->more = record->more;
	to->failed = record->failed;
	to->node = record->node;
	to->pad = 0;
	TALLY_STOP("trace record half written");
	to->stat = record->stat;
	to->next = record->next;
	for (int i = 0; i < 6; i++)
		to->word[i] = record->word[i];
	TALLY_STOP("trace record to be numbered");
	__atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
	TALLY_STOP("trace record numbered");
	__atomic_store_n(&tracer->trace->head, tracer->position, __ATOMIC_RELEASE);
	TALLY_STOP("trace record published");
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_TRACE_H */
