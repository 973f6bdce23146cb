/* SPDX-License-Identifier: PostgreSQL */
/*
 * functions.h
 *	  The list of the measured functions of libpq.
 *
 * These are the functions that may send, wait, or work on a whole result. Functions that read a field (PQgetvalue,
 * PQntuples) are left out: they take less time than measuring them, and programs call them for every value. So are the
 * lo_* functions, because other libraries may use these names.
 *
 *	  PQ_FUNCTION(type, failure condition, name, parameters, arguments)
 *	  PQ_ACTION(name, parameters, arguments)		the same for a function without a result
 *
 * The types are libpq's own, so a header of libpq with another declaration does not compile.
 */
/* no include guard: it is included once for each use */
PQ_FUNCTION(PGconn *, PQ_NULL, PQconnectdb, (const char *a), (a))
PQ_FUNCTION(PGconn *, PQ_NULL, PQconnectdbParams, (const char *const *a, const char *const *b, int c), (a, b, c))
PQ_FUNCTION(PGconn *, PQ_NULL, PQsetdbLogin, (const char *a, const char *b, const char *c, const char *d, const char *e, const char *f, const char *g), (a, b, c, d, e, f, g))
PQ_FUNCTION(PGconn *, PQ_NULL, PQconnectStart, (const char *a), (a))
PQ_FUNCTION(PGconn *, PQ_NULL, PQconnectStartParams, (const char *const *a, const char *const *b, int c), (a, b, c))
PQ_FUNCTION(PostgresPollingStatusType, PQ_ZERO, PQconnectPoll, (PGconn *a), (a))
PQ_FUNCTION(PGPing, PQ_POSITIVE, PQping, (const char *a), (a))
PQ_FUNCTION(PGPing, PQ_POSITIVE, PQpingParams, (const char *const *a, const char *const *b, int c), (a, b, c))
PQ_ACTION(PQreset, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQresetStart, (PGconn *a), (a))
PQ_FUNCTION(PostgresPollingStatusType, PQ_ZERO, PQresetPoll, (PGconn *a), (a))
PQ_ACTION(PQfinish, (PGconn *a), (a))

PQ_FUNCTION(PGresult *, PQ_ERROR, PQexec, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQexecParams, (PGconn *a, const char *b, int c, const Oid *d, const char *const *e, const int *f, const int *g, int h), (a, b, c, d, e, f, g, h))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQprepare, (PGconn *a, const char *b, const char *c, int d, const Oid *e), (a, b, c, d, e))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQexecPrepared, (PGconn *a, const char *b, int c, const char *const *d, const int *e, const int *f, int g), (a, b, c, d, e, f, g))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQdescribePrepared, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQdescribePortal, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQclosePrepared, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQclosePortal, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR, PQfn, (PGconn *a, int b, int *c, int *d, int e, const PQArgBlock *f, int g), (a, b, c, d, e, f, g))

PQ_FUNCTION(int, PQ_ZERO, PQsendQuery, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(int, PQ_ZERO, PQsendQueryParams, (PGconn *a, const char *b, int c, const Oid *d, const char *const *e, const int *f, const int *g, int h), (a, b, c, d, e, f, g, h))
PQ_FUNCTION(int, PQ_ZERO, PQsendPrepare, (PGconn *a, const char *b, const char *c, int d, const Oid *e), (a, b, c, d, e))
PQ_FUNCTION(int, PQ_ZERO, PQsendQueryPrepared, (PGconn *a, const char *b, int c, const char *const *d, const int *e, const int *f, int g), (a, b, c, d, e, f, g))
PQ_FUNCTION(int, PQ_ZERO, PQsendDescribePrepared, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(int, PQ_ZERO, PQsendDescribePortal, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(int, PQ_ZERO, PQsendClosePrepared, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(int, PQ_ZERO, PQsendClosePortal, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(PGresult *, PQ_ERROR_IF_ANY, PQgetResult, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQconsumeInput, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_NEVER, PQisBusy, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_NEGATIVE, PQflush, (PGconn *a), (a))
PQ_FUNCTION(PGnotify *, PQ_NEVER, PQnotifies, (PGconn *a), (a))

PQ_FUNCTION(int, PQ_ZERO, PQenterPipelineMode, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQexitPipelineMode, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQpipelineSync, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQsendPipelineSync, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQsendFlushRequest, (PGconn *a), (a))

PQ_FUNCTION(int, PQ_NEGATIVE, PQputCopyData, (PGconn *a, const char *b, int c), (a, b, c))
PQ_FUNCTION(int, PQ_NEGATIVE, PQputCopyEnd, (PGconn *a, const char *b), (a, b))
PQ_FUNCTION(int, PQ_BELOW_END, PQgetCopyData, (PGconn *a, char **b, int c), (a, b, c))

PQ_ACTION(PQclear, (PGresult *a), (a))

PQ_FUNCTION(PGcancel *, PQ_NULL, PQgetCancel, (PGconn *a), (a))
PQ_ACTION(PQfreeCancel, (PGcancel *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQcancel, (PGcancel *a, char *b, int c), (a, b, c))
PQ_FUNCTION(int, PQ_ZERO, PQrequestCancel, (PGconn *a), (a))
PQ_FUNCTION(PGcancelConn *, PQ_NULL, PQcancelCreate, (PGconn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQcancelBlocking, (PGcancelConn *a), (a))
PQ_FUNCTION(int, PQ_ZERO, PQcancelStart, (PGcancelConn *a), (a))
PQ_FUNCTION(PostgresPollingStatusType, PQ_ZERO, PQcancelPoll, (PGcancelConn *a), (a))
PQ_ACTION(PQcancelReset, (PGcancelConn *a), (a))
PQ_ACTION(PQcancelFinish, (PGcancelConn *a), (a))
