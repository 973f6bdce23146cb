/* SPDX-License-Identifier: PostgreSQL */
/*
 * program.c
 *	  A client that does what clients of libpq may do: crates/tally/tests/server/libpq.rs runs it and knows how many calls it
 *	  makes. Usage: program WHAT N CONNINFO
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

static const char *conninfo;
static int	times;

static PGconn *
connect_to_server(void)
{
	PGconn	   *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) == CONNECTION_OK)
		return conn;
	fprintf(stderr, "%s", PQerrorMessage(conn));
	exit(1);
}

/* The server must have answered. */
static void
execute(PGconn *conn, const char *sql, ExecStatusType expected)
{
	PGresult   *result = PQexec(conn, sql);

	if (PQresultStatus(result) != expected)
	{
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(conn));
		exit(1);
	}
	PQclear(result);
}

/* `times` executions on a connection of their own. */
static void *
plain(void *unused)
{
	PGconn	   *conn = connect_to_server();

	for (int i = 0; i < times; i++)
		execute(conn, "select 1", PGRES_TUPLES_OK);
	PQfinish(conn);
	return unused;
}

static void
in_threads(void)
{
	pthread_t	threads[8];

	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, plain, NULL) != 0)
			exit(1);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* In the parent, a child, and its child. Each prints its process's id. */
static void
in_children(void)
{
	for (int generation = 0; generation < 3; generation++)
	{
		int			status;
		pid_t		child;

		plain(NULL);
		printf("process %d\n", (int) getpid());
		fflush(stdout);
		child = generation < 2 ? fork() : -1;
		if (child == 0)
			continue;
		if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
			exit(1);
		exit(0);
	}
}

static sigjmp_buf before;

static void
jump(int signal_number)
{
	(void) signal_number;
	siglongjmp(before, 1);
}

/* Calls that never return, one after the other; then `times` that do. */
static void
with_jumps(void)
{
	const struct itimerval then = {.it_value = {.tv_usec = 20000}};

	signal(SIGALRM, jump);
	for (volatile int i = 0; i < 20; i++)
	{
		PGconn	   *conn = connect_to_server();

		if (sigsetjmp(before, 1) == 0)
		{
			setitimer(ITIMER_REAL, &then, NULL);
			PQexec(conn, "select pg_sleep(60)");
			exit(1);
		}
		/* what libpq had begun is lost: it is not used again */
	}
	plain(NULL);
}

static PGconn *other;

static void
on_notice(void *unused, const PGresult *notice)
{
	(void) unused;
	(void) notice;
	execute(other, "select 1", PGRES_TUPLES_OK);
}

/* Each call makes another one, within. */
static void
nested(void)
{
	PGconn	   *conn = connect_to_server();

	other = connect_to_server();
	PQsetNoticeReceiver(conn, on_notice, NULL);
	for (int i = 0; i < times; i++)
		execute(conn, "do $$begin raise notice 'x'; end$$", PGRES_COMMAND_OK);
	PQfinish(conn);
	PQfinish(other);
}

static PGcancel *to_cancel;
static volatile int handled;
static const struct itimerval soon = {.it_value = {.tv_usec = 1000}};

static void
cancel(int signal_number)
{
	char		text[256];

	(void) signal_number;
	PQcancel(to_cancel, text, sizeof(text));
	handled++;
	setitimer(ITIMER_REAL, &soon, NULL);
}

/* PQcancel, which a handler of signals may call, at any moment of other calls; `times` times. */
static void
with_signals(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = cancel,.sa_flags = SA_RESTART};
	int			rounds;

	other = connect_to_server();
	to_cancel = PQgetCancel(other);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (rounds = 0; handled < times; rounds++)
		plain(NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("handled %d\nrounds %d\n", handled, rounds);
}

/* The memory of the segment disappears. */
static void
truncated(void)
{
	PGconn	   *conn = connect_to_server();

	execute(conn, "select 1", PGRES_TUPLES_OK);
	if (truncate(getenv("SEGMENT"), 0) != 0)
		exit(1);
	PQfinish(conn);
	plain(NULL);
}

static pthread_key_t late_key;

static void
in_destructor(void *unused)
{
	(void) unused;
	plain(NULL);
}

static void *
ends_late(void *unused)
{
	plain(NULL);
	pthread_setspecific(late_key, &late_key);
	return unused;
}

static void
at_exit(void)
{
	plain(NULL);
}

/* After a thread's slot was retired, and when the program ends. */
static void
late(void)
{
	pthread_t	thread;

	atexit(at_exit);
	if (pthread_key_create(&late_key, in_destructor) != 0 ||
		pthread_create(&thread, NULL, ends_late, NULL) != 0)
		exit(1);
	pthread_join(thread, NULL);
}

/* Nanoseconds of a call that neither sends nor waits. */
static void
cost(void)
{
	PGconn	   *conn = connect_to_server();
	struct timespec from;
	struct timespec to;
	int			busy = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < times; i++)
		busy += PQisBusy(conn);
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (busy != 0)
		exit(1);
	printf("%.2f ns\n", ((double) (to.tv_sec - from.tv_sec) * 1e9 + (double) (to.tv_nsec - from.tv_nsec)) / times);
	PQfinish(conn);
}

int
main(int argc, char **argv)
{
	const char *what = argc == 4 ? argv[1] : "";

	times = argc == 4 ? atoi(argv[2]) : 0;
	conninfo = argc == 4 ? argv[3] : "";
	if (strcmp(what, "plain") == 0)
		plain(NULL);
	else if (strcmp(what, "threads") == 0)
		in_threads();
	else if (strcmp(what, "fork") == 0)
		in_children();
	else if (strcmp(what, "jump") == 0)
		with_jumps();
	else if (strcmp(what, "nested") == 0)
		nested();
	else if (strcmp(what, "signal") == 0)
		with_signals();
	else if (strcmp(what, "truncate") == 0)
		truncated();
	else if (strcmp(what, "late") == 0)
		late();
	else if (strcmp(what, "cost") == 0)
		cost();
	else if (strcmp(what, "exec") == 0)
	{
		plain(NULL);
		argv[1] = "plain";
		execv("/proc/self/exe", argv);
		exit(1);
	}
	else if (strcmp(what, "killed") == 0)
	{
		plain(NULL);
		kill(getpid(), SIGKILL);
	}
	else if (strcmp(what, "rest") == 0)
	{
		plain(NULL);
		printf("resting\n");
		fflush(stdout);
		for (;;)
			pause();
	}
	else if (strcmp(what, "refused") == 0)
	{
		/* there is no server */
		for (int i = 0; i < times; i++)
		{
			PGconn	   *conn = PQconnectdb(conninfo);

			if (PQstatus(conn) != CONNECTION_BAD)
				exit(1);
			PQfinish(conn);
		}
	}
	else
		exit(2);
	printf("done\n");
	return 0;
}
