// SPDX-License-Identifier: PostgreSQL
//! What the dashboards show.

/// A dashboard.
#[derive(Debug)]
pub struct Board {
    /// Its file's name, and with a prefix its identity in Grafana.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its charts, left to right and top down.
    pub panels: Vec<Panel>,
}

/// A chart.
#[derive(Debug)]
pub struct Panel {
    /// Its heading.
    pub title: &'static str,
    /// What it shows and how to read it.
    pub help: &'static str,
    /// Grafana's name of the unit.
    pub unit: &'static str,
    /// How it is drawn.
    pub form: Form,
    /// Expressions, and the names of their lines.
    pub lines: Vec<(String, &'static str)>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Half a row wide.
    Lines,
    /// The same, of lines that add up to something.
    Stacked,
    /// A row wide, of lines that add up.
    WholeRow,
}

impl Form {
    /// Of the 24 columns of a dashboard, how many it takes.
    pub fn width(self) -> u64 {
        if self == Form::WholeRow {
            24
        } else {
            12
        }
    }
}

/// A metric of the selected instances; `labels`: further conditions.
fn of(metric: &str, labels: &str) -> String {
    let and = if labels.is_empty() { "" } else { "," };
    format!("{metric}{{instance=~\"$instance\"{and}{labels}}}")
}

/// The sum of a metric by these labels.
fn sums(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) ({})", of(metric, labels))
}

/// The sum of its rates.
fn rates(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) (rate({}[$__rate_interval]))", of(metric, labels))
}

/// The sum of its increases in ten minutes.
fn increases(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) (increase({}[10m]))", of(metric, labels))
}

/// A quantile of a histogram.
fn quantile(p: f64, by: &str, metric: &str) -> String {
    let and = if by.is_empty() { "" } else { ", " };
    let buckets = rates(&format!("{by}{and}le"), &format!("{metric}_bucket"), "");
    format!("histogram_quantile({p}, {buckets})")
}

/// The highest ones.
fn top(n: u32, query: String) -> String {
    format!("topk({n}, {query})")
}

/// One divided by another that it is a part of.
fn share(part: &str, whole: &str) -> String {
    format!("{part} / {whole}")
}

/// One divided by another that may be 0.
fn ratio(sum: &str, count: &str) -> String {
    format!("{sum} / ({count} > 0)")
}

/// @ title, unit, form: help; query => name of its lines; ...
macro_rules! panels {
    ($(@ $title:literal, $unit:literal, $form:ident: $help:literal; $($query:expr => $line:literal;)*)*) => {
        vec![$(Panel {
            title: $title,
            help: $help,
            unit: $unit,
            form: Form::$form,
            lines: vec![$(($query, $line)),*],
        }),*]
    };
}

