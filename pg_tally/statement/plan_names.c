/* SPDX-License-Identifier: PostgreSQL */
/*
 * plan_names.c
 *	  Formats the line of a plan node (plan_names.h).
 */
#include "base/compat.h"

#include <stdio.h>

#include "nodes/plannodes.h"

#include "statement/plan_columns.h"
#include "statement/plan_names.h"

Relation
plan_relation(const PlanState *state)
{
	switch (nodeTag(state->plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
		case T_CustomScan:
			return ((const ScanState *) state)->ss_currentRelation;
		case T_ModifyTable:
			{
				const ModifyTableState *modify = (const ModifyTableState *) state;

				return modify->mt_nrels > 0 ? modify->resultRelInfo[0].ri_RelationDesc : NULL;
			}
		default:
			return NULL;
	}
}

Relation
plan_index(const PlanState *state)
{
	switch (nodeTag(state->plan))
	{
		case T_IndexScan:
			return ((const IndexScanState *) state)->iss_RelationDesc;
		case T_IndexOnlyScan:
			return ((const IndexOnlyScanState *) state)->ioss_RelationDesc;
		case T_BitmapIndexScan:
			return ((const BitmapIndexScanState *) state)->biss_RelationDesc;
		default:
			return NULL;
	}
}

static bool
is_join(const Plan *plan)
{
	return IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin);
}

int
plan_variant(const Plan *plan)
{
	if (is_join(plan))
		return (int) ((const Join *) plan)->jointype;
	switch (nodeTag(plan))
	{
		case T_Agg:
			return (int) ((const Agg *) plan)->aggstrategy << 8 | (int) ((const Agg *) plan)->aggsplit;
		case T_SetOp:
			return (int) ((const SetOp *) plan)->strategy << 8 | (int) ((const SetOp *) plan)->cmd;
		case T_ModifyTable:
			return (int) ((const ModifyTable *) plan)->operation;
		case T_IndexScan:
			return (int) ((const IndexScan *) plan)->indexorderdir;
		case T_IndexOnlyScan:
			return (int) ((const IndexOnlyScan *) plan)->indexorderdir;
		default:
			return 0;
	}
}

/* ---------------------------------------------------------------- names */

static const char *
join_name(const Join *join)
{
	switch (join->jointype)
	{
		case JOIN_LEFT:
			return " Left";
		case JOIN_FULL:
			return " Full";
		case JOIN_RIGHT:
			return " Right";
		case JOIN_SEMI:
			return " Semi";
		case JOIN_ANTI:
			return " Anti";
		case JOIN_INNER:
			return "";
#if PG_VERSION_NUM >= 160000
		case JOIN_RIGHT_ANTI:
			return " Right Anti";
#endif
#if PG_VERSION_NUM >= 180000
		case JOIN_RIGHT_SEMI:
			return " Right Semi";
#endif
		default:
			return " Other";
	}
}

static const char *
agg_name(const Agg *agg)
{
	switch (agg->aggstrategy)
	{
		case AGG_PLAIN:
			return "Aggregate";
		case AGG_SORTED:
			return "GroupAggregate";
		case AGG_HASHED:
			return "HashAggregate";
		case AGG_MIXED:
			return "MixedAggregate";
	}
	return "Aggregate";
}

/* The part of an aggregate that is divided among parallel workers. */
static const char *
agg_part(const Agg *agg)
{
	return DO_AGGSPLIT_SKIPFINAL(agg->aggsplit) ? "Partial " : DO_AGGSPLIT_COMBINE(agg->aggsplit) ? "Finalize " : "";
}

static const char *
setop_name(const SetOp *setop)
{
	switch (setop->cmd)
	{
		case SETOPCMD_INTERSECT:
			return " Intersect";
		case SETOPCMD_INTERSECT_ALL:
			return " Intersect All";
		case SETOPCMD_EXCEPT:
			return " Except";
		case SETOPCMD_EXCEPT_ALL:
			return " Except All";
	}
	return "";
}

static const char *
command_name(CmdType operation)
{
	switch (operation)
	{
		case CMD_INSERT:
			return "Insert";
		case CMD_UPDATE:
			return "Update";
		case CMD_DELETE:
			return "Delete";
		case CMD_MERGE:
			return "Merge";
		default:
			return "Modify";
	}
}

static const char *
direction_name(ScanDirection direction)
{
	return direction < 0 ? " Backward" : "";
}

