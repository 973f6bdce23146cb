/* SPDX-License-Identifier: PostgreSQL */
/*
 * import_list.h
 *	  The list of the server's calls into other libraries that are probed (imports.c).
 */
#ifndef PG_TALLY_IMPORT_LIST_H
#define PG_TALLY_IMPORT_LIST_H

#include "postgres.h"

#include "file/files.h"
#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

/*
 * For each probed call: return type, name, whether it is timed outside wait events, too (or the event to use), parameters,
 * arguments, and what is noted of it as a file operation.
 * The position in this list is the call's number in the segment's probe table.
 */
#define NOT_A_FILE ((void) 0)

#define SLEEP_IMPORTS(X) \
	X(int, epoll_wait, false, (int ep, struct epoll_event *ev, int n, int ms), (ep, ev, n, ms), \
	  NOT_A_FILE)

#define HOT_IMPORTS(X) \
	X(ssize_t, pread, true, (int fd, void *b, size_t n, off_t o), (fd, b, n, o), \
	  files_read(fd, result, o)) \
	X(ssize_t, pwrite, true, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), \
	  files_written(fd, result, o))

#define SYNC_IMPORTS(X) \
	X(int, fdatasync, true, (int fd), (fd), files_synced(fd, result)) \
	X(int, fsync, true, (int fd), (fd), files_synced(fd, result))

#define OTHER_IMPORTS(X) \
	X(ssize_t, pwritev, true, (int fd, const struct iovec *v, int n, off_t o), (fd, v, n, o), \
	  files_done(fd, FILE_WRITE, result, o)) \
	X(ssize_t, preadv, true, (int fd, const struct iovec *v, int n, off_t o), (fd, v, n, o), \
	  files_done(fd, FILE_READ, result, o)) \
	X(int, syncfs, true, (int fd), (fd), NOT_A_FILE) \
	X(int, sync_file_range, true, (int fd, off_t o, off_t n, unsigned int f), (fd, o, n, f), \
	  files_done(fd, FILE_WRITEBACK, result, 0)) \
	X(int, posix_fadvise, true, (int fd, off_t o, off_t n, int a), (fd, o, n, a), \
	  files_done(fd, a == POSIX_FADV_WILLNEED ? FILE_PREFETCH : FILE_WRITEBACK, \
				 -(int64) result, 0)) \
	X(int, posix_fallocate, true, (int fd, off_t o, off_t n), (fd, o, n), \
	  files_done(fd, FILE_EXTEND, -(int64) result, 0)) \
	X(int, ftruncate, true, (int fd, off_t n), (fd, n), \
	  files_done(fd, FILE_TRUNCATE, result, 0)) \
	X(int, truncate, true, (const char *p, off_t n), (p, n), \
	  files_path_done(p, FILE_TRUNCATE, result)) \
	X(ssize_t, read, true, (int fd, void *b, size_t n), (fd, b, n), \
	  files_done(fd, FILE_READ, result, -1)) \
	X(ssize_t, __read_chk, true, (int fd, void *b, size_t n, size_t s), (fd, b, n, s), \
	  files_done(fd, FILE_READ, result, -1)) \
	X(ssize_t, write, fd == STDERR_FILENO && tally.on && files_is_log_pipe() ? CALL_LOG_PIPE : true, \
	  (int fd, const void *b, size_t n), (fd, b, n), \
	  files_done(fd, FILE_WRITE, result, -1)) \
	X(int, stat, true, (const char *p, struct stat *s), (p, s), NOT_A_FILE) \
	X(int, lstat, true, (const char *p, struct stat *s), (p, s), NOT_A_FILE) \
	X(int, unlink, true, (const char *p), (p), files_path_done(p, FILE_UNLINK, result)) \
	X(int, rename, true, (const char *a, const char *b), (a, b), \
	  files_renamed(a, b, result)) \
	X(int, link, true, (const char *a, const char *b), (a, b), NOT_A_FILE) \
	X(int, mkdir, true, (const char *p, mode_t m), (p, m), NOT_A_FILE) \
	X(int, rmdir, true, (const char *p), (p), NOT_A_FILE) \
	X(DIR *, opendir, true, (const char *p), (p), NOT_A_FILE) \
	X(struct dirent *, readdir, true, (DIR *d), (d), NOT_A_FILE) \
	X(FILE *, fopen, true, (const char *p, const char *m), (p, m), NOT_A_FILE) \
	X(int, fclose, true, (FILE *f), (f), NOT_A_FILE) \
	X(int, fflush, true, (FILE *f), (f), NOT_A_FILE) \
	X(int, system, true, (const char *c), (c), NOT_A_FILE) \
	X(FILE *, popen, true, (const char *c, const char *m), (c, m), NOT_A_FILE) \
	X(int, pclose, true, (FILE *f), (f), NOT_A_FILE) \
	X(int, getaddrinfo, true, \
	  (const char *n, const char *s, const struct addrinfo *h, struct addrinfo **r), (n, s, h, r), \
	  NOT_A_FILE) \
	X(int, getnameinfo, true, \
	  (const struct sockaddr *a, socklen_t l, char *h, socklen_t hl, char *s, socklen_t sl, int f), \
	  (a, l, h, hl, s, sl, f), NOT_A_FILE) \
	X(int, pam_authenticate, true, (void *h, int f), (h, f), NOT_A_FILE) \
	X(int, pam_acct_mgmt, true, (void *h, int f), (h, f), NOT_A_FILE) \
	X(int, ldap_simple_bind_s, true, (void *l, const char *w, const char *p), (l, w, p), NOT_A_FILE) \
	X(int, ldap_search_s, true, \
	  (void *l, char *b, int s, char *f, char **a, int o, void **r), (l, b, s, f, a, o, r), \
	  NOT_A_FILE) \
	X(int, ldap_start_tls_s, true, (void *l, void **s, void **c), (l, s, c), NOT_A_FILE) \
	X(int, io_uring_wait_cqes, true, (void *r, void **c, unsigned int n, void *t, void *m), \
	  (r, c, n, t, m), NOT_A_FILE) \
	X(ssize_t, copy_file_range, true, \
	  (int in, off_t *i, int out, off_t *o, size_t n, unsigned int f), (in, i, out, o, n, f), \
	  files_done(out, FILE_WRITE, result, -1)) \
	X(int, __xstat, true, (int v, const char *p, struct stat *s), (v, p, s), NOT_A_FILE) \
	X(int, __lxstat, true, (int v, const char *p, struct stat *s), (v, p, s), NOT_A_FILE)

/*
 * Submits a batch of reads to the kernel. They are counted here, in the submitting process, with the requested number of
 * bytes, because any process that waits next may collect the results.
 */
#define SUBMIT_IMPORTS(X) \
	X(int, io_uring_submit, true, (void *ring), (ring), files_submitting(ring))
#define TIMED_IMPORTS(X) SLEEP_IMPORTS(X) HOT_IMPORTS(X) SYNC_IMPORTS(X) OTHER_IMPORTS(X) SUBMIT_IMPORTS(X)

/* Calls with their own kinds of probes. */
#define PLAIN_IMPORTS(X) \
	X(sem_wait) X(select) X(nanosleep) X(open) X(close) X(fread) X(fgets) X(fwrite) X(fork) X(exit) X(siglongjmp) X(__longjmp_chk) \
	X(sem_post)

#pragma GCC visibility pop

#endif							/* PG_TALLY_IMPORT_LIST_H */