/// All dashboards.
pub fn all() -> [Board; 4] {
    [
        Board {
            name: "pgtally-overview",
            title: "pgtally: all servers",
            panels: panels! {
                @ "Average active sessions", "short", Lines:
                    "Sessions and background processes that were not idle, on average. More than the CPUs for long means \
                     that they wait for something; the server's dashboard says for what.";
                    rates("instance", "pgtally_time_seconds_total", "class!=\"idle\"") => "{{instance}}";
                    of("pgtally_processors", "") => "{{instance}} CPUs";

                @ "Share of active time on CPU", "percentunit", Lines:
                    "The rest was spent waiting. A share that falls while the load grows points to a bottleneck outside \
                     the CPU.";
                    share(
                        &rates("instance", "pgtally_time_seconds_total", "class=\"cpu\""),
                        &rates("instance", "pgtally_time_seconds_total", "class!=\"idle\""),
                    ) => "{{instance}}";

                @ "Commands", "ops", Lines:
                    "Commands of clients that the server handled, of all kinds.";
                    rates("instance", "pgtally_command_seconds_count", "") => "{{instance}}";

                @ "Commands: 99th percentile", "s", Lines:
                    "99 % of the commands ended within this time. Bounds of the buckets are 1, 2 and 5 times powers of \
                     ten.";
                    quantile(0.99, "instance", "pgtally_command_seconds") => "{{instance}}";

                @ "Commits that wrote WAL", "ops", Lines:
                    "Commits, those of the server's own processes included.";
                    rates("instance", "pgtally_commits_total", "") => "{{instance}}";

                @ "Sessions", "short", Lines:
                    "Client sessions by what they do now.";
                    sums("instance, state", "pgtally_sessions", "process=\"client backend\"") => "{{instance}} {{state}}";

                @ "Measured at all", "short", Lines:
                    "1: the server's segment can be read. 0: it is stopped, or pg_tally is not loaded.";
                    of("pgtally_up", "") => "{{instance}}";

                @ "Not measured: full tables", "short", Lines:
                    "What did not fit into a table of the segment, per second. Anything but 0 is missing from the \
                     figures; `tally status` names the setting to raise.";
                    rates("instance, what", "pgtally_overflow_total", "") => "{{instance}} {{what}}";
            },
        },
        Board {
            name: "pgtally-server",
            title: "pgtally: one server",
            panels: panels! {
                @ "Where the time goes", "short", WholeRow:
                    "Average active sessions by class. The lines add up to all time of all processes that was not idle.";
                    rates("class", "pgtally_time_seconds_total", "class!=\"idle\"") => "{{class}}";

                @ "Largest activities", "short", Lines:
                    "Average active sessions by activity: cpu, or the wait event.";
                    top(10, rates("activity", "pgtally_time_seconds_total", "class!=\"idle\"")) => "{{activity}}";

                @ "Phases", "short", Lines:
                    "Average active sessions by what they do for the client: parse, bind, execute, simple query.";
                    top(10, rates("phase", "pgtally_time_seconds_total", "class!=\"idle\"")) => "{{phase}}";

                @ "Commands by kind", "ops", Lines:
                    "Messages of the protocol that clients sent.";
                    rates("command", "pgtally_command_seconds_count", "") => "{{command}}";

                @ "Time of commands", "s", Lines:
                    "From a command's arrival until the server awaits the next one.";
                    quantile(0.5, "", "pgtally_command_seconds") => "median";
                    quantile(0.95, "", "pgtally_command_seconds") => "95 %";
                    quantile(0.99, "", "pgtally_command_seconds") => "99 %";

                @ "Waits: 99th percentile", "s", Lines:
                    "The ten wait events with the longest waits. How much time they take in all is shown above.";
                    top(10, quantile(0.99, "activity", "pgtally_wait_seconds")) => "{{activity}}";

                @ "Time on files", "short", Lines:
                    "Operations in progress on average, by kind of file and operation.";
                    top(10, rates("file, operation", "pgtally_file_seconds_sum", "")) => "{{file}} {{operation}}";

                @ "Bytes to and from files", "Bps", Lines:
                    "Bytes that operations on files transferred; the operating system may have them in its cache.";
                    rates("file, operation", "pgtally_file_bytes_total", "") => "{{file}} {{operation}}";

                @ "Operations on files: 99th percentile", "s", Lines:
                    "99 % of the operations ended within this time.";
                    top(10, quantile(0.99, "file, operation", "pgtally_file_seconds")) => "{{file}} {{operation}}";

                @ "Processes", "short", Stacked:
                    "Processes that exist, by kind and state.";
                    sums("process, state", "pgtally_sessions", "") => "{{process}} {{state}}";

                @ "Sessions that ended", "ops", Lines:
                    "A high rate means that clients connect for each piece of work; a pool would save the server their \
                     start.";
                    rates("instance", "pgtally_sessions_ended_total", "") => "{{instance}}";
            },
        },
        Board {
            name: "pgtally-statements",
            title: "pgtally: statements",
            panels: panels! {
                @ "Time by statement", "short", WholeRow:
                    "Average active sessions by statement, whole messages with parse, plan, execution and commit. Needs \
                     `tally serve --statements N`; `tally statements --id` shows the text.";
                    top(15, rates("queryid, database", "pgtally_statement_seconds_total", "")) => "{{database}} {{queryid}}";

                @ "Calls", "ops", Lines:
                    "Executions that ended without an error.";
                    top(15, rates("queryid, database", "pgtally_statement_calls_total", "")) => "{{database}} {{queryid}}";

                @ "Mean time of a call", "s", Lines:
                    "The time above divided by the calls.";
                    top(15, ratio(
                        &rates("queryid, database", "pgtally_statement_seconds_total", ""),
                        &rates("queryid, database", "pgtally_statement_calls_total", ""),
                    )) => "{{database}} {{queryid}}";

                @ "Rows", "ops", Lines:
                    "Rows returned or changed, per second.";
                    top(15, rates("queryid, database", "pgtally_statement_rows_total", "")) => "{{database}} {{queryid}}";

                @ "Failures", "ops", Lines:
                    "Executions that ended by an error or were cancelled.";
                    top(15, rates("queryid, database", "pgtally_statement_failures_total", "")) => "{{database}} {{queryid}}";
            },
        },
        Board {
            name: "pgtally-checkpoints",
            title: "pgtally: checkpoints, WAL and commits",
            panels: panels! {
                @ "Checkpoints", "short", Lines:
                    "Checkpoints that ended in the last ten minutes. Many of them are forced by the WAL: raise \
                     max_wal_size.";
                    increases("instance", "pgtally_checkpoint_seconds_count", "part=\"total\"") => "{{instance}}";

                @ "Time of a checkpoint", "s", Lines:
                    "Mean of the checkpoints of the last ten minutes, and of their two parts.";
                    ratio(
                        &increases("part", "pgtally_checkpoint_seconds_sum", ""),
                        &increases("part", "pgtally_checkpoint_seconds_count", ""),
                    ) => "{{part}}";

                @ "WAL", "Bps", Stacked:
                    "Bytes of WAL inserted, by kind of process.";
                    rates("process", "pgtally_wal_bytes_total", "") => "{{process}}";

                @ "Full-page images", "ops", Lines:
                    "Images of whole pages in the WAL: the first change of each page after a checkpoint. Fewer \
                     checkpoints, fewer images.";
                    rates("instance", "pgtally_wal_full_page_images_total", "") => "{{instance}}";

                @ "Commits by flush", "ops", Stacked:
                    "leader: synced the WAL itself; group_committed: covered by another's sync; asynchronous: did not \
                     wait.";
                    rates("how", "pgtally_commit_seconds_count", "") => "{{how}}";

                @ "Time of a commit: 99th percentile", "s", Lines:
                    "99 % of the commits ended within this time.";
                    quantile(0.99, "how", "pgtally_commit_seconds") => "{{how}}";

                @ "What commits wait for", "short", Stacked:
                    "Sessions within a commit on average, by what they wait for.";
                    rates("part", "pgtally_commit_part_seconds_sum", "") => "{{part}}";

                @ "WAL buffers full", "ops", Lines:
                    "Writes because no WAL buffer was free. More than a few: raise wal_buffers.";
                    rates("instance", "pgtally_wal_buffers_full_total", "") => "{{instance}}";
            },
        },
    ]
}
