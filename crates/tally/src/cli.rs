// SPDX-License-Identifier: PostgreSQL
//! The command line: one definition feeds the parser, `--help`, the man pages and the shell
//! completions.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::diff::{self, Per};
use crate::report::Edge;
use crate::serve;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

/// Where the time of a PostgreSQL server goes, exactly, on a stock server, live.
#[derive(Debug, Parser)]
#[command(name = "tally", version, max_term_width = 100, after_help = TARGET_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

impl Cli {
    /// Whether to colour what goes to standard output. `NO_COLOR` is honoured.
    pub fn use_color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stdout().is_terminal()
            }
        }
    }
}

const TARGET_HELP: &str = "\
TARGET is a segment's path (/dev/shm/pg_tally.*), a server's data directory, or a connection
string or URI. It may be left out when exactly one server with pg_tally runs on this machine.

Exit status: 0 done, 1 failed, 2 wrong usage.

Examples:
  tally demo                      a scratch server, a load and the live view
  tally enable --mode session     put pg_tally to work on the server, without a restart
  tally top                       watch it
  tally statements                the statements that take most time
  tally events --follow           what is notable, as it happens
  tally level locks --for 60s     look at every lightweight lock, for a minute
  tally record -o run1 -- pgbench -T 60   keep all of it while a command runs
  tally report DIR -o report.html a recording as one page
  tally serve                     the same live for the browser, and metrics for Prometheus
  tally diff A B                  what differs between two recordings
  tally cost                      what the watching costs
  tally clock                     whether the clock behind it all can be relied on
  tally study run NAME --quick    an experiment, repeated here in minutes";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show it all on a scratch server under pgbench; needs nothing but the build
    Demo(DemoArgs),
    /// Put the extension to work on a server
    Enable(EnableArgs),
    /// Take it out again and leave nothing behind
    Disable(DisableArgs),
    /// What is covered and what not, and whether the instrument is sound
    Status(StatusArgs),
    /// List the segments on this machine
    Ls(LsArgs),
    /// Watch live where the time goes
    Top(TopArgs),
    /// Which statements the time goes to, how it is distributed, and what each spends it on
    Statements(StatementsArgs),
    /// What was notable: slow operations, who kept whom waiting, checkpoints, warnings
    Events(EventsArgs),
    /// Keep all of it on disk, as Parquet files; for good, for a while, or while a command runs
    Record(RecordArgs),
    /// What a recording holds, as one page for the browser, as text or as JSON
    Report(ReportArgs),
    /// Serve the report's charts live to browsers, and metrics to Prometheus
    Serve(ServeArgs),
    /// What differs between two recordings, and what of that is more than noise
    Diff(DiffArgs),
    /// Measure what a level costs, or the statements, by toggling it on live backends
    Cost(CostArgs),
    /// Test the clocks that times are taken with: cost, resolution, steps back, skew, drift, gaps
    Clock(ClockArgs),
    /// Ask a question of a server properly: arms, a workload, an order by lot, and what chance can do
    Study(StudyArgs),
    /// Set how much is looked at, for good, for a while or now and then; or say it
    Level(LevelArgs),
    /// Time functions of the server: what they took, what can be timed, and which are
    Functions(FunctionsArgs),
    /// Print the man page, or write all of them into a folder
    #[command(hide = true)]
    Man(ManArgs),
    /// Print a shell's completions
    #[command(hide = true)]
    Completions(CompletionsArgs),
}

/// Arguments of `tally demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally demo
  tally demo --workload select --clients 16 --seconds 20
  tally demo --once > interval.txt")]
pub struct DemoArgs {
    /// How long the load runs
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = whole_seconds)]
    pub seconds: Duration,
    /// Connections of the load
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// What they do: select, tpcb, txid (one contended lock), or a pgbench script
    #[arg(long, value_name = "select|tpcb|txid|FILE", default_value = "tpcb")]
    pub workload: Workload,
    /// Print one interval as text and end; without a terminal all of them are printed
    #[arg(long)]
    pub once: bool,
    /// Write the report of it all into this file; without it, into the temporary directory
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub report: Option<PathBuf>,
}

