/* SPDX-License-Identifier: PostgreSQL */
/*
 * interpose.c
 *	  Defines the functions of libpq that programs call while this library is preloaded.
 *
 * The loader binds a program's calls to these functions, because this library comes before libpq. A function that the
 * real libpq lacks (because it is older) reports failure as that function would: it returns NULL or 0.
 */
#include <libpq-fe.h>

#include "libtally_pq.h"

/* libpq 17 declares it, too, which is allowed because the type is the same */
typedef struct pg_cancel_conn PGcancelConn;

#define PQ_NULL(call, result) ((result) == NULL)
#define PQ_ZERO(call, result) ((result) == 0)
#define PQ_POSITIVE(call, result) ((result) > 0)
#define PQ_NEGATIVE(call, result) ((result) < 0)
#define PQ_BELOW_END(call, result) ((result) < -1)		/* -1: the end of a COPY */
#define PQ_NEVER(call, result) false
#define PQ_ERROR(call, result) pq_is_error(call, result)
#define PQ_ERROR_IF_ANY(call, result) ((result) != NULL && pq_is_error(call, result))

#define PQ_EXPORTED __attribute__((visibility("default")))

/* Headers of libpq before 17 do not declare all of them. */
#define PQ_FUNCTION(type, failed, name, parameters, arguments) PQ_EXPORTED type name parameters;
#define PQ_ACTION(name, parameters, arguments) PQ_EXPORTED void name parameters;
#include "functions.h"
#undef PQ_FUNCTION
#undef PQ_ACTION

#define PQ_FUNCTION(type, failed, name, parameters, arguments) \
type \
name parameters \
{ \
	pq_call		call; \
	type		(*real) parameters = (type (*) parameters) pq_enter(&call, FUNCTION_##name, __builtin_return_address(0)); \
	type		result; \
\
	if (real == NULL) \
		return (type) 0; \
	result = real arguments; \
	pq_leave(&call, failed(&call, result)); \
	return result; \
}

#define PQ_ACTION(name, parameters, arguments) \
void \
name parameters \
{ \
	pq_call		call; \
	void		(*real) parameters = (void (*) parameters) pq_enter(&call, FUNCTION_##name, __builtin_return_address(0)); \
\
	if (real == NULL) \
		return; \
	real arguments; \
	pq_leave(&call, false); \
}

#include "functions.h"
