# SPDX-License-Identifier: PostgreSQL
"""Read a recording as anybody would, without pgtally, and print sums as JSON.

By DuckDB: sums by process, name and kind, and joins. By pandas: the same sums.
"""
import glob
import json
import sys

import duckdb
import pandas

directory = sys.argv[1]


def files(table):
    return f"{directory}/{table}/**/*.parquet"


def rows(sql):
    return duckdb.sql(sql).fetchall()


def rows_of(table, sql):
    """The same of a table that may not be there."""
    return rows(sql) if glob.glob(files(table), recursive=True) else [[None, None]]


statistics = rows(
    f"""select process, name, kind, unit, sum("count")::bigint, sum(total)::bigint,
               sum(bytes)::bigint, sum(follows)::bigint
        from read_parquet('{files("statistics")}', hive_partitioning = true)
        group by all order by all"""
)
frames = rows(
    f"""select count(*), sum(interval_ns)::bigint, sum(wall_ns)::bigint, sum(busy_ns)::bigint,
               sum(commands)::bigint, count(distinct frame), min(time)::varchar
        from read_parquet('{files("frames")}', hive_partitioning = true)"""
)
joined = rows(
    f"""select count(*) from read_parquet('{files("statistics")}') s
        join read_parquet('{files("frames")}') f using (frame, time)"""
)
# Values in a histogram, bucket by bucket, without tally's own commands, which no figure of a frame includes.
values = rows(
    f"""select sum(list_sum(counts))::bigint
        from read_parquet('{files("histograms")}') where name like 'command::%::handle'
            and process <> 'client backend (tally)'"""
)
statements = rows_of(
    "statements",
    f"""select sum(calls)::bigint, sum(exec_ns)::bigint
        from read_parquet('{files("statements")}')"""
)
relations = rows_of(
    "relations",
    f"""select sum(reads + writes + extends + syncs + truncates)::bigint,
               sum(read_bytes + written_bytes + extend_bytes)::bigint
        from read_parquet('{files("relations")}')"""
)

frame = pandas.read_parquet(f"{directory}/statistics")
by_pandas = (
    frame.groupby(["process", "name", "kind", "unit"], observed=True)[
        ["count", "total", "bytes", "follows"]
    ]
    .sum()
    .reset_index()
    .sort_values(["process", "name", "kind", "unit"])
)

print(
    json.dumps(
        {
            "statistics": statistics,
            "frames": frames[0],
            "joined": joined[0][0],
            "values": values[0][0],
            "statements": statements[0],
            "relations": relations[0],
            "pandas": [
                [str(v) if i < 4 else int(v) for i, v in enumerate(row)]
                for row in by_pandas.itertuples(index=False)
            ],
            "hosts": sorted(frame["host"].astype(str).unique().tolist()),
        }
    )
)
