#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""The cost of the Java agent for an application: CPU time of its thread for statements with one row, and with 100 rows of two values.

    make agent; PGPASSWORD=... python3 client/java/bench/statements.py jdbc:postgresql://127.0.0.1:5432/postgres postgres 40

A round starts a virtual machine for each arm: without the agent, without it again as the control, and with its options. They execute
blocks of statements, one block at a time in an order that is drawn anew for each turn, so that disturbances of the machine affect all of
them. Prints the median CPU time of a statement, and how much more it is than without the agent: the geometric mean and half-width (95 %)
over the rounds, because each virtual machine has compiled its code in its own way. It is compared with both virtual machines without the
agent, except the control, which is compared with the other one. Further arguments NAME=[JAR@]OPTIONS are more arms, such as
all=methods=driver-all. PGTALLY_ROUNDS=FILE appends each round's medians to a file, as JSON.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "target"
ARMS = {
    "no agent": None,
    "no agent, again": None,
    "as by default": "cpu=off",
    "methods=none.None": "methods=none.None",
}
# Rows of a statement, and statements of a block.
LOADS = {1: 500, 100: 100}
# Turns until the virtual machine has compiled all of it with its last compiler, which are not measured: after a tenth of them, a
# statement takes several times as long.
WARM = 300
TURNS = 12
# Student's t for 95 %, by the number of rounds; for more rounds, the next smaller number's.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26, 15: 2.14, 20: 2.09, 30: 2.05, 60: 2.00}


class Program:
    """A virtual machine that executes statements."""

    def __init__(self, options, arguments):
        command = ["java"]
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        if options is not None:
            jar, _, options = options.rpartition("@")
            command.append(f"-javaagent:{jar or TARGET / 'pgtally-agent.jar'}=file={self.folder.name}/segment,threads=16,{options}")
        command += ["-cp", f"{TARGET}/test-classes:{TARGET}/lib/*", "org.pgtally.test.CallCost", *arguments]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def block(self, rows):
        """CPU time of a statement, us."""
        self.child.stdin.write(f"{rows} {LOADS[rows]}\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline()) / LOADS[rows] / 1e3

    def end(self):
        self.child.stdin.close()
        self.child.wait()
        self.folder.cleanup()


def run_round(arms, arguments):
    """The median of each arm and load, us."""
    programs = {name: Program(arms[name], arguments) for name in random.sample(list(arms), len(arms))}
    blocks = {(name, rows): [] for name in arms for rows in LOADS}
    try:
        order = list(arms)
        for turn in range(WARM + TURNS):
            random.shuffle(order)
            for name in order:
                for rows in LOADS:
                    time = programs[name].block(rows)
                    if turn >= WARM:
                        blocks[name, rows].append(time)
    finally:
        for program in programs.values():
            program.end()
    medians = {key: statistics.median(times) for key, times in blocks.items()}
    if "PGTALLY_ROUNDS" in os.environ:
        with open(os.environ["PGTALLY_ROUNDS"], "a", encoding="utf-8") as out:
            json.dump([[name, rows, median] for (name, rows), median in medians.items()], out)
            out.write("\n")
    return medians


def main():
    url, user, rounds, *more = sys.argv[1:]
    if int(rounds) < 2:
        sys.exit("statements.py: without a second round, there is no half-width; give at least 2")
    arms = ARMS | dict(arm.split("=", 1) for arm in more)
    found = [run_round(arms, [url, user]) for _ in range(int(rounds))]
    for rows in LOADS:
        for name in arms:
            more = [math.log(one[name, rows] / without(one, name, rows)) for one in found]
            half = STUDENT[max(n for n in STUDENT if n <= len(more))] * statistics.stdev(more) / math.sqrt(len(more))
            mean = statistics.mean(more)
            median = statistics.median(one[name, rows] for one in found)
            print(f"{rows:3} rows, {name:20} {median:8.2f} us {percent(mean):+7.1f} % ± {percent(mean + half) - percent(mean):.1f}", flush=True)


def without(one, name, rows):
    """What an arm's time of a round is compared with."""
    plain = [one[arm, rows] for arm in ("no agent", "no agent, again")]
    return plain[0] if name.startswith("no agent") else math.sqrt(plain[0] * plain[1])


def percent(log):
    return 100 * (math.exp(log) - 1)


main()
