/* SPDX-License-Identifier: PostgreSQL */
/*
 * support.c
 *	  Replacements, without a server, for functions that the server's headers substitute for those of the C library.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

extern int	pg_snprintf(char *text, size_t size, const char *format, ...)
			__attribute__((format(printf, 3, 4)));
extern char *pg_strerror(int error);

int
pg_snprintf(char *text, size_t size, const char *format, ...)
{
	va_list		args;
	int			length;

	va_start(args, format);
	length = vsnprintf(text, size, format, args);
	va_end(args);
	return length;
}

char *
pg_strerror(int error)
{
	return strerror(error);
}
