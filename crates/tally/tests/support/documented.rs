// SPDX-License-Identifier: PostgreSQL
//! How the commands of README and docs are tested: what stands for names and times in them, what is not run and why,
//! and which blocks are no commands. A block that is neither run nor listed here fails a test, and so does an entry
//! that no document needs any more.

/// An entry for a command or a block that begins with this text, in this document; "": in any.
#[derive(Debug)]
pub struct Entry {
    /// "README.md", "docs/trace.md", or "".
    pub document: &'static str,
    /// How it begins.
    pub begins: &'static str,
    /// Why it is not run, or what the block is.
    pub reason: &'static str,
}

const fn entry(document: &'static str, begins: &'static str, reason: &'static str) -> Entry {
    Entry { document, begins, reason }
}

impl Entry {
    /// Whether it is about a command or block that begins so.
    pub fn is_about(&self, document: &str, text: &str) -> bool {
        (self.document.is_empty() || self.document == document) && text.starts_with(self.begins)
    }
}

const BUILDS: &str = "builds, installs or packages the project: continuous integration does so";
const SYSTEM: &str = "changes the machine's packages or services";
const ELSEWHERE: &str = "needs another machine";
const CLICKHOUSE: &str =
    "needs a ClickHouse server, which no registry at hand has: `fleet_server::` has a stand-in";
const CARGO: &str =
    "measures for minutes, and cargo would wait for the build directory of the running test";
const JAVA: &str =
    "needs a Java application: the tests `methods::`, `calls::` and `client_trace::` run the same";

/// Commands that are not run. Those of `tally` are parsed in any case.
pub const NOT_RUN: &[Entry] = &[
    entry("", "make", BUILDS),
    entry("", "sudo make", BUILDS),
    entry("", "sudo apt", SYSTEM),
    entry("", "sudo systemctl", SYSTEM),
    entry("", "scp", ELSEWHERE),
    entry("", "ssh", ELSEWHERE),
    entry(
        "docs/measurements.md",
        "",
        "measures for minutes or hours, and prints what the page says",
    ),
    entry("docs/any-server.md", "cargo test", CARGO),
    entry(
        "docs/java-libraries.md",
        "java",
        "needs a driver's jar: a test of `calls::` checks two drivers and a pool",
    ),
    entry(
        "docs/java-libraries.md",
        "PGPASSWORD=... client/java/orms.py",
        "fetches five mappers, and runs for minutes",
    ),
    entry(
        "docs/clock.md",
        "tally clock --verify",
        "its exit status depends on what else the machine does: the test `clock::` allows for that",
    ),
    entry("docs/fleet.md", "tally fleet ask p99 --engine http", CLICKHOUSE),
    entry("docs/fleet.md", "tally fleet ask load --engine http", CLICKHOUSE),
    entry("docs/java.md", "java", JAVA),
    entry("docs/java.md", "tally", JAVA),
    entry("docs/java.md", "sudo tally", JAVA),
    entry(
        "docs/reference-recording.md",
        "pandas",
        "an expression of Python: the test `recorded::` uses it",
    ),
];

