#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Measures what libraries add to a connection: `pgbench -C -S` makes one connection and one select per transaction, in turns on
scratch servers that differ by their libraries alone. Prints, for each, the server's CPU time per connection and the rate, as
ratios to a server without a library, with the half-width of their 95 % interval; "none again" is the control.

    python3 bench/peers/connections.py [ROUNDS [SECONDS [LIBRARY...]]]

8 rounds of 4 s by default, with all libraries; the machine must be idle.

PG_CONFIG names pg_config. Libraries that the server does not have are left out. As root, the servers run as postgres."""
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

ARMS = {
    "none": "",
    "none again": "",
    "pg_tally, shared mode": "shared_preload_libraries = '{tally}'",
    "pg_tally, session mode, settings not in the files": "session_preload_libraries = '{tally}'",
    "pg_tally, session mode, as tally enable sets it":
        "session_preload_libraries = '{tally}'\npg_tally.level = waits\npg_tally.functions = ''",
    "an empty library, session mode": "session_preload_libraries = '{empty}'",
    "one with pg_tally's imports alone, session mode": "session_preload_libraries = '{imports}'",
    "pg_stat_statements": "shared_preload_libraries = 'pg_stat_statements'",
    "pg_stat_kcache": "shared_preload_libraries = 'pg_stat_statements, pg_stat_kcache'",
    "pg_stat_monitor": "shared_preload_libraries = 'pg_stat_monitor'",
    "auto_explain": "shared_preload_libraries = 'auto_explain'\nauto_explain.log_min_duration = '1h'",
    "pg_wait_sampling": "shared_preload_libraries = 'pg_wait_sampling'",
}
HERE = os.path.dirname(os.path.abspath(__file__))


class Server:
    """A server with the settings of an arm."""

    def __init__(self, folder, number, settings):
        self.data, self.folder, self.port = f"{folder}/data{number}", folder, str(6400 + number)
        run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "--no-sync")
        with open(self.data + "/postgresql.conf", "a") as conf:
            conf.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nport = {self.port}\n"
                       f"fsync = off\nshared_buffers = '64MB'\n{settings}\n")
        run("pg_ctl", "-w", "-D", self.data, "-l", self.data + "/log", "start")
        run("pgbench", "-h", folder, "-p", self.port, "-U", "postgres", "-i", "-q", "postgres")

    def cpu(self):
        """CPU time of the postmaster and of all ended processes, seconds."""
        with open(self.data + "/postmaster.pid") as file:
            pid = file.readline().strip()
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def measure(self, seconds):
        """CPU time per connection, seconds, and connections per second."""
        before = self.cpu()
        out = run("pgbench", "-h", self.folder, "-p", self.port, "-U", "postgres", "-C", "-S", "-n", "-c", "2", "-T",
                  str(seconds), "postgres")
        lines = out.splitlines()
        count = int(next(line for line in lines if "actually processed" in line).split(":")[1].split("/")[0])
        rate = float(next(line for line in lines if line.startswith("tps")).split()[2])
        return (self.cpu() - before) / count, rate

    def stop(self):
        run("pg_ctl", "-w", "-D", self.data, "-m", "fast", "stop")
        # That of session mode outlives the server.
        if os.path.exists(self.segment()):
            os.unlink(self.segment())

    def segment(self):
        """The path of pg_tally's segment."""
        status = os.stat(self.data)
        return f"/dev/shm/pg_tally.{status.st_dev:x}.{status.st_ino:x}"


def run(program, *arguments):
    """Runs a program of the server; as root, as postgres."""
    command = [f"{BIN}/{program}", *arguments]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"connections.py: {program} failed: {done.stderr.strip()}")
    return done.stdout


def compile_library(folder, name, imports):
    """A library that does nothing, and refers to these symbols."""
    table = "".join(f'"\\t.quad {symbol}\\n"\n' for symbol in imports)
    with open(f"{folder}/{name}.c", "w") as file:
        file.write('#include "postgres.h"\n#include "fmgr.h"\nPG_MODULE_MAGIC;\n')
        file.write(f'__asm__(".section .data.rel.ro,\\"aw\\"\\n"\n{table}".previous\\n");\n')
    headers = subprocess.run([PG_CONFIG, "--includedir-server"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-Wl,-z,now", "-I" + headers, "-o", f"{folder}/{name}.so",
                    f"{folder}/{name}.c"], check=True)
    os.chmod(f"{folder}/{name}.so", 0o755)


def imports_of(library):
    """The symbols that a library takes from others."""
    out = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in out.splitlines()]
    return [words[1].split("@")[0] for words in symbols if words[0] == "U"]


def ratio(values, base):
    """The mean ratio of pairs and its half-width, as text."""
    logs = [math.log(a / b) for a, b in zip(values, base)]
    mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    # Student's t for 95 %, with the degrees of freedom of 3 to 30 rounds.
    t = {2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20}.get(len(logs) - 1, 2.1)
    return f"{math.exp(mean):6.3f} ± {math.exp(mean) * t * error:.3f}"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    if rounds < 3:
        sys.exit("connections.py: at least 3 rounds are needed")
    wanted = sys.argv[3:]
    for word in wanted:
        if not any(name.startswith(word) for name in ARMS):
            sys.exit(f"connections.py: no library begins with '{word}': {', '.join(ARMS)}")
    folder = tempfile.mkdtemp(prefix="connections.")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    shutil.copy(f"{HERE}/../../pg_tally/pg_tally.so", folder)
    os.chmod(f"{folder}/pg_tally.so", 0o755)
    compile_library(folder, "empty", [])
    compile_library(folder, "imports", imports_of(f"{folder}/pg_tally.so"))
    servers = {}
    try:
        for number, (name, settings) in enumerate(ARMS.items()):
            if wanted and not any(name.startswith(word) for word in ["none", *wanted]):
                continue
            if name.startswith("pg_stat") or name.startswith("pg_wait") or name == "auto_explain":
                if not os.path.exists(f"{LIBRARIES}/{name}.so"):
                    print(f"left out: {name}, which is not installed")
                    continue
            servers[name] = Server(folder, number,
                settings.format(tally=f"{folder}/pg_tally", empty=f"{folder}/empty", imports=f"{folder}/imports"))
            # A library under another name would be loaded, and measure nothing.
            if name.startswith("pg_tally") and not os.path.exists(servers[name].segment()):
                sys.exit(f"connections.py: pg_tally is not active with: {settings}")
        found = {name: [] for name in servers}
        for _ in range(rounds):
            for name in random.sample(list(servers), len(servers)):
                found[name].append(servers[name].measure(seconds))
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder)
    cpu = {name: [value[0] for value in values] for name, values in found.items()}
    rate = {name: [value[1] for value in values] for name, values in found.items()}
    print(f"none: {statistics.median(cpu['none']) * 1e6:.0f} us of CPU per connection, {statistics.median(rate['none']):.0f}/s")
    for name in list(servers)[1:]:
        print(f"{name:52} CPU {ratio(cpu[name], cpu['none'])}   rate {ratio(rate[name], rate['none'])}")


PG_CONFIG = os.environ.get("PG_CONFIG", "pg_config")
BIN = subprocess.run([PG_CONFIG, "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
LIBRARIES = subprocess.run([PG_CONFIG, "--pkglibdir"], capture_output=True, text=True, check=True).stdout.strip()

if __name__ == "__main__":
    main()
