/* SPDX-License-Identifier: PostgreSQL */
/*
 * plan_columns.c
 *	  Formats the columns by which a plan node filters, joins or sorts (plan_columns.h).
 */
#include "base/compat.h"

#include <string.h>

#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "optimizer/optimizer.h"
#include "utils/fmgrtab.h"
#include "utils/rel.h"

#include "statement/plan_columns.h"

#define MOST_STEPS 50				/* from a join or sort down to the scan of a column */
#define MOST_DEPTH 20				/* of a value's expression */
#define REST ", ...]"				/* the longest end of a list */

/* ---------------------------------------------------------------- a list that is cut at the end of an item */

typedef struct list_text
{
	char	   *text;
	size_t		size;
	size_t		used;				/* up to the end of the last whole item */
	size_t		written;			/* of the item that is being written; beyond size: it does not fit */
	const char *begin;				/* before the first item */
	int			items;
	bool		more;				/* something is left out */
} list_text;

static void
add(list_text *list, const char *part)
{
	size_t		length = strlen(part);

	if (list->written + length + sizeof(REST) <= list->size)
		memcpy(list->text + list->written, part, length);
	list->written += length;
}

static void
item_begin(list_text *list)
{
	list->written = list->used;
	add(list, list->items == 0 ? list->begin : ", ");
}

/* False: it is left out, and so is everything after it. */
static bool
item_end(list_text *list)
{
	if (list->written + sizeof(REST) > list->size)
	{
		list->more = true;
		return false;
	}
	list->used = list->written;
	list->items++;
	return true;
}

/* The end of a list, for which item_end() has kept space. */
static void
close_list(list_text *list, size_t at, const char *end)
{
	memcpy(list->text + at, end, strlen(end) + 1);
}

static void
list_end(list_text *list)
{
	/* without space for its shortest form, there is none */
	if ((list->items == 0 && !list->more) || strlen(list->begin) + sizeof(REST) > list->size)
	{
		if (list->size > 0)
			list->text[0] = '\0';
		return;
	}
	if (list->items == 0)
	{
		/* " [filter: " without its colon and space */
		size_t		length = strlen(list->begin) - 2;

		memcpy(list->text, list->begin, length);
		close_list(list, length, "]");
	}
	else
		close_list(list, list->used, list->more ? REST : "]");
}

/* A name as SQL needs it, but for reserved words. */
static void
add_name(list_text *list, const char *name)
{
	char		one[3] = "";
	bool		plain = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name) && !(*name >= '0' && *name <= '9');

	if (plain)
	{
		add(list, name);
		return;
	}
	add(list, "\"");
	for (; *name != '\0'; name++)
	{
		/* a name must not end the line */
		one[0] = (unsigned char) *name < ' ' ? '?' : *name;
		one[1] = *name == '"' ? '"' : '\0';
		add(list, one);
	}
	add(list, "\"");
}

/* ---------------------------------------------------------------- what operators and values are */

/* The C name of a built-in function; NULL: it is none. */
static const char *
builtin_name(Oid function)
{
	uint16		index;

	if (function > fmgr_last_builtin_oid)
		return NULL;
	index = fmgr_builtin_oid_index[function];
	return index == InvalidOidBuiltinMapping ? NULL : fmgr_builtins[index].funcName;
}

static bool
has_suffix(const char *name, const char *suffix)
{
	size_t		length = strlen(name);
	size_t		end = strlen(suffix);

	return length >= end && strcmp(name + length - end, suffix) == 0;
}