/// Arguments of `tally enable`.
#[derive(Debug, Args)]
#[command(after_help = "\
TARGET must lead to a connection as superuser: a connection string, a data directory, or
nothing (PGHOST, PGPORT, PGUSER and PGDATABASE are honoured).

Examples:
  sudo -u postgres tally enable
  tally enable --mode shared 'host=/run/postgresql user=postgres'
  tally enable --database app 'postgresql://postgres@localhost/postgres'")]
pub struct EnableArgs {
    /// The server: a connection string or a data directory
    pub target: Option<String>,
    /// Which processes: `session`, new sessions from now on, without a restart; `shared`, all
    /// processes from the next restart on
    #[arg(long, value_enum, default_value_t = Mode::Session)]
    pub mode: Mode,
    /// How much to look at
    #[arg(long, value_enum, default_value_t = Level::Waits)]
    pub level: Level,
    /// Create the extension's SQL views in this database as well; may be repeated
    #[arg(long, value_name = "NAME")]
    pub database: Vec<String>,
}

/// How the extension is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// By session_preload_libraries: new sessions, no restart
    Session,
    /// By shared_preload_libraries: all processes, after a restart
    Shared,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing; a probe is one load and one branch
    Off,
    /// The ledger: phases, waits, commands
    Waits,
    /// And every lightweight lock: held, acquired, waited for
    Locks,
}

impl Level {
    /// As the setting and the segment call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Waits => "waits",
            Self::Locks => "locks",
        }
    }
}

impl From<Level> for segment::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Waits => Self::Waits,
            Level::Locks => Self::Locks,
        }
    }
}

/// Arguments of `tally disable`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u postgres tally disable
  tally disable 'host=/run/postgresql user=postgres'")]
pub struct DisableArgs {
    /// The server: a connection string or a data directory
    pub target: Option<String>,
}

/// Arguments of `tally status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally status
  tally status /var/lib/postgresql/15/main
  tally status --json | jq .witness.unexplained_ratio")]
pub struct StatusArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Look in this folder as well as in /dev/shm; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub directory: Vec<PathBuf>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally top
  tally top --interval 5 --view waits
  tally top --once --view lwlocks --per-second --interval 60
  tally top --once --json /var/lib/postgresql/15/main | jq '.ledger[0]'
  tally top --json --count 60 > minute.jsonl
  tally top --replay /srv/recording --from 14:30 --speed 10
  tally top --replay /srv/recording --from -1h --once --view statements

Of a recording, --once is all of it as one interval. T is a time of day (14:30), a date (2026-03-01),
both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or so long before its end (-10m).")]
pub struct TopArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Length of an interval: seconds, or with a unit (500ms, 2s, 1min); 1 s unless said otherwise
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print one interval as text and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, one line per interval (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// End after so many intervals; as text unless --json is given
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "once",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// What to show first; as text, all of it unless this says otherwise
    #[arg(long, value_enum)]
    pub view: Option<View>,
    /// With --view lwlocks: one table a lock and context, held, acquired and waited for, per second
    /// of level locks, and the commands below it
    #[arg(long, requires = "view", conflicts_with = "json")]
    pub per_second: bool,
    /// Order of the rows, by time unless said otherwise; of statements also an activity, such as
    /// IO:DataFileRead
    #[arg(long, value_name = "KEY", value_parser = SortParser)]
    pub sort: Option<Sort>,
    /// The other way round
    #[arg(long, short)]
    pub reverse: bool,
    /// Only rows that contain this text
    #[arg(long, short, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Show the idle accounts as well, and the statements nested in others
    #[arg(long)]
    pub idle: bool,
    /// Count parallel workers with their leaders
    #[arg(long)]
    pub leaders: bool,
    /// Do not compare with the kernel's own accounts (/proc/PID/schedstat)
    #[arg(long)]
    pub no_witness: bool,
    /// Play a recording that `tally record` has made, or is making, instead of watching a server;
    /// --interval puts its intervals together to this length
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "leaders", "no_witness"])]
    pub replay: Option<PathBuf>,
    /// Of a recording: from here on
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub from: Option<Edge>,
    /// Of a recording: until then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub to: Option<Edge>,
    /// Of a recording of several machines: this one
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub host: Option<String>,
    /// Play a recording so many times as fast as it was, from 0.125 to 1024; 1 unless said
    /// otherwise
    #[arg(long, value_name = "TIMES", value_parser = speed, requires = "replay")]
    pub speed: Option<f64>,
    /// Listen to the mouse: click a pane, a column (its order) or a row; key m does the same
    #[arg(long)]
    pub mouse: bool,
    /// Pass over what the key W of the full-screen view saved ($XDG_CONFIG_HOME/pgtally/top.toml)
    #[arg(long)]
    pub no_config: bool,
    /// When the full-screen view ends by itself; `tally demo` sets it to the end of its load
    #[arg(skip)]
    pub until: Option<Instant>,
}

