#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Whether the agent names repeated statements (N+1) of programs with object-relational mappers, and no others; writes the tables of
docs/java-libraries.md.

    make agent; PGPASSWORD=... client/java/orms.py jdbc:postgresql://127.0.0.1:5432/postgres postgres          # writes the tables
    PGPASSWORD=... client/java/orms.py URL USER hibernate mybatis                                              # only prints these

The programs in client/java/orms know what each of their cases is, "bad" or "good", because they are made so. Maven fetches the libraries
into target/orms. After each case, `tally calls --json` says which statements were executed repeatedly since the one before. The server
needs no pg_tally; tables and sequences of the programs are created in its database.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = HERE / "target/orms"
AGENT = HERE / "target/pgtally-agent.jar"
TALLY = ROOT / "target/debug/tally"
PAGE = ROOT / "docs/java-libraries.md"
BEGIN, END = "<!-- orms.py -->", "<!-- end of orms.py -->"

DRIVER = "org.postgresql:postgresql:42.7.14"
POOL = "com.zaxxer:HikariCP:7.1.0"
LOG = "org.slf4j:slf4j-nop:2.0.17"
JPA = ["Entities", "PersistenceCases"]
ECLIPSELINK = "org.eclipse.persistence:org.eclipse.persistence.jpa:4.0.9"
# More executions in one transaction or borrow are reported (Wire.MANY).
MANY = 10
# Name with version, program and its further arguments, further sources, libraries.
MAPPERS = {
    "hibernate": ("Hibernate 7.4.15", ["HibernateProgram"], JPA, ["org.hibernate.orm:hibernate-core:7.4.15.Final"]),
    "eclipselink": ("EclipseLink 4.0.9", ["EclipseLinkProgram", "Transactional"], JPA, [ECLIPSELINK]),
    "eclipselink-exclusive": ("EclipseLink 4.0.9, exclusive connections", ["EclipseLinkProgram", "Always"], JPA, [ECLIPSELINK]),
    "mybatis": ("MyBatis 3.5.19", ["MyBatisProgram"], [], ["org.mybatis:mybatis:3.5.19"]),
    "jooq": ("jOOQ 3.19.39", ["JooqProgram"], [], ["org.jooq:jooq:3.19.39"]),
    "spring": ("Spring Data JPA 4.1.2", ["SpringDataProgram"], JPA,
               ["org.springframework.data:spring-data-jpa:4.1.2", "org.hibernate.orm:hibernate-core:7.4.15.Final"]),
}

# What a case is: statements are repeated in one transaction or borrow; each execution has a borrow of its own, as that of an
# independent request; or they are not repeated.
REPEATED, APART, NONE = "repeated", "repeated, each in a borrow of its own", "not repeated"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>org.pgtally</groupId>
<artifactId>orms</artifactId><version>1</version><packaging>pom</packaging><dependencies>{}</dependencies></project>
"""


def libraries(name, coordinates):
    """The folder with these libraries and what they need; None if they are not served."""
    folder = BUILT / name
    if (folder / "complete").exists():
        return folder / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    fields = (one.split(":") for one in coordinates)
    dependencies = "".join(f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
                           "</dependency>" for group, artifact, version in fields)
    (folder / "pom.xml").write_text(POM.format(dependencies))
    run = subprocess.run(["mvn", "-q", "-B", "-f", folder / "pom.xml",
                          "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
                          f"-DoutputDirectory={folder / 'lib'}", "-DincludeScope=runtime"], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode != 0:
        print(run.stdout[-2000:], file=sys.stderr)
        return None
    (folder / "complete").touch()
    return folder / "lib"


def repeated(segment):
    """By text: in how many transactions or borrows it was executed repeatedly."""
    out = subprocess.run([TALLY, "calls", "--json", segment], stdout=subprocess.PIPE, check=True).stdout
    return {call["text"]: call["repeated"] for call in json.loads(out)["calls"] if call["repeated"] > 0}


def cases(name, arguments):
    """The cases of a program: kind, borrows, name, and the texts that were named. None if it cannot be built."""
    _, (program, *further), sources, coordinates = MAPPERS[name]
    lib = libraries(name, [DRIVER, POOL, LOG, *coordinates])
    if lib is None:
        return None
    classes = BUILT / name / "classes"
    files = [HERE / f"orms/{source}.java" for source in ["Harness", program, *sources]]
    subprocess.run(["javac", "-parameters", "-d", classes, "-cp", f"{lib}/*", *files], check=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        segment = f"{folder}/segment"
        child = subprocess.Popen(["java", f"-javaagent:{AGENT}=file={segment},threads=32", "-cp", f"{classes}:{HERE / 'orms'}:{lib}/*",
                                  program, *arguments, *further], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        found, before = [], {}
        for line in child.stdout:
            if line.startswith("case "):
                _, kind, borrows, case = line.rstrip("\n").split(" ", 3)
                now = repeated(segment)
                found.append((kind, int(borrows), case, [text for text, count in now.items() if count > before.get(text, 0)]))
                before = now
                child.stdin.write("\n")
                child.stdin.flush()
        if child.wait() != 0:
            raise SystemExit(f"{program} failed")
    return found


def fill(table):
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")


def main():
    arguments, names = sys.argv[1:3], sys.argv[3:]
    if len(arguments) < 2 or "PGPASSWORD" not in os.environ:
        raise SystemExit(__doc__)
    columns = " | ".join(f"{truth} | named" for truth in (REPEATED, APART, NONE))
    lines = [f"| mapper | {columns} |", "|---|" + "---|" * 6]
    sums = {}
    for name in names or MAPPERS:
        found = cases(name, arguments)
        if found is None:
            print(f"not served: {MAPPERS[name][0]}", file=sys.stderr)
            continue
        counts = {(truth, named): 0 for truth in (REPEATED, APART, NONE) for named in (True, False)}
        for kind, borrows, case, texts in found:
            truth = NONE if kind == "good" else APART if borrows > MANY else REPEATED
            counts[truth, bool(texts)] += 1
            print(f"{name}, {case}, {truth}: named {texts}", file=sys.stderr)
        cells = (f"{counts[truth, True] + counts[truth, False]} | {counts[truth, True]}" for truth in (REPEATED, APART, NONE))
        lines.append(f"| {MAPPERS[name][0]} | {' | '.join(cells)} |")
        sums = {key: sums.get(key, 0) + count for key, count in counts.items()}
    right, false, missed = sums[REPEATED, True], sums[NONE, True], sums[REPEATED, False]
    share = "\n".join([*lines, "", f"Precision {right} of {right + false}, recall {right} of {right + missed} in a transaction or"
                       f" borrow, and {sums[APART, True]} of {sums[APART, True] + sums[APART, False]} of the others."])
    print(share)
    if not names:
        fill(share)
    sys.exit(bool(false or missed))


main()