/* Comparisons that no B-tree supports, but whose functions are named as if one did. */
static bool
is_no_order(const char *name)
{
	static const char *const begins[] = {"box_", "circle_", "lseg_", "line_", "path_", "point_", "poly_", "xid", "cid"};
	static const char *const parts[] = {"regex", "sub", "sup", "pattern", "image"};

	for (size_t i = 0; i < lengthof(begins); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	for (size_t i = 0; i < lengthof(parts); i++)
		if (strstr(name, parts[i]) != NULL)
			return true;
	return false;
}

/*
 * The comparison that a function of the server makes: "=", "<", ...; NULL: none of these. The name of its C function says it
 * (int48lt, texteq, date_ge_timestamp), where its operator's name would be in the catalog.
 */
static const char *
comparison(Oid function, bool commuted)
{
	static const struct
	{
		const char *suffix;
		const char *middle;			/* of a comparison of two types */
		const char *name;
		const char *commuted;
	}			all[] = {
		{"eq", "_eq_", "=", "="},
		{"lt", "_lt_", "<", ">"},
		{"le", "_le_", "<=", ">="},
		{"gt", "_gt_", ">", "<"},
		{"ge", "_ge_", ">=", "<="},
	};
	const char *name = builtin_name(function);

	if (name == NULL || is_no_order(name))
		return NULL;
	for (size_t i = 0; i < lengthof(all); i++)
		if (has_suffix(name, all[i].suffix) || strstr(name, all[i].middle) != NULL)
			return commuted ? all[i].commuted : all[i].name;
	return NULL;
}

static const Node *
stripped(const Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	return node;
}

/* Is that the same for all rows, as an index needs it? now() and casts may be in it, other functions might be volatile. */
static bool
is_no_value(Node *node, void *context)
{
	int		   *depth = context;
	bool		found;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return true;
	if (IsA(node, FuncExpr))
	{
		const FuncExpr *call = (const FuncExpr *) node;
		const char *name = builtin_name(call->funcid);
		bool		cast = call->funcformat == COERCE_IMPLICIT_CAST || call->funcformat == COERCE_EXPLICIT_CAST;

		if (name == NULL || !(cast || strcmp(name, "now") == 0))
			return true;
	}
	else if (IsA(node, OpExpr))
	{
		if (builtin_name(((const OpExpr *) node)->opfuncid) == NULL)
			return true;
	}
	else if (!IsA(node, Const) && !IsA(node, Param) && !IsA(node, RelabelType) && !IsA(node, SQLValueFunction) &&
			 !IsA(node, ArrayExpr) && !IsA(node, List))
		return true;
	/* the walker raises an error where the stack is too deep */
	if (*depth == MOST_DEPTH)
		return true;
	++*depth;
	found = expression_tree_walker(node, is_no_value, context);
	--*depth;
	return found;
}

static bool
is_value(const Node *node)
{
	int			depth = 0;

	return !is_no_value(unconstify(Node *, node), &depth);
}

/* ---------------------------------------------------------------- columns */

/* The relation of this number, which is open; NULL: it is none, or not open. */
static Relation
relation_of(const EState *estate, int number)
{
	if (number <= 0 || (Index) number > estate->es_range_table_size || estate->es_relations == NULL)
		return NULL;
	return estate->es_relations[number - 1];
}

/* The column's name; NULL: it is none of a relation. */
static const char *
column_name(const EState *estate, const Var *column)
{
	Relation	relation = relation_of(estate, (int) column->varno);

	if (relation == NULL || column->varattno <= 0 || column->varattno > RelationGetNumberOfAttributes(relation))
		return NULL;
	return NameStr(TupleDescAttr(RelationGetDescr(relation), column->varattno - 1)->attname);
}

/* The column, if the expression is one of the relation that the node scans; NULL: it is none. */
static const char *
scanned_column(const PlanState *state, const Node *node)
{
	const Var  *column = (const Var *) stripped(node);

	if (column == NULL || !IsA(column, Var) || (Index) column->varno != ((const Scan *) state->plan)->scanrelid)
		return NULL;
	return column_name(state->state, column);
}

/* Follows a column of a node's input down to the relation that it comes from; NULL: it is computed, or its way is not known. */
static const Var *
origin(const Plan *plan, const Node *node)
{
	for (int steps = 0; steps < MOST_STEPS; steps++)
	{
		const Var  *column = (const Var *) stripped(node);

		if (column == NULL || !IsA(column, Var))
			return NULL;
		if (column->varno != OUTER_VAR && column->varno != INNER_VAR)
			return IS_SPECIAL_VARNO(column->varno) ? NULL : column;
		plan = column->varno == OUTER_VAR ? outerPlan(plan) : innerPlan(plan);
		if (plan == NULL || column->varattno <= 0 || column->varattno > list_length(plan->targetlist))
			return NULL;
		node = (const Node *) ((const TargetEntry *) list_nth(plan->targetlist, column->varattno - 1))->expr;
	}
	return NULL;
}

/* "orders.customer"; false: the column is none of a relation. */
static bool
add_qualified(list_text *list, const EState *estate, const Var *column)
{
	const char *name = column != NULL ? column_name(estate, column) : NULL;

	if (name == NULL)
		return false;
	add_name(list, RelationGetRelationName(relation_of(estate, (int) column->varno)));
	add(list, ".");
	add_name(list, name);
	return true;
}

/* ---------------------------------------------------------------- filters */

/* "customer =" for a comparison of a column with a value. */
static bool
add_condition(list_text *list, const char *column, const char *condition)
{
	if (column == NULL || condition == NULL)
		return false;
	add_name(list, column);
	add(list, " ");
	add(list, condition);
	return true;
}

static bool
add_comparison(list_text *list, const PlanState *state, const OpExpr *expression)
{
	const Node *left;
	const Node *right;

	if (list_length(expression->args) != 2)
		return false;
	left = linitial(expression->args);
	right = lsecond(expression->args);
	if (is_value(right))
		return add_condition(list, scanned_column(state, left), comparison(expression->opfuncid, false));
	if (is_value(left))
		return add_condition(list, scanned_column(state, right), comparison(expression->opfuncid, true));
	return false;
}

static bool
add_array_comparison(list_text *list, const PlanState *state, const ScalarArrayOpExpr *expression)
{
	const char *name = comparison(expression->opfuncid, false);

	if (!expression->useOr || name == NULL || strcmp(name, "=") != 0 || !is_value(lsecond(expression->args)))
		return false;
	return add_condition(list, scanned_column(state, linitial(expression->args)), "= any");
}

/* Add one of the conditions that a row must all fulfil. */
static bool
add_filter(list_text *list, const PlanState *state, const Node *node)
{
	if (IsA(node, OpExpr))
		return add_comparison(list, state, (const OpExpr *) node);
	if (IsA(node, ScalarArrayOpExpr))
		return add_array_comparison(list, state, (const ScalarArrayOpExpr *) node);
	if (IsA(node, NullTest) && ((const NullTest *) node)->nulltesttype == IS_NULL)
		return add_condition(list, scanned_column(state, (const Node *) ((const NullTest *) node)->arg), "is null");
	if (IsA(node, Var))
		return add_condition(list, scanned_column(state, node), "=");
	if (IsA(node, BoolExpr) && ((const BoolExpr *) node)->boolop == NOT_EXPR)
	{
		const Node *column = linitial(((const BoolExpr *) node)->args);

		return IsA(column, Var) && add_condition(list, scanned_column(state, column), "=");
	}
	return false;
}

static void
write_filter(list_text *list, const PlanState *state)
{
	ListCell   *cell;
	bool		scans = IsA(state->plan, SeqScan) || IsA(state->plan, SampleScan) || IsA(state->plan, IndexScan) ||
		IsA(state->plan, BitmapHeapScan);

	list->begin = " [filter: ";
	foreach(cell, state->plan->qual)
	{
		item_begin(list);
		if (!scans || !add_filter(list, state, lfirst(cell)))
			list->more = true;
		else if (!item_end(list))
			break;
	}
}

/* ---------------------------------------------------------------- joins and sorts */

static List *
join_clauses(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_HashJoin:
			return ((const HashJoin *) plan)->hashclauses;
		case T_MergeJoin:
			return ((const MergeJoin *) plan)->mergeclauses;
		case T_NestLoop:
			return ((const Join *) plan)->joinqual;
		default:
			return NIL;
	}
}