/// A pane of the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Phases and activities
    Ledger,
    /// Waits over all phases
    Waits,
    /// Messages by kind: read and handle times
    Commands,
    /// The sessions and what each is in the middle of
    Sessions,
    /// Lightweight locks: held, acquired, waited for (level locks)
    Lwlocks,
    /// Heavyweight locks waited for, deadlock checks, spinlocks (level locks)
    Locks,
    /// Functions with a probe: calls, inclusive and exclusive time
    Functions,
    /// Statements: time, calls, how long they take and on what
    Statements,
    /// Files, commits, checkpoints, the devices below, and what was slow
    Io,
    /// All of these, one after the other
    All,
}

/// An order of rows; what a pane does not have counts as time.
#[derive(Debug, Clone, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most time first
    Time,
    /// Most often first
    #[value(name = "calls", alias = "count")]
    Count,
    /// Longest on average first
    Mean,
    /// Greatest 99th percentile first
    P99,
    /// Longest single one first
    Max,
    /// Most rows first
    Rows,
    /// Most time of the processor first
    Cpu,
    /// Most time in reads and writes first
    Io,
    /// Most waiting for heavyweight locks first
    Lock,
    /// Most waiting for lightweight locks first
    Lwlock,
    /// Most waiting for the client first
    Client,
    /// Most waiting for other processes first
    Ipc,
    /// By name
    Name,
    /// Most time in this activity first, in small letters
    #[value(skip)]
    Activity(String),
}

impl Sort {
    /// As it is said on the command line.
    pub fn name(&self) -> String {
        match (self, self.to_possible_value()) {
            (Self::Activity(name), _) => name.clone(),
            (_, value) => value.map_or_else(String::new, |value| value.get_name().to_string()),
        }
    }

    /// What is said so on the command line.
    pub fn named(text: &str) -> Result<Self, String> {
        match text.contains(':') {
            true => Ok(Self::Activity(text.to_lowercase())),
            false => Self::from_str(text, false).map_err(|_| format!("\"{text}\" is no order")),
        }
    }
}

/// One of the orders, or an activity.
#[derive(Debug, Clone, Copy)]
struct SortParser;

