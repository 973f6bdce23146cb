/* SPDX-License-Identifier: PostgreSQL */
/*
 * helper_process.c
 *	  Runs work for the postmaster in a child process, which it can afford to lose.
 *
 * Damaged contents of the segment must not stop or delay the postmaster, so it never maps the file. A
 * short-lived child reads or changes the contents at startup and shutdown. The child has no PGPROC, takes
 * no lock and skips the server's exit code.
 *
 * The callers run with the postmaster's signals blocked (at startup, in its signal handlers, at exit), so
 * only this file waits for the child.
 */
#include "base/compat.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "storage/ipc.h"

#include "base/own_segment.h"

#define DONE 0
#define NOT_DONE 1

/* Attempts to fork. */
#define HELPER_FORKS 3

static bool is_helper = false;

bool
helper_is_one(void)
{
	return is_helper;
}

void *
helper_shared_memory(size_t size)
{
	void	   *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

static void __attribute__((noreturn))
be_the_helper(pid_t parent, bool (*work) (void *argument), void *argument)
{
	static const int ordinary[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(NOT_DONE);
	for (int i = 0; i < lengthof(ordinary); i++)
		signal(ordinary[i], SIG_DFL);
	is_helper = true;
	MyProcPid = getpid();
	IsUnderPostmaster = true;
	/* an error must not trigger the postmaster's exit callbacks */
	on_exit_reset();
	_exit(work(argument) ? DONE : NOT_DONE);
}

/* Returns 0 when the child has ended, with its status; ETIME after a timeout; another errno if waiting failed. */
static int
wait_for(pid_t pid, int seconds, int *status)
{
	struct timespec pause = {.tv_nsec = 200000};
	struct timespec begun;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (;;)
	{
		pid_t		ended = waitpid(pid, status, WNOHANG);

		if (ended == pid)
			return 0;
		if (ended < 0 && errno != EINTR)
			return errno;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begun.tv_sec > seconds)
			return ETIME;
		nanosleep(&pause, NULL);
		/* most helpers finish within a few ms */
		pause.tv_nsec = Min(pause.tv_nsec * 2, 20000000);
	}
}

/* A shortage of processes or memory may be temporary. */
static pid_t
fork_patiently(void)
{
	struct timespec pause = {.tv_nsec = 10000000};

	for (int attempt = 1;; attempt++)
	{
		pid_t		pid = fork();

		if (pid >= 0 || attempt == HELPER_FORKS)
			return pid;
		nanosleep(&pause, NULL);
	}
}

helper_result
helper_run(const char *what, int seconds, bool (*work) (void *argument), void *argument)
{
	pid_t		parent = getpid();
	pid_t		pid;
	int			status = 0;
	int			error;

	fflush(NULL);
	pid = fork_patiently();
	if (pid == 0)
		be_the_helper(parent, work, argument);
	if (pid < 0)
	{
		ereport(LOG, (errmsg("pg_tally could not %s: could not fork a process: %m", what)));
		return HELPER_NOT_STARTED;
	}
	error = wait_for(pid, seconds, &status);
	if (error == ETIME)
	{
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		ereport(LOG, (errmsg("pg_tally could not %s within %d s", what, seconds)));
		return HELPER_FAILED;
	}
	if (error == 0 && WIFSIGNALED(status))
		ereport(LOG, (errmsg("pg_tally could not %s: its helper process was terminated by signal %d: %s",
							 what, WTERMSIG(status), pg_strsignal(WTERMSIG(status)))));
	else if (error != 0)
		ereport(LOG, (errmsg("pg_tally could not %s: lost track of its helper process: %s", what, strerror(error))));
	return error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == DONE ? HELPER_DONE : HELPER_FAILED;
}
