/* SPDX-License-Identifier: PostgreSQL */
/*
 * modules.c
 *	  The modules and their callbacks (modules.h).
 */
#include "base/compat.h"

#include "file/files.h"
#include "function/functions.h"
#include "ledger/names.h"
#include "ledger/wait_class.h"
#include "lock/blocking.h"
#include "lock/lock_detours.h"
#include "probe/modules.h"
#include "statement/plans.h"
#include "statement/statement.h"
#include "trace/trace.h"
#include "wait/commit_parts.h"
#include "wait/interrupted_wait.h"
#include "wal/wal_usage.h"

const module modules[] = {
	/* must be first, because the others may register names when they retry */
	{.name = "failed names",.begin = failed_names_begin,.retry_names = failed_names_begin},
	/* must come before the modules that record the pending wait */
	{.name = "interrupted wait",.begin = interrupted_begin,.follow = interrupted_follow,.jump = interrupted_jump,
	.process_exit = interrupted_process_exit},
	{.name = "messages",.claimed = messages_begin,.retry_names = messages_retry_names},
	{.name = "files",.begin = files_begin,.retry_names = files_retry_names},
	{.name = "statements",.begin = statements_begin,.follow = statements_follow,
	.jump = statements_jump},
	{.name = "plans",.begin = plans_begin,.claimed = plans_begin},
	{.name = "locks",.begin = locks_begin,.claimed = locks_begin,.follow = lwlocks_follow,.apply_level = locks_follow,
	.retry_names = lwlocks_retry_names,.jump = locks_jump,.process_exit = locks_process_exit},
	{.name = "functions",.begin = functions_begin,.follow = functions_follow,
	.retry_names = functions_retry_names,.jump = functions_jump,.process_exit = functions_end},
	{.name = "blocking",.begin = blocking_begin,.jump = blocking_jump,.process_exit = blocking_process_exit},
	{.name = "pending wait",.begin = pending_begin},
	{.name = "commits",.begin = commits_begin},
	{.name = "trace",.begin = trace_begin,.follow = trace_follow,.process_exit = trace_process_exit},
	{.name = "WAL",.begin = wal_begin,.retry_names = wal_retry_names},
};

const int	modules_count = lengthof(modules);