impl TypedValueParser for SortParser {
    type Value = Sort;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Sort, clap::Error> {
        match value.to_str() {
            Some(text) if text.contains(':') => Ok(Sort::Activity(text.to_lowercase())),
            _ => clap::builder::EnumValueParser::new().parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Sort::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// Arguments of `tally statements`.
#[derive(Debug, Args)]
#[command(after_help = "\
TIME is what the server worked for a statement, from its message to the commit: parse, bind, plan,
execute and all waits. MEAN to MAX are of executions alone, as pg_stat_statements has them.

Examples:
  sudo -u postgres tally statements
  tally statements --sort p99 --limit 5 --database shop
  tally statements --sort IO:DataFileRead --interval 10
  tally statements --id -7143523112337563914
  tally statements --json | jq '.rows[] | [.queryid, .seconds, .query]'")]
pub struct StatementsArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Order of the rows; also an activity, such as IO:DataFileRead
    #[arg(long, value_name = "KEY", default_value = "time", value_parser = SortParser)]
    pub sort: Sort,
    /// So many of them; 20 unless said otherwise, with --json all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Only those of this database
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Only those of this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Also those nested in others, as in functions
    #[arg(long)]
    pub all: bool,
    /// Everything of one statement, by its query id
    #[arg(long, value_name = "QUERYID", allow_negative_numbers = true)]
    pub id: Option<i64>,
    /// Figures of an interval of this length instead of those since the last reset: seconds, or
    /// with a unit (500ms, 2s, 1min)
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally events`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u postgres tally events
  tally events --follow
  tally events -f --last 0 --kind slow,blocked
  tally events --since 10min --pid 4711
  tally events --json | jq -r 'select(.kind == \"slow\") | .text'")]
pub struct EventsArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Go on with what comes, until interrupted; also across restarts of the server
    #[arg(long, short)]
    pub follow: bool,
    /// Only those after the event of this number (--json tells it), or of this last time (10min, 90s)
    #[arg(long, value_name = "NUMBER|TIME", conflicts_with = "last")]
    pub since: Option<Since>,
    /// Only the last N of those there are; with --follow, before those that come
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,
    /// Only of these kinds
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub kind: Vec<EventKind>,
    /// Only of this process; may be repeated
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Vec<i32>,
    /// Print JSON, one line per event (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally record`.
#[derive(Debug, Args)]
#[command(after_help = "\
The directory may be new, empty, or hold a recording of the same server, which is then gone on
with. It can be read while it grows: by `tally report`, and by pandas, DuckDB or Spark, which
need nothing of ours (docs/reference-recording.md).

Exit status: 0 done, 1 failed, 2 wrong usage; with a COMMAND, that of the command.

Examples:
  tally record -o /var/lib/pgtally/main --retention 30d
  tally record -o run1 --duration 10min /var/lib/postgresql/15/main
  tally record -o run1 -- pgbench -c 8 -T 60 bench
  tally record -o light --duty 60s/300s")]
pub struct RecordArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// The directory to record into
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = recorded_interval)]
    pub interval: Duration,
    /// How often histograms, statements and what the kernel says are kept
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = recorded_interval)]
    pub detail: Duration,
    /// End after this time; without it, at an interrupt or with the command
    #[arg(long, value_name = "TIME", value_parser = recorded_length)]
    pub duration: Option<Duration>,
    /// Let go what is older; without it nothing goes
    #[arg(long, value_name = "TIME", value_parser = retention)]
    pub retention: Option<Duration>,
    /// Switch the level on for the first of every second time, and off for the rest
    #[arg(long, value_name = "ON/EVERY")]
    pub duty: Option<Duty>,
    /// Print what was recorded as JSON at the end (docs/reference-json.md)
    #[arg(long, conflicts_with = "command")]
    pub json: bool,
    /// Record while this command runs; its output is kept as well, and its exit status is ours
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// A part of each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duty {
    /// So long of it ...
    pub on: Duration,
    /// ... of so long.
    pub every: Duration,
}

impl std::str::FromStr for Duty {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (on, every) = text.split_once('/').ok_or("two times are needed, as in 60s/300s")?;
        let second = Duration::from_secs(1);
        let day = Duration::from_secs(86_400);
        let duty = Self { on: within(on, second, day)?, every: within(every, second, day)? };
        if duty.on >= duty.every {
            return Err("the first time must be less than the second".into());
        }
        Ok(duty)
    }
}

/// Where events begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// After this one.
    Number(u64),
    /// So long ago.
    Ago(Duration),
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) => duration(text).map(Self::Ago),
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventKind {
    /// Information
    Note,
    /// Something was left out or lost
    Warning,
    /// One process kept another waiting for long
    Blocked,
    /// An operation that took long
    Slow,
    /// A checkpoint begins or ends
    Checkpoint,
}

