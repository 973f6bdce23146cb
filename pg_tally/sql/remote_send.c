/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_send.c
 *	  What the remote_*.c files put is sent to a reader elsewhere, if its role may see it.
 */
#include "base/compat.h"

#include "sql/remote_image.h"
#include "sql/remote_reading.h"

void
remote_put(remote_reading *r, uint64 offset, const void *bytes, uint64 size)
{
	remote_image_put(r->image, offset, bytes, size);
}

bool
remote_send_if(remote_reading *r, bool sees)
{
	if (sees)
		remote_image_send(r->image);
	else
		remote_image_forget(r->image);
	return sees;
}

void
remote_send_public(remote_reading *r)
{
	remote_image_send(r->image);
}

void
remote_forget(remote_reading *r)
{
	remote_image_forget(r->image);
}
