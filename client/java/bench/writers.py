#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""The cost of an event in a segment by ways in which Java could write it (docs/adr/0110-the-segment-of-a-java-client-is-written-in-java.md).

    make agent; python3 client/java/bench/writers.py /usr/lib/jvm/java-17-openjdk-amd64 /usr/lib/jvm/temurin-25-jdk-amd64

Arguments: homes of JDKs. For each, a round starts a virtual machine for each way; they add blocks of events, one block at a time in an
order that is drawn anew for each turn. Prints the median CPU time of an event over the rounds, its range, and what the virtual machine
printed on standard error.
"""
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
AGENT = HERE.parent / "target/pgtally-agent.jar"
ROUNDS, WARM, TURNS, BLOCK = 5, 5, 9, 2_000_000

# Name, argument of Writers, properties, the oldest version of Java.
WAYS = [
    ("nothing", "nothing", [], 11),
    ("byte buffers", "buffers", [], 11),
    ("byte buffers, again", "buffers", [], 11),
    ("JNI and libtally", "Native", [], 11),
    ("foreign memory", "Foreign", [], 22),
    ("foreign call of libtally", "Called", [], 22),
    ("the same, critical", "Called", ["-Dcritical=true"], 22),
]


class Program:
    """A virtual machine that writes in one way."""

    def __init__(self, home, classes, library, way, properties):
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.errors = tempfile.TemporaryFile("w+")
        command = [home / "bin/java", "-cp", f"{classes}:{AGENT}", f"-Dlibrary={library}", *properties, "Writers", way,
                   f"{self.folder.name}/segment"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def block(self):
        """CPU time of an event, ns."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline()) / BLOCK

    def end(self):
        """What it printed on standard error."""
        self.child.stdin.close()
        self.child.wait()
        self.folder.cleanup()
        self.errors.seek(0)
        return self.errors.read().strip()


def build(home, version, folder):
    sources = ["Writers", "Native"] + (["Called", "Foreign"] if version >= 22 else [])
    subprocess.run([home / "bin/javac", "-d", folder, "-cp", AGENT, *(HERE / f"writers/{name}.java" for name in sources)], check=True)
    library = Path(folder) / "libwriters.so"
    tally = ROOT / "libtally"
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o", library,
                    f"-I{tally}/include", f"-I{tally}/src", f"-I{home}/include", f"-I{home}/include/linux",
                    HERE / "writers/writers.c", *sorted((tally / "src").glob("*.c")), "-pthread"], check=True)
    return library


def compare(home):
    text = subprocess.run([home / "bin/java", "-version"], stderr=subprocess.PIPE, text=True, check=True).stderr
    version = int(text.split('"')[1].split(".")[0].split("-")[0])
    found, said = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        library = build(home, version, folder)
        ways = [way for way in WAYS if version >= way[3]]
        for _ in range(ROUNDS):
            programs = {name: Program(home, folder, library, way, properties)
                        for name, way, properties, _ in random.sample(ways, len(ways))}
            order = list(programs)
            times = {name: [] for name in order}
            for turn in range(WARM + TURNS):
                random.shuffle(order)
                for name in order:
                    time = programs[name].block()
                    if turn >= WARM:
                        times[name].append(time)
            for name, program in programs.items():
                said[name] = program.end()
                found.setdefault(name, []).append(statistics.median(times[name]))
    for name, *_ in ways:
        all_of = found[name]
        print(f"Java {version}, {name:26} {statistics.median(all_of):6.2f} ns ({min(all_of):.2f} .. {max(all_of):.2f})  "
              f"{len(said[name].splitlines())} lines on standard error", flush=True)
        for line in said[name].splitlines()[:4]:
            print(f"    {line}")


for jdk in sys.argv[1:]:
    compare(Path(jdk))