/// Blocks that are neither commands nor samples of what commands print.
pub const NOT_COMMANDS: &[Entry] = &[
    entry("docs/cost.md", "the level ", "a picture"),
    entry("docs/fleet.md", "ROOT/v1/", "a path's form"),
    entry("docs/fleet.md", "ALTER TABLE tally_minute", "a statement for ClickHouse"),
    entry("docs/java.md", "The client (shop.jar) held", "a sentence of a report"),
    entry(
        "docs/measurements.md",
        "script/peers",
        "half an hour, with extensions that are not installed",
    ),
    entry("docs/measurements.md", "script/size", "counts the source by part"),
    entry("docs/mcp.md", "{", "a configuration of a client"),
    entry("docs/opentelemetry.md", "receivers:", "a configuration of OpenTelemetry's Collector"),
    entry("docs/opentelemetry.md", "# a systemd unit", "a service's files"),
    entry("docs/production.md", "# deployment", "a file of --alert-silence"),
    entry("docs/production.md", "; pgbouncer.ini", "a configuration of PgBouncer"),
    entry(
        "docs/production.md",
        "# patronictl edit-config",
        "a configuration of Patroni: script/test-clusters takes it from there",
    ),
    entry("docs/production.md", "volumes:", "a configuration of Kubernetes"),
    entry("docs/production.md", "extension_control_path", "settings for an image volume"),
    entry("docs/reference-metrics.md", "scrape_configs:", "a configuration of Prometheus"),
    entry("docs/reference-recording.md", "DIR/recording.json", "files of a recording"),
    entry("docs/reference-recording.md", "v1/<table>", "files in object storage"),
    entry("docs/shipping.md", "[Service]", "a service's file"),
    entry("docs/storage.md", "write failed:", "a line of `tally events`"),
    entry("docs/storage.md", "sync: 7.012", "a line of `tally events`"),
    entry("docs/storage-studies.md", "name = \"copy\"", "a study: lab's tests read it"),
    entry("docs/studies.md", "name = \"commit-delay\"", "a study: lab's tests read it"),
    entry("docs/studies.md", "X(n) = ", "a formula"),
    entry("docs/trace.md", "select ... /*traceparent", "a comment's form"),
];

