# SPDX-License-Identifier: PostgreSQL
"""Make the recordings of many hosts from one real recording.

    generate.py RECORDING ROOT [--hosts N] [--hours H] [--slice SECONDS] [--slower K] [--from HOUR] [--statement PATTERN]

Every hour of every host has one slice of the recording, spread over that hour: 60 intervals of a second with a slice of a
minute, one a minute, so as many rows as an hour of grade 60s. Which slice it is differs by host and hour, so the
hosts differ as much as the slices do. Hosts with the same slice in the same hour share files (hard links): what is
measured with them is reading and computing, while their pages come from the kernel's cache.

From an hour on, each execution of the statement takes four times as long on the last K hosts: its times are
multiplied, and its histograms moved by two octaves. The first hour is 2026-03-02 00:00 UTC.
"""
import argparse
import glob
import os
import pathlib

import duckdb

MIDNIGHT_US = 1_772_409_600_000_000
HOUR_US = 3_600_000_000
DATE = "2026-03-02"
# Tables with a row a day; the first hour has them.
DAILY = ["statement_texts", "plan_texts", "settings", "servers"]
FACTOR, BUCKETS = 4, 16

arguments = argparse.ArgumentParser()
arguments.add_argument("recording")
arguments.add_argument("root")
arguments.add_argument("--hosts", type=int, default=1000)
arguments.add_argument("--hours", type=int, default=24)
arguments.add_argument("--slice", type=int, default=60)
arguments.add_argument("--slower", type=int, default=30)
arguments.add_argument("--from", type=int, default=12, dest="from_hour")
arguments.add_argument("--statement", default="UPDATE pgbench_accounts%")
given = arguments.parse_args()

database = duckdb.connect()
database.sql("set timezone = 'UTC'")


def files(table):
    return f"{given.recording}/{table}/**/*.parquet"


def one(sql):
    return database.sql(sql).fetchone()


tables = sorted(
    path.name
    for path in pathlib.Path(given.recording).iterdir()
    if glob.glob(files(path.name), recursive=True)
)
begin_us, end_us = one(f"select epoch_us(min(time)), epoch_us(max(time)) from read_parquet('{files('frames')}')")
slices = (end_us - begin_us) // (given.slice * 1_000_000)
if slices < 1:
    raise SystemExit(f"{given.recording}: shorter than a slice of {given.slice} s; see --slice")
slow = one(
    f"""select list(distinct queryid) from read_parquet('{files('statement_texts')}')
        where text ilike '{given.statement}'"""
)[0]
if given.slower and not slow:
    raise SystemExit(f"{given.recording}: has no statement like {given.statement}; see --statement")


def moved(table, number, hour):
    """The rows of a slice, in an hour."""
    first = begin_us + number * given.slice * 1_000_000
    spread = HOUR_US // (given.slice * 1_000_000)
    begin = MIDNIGHT_US + hour * HOUR_US
    known = {name: kind for name, kind, *_ in database.sql(f"describe from read_parquet('{files(table)}')").fetchall()}
    times = [
        f"make_timestamptz((epoch_us({name}) - {first}) * {spread} + {begin}) as {name}"
        for name, kind in known.items()
        if kind.startswith("TIMESTAMP")
    ]
    frame = [f"frame + {hour} * 1000000 as frame"]
    inside = f"epoch_us(time) > {first} and epoch_us(time) <= {first + given.slice * 1_000_000}"
    where = "" if table in DAILY else f"where {inside}"
    if table in DAILY:
        times = [f"make_timestamptz({MIDNIGHT_US + 1_000_000}) as time"]
    return f"""select * exclude (host, date) replace ({', '.join(times + frame)})
               from read_parquet('{files(table)}', hive_partitioning = true) {where}"""


def slower(sql):
    """The same rows, with the statement's executions slower."""
    is_slow = f"queryid in ({', '.join(str(id) for id in slow)})"
    scaled = lambda name, factor: f"case when {is_slow} then {name} * {factor} else {name} end as {name}"
    return f"""select * replace (
        {', '.join(scaled(name, FACTOR) for name in ['exec_ns', 'exec_min_ns', 'exec_max_ns'])},
        {scaled('exec_squares', FACTOR * FACTOR)},
        case when {is_slow} then list_transform(buckets, lambda b: b + {BUCKETS}) else buckets end as buckets)
        from ({sql})"""


parts = pathlib.Path(given.root) / "parts"
parts.mkdir(parents=True)
made = {}


def part(table, number, hour, is_slow):
    """The file of a slice in an hour; None: it has no rows."""
    key = (table, 0 if table in DAILY else number, hour, is_slow)
    if key not in made:
        sql = moved(table, number, hour)
        path = parts / f"{table}-{number}-{hour}-{is_slow}.parquet"
        (rows,) = database.execute(
            f"copy ({slower(sql) if is_slow else sql}) to '{path}' (format parquet, compression zstd)"
        ).fetchone()
        made[key] = path if rows else None
    return made[key]


for host in range(given.hosts):
    name = f"host-{host:04}"
    for table in tables:
        folder = pathlib.Path(given.root) / "v1" / table / "cluster=made" / f"host={name}" / f"date={DATE}"
        for hour in range(given.hours):
            if table in DAILY and hour:
                continue
            is_slow = table == "statements" and host >= given.hosts - given.slower and hour >= given.from_hour
            path = part(table, (host * 7 + hour * 3) % slices, hour, is_slow)
            if path:
                folder.mkdir(parents=True, exist_ok=True)
                os.link(path, folder / f"{hour:02}0001-60s.parquet")
