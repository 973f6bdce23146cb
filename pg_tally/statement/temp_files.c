/* SPDX-License-Identifier: PostgreSQL */
/*
 * temp_files.c
 *	  Counts temporary files of this process, with a detour on the function that reports each closed file to
 *	  the server's statistics.
 */
#include "base/compat.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"

#include "detour/detour.h"
#include "detour/probe_table.h"
#include "ledger/ledger.h"
#include "statement/statement_usage.h"
#include "wait/statement_time.h"

temp_file_sums temp_files_ever HOT_SMALL __attribute__((aligned(16)));

static void (*original_report) (size_t filesize);

/*
 * Replaces pgstat_report_tempfile. It need not preserve caller-saved registers, because that function does not: it may
 * allocate memory.
 */
static void
count_and_report(size_t filesize)
{
	temp_files_ever.files++;
	temp_files_ever.bytes += filesize;
	original_report(filesize);
}

void
temp_files_install(void)
{
	static detour report;
	const detour_hook hook = {
		.way = DETOUR_REPLACE,
		.before = (void *) count_and_report,
		.original = (void **) &original_report,
		.absent = DETOUR_ARGUMENTS(1),
	};
	char		reason[120];

	(void) probe_table_detour(PROBES_TEMP_FILES, "pgstat_report_tempfile", &hook, &report, reason, sizeof(reason));
}

/* Add the temporary files closed since. */
pg_noinline void
temp_files_add(const tally_statement_key *key, const temp_file_sums *before)
{
	tally_local_statement *local = statement_time_local(key);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more |= TALLY_MORE_RARE;
	local->counts.temp_files += temp_files_ever.files - before->files;
	local->counts.temp_bytes += temp_files_ever.bytes - before->bytes;
	tally_seq_end(&local->seq);
}
