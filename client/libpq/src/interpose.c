/* SPDX-License-Identifier: PostgreSQL */
/*
 * interpose.c
 *	  The functions of libpq, as programs see them while this library is preloaded.
 *
 * The loader binds a program's calls to these, since the library comes before libpq. A function that the real libpq
 * does not have (it is older) fails as that function does: it returns NULL or 0.
 */
#include <libpq-fe.h>

#include "libtally_pq.h"

/* libpq 17 has it; a declaration of the same type is allowed again */
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

/* A header of libpq before 17 declares not all of them. */
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