/// Replacements for names and times in the documents: in the commands of a document ("": of any), the first text becomes the
/// second.
/// In the second, {data}, {host}, {port} and so on stand for those of the test's server.
pub const INSTEAD: &[(&str, &str, &str)] = &[
    // In the background, instead of another terminal; and its segment is there once it has called libpq.
    ("docs/libpq.md", "/usr/local/lib/pgtally/libtally_pq.so", "{pq}"),
    ("docs/libpq.md", "-T 60 shop", "-T 900 shop > bench.out 2>&1 &"),
    ("docs/libpq.md", "tally methods    ", "until tally methods $! 2> error; do sleep 0.1; done "),
    // Durations that are too long for a test, and a study of the reader's instead of a long one.
    ("", "tally cost --for 5min ", "tally cost --for 6s --slice 50ms "),
    ("docs/cost.md", "tally cost --workload", "tally cost --for 6s --slice 50ms --workload"),
    ("docs/compare.md", "tally cost --workload", "tally cost --for 6s --slice 50ms --workload"),
    ("docs/compare.md", "tally cost --level", "tally cost --for 6s --slice 50ms --level"),
    ("docs/cost.md", "tally cost --of", "tally cost --for 6s --slice 50ms --of"),
    ("", "tally cost    ", "tally cost --for 6s --slice 50ms"),
    ("docs/cost.md", "--for 10min ", ""),
    ("", "run commit-delay", "run study.toml -o commit-delay"),
    ("docs/storage-studies.md", "run storage-victim --quick", "run storage.toml -o quick --quick"),
    ("docs/storage-studies.md", "run storage-victim --for 4h", "run storage.toml --for 6s"),
    ("docs/storage-studies.md", "/mnt/array", "{box}"),
    ("", "tally doctor --for 1min", "tally doctor"),
    ("", "tally doctor", "tally doctor --for 1s"),
    ("", "--for 1min", "--for 1s"),
    ("", "--for 10min", "--for 1s"),
    ("", "--interval 10", "--interval 1"),
    ("", "--interval 60", "--interval 1"),
    ("", "--count 60", "--count 2"),
    ("", "--for 60s --every 300s", "--for 1s --every 5s"),
    ("", "--for 60s", "--for 1s"),
    ("", "--for 10s", "--for 1s"),
    ("", "--for 30s", "--for 1s"),
    ("", "-T 300", "-T 1"),
    ("", "-T 60", "-T 1"),
    ("", "--duty 60s/300s", "--duty 1s/5s"),
    ("", "tally profile -o", "tally profile --for 3s -o"),
    ("docs/profile.md", "sudo tally profile     ", "sudo tally profile --for 1s"),
    ("docs/profile.md", "--system", "--system --for 1s"),
    // Places.
    ("", "/tmp/", "{box}/"),
    ("", "/srv/recording", "{box}/recording"),
    ("", "/var/lib/pgtally", "{box}/pgtally"),
    ("", "/var/lib/postgresql/15/main", "{data}"),
    ("docs/first-look.md", "--since 14:30 ", "--since -1h "),
    ("docs/first-look.md", "--since 14:03:07", "--since -1h"),
    ("docs/compare.md", "--since 14:30 --until 14:45", "--since -1h"),
    ("docs/compare.md", "recording@14:00..14:30", "before@-10min.."),
    ("docs/compare.md", "recording@15:00..15:30", "after@-10min.."),
    ("docs/trace.md", "DIR", "{box}/recording"),
    // Studies that take seconds.
    ("docs/studies.md", "my/study.toml -o DIR", "./study.toml -o results"),
    ("docs/studies.md", "report DIR", "report results"),
    ("docs/storage-studies.md", "my/storage.toml -o DIR", "./storage.toml -o results"),
    ("docs/storage-studies.md", "report DIR", "report results"),
    // A directory is addressed as a bucket is.
    ("docs/shipping.md", "s3://bucket", "file://{box}/bucket"),
    ("docs/shipping.md", "--host db1 ", ""),
    // Credentials and certificates.
    ("docs/any-server.md", "aws rds generate-db-auth-token", "echo token"),
    ("docs/any-server.md", " sslmode=verify-full sslrootcert=global-bundle.pem", ""),
    ("docs/remote.md", "@db1/postgres?sslmode=verify-full", "@/postgres?host={host}"),
    (
        "docs/production.md",
        "tally serve --tls-cert",
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=db1 -days 1 -keyout server.key \
         -out server.crt 2> openssl.out; tally serve --tls-cert",
    ),
    // Servers, sessions and statements.
    ("", "-h db1", "-h {host}"),
    ("", "host=db1", "host={host}"),
    ("", "26258", "{pid}"),
    ("docs/trace.md", "PID", "{pid}"),
    ("docs/find-a-slow-server.md", "--pid 4711", "--pid {pid}"),
    ("docs/trace.md", "--statement -4711", "--statement {statement}"),
    ("docs/statements.md", "-7143523112337563914", "{statement}"),
    ("docs/fleet.md", "tally fleet sql QUERY", "tally fleet sql load"),
    // A port that is free.
    ("docs/production.md", "9188", "{free}"),
    (
        "docs/production.md",
        "tally serve --token-file token   ",
        "tally serve --token-file token --listen 127.0.0.1:{free}",
    ),
    ("docs/production.md", "tally serve --alert", "tally serve --listen 127.0.0.1:{free} --alert"),
    (
        "docs/production.md",
        "postgres tally serve",
        "postgres tally serve --listen 127.0.0.1:{free}",
    ),
    ("docs/opentelemetry.md", "4318       ", "4318 --listen 127.0.0.1:{free}"),
    ("docs/opentelemetry.md", "--statements 20", "--statements 20 --listen 127.0.0.1:{free}"),
    // Names that a synopsis leaves open, where they are only parsed.
    ("docs/fleet.md", "QUERY", "load"),
    ("docs/fleet.md", "ENGINE", "duckdb"),
    ("docs/fleet.md", "ROOT", "{fleet}"),
    (
        "docs/fleet.md",
        "[--since TIME] [--until TIME] [--cluster NAME] [--host NAME]",
        "--since -1h --until -1min --cluster a --host b",
    ),
    ("docs/fleet.md", "--since 14:00 --against 12:00..13:00", "--since -1h --against -3h..-2h"),
    // A directory as a bucket, and a file as a server.
    ("docs/fleet.md", "s3://bucket/fleet", "{fleet}"),
    ("docs/fleet.md", "/srv/fleet", "{fleet}"),
    ("docs/fleet.md", "| clickhouse client --multiquery", "> statements.sql"),
    ("docs/fleet.md", "tally serve", "tally serve --listen 127.0.0.1:{free}"),
    ("docs/reference-recording.md", "DIR", "{box}/recording"),
    ("docs/fleet.md", "[--since -15min] [--interval 30s]", "--since -15min --interval 30s"),
    ("docs/fleet.md", "[--since -1h] [--interval 1min]", "--since -1h --interval 1min"),
];

