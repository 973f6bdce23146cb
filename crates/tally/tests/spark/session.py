# SPDX-License-Identifier: PostgreSQL
"""Answer questions with Spark in this process: each line of standard input is a query, as a JSON string; each line of
standard output its rows, a list of objects, or an object with "error". It ends with standard input.
"""
import decimal
import json
import os
import sys

from pyspark.sql import SparkSession

# What Spark's JVM prints goes elsewhere.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def plain(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"{value!r} is no value of an answer")


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
for line in sys.stdin:
    try:
        rows = [row.asDict() for row in spark.sql(json.loads(line)).collect()]
        answer = json.dumps(rows, default=plain, allow_nan=False)
    except Exception as error:
        answer = json.dumps({"error": str(error)})
    print(answer, file=answers, flush=True)
