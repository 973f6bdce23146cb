/* SPDX-License-Identifier: PostgreSQL */
/*
 * helper.c
 *	  A library for the tests of import tables: a function with two versions, one that is selected when it
 *	  is bound, and one whose address is compared.
 */
extern int helper_plain(void);
extern int helper_compared(void);
extern int helper_chosen(void);

int
helper_plain(void)
{
	return 10;
}

int
helper_compared(void)
{
	return 40;
}

static int
chosen(void)
{
	return 20;
}

static __attribute__((used)) int (*choose(void)) (void)
{
	return chosen;
}

int			helper_chosen(void) __attribute__((ifunc("choose")));

extern int	helper_first(void);
extern int	helper_second(void);

int
helper_first(void)
{
	return 1;
}

int
helper_second(void)
{
	return 2;
}

__asm__(".symver helper_first, helper_versioned@HELPER_1");
__asm__(".symver helper_second, helper_versioned@@HELPER_2");
