# SPDX-License-Identifier: PostgreSQL
"""Run the statements of standard input in a session of chdb, and print what each returns, with a line "--" after it.

    session.py FOLDER FORMAT

FOLDER has the tables; an empty name: they end with the session.
"""
import sys

from chdb import session

folder, form = sys.argv[1:]
here = session.Session(folder) if folder else session.Session()
for statement in sys.stdin.read().split(";"):
    if statement.strip():
        print(here.query(statement, form))
        print("--")