static const char *
node_name(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return "Result";
		case T_ProjectSet:
			return "ProjectSet";
		case T_Append:
			return "Append";
		case T_MergeAppend:
			return "Merge Append";
		case T_RecursiveUnion:
			return "Recursive Union";
		case T_BitmapAnd:
			return "BitmapAnd";
		case T_BitmapOr:
			return "BitmapOr";
		case T_SeqScan:
			return "Seq Scan";
		case T_SampleScan:
			return "Sample Scan";
		case T_IndexScan:
			return "Index Scan";
		case T_IndexOnlyScan:
			return "Index Only Scan";
		case T_BitmapIndexScan:
			return "Bitmap Index Scan";
		case T_BitmapHeapScan:
			return "Bitmap Heap Scan";
		case T_TidScan:
			return "Tid Scan";
		case T_TidRangeScan:
			return "Tid Range Scan";
		case T_SubqueryScan:
			return "Subquery Scan";
		case T_FunctionScan:
			return "Function Scan";
		case T_ValuesScan:
			return "Values Scan";
		case T_TableFuncScan:
			return "Table Function Scan";
		case T_CteScan:
			return "CTE Scan";
		case T_NamedTuplestoreScan:
			return "Named Tuplestore Scan";
		case T_WorkTableScan:
			return "WorkTable Scan";
		case T_ForeignScan:
			return "Foreign Scan";
		case T_CustomScan:
			return "Custom Scan";
		case T_NestLoop:
			return "Nested Loop";
		case T_MergeJoin:
			return "Merge";
		case T_HashJoin:
			return "Hash";
		case T_Material:
			return "Materialize";
		case T_Memoize:
			return "Memoize";
		case T_Sort:
			return "Sort";
		case T_IncrementalSort:
			return "Incremental Sort";
		case T_Group:
			return "Group";
		case T_Agg:
			return agg_name((const Agg *) plan);
		case T_WindowAgg:
			return "WindowAgg";
		case T_Unique:
			return "Unique";
		case T_Gather:
			return "Gather";
		case T_GatherMerge:
			return "Gather Merge";
		case T_Hash:
			return "Hash";
		case T_SetOp:
			return ((const SetOp *) plan)->strategy == SETOP_HASHED ? "HashSetOp" : "SetOp";
		case T_LockRows:
			return "LockRows";
		case T_Limit:
			return "Limit";
		case T_ModifyTable:
			return command_name(((const ModifyTable *) plan)->operation);
		default:
			return "Node";
	}
}

/* The prefix of the name. */
static const char *
prefix(const Plan *plan)
{
	return plan->parallel_aware ? "Parallel " : IsA(plan, Agg) ? agg_part((const Agg *) plan) : "";
}

/* The suffix of the name: the kind of set operation, or the direction of a scan. */
static const char *
suffix(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			return direction_name(((const IndexScan *) plan)->indexorderdir);
		case T_IndexOnlyScan:
			return direction_name(((const IndexOnlyScan *) plan)->indexorderdir);
		case T_SetOp:
			return setop_name((const SetOp *) plan);
		default:
			return "";
	}
}

size_t
plan_line(const PlanState *state, char *text, size_t size)
{
	const Plan *plan = state->plan;
	Relation	relation = plan_relation(state);
	Relation	index = plan_index(state);
	const char *kind = is_join(plan) ? join_name((const Join *) plan) : suffix(plan);
	const char *join = is_join(plan) && (*kind != '\0' || !IsA(plan, NestLoop)) ? " Join" : "";
	char		table[64] = "";
	char		columns[512];
	int			length;

	/* the table's rows as of the last ANALYZE or VACUUM: how much a full scan has to read; who changes it may have others read */
	if (relation != NULL && (IsA(plan, SeqScan) || IsA(plan, ModifyTable)) && relation->rd_rel->reltuples >= 0)
		snprintf(table, sizeof(table), " [table of %.0f rows, OID %u]", (double) relation->rd_rel->reltuples,
				 RelationGetRelid(relation));
	plan_columns(state, columns, sizeof(columns));
	length = snprintf(text, size, "%s%s%s%s%s%s%s%s  (cost=%.2f..%.2f rows=%.0f width=%d)%s%s",
					  prefix(plan), node_name(plan), kind, join,
					  index != NULL ? (IsA(plan, BitmapIndexScan) ? " on " : " using ") : "",
					  index != NULL ? RelationGetRelationName(index) : "",
					  relation != NULL ? " on " : "",
					  relation != NULL ? RelationGetRelationName(relation) : "",
					  plan->startup_cost, plan->total_cost, plan->plan_rows, plan->plan_width,
					  columns, table);
	if (length >= 0)
	{
		/* a name must not begin a line */
		for (char *c = text; (size_t) (c - text) < size && *c != '\0'; c++)
			if ((unsigned char) *c < ' ')
				*c = '?';
		return (size_t) length;
	}
	/* formatting failed: write no line */
	if (size > 0)
		text[0] = '\0';
	return 0;
}