/// The command with the replacements for names and times.
pub fn instead(document: &str, command: &str) -> String {
    INSTEAD
        .iter()
        .filter(|(of, ..)| of.is_empty() || *of == document)
        .fold(command.to_string(), |text, (_, from, to)| text.replace(from, to))
}

/// A command that runs until it is interrupted: how to recognize it, what it prints first, and the keys that end it.
#[derive(Debug)]
pub struct Live {
    has: &'static str,
    unless: &'static [&'static str],
    /// What it prints first; "": it may print nothing, so it is enough that the terminal runs it.
    pub prints: &'static str,
    /// The keys that end it.
    pub keys: &'static str,
}

const INTERRUPT: &str = "\x03";

const LIVE: &[Live] = &[
    Live { has: "tally top --view ledger", unless: &["--once"], prints: "ACTIVITY", keys: "q" },
    Live {
        has: "tally top",
        unless: &["--once", "--json", "--count"],
        prints: "Diagnoses",
        keys: "q",
    },
    Live { has: "tally fleet top", unless: &[], prints: "Hosts", keys: "q" },
    Live { has: "tally events --follow", unless: &[], prints: "", keys: INTERRUPT },
    Live { has: "tally events -f", unless: &[], prints: "", keys: INTERRUPT },
    Live { has: "tally blocking --watch", unless: &[], prints: ":", keys: INTERRUPT },
    Live { has: "tally serve", unless: &["none"], prints: "Press Ctrl-C", keys: INTERRUPT },
    Live { has: "tally serve", unless: &[], prints: "", keys: INTERRUPT },
    Live {
        has: "tally record",
        unless: &["--for", " -- "],
        prints: " 1 intervals",
        keys: INTERRUPT,
    },
    Live { has: "--every", unless: &[], prints: "until interrupted", keys: INTERRUPT },
    Live { has: "tally trace", unless: &["--for"], prints: "", keys: INTERRUPT },
];

/// How to end the command; `None`: it ends by itself.
pub fn live(command: &str) -> Option<&'static Live> {
    let has = |live: &&Live| {
        command.contains(live.has) && !live.unless.iter().any(|word| command.contains(word))
    };
    LIVE.iter().find(has)
}

/// Words in the headings of samples that are only shown where some row has a value there.
pub const SHOWN_IF_ANY: &[&str] =
    &["%HIT", "%CPU", "%IO", "%LOCK", "%LWLOCK", "QUERY", "FOR", "ON,", "%"];

/// What the first command of a document requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// A server that could load pg_tally, but does not.
    Fresh,
    /// One with pg_tally in all processes, without the extension's views.
    Preloaded,
    /// The same with the views in database postgres.
    Enabled,
}

/// Documents that need something other than a server with pg_tally and its views.
pub const BEFORE: &[(&str, Before, &[&str])] = &[
    ("README.md", Before::Fresh, &[]),
    ("docs/install.md", Before::Fresh, &[]),
    ("docs/any-server.md", Before::Fresh, &[]),
    ("docs/remote.md", Before::Preloaded, &[]),
    ("docs/reference-sql.md", Before::Preloaded, &[]),
    (
        "docs/first-look.md",
        Before::Enabled,
        &["tally record -o {box}/recording --for 2s --interval 200ms"],
    ),
    (
        "docs/fleet.md",
        Before::Enabled,
        &[
            "tally record -o {box}/recording --for 1s",
            "tally ship --cluster shop {box}/recording file://{fleet}",
        ],
    ),
    ("docs/reference-recording.md", Before::Enabled, &["tally record -o {box}/recording --for 1s"]),
    ("docs/shipping.md", Before::Enabled, &["tally record -o {box}/recording --for 1s"]),
    ("docs/trace.md", Before::Enabled, &["tally record -o {box}/recording --for 1s"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_command_follows_from_its_options() {
        let keys = |command| live(command).map(|live| (live.prints, live.keys));
        assert_eq!(keys("tally top --view io"), Some(("Diagnoses", "q")));
        assert_eq!(keys("tally top --once"), None);
        assert_eq!(keys("tally serve --listen none"), Some(("", INTERRUPT)));
        assert_eq!(keys("tally record -o x -- pgbench"), None);
    }
}
