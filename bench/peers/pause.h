/* SPDX-License-Identifier: PostgreSQL */
/*
 * pause.h
 *	  The word with which `tally cost` toggles other libraries, which are preloaded after pg_tally.
 */
#ifndef PEERS_PAUSE_H
#define PEERS_PAUSE_H

#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"

#include "tally.h"

/* The pause word in this server's segment, which stays mapped. Raises an error if there is no segment. */
static const uint32 *
find_pause(void)
{
	char		path[MAXPGPATH];
	struct stat st;
	void	   *page;
	int			fd;

	if (stat(DataDir, &st) != 0)
		elog(ERROR, "pg_tally's segment: %s: %m", DataDir);
	snprintf(path, sizeof(path), "/dev/shm/pg_tally.%llx.%llx",
			 (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		elog(ERROR, "pg_tally's segment: %s: %m", path);
	page = mmap(NULL, sizeof(tally_header), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		elog(ERROR, "pg_tally's segment: %s: %m", path);
	return &((const tally_header *) page)->pause;
}

#endif							/* PEERS_PAUSE_H */