impl From<EventKind> for segment::EventKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Note => Self::Note,
            EventKind::Warning => Self::Warning,
            EventKind::Blocked => Self::Blocked,
            EventKind::Slow => Self::Slow,
            EventKind::Checkpoint => Self::Checkpoint,
        }
    }
}

/// Arguments of `tally report`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR is what `tally record -o DIR` has written, or is writing. T is a time of day (14:30), a date
(2026-03-01), both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or so long before
the recording's end (-10m). A page holds everything that it needs and can be sent as it is.

Examples:
  tally report /srv/recording
  tally report /srv/recording -o report.html
  tally report /srv/recording --from -1h -o last-hour.html
  tally cost --json /srv/data >cost.json; tally report /srv/recording --cost cost.json
  tally report /srv/recording --from 14:30 --to 14:45 --json | jq .totals")]
pub struct ReportArgs {
    /// The recording's directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Tell of the time from here on
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub from: Option<Edge>,
    /// Tell of the time until then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub to: Option<Edge>,
    /// Of a recording of several machines, tell of this one
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Tell the cost that `tally cost --json` has measured, rather than one that is reckoned
    #[arg(long, value_name = "FILE")]
    pub cost: Option<PathBuf>,
    /// Write it into this file: a page, unless --text or --json is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print text, as without -o
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
The page shows the last minutes, which are kept in memory; /metrics has everything since the
segment was made (docs/reference-metrics.md). Nothing can be changed by what is served.

Whoever can reach the address could read the server's statements, so a token is asked for: a random
one, in the line that says how to open the page, or the one in --token-file, which stays the same.
Scrapers send it as \"Authorization: Bearer TOKEN\". A socket (unix:PATH) is its owner's alone and
needs none. Only this machine can reach it, unless --listen names another address; then
--token-file is needed.

Examples:
  tally serve
  tally serve --listen 127.0.0.1:0 --history 30min /var/lib/postgresql/15/main
  tally serve --statements 20
  openssl rand -hex 32 >token; chmod 600 token; tally serve --listen 0.0.0.0:9188 --token-file token
  tally serve --listen unix:/run/pgtally.sock")]
pub struct ServeArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// The address to listen on, or unix:PATH; port 0: one that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9188")]
    pub listen: serve::Place,
    /// Let in who knows the token in this file, instead of one made at random
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Ask for no token: any user of this machine can read the page and the metrics
    #[arg(long, conflicts_with = "token_file")]
    pub no_token: bool,
    /// Length of an interval
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = served_interval)]
    pub interval: Duration,
    /// How long intervals are kept for the page, at least
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = served_history)]
    pub history: Duration,
    /// Tell of so many statements by name in the metrics, and of all others together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub statements: Option<u32>,
    /// Print where it is served as JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
A and B are recordings (`tally record -o DIR`), or parts of them: DIR@FROM..TO, where FROM and TO are
as for `tally report` and either may be left out. What differs by more than the recordings' own
noise is told apart from what does not.

Examples:
  tally diff before after
  tally diff before after -o diff.html
  tally diff recording@14:00..14:30 recording@15:00..15:30
  tally diff before after --per command --json | jq '.accounts[0]'")]
