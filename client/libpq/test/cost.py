# SPDX-License-Identifier: PostgreSQL
"""What a measured call of libpq costs: cost.py BUILD [ROUNDS]. The server is that of libpq's environment (PGHOST ...).

Each round runs the program of the tests without the library, again without it, and with it, in turns of order.
"""

import math
import os
import statistics
import subprocess
import sys

CALLS = 2_000_000
build = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15

measured = dict(os.environ, LD_PRELOAD=f"{build}/libtally_pq.so")
arms = {"without": os.environ, "without, again": os.environ, "measured": measured}
times = {arm: [] for arm in arms}
for index in range(rounds):
    names = list(arms)
    for arm in names[index % 3 :] + names[: index % 3]:
        command = [f"{build}/program", "cost", str(CALLS), ""]
        printed = subprocess.run(command, env=arms[arm], check=True, capture_output=True, text=True).stdout
        times[arm].append(float(printed.split()[0]))

print(f"{CALLS} calls of PQisBusy, {rounds} rounds; medians, and mean differences with 95 % intervals")
for arm, values in times.items():
    differences = [value - base for value, base in zip(values, times["without"])]
    half = 2.2 * statistics.stdev(differences) / math.sqrt(rounds)
    median, mean = statistics.median(values), statistics.mean(differences)
    print(f"{arm:15} {median:6.1f} ns  {mean:+6.1f} ns ± {half:.1f}")