/* "orders.customer = customers.id": a column of the first input, then one of the second. */
static bool
add_join(list_text *list, const PlanState *state, const Node *node)
{
	const OpExpr *expression = (const OpExpr *) node;
	const Node *sides[2];
	const char *name;
	const Var  *left;

	if (!IsA(node, OpExpr) || list_length(expression->args) != 2)
		return false;
	name = comparison(expression->opfuncid, false);
	if (name == NULL || strcmp(name, "=") != 0)
		return false;
	sides[0] = stripped(linitial(expression->args));
	sides[1] = stripped(lsecond(expression->args));
	left = (const Var *) sides[0];
	if (IsA(left, Var) && left->varno == INNER_VAR)
	{
		sides[0] = sides[1];
		sides[1] = (const Node *) left;
	}
	if (!IsA(sides[0], Var) || ((const Var *) sides[0])->varno != OUTER_VAR ||
		!IsA(sides[1], Var) || ((const Var *) sides[1])->varno != INNER_VAR)
		return false;
	if (!add_qualified(list, state->state, origin(state->plan, sides[0])))
		return false;
	add(list, " = ");
	return add_qualified(list, state->state, origin(state->plan, sides[1]));
}

static void
write_join(list_text *list, const PlanState *state)
{
	ListCell   *cell;

	list->begin = " [join: ";
	foreach(cell, join_clauses(state->plan))
	{
		item_begin(list);
		if (!add_join(list, state, lfirst(cell)))
			list->more = true;
		else if (!item_end(list))
			break;
	}
}

static void
write_sort(list_text *list, const PlanState *state)
{
	const Sort *sort = (const Sort *) state->plan;

	list->begin = " [sort: ";
	for (int i = 0; i < sort->numCols; i++)
	{
		const Plan *plan = state->plan;
		int			column = sort->sortColIdx[i];
		const Node *node = column > 0 && column <= list_length(plan->targetlist)
			? (const Node *) ((const TargetEntry *) list_nth(plan->targetlist, column - 1))->expr : NULL;

		item_begin(list);
		if (!add_qualified(list, state->state, origin(plan, node)))
		{
			/* the columns after it order nothing without it */
			list->more = true;
			break;
		}
		if (sort->nullsFirst[i])
			add(list, " nulls first");
		if (!item_end(list))
			break;
	}
}

void
plan_columns(const PlanState *state, char *text, size_t size)
{
	list_text	list = {.text = text,.size = size};
	size_t		used;

	*text = '\0';
	if (IsA(state->plan, Sort))
		write_sort(&list, state);
	else
		write_join(&list, state);
	list_end(&list);
	used = strlen(text);
	list = (list_text) {.text = text + used,.size = size - used};
	write_filter(&list, state);
	list_end(&list);
}