pub struct DiffArgs {
    /// What B is compared with
    #[arg(value_name = "A", value_parser = diff::Place::parse)]
    pub a: diff::Place,
    /// What is compared
    #[arg(value_name = "B", value_parser = diff::Place::parse)]
    pub b: diff::Place,
    /// Count time by these; without it by commits where there are enough of them, else by commands
    #[arg(long, value_enum)]
    pub per: Option<Per>,
    /// Of recordings of several machines, compare this one
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// The same of B alone
    #[arg(long, value_name = "NAME")]
    pub host_b: Option<String>,
    /// Write it into this file: a page, unless --text or --json is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print text, as without -o
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without TARGET a scratch server is made and loaded by pgbench. With TARGET that server is
toggled under its own load, and CPU is counted per command handled; this needs the
right to write its segment (the server's user or root).

Examples:
  tally cost
  tally cost --workload select --minutes 10 --margin 0.3
  tally cost --level locks --margin 1.5
  tally cost --of statements --workload distinct
  tally cost --workload misses --set pg_tally.statements=none
  tally cost --minutes 5 /var/lib/postgresql/15/main")]
pub struct CostArgs {
    /// Measure this server under its own load: a segment, data directory or connection string
    pub target: Option<String>,
    /// What is toggled: the level, or the statements alone while the level stays
    #[arg(long, value_enum, default_value_t = CostOf::Level)]
    pub of: CostOf,
    /// The level whose cost is asked, or at which that of the statements is
    #[arg(long, value_enum, default_value_t = Level::Waits)]
    pub level: Level,
    /// How long to measure, placebo included
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = minutes)]
    pub minutes: f64,
    /// What the scratch server's clients do: select, tpcb, txid (one contended lock), distinct
    /// (5,000 statements at random), evicting (10,000, of which 5,000 find room), misses (select with
    /// 2 MB of buffers), or a pgbench script
    #[arg(
        long,
        value_name = "select|tpcb|txid|distinct|evicting|misses|FILE",
        default_value = "tpcb",
        conflicts_with = "target"
    )]
    pub workload: Workload,
    /// Connections of the load
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "target",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// A setting of the scratch server, the server's own or ours; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "target", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// The margin for the verdict, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.3, value_parser = percent)]
    pub margin: f64,
    /// Length of a slice; four of them make a quad, on-off-off-on or off-on-on-off
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = slice)]
    pub slice: Duration,
    /// Beginning of each slice that is not measured: the caches are still the other level's
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = discard)]
    pub discard: Duration,
    /// Seed of the random order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON (docs/cost.md)
    #[arg(long)]
    pub json: bool,
}

/// What `tally cost` toggles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostOf {
    /// The level, against off
    Level,
    /// Statements, against the same level without them
    Statements,
    /// Something outside pgtally that follows the same switch, such as bench/peers has it
    #[value(hide = true)]
    Outside,
}

impl CostOf {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Statements => "statements",
            Self::Outside => "outside",
        }
    }
}

/// Arguments of `tally study`.
#[derive(Debug, Args)]
#[command(after_help = "\
A study is a file: docs/studies.md says what it can say. Those that the command carries repeat the
experiments that asked for pgtally. They run on throw-away servers.

Examples:
  tally study list
  tally study show commit-delay
  tally study run commit-delay --quick
  tally study run ./study.toml -o results
  tally study report results")]
pub struct StudyArgs {
    /// What to do
    #[command(subcommand)]
    pub what: StudyVerb,
}

