// SPDX-License-Identifier: PostgreSQL
// Functions of an extension that are left without a return, or return out of order: detours.rs times them.

#include <csetjmp>
#include <cstdlib>
#include <stdexcept>
#include <ucontext.h>

extern "C"
{
#include "postgres.h"
#include "fmgr.h"
	PG_MODULE_MAGIC;
}

#undef printf

// Space at its beginning: the function can be redirected, whatever the compiler makes of it.
#define TIMED extern "C" __attribute__((visibility("default"), noinline, patchable_function_entry(8)))
#define SQL_CALLABLE(name) \
	extern "C" { PG_FUNCTION_INFO_V1(name); } \
	extern "C" __attribute__((visibility("default"))) Datum name(PG_FUNCTION_ARGS)

// ---------------------------------------------------------------- exceptions

TIMED int
left_throws(int n)
{
	if (n % 2 == 1)
		throw std::runtime_error("odd");
	return n;
}

namespace
{
	struct counter
	{
		int		   *count;

		~counter()
		{
			*count += 1;
		}
	};
}

TIMED int
left_passes(int n, int *destructors)
{
	counter		at_the_end{destructors};

	return left_throws(n) + 1;
}

// n + 1; of an odd n, -1 and how many destructors ran
SQL_CALLABLE(left_by_exception)
{
	int			destructors = 0;

	try
	{
		PG_RETURN_INT32(left_passes(PG_GETARG_INT32(0), &destructors));
	}
	catch (const std::exception &)
	{
		PG_RETURN_INT32(-destructors);
	}
}

// ---------------------------------------------------------------- jumps of the library's own

static jmp_buf target;

TIMED int
left_jumps(int n)
{
	if (n % 2 == 1)
		longjmp(target, 1);
	return n + 1;
}

SQL_CALLABLE(left_by_jump)
{
	if (setjmp(target) != 0)
		PG_RETURN_INT32(-1);
	PG_RETURN_INT32(left_jumps(PG_GETARG_INT32(0)));
}

// ---------------------------------------------------------------- coroutines

static ucontext_t outside;
static ucontext_t coroutine;
static int	result;

TIMED int
left_yields(int n)
{
	swapcontext(&coroutine, &outside);
	return n + 1;
}

TIMED int
left_resumes(int n)
{
	swapcontext(&outside, &coroutine);
	return n + 10;
}

static void
body()
{
	result = left_yields(1);
	result += left_yields(10);
	swapcontext(&coroutine, &outside);
}

static int
run_on(char *stack, size_t size)
{
	int			resumed = 0;

	result = 0;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = size;
	coroutine.uc_link = nullptr;
	makecontext(&coroutine, body, 0);
	for (int i = 0; i < 3; i++)
		resumed += left_resumes(i);
	return resumed * 100 + result;
}

// 3313: three resumptions gave 33, and two calls 13
SQL_CALLABLE(coroutine_on_the_heap)
{
	char	   *stack = static_cast<char *>(std::malloc(65536));
	int			got = run_on(stack, 65536);

	std::free(stack);
	PG_RETURN_INT32(got);
}

SQL_CALLABLE(coroutine_on_the_stack)
{
	char		stack[65536];

	PG_RETURN_INT32(run_on(stack, sizeof(stack)));
}
