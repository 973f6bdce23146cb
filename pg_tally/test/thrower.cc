// SPDX-License-Identifier: PostgreSQL
// Functions that throw and catch, for test_unwind.c: in a library that uses the system's unwinder, and in one that has its own.

// Space at its beginning: the function can be redirected, whatever the compiler makes of it.
#define EXPORTED extern "C" __attribute__((visibility("default"), noinline, patchable_function_entry(8)))

namespace
{
	struct cleaner
	{
		int		   *cleaned;

		~cleaner()
		{
			*cleaned += 1;
		}
	};
}

EXPORTED int
throws(int n)
{
	if (n > 0)
		throw n;
	return n;
}

// Its last call is a jump.
EXPORTED int
throws_by_a_tail_call(int n)
{
	return throws(n);
}

EXPORTED int
throws_below_a_destructor(int n, int *cleaned)
{
	cleaner		at_the_end{cleaned};

	return throws_by_a_tail_call(n) + 1;
}

// n + 1; of a thrown n, 100 * n and how many destructors ran
EXPORTED int
catches(int n)
{
	int			cleaned = 0;

	try
	{
		return throws_below_a_destructor(n, &cleaned);
	}
	catch (int thrown)
	{
		return 100 * thrown + cleaned;
	}
}