/// What can be done with studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// List the studies that the command carries
    List {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Say what a study asks, with which arms, and about how long it takes
    Show {
        /// One of `tally study list`, or a study's file
        #[arg(value_name = "NAME|FILE")]
        study: String,
        /// Print the study's file as it stands
        #[arg(long, conflicts_with = "json")]
        file: bool,
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Run one; what an interrupted run has left undone when it is given the same directory
    Run(StudyRunArgs),
    /// Make tables and page again from the cells in a directory
    Report {
        /// The directory of a run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print the results as JSON (docs/reference-json.md) instead of the tables
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `tally study run`.
#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// One of `tally study list`, or a study's file
    #[arg(value_name = "NAME|FILE")]
    pub study: String,
    /// Where its cells and results go; without it, study-NAME here
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The quick variant: minutes, and wider intervals
    #[arg(long)]
    pub quick: bool,
    /// Compare these directories instead of the study's own (again for each)
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Let arms change the kernel's clock source, which is the whole machine's; it is put back
    #[arg(long)]
    pub set_clock_source: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no server, and no right; the tested processors are busy meanwhile, one or two at a time. Where
there are many processors it takes longer than --seconds: every two are compared.

--verify makes a scratch server and measures there what was estimated; that takes some 40 s more.

Exit status: 0 fit, 1 unfit (or failed), 2 wrong usage.

Examples:
  tally clock
  tally clock --seconds 30
  tally clock --verify
  tally clock --json | jq '.sources[] | {name, cost: .loop_cost.typical_seconds}'
  taskset -c 0,1 tally clock        only these processors")]
pub struct ClockArgs {
    /// How long to test, in seconds or with a unit (500ms, 1min)
    #[arg(long, short, value_name = "TIME", default_value = "3", value_parser = interval)]
    pub seconds: Duration,
    /// Check the estimates of what timing costs against a scratch server
    #[arg(long)]
    pub verify: bool,
    /// Print JSON (docs/clock.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tally level`.
#[derive(Debug, Args)]
#[command(after_help = "\
Levels: off, nothing; waits, the ledger, the commands and the probed functions; locks, every
lightweight lock as well. All processes that have the extension follow at once.

The level lasts until it is set again, the setting pg_tally.level changes, or the server
restarts; `tally enable --level` puts it into the server's configuration. Setting it needs the
right to write the segment: the server's user or root.

With --for it goes back by itself, also when this command is interrupted; from level locks also
when it is killed, since the server's processes then end it. With --every as well it is set again
and again until this command is interrupted: partial instrumentation. Rates are shown per second of
the time in which the level was in force.

Examples:
  tally level
  sudo -u postgres tally level locks --for 60s
  sudo -u postgres tally level locks --for 60s --every 300s /var/lib/postgresql/15/main")]
pub struct LevelArgs {
    /// off, waits or locks; without it, the level in force is printed
    #[arg(value_name = "LEVEL")]
    pub level: Option<String>,
    /// The segment, data directory or connection string
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Go back to the former level after so long: seconds, or with a unit (500ms, 2min)
    #[arg(long = "for", value_name = "TIME", value_parser = interval)]
    pub length: Option<Duration>,
    /// And set it again each time that so much has passed
    #[arg(long, value_name = "TIME", requires = "length", value_parser = period)]
    pub every: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long, conflicts_with = "length")]
    pub json: bool,
}

/// Arguments of `tally functions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Any exported function of the server and of the libraries that it has loaded can be timed, if its
first instructions can be moved. --list and --set connect to the server; --set needs a superuser.

Examples:
  tally functions --list 'SimpleLru*'
  tally functions --set 'XLogFlush, SimpleLruReadPage*, heap_insert'
  tally functions --interval 10
  tally functions --tree
  tally functions --set ''")]
pub struct FunctionsArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Which functions can be timed, and why others cannot: a name, or a glob with * and ?
    #[arg(long, value_name = "GLOB", group = "what")]
    pub list: Option<String>,
    /// Time these from now on, names and globs separated by commas; none when empty
    #[arg(long, value_name = "LIST", group = "what")]
    pub set: Option<String>,
    /// Who calls whom, in one interval (needs pg_tally.function_edges = on)
    #[arg(long, group = "what")]
    pub tree: bool,
    /// Length of the interval: seconds, or with a unit (500ms, 2s, 1min)
    #[arg(long, short, value_name = "TIME", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// A load for pgbench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// pgbench's select-only
    Select,
    /// pgbench's TPC-B-like transaction
    TpcB,
    /// Nothing but the assignment of transaction ids, which all want the same lock for
    Txid,
    /// 5,000 distinct statements at random, which all find room
    Distinct,
    /// 10,000, of which 5,000 do
    Evicting,
    /// The select-only one, with next to no buffers: the kernel has the table
    Misses,
    /// A script of the user's
    File(PathBuf),
}

impl Workload {
    /// As it was written on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::Select => "select".into(),
            Self::TpcB => "tpcb".into(),
            Self::Txid => "txid".into(),
            Self::Distinct => "distinct".into(),
            Self::Evicting => "evicting".into(),
            Self::Misses => "misses".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// For how many statements there is to be room, where that is part of the workload.
    pub fn max_statements(&self) -> Option<u32> {
        match self {
            Self::Distinct => Some(6_000),
            Self::Evicting => Some(5_000),
            _ => None,
        }
    }
}

impl std::str::FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "select" => Ok(Self::Select),
            "tpcb" => Ok(Self::TpcB),
            "txid" => Ok(Self::Txid),
            "distinct" => Ok(Self::Distinct),
            "evicting" => Ok(Self::Evicting),
            "misses" => Ok(Self::Misses),
            file if std::path::Path::new(file).is_file() => Ok(Self::File(file.into())),
            _ => Err("none of select, tpcb, txid, distinct, evicting, misses, nor a readable file"
                .into()),
        }
    }
}

