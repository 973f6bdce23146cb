# SPDX-License-Identifier: PostgreSQL
"""Print how long the named queries take over tables of ClickHouse (chdb), of the recordings of generate.py.

    measure.py TALLY ROOT [--tables minute|hour] [--hours N] [--times N] [--queries NAME,...] [--regressions]

TALLY is the command. The first N hours are refreshed one after another into tables in a folder of their own; then each query is
asked for the last of these hours (`regressions` compares it with the one before), each of the times after all others.
With --regressions that query is also asked for each hour but the first, and what it names is counted.
"""
import argparse
import resource
import statistics
import subprocess
import tempfile
import time

from chdb import session

arguments = argparse.ArgumentParser()
arguments.add_argument("tally")
arguments.add_argument("root")
arguments.add_argument("--tables", default="minute")
arguments.add_argument("--hours", type=int, default=2)
arguments.add_argument("--times", type=int, default=3)
arguments.add_argument("--queries", default="hosts,load,waits,statements,p99,regressions,outliers,capacity,checkpoints,blocking")
arguments.add_argument("--regressions", action="store_true")
given = arguments.parse_args()
names = given.queries.split(",")


def fleet(*words):
    return subprocess.run([given.tally, "fleet", *words], check=True, capture_output=True, text=True).stdout


def hour(number):
    return f"2026-03-02T{number:02}:00:00Z"


def period(number):
    return ["--since", hour(number), "--until", hour(number + 1)]


def spent():
    mine = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), mine.ru_utime + mine.ru_stime


folder = tempfile.TemporaryDirectory()
here = session.Session(folder.name)


def run(statements):
    """Wall time, CPU time, and the rows of the last answer."""
    wall, cpu = spent()
    for statement in filter(str.strip, statements.split(";")):
        answer = str(here.query(statement, "JSONEachRow"))
    wall_after, cpu_after = spent()
    return wall_after - wall, cpu_after - cpu, len(answer.splitlines())


run(fleet("schema", "--engine", "clickhouse", "--root", given.root, "--tables", given.tables))
for number in range(given.hours):
    # Files of the hour before may have its first intervals; a file counts once.
    took = run(fleet("refresh", "--root", given.root, "--tables", given.tables, *period(number)))
    print(f"refresh of hour {number}: {took[0]:.1f} s, {took[1]:.1f} s of CPU", flush=True)
for table in ["statistics", "histograms", "statements", "frames"]:
    print(table, str(here.query(f"SELECT count() FROM tally_{given.tables}_{table}")).strip(), "rows")
if given.regressions:
    for number in range(1, given.hours):
        took = run(fleet("sql", "regressions", "--engine", "clickhouse", *period(number)))
        print(f"hour {number} against hour {number - 1}: {took[2]} named ({took[0]:.1f} s)", flush=True)
asked = {name: fleet("sql", name, "--engine", "clickhouse", *period(given.hours - 1)) for name in names}
runs = {name: [] for name in names}
for _ in range(given.times):
    for name, sql in asked.items():
        runs[name].append(run(sql))
for name, all_runs in runs.items():
    walls, cpus, rows = zip(*all_runs)
    print(
        f"{name:12} {statistics.median(walls):.2f} s [{min(walls):.2f}, {max(walls):.2f}], "
        f"{statistics.median(cpus):.2f} s of CPU, {rows[0]} rows"
    )
print(f"max. memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
