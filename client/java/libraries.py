#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Checks the agent's call points against releases of the driver and of pools, and writes the table of docs/java-libraries.md.

    make agent && client/java/libraries.py        # writes the table
    client/java/libraries.py --check              # fails if the table differs

Maven fetches the jars into target/libraries. Releases that the repository does not serve are left out of the table, and named.
The classes are not run: org.pgtally.agent.LibraryCheck inserts the agent's code into them.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
JARS = HERE / "target/libraries"
AGENT = HERE / "target/pgtally-agent.jar"
PAGE = HERE.parent.parent / "docs/java-libraries.md"
BEGIN, END = "<!-- libraries.py -->", "<!-- end -->"

LIBRARIES = [
    ("pgjdbc", "org.postgresql:postgresql",
     "42.2.5 42.2.14 42.2.29 42.3.0 42.3.10 42.4.0 42.4.5 42.5.0 42.5.6 42.6.0 42.6.2 42.7.0 42.7.3 42.7.7 42.7.14"),
    ("HikariCP", "com.zaxxer:HikariCP", "3.4.5 4.0.3 5.0.1 5.1.0 6.0.0 6.3.3 7.0.2 7.1.0"),
    ("DBCP 2", "org.apache.commons:commons-dbcp2", "2.5.0 2.9.0 2.12.0 2.13.0"),
    ("Tomcat's pool", "org.apache.tomcat:tomcat-jdbc", "9.0.98 10.1.34 11.0.27"),
    ("Agroal", "io.agroal:agroal-pool", "1.16 2.0 2.5"),
    ("c3p0", "com.mchange:c3p0", "0.9.5.5 0.10.2 0.11.2"),
]

# What a class that is instrumented cannot be read without.
NEEDED = [("org.apache.commons:commons-pool2", "2.12.0")]


def fetch(artifact, version):
    """The jar, or None if it is not served."""
    jar = JARS / f"{artifact.split(':')[1]}-{version}.jar"
    if not jar.exists():
        subprocess.run(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                        f"-Dartifact={artifact}:{version}", f"-DoutputDirectory={JARS}"],
                       cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return jar if jar.exists() else None


def check(jars):
    """By jar: number of points that fit, and what is left out. And whether all classes would be instrumented."""
    path = ":".join(str(jar) for jar in [AGENT, *(fetch(*needed) for needed in NEEDED)] if jar)
    run = subprocess.run(["java", "-cp", path, "org.pgtally.agent.LibraryCheck", *jars], stdout=subprocess.PIPE,
                         text=True, check=False)
    found = (line.split("\t") for line in run.stdout.splitlines())
    return {name: (fits, left_out or "-") for name, fits, left_out in found}, run.returncode == 0


def main():
    JARS.mkdir(parents=True, exist_ok=True)
    served = []
    for name, artifact, versions in LIBRARIES:
        for version in versions.split():
            jar = fetch(artifact, version)
            if jar is None:
                print(f"not served: {artifact}:{version}", file=sys.stderr)
                continue
            served.append((name, version, jar))
    found, sound = check([jar for _, _, jar in served])
    lines = ["| library | release | call points | left out |", "|---|---|---|---|"]
    for name, version, jar in served:
        fits, left_out = found[jar.name]
        lines.append(f"| {name} | {version} | {fits} | {left_out} |")
    table = "\n".join(lines)
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    filled = f"{before}{BEGIN}\n{table}\n{END}{after}"
    if "--check" in sys.argv:
        sound &= filled == text
    else:
        PAGE.write_text(filled)
    sys.exit(not sound)


main()