impl From<&Workload> for scratch::Load {
    fn from(workload: &Workload) -> Self {
        match workload {
            Workload::Select | Workload::Misses => Self::Select,
            Workload::TpcB => Self::TpcB,
            Workload::Txid => Self::Script("select txid_current();\n".into()),
            Workload::Distinct => Self::Distinct { hundreds: 50 },
            Workload::Evicting => Self::Distinct { hundreds: 100 },
            Workload::File(path) => Self::File(path.clone()),
        }
    }
}

/// Arguments of `tally man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write tally.1 and one page per verb into this folder
    pub folder: Option<PathBuf>,
}

/// Arguments of `tally completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For this shell
    pub shell: clap_complete::Shell,
}

/// A time as written on a command line: a number with ms, s, min (or m), h or d; seconds without.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        unit => return Err(format!("\"{unit}\" is not a unit; use ms, s, min, h or d")),
    };
    let number: f64 = digits.parse().map_err(|_| "not a number with a unit, as in 500ms")?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| "not a length of time".into())
}

fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let value = duration(text)?;
    if value < least || value > most {
        return Err(format!("must be from {least:?} to {most:?}"));
    }
    Ok(value)
}

fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3600))
}

fn recorded_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(600))
}

fn recorded_length(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3650 * 86_400))
}

fn retention(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(3600), Duration::from_secs(3650 * 86_400))
}

fn served_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(60))
}

fn served_history(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(60), Duration::from_secs(3600))
}

fn period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(86_400))
}

fn slice(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), Duration::from_secs(10))
}

fn discard(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, Duration::from_secs(10))
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}

fn positive(text: &str, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= most => Ok(number),
        _ => Err(format!("must be a number above 0 and up to {most}")),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speeds = crate::top::SPEEDS;
    match text.parse::<f64>() {
        Ok(times) if speeds.contains(&times) => Ok(times),
        _ => Err(format!("must be from {} to {}", speeds.start(), speeds.end())),
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    positive(text, 1440.0)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("not of the form NAME=VALUE".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    positive(text, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn rows_are_ordered_by_figures_and_by_activities() {
        let sort = |text: &str| {
            let cli = Cli::try_parse_from(["tally", "statements", "--sort", text]);
            cli.ok().map(|cli| match cli.verb {
                Verb::Statements(args) => args.sort,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(sort("p99"), Some(Sort::P99));
        assert_eq!(sort("calls"), Some(Sort::Count));
        assert_eq!(sort("count"), Some(Sort::Count));
        assert_eq!(sort("IO:WALSync"), Some(Sort::Activity("io:walsync".into())));
        assert_eq!(sort("nonsense"), None);
    }

    #[test]
    fn events_begin_after_a_number_or_some_time_ago() {
        let since = |text: &str| text.parse::<Since>();
        assert_eq!(since("42"), Ok(Since::Number(42)));
        assert_eq!(since("10min"), Ok(Since::Ago(Duration::from_secs(600))));
        for bad in ["", "-1", "soon", "10weeks"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_is_read_with_and_without_a_unit() {
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("3min"), Ok(Duration::from_secs(180)));
        for bad in ["", "ms", "-1", "1 s", "2weeks", "nan", "inf", "1e30h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
