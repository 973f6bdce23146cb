// SPDX-License-Identifier: PostgreSQL
//! The contents of the dashboards.

/// A dashboard.
#[derive(Debug)]
pub struct Board {
    /// Name of its file; with a prefix, also its identity in Grafana.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its charts, from left to right and top to bottom.
    pub panels: Vec<Panel>,
}

/// A chart.
#[derive(Debug)]
pub struct Panel {
    /// Its heading.
    pub title: &'static str,
    /// What it shows and how to read it.
    pub help: &'static str,
    /// Grafana's name for the unit.
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
    /// Half a row wide, with lines that add up to something.
    Stacked,
    /// A full row wide, with lines that add up.
    WholeRow,
}

impl Form {
    /// Its width in the 24 columns of a dashboard.
    pub fn width(self) -> u64 {
        if self == Form::WholeRow {
            24
        } else {
            12
        }
    }
}

/// A metric of the selected instances; `labels` are additional conditions.
fn of_selected(metric: &str, labels: &str) -> String {
    let and = if labels.is_empty() { "" } else { "," };
    format!("{metric}{{instance=~\"$instance\"{and}{labels}}}")
}

/// The sum of a metric by these labels.
fn sums(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) ({})", of_selected(metric, labels))
}

/// The sum of its rates.
fn rates(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) (rate({}[$__rate_interval]))", of_selected(metric, labels))
}

/// How a gauge has changed in a day.
fn day(metric: &str, labels: &str) -> String {
    format!("delta({}[1d])", of_selected(metric, labels))
}

/// The sum of its increases in ten minutes.
fn increases(by: &str, metric: &str, labels: &str) -> String {
    format!("sum by ({by}) (increase({}[10m]))", of_selected(metric, labels))
}

/// A quantile of a histogram.
fn quantile(p: f64, by: &str, metric: &str) -> String {
    let and = if by.is_empty() { "" } else { ", " };
    let buckets = rates(&format!("{by}{and}le"), &format!("{metric}_bucket"), "");
    format!("histogram_quantile({p}, {buckets})")
}

/// The `n` highest series.
fn top(n: u32, query: String) -> String {
    format!("topk({n}, {query})")
}

/// A part divided by its whole.
fn share(part: &str, whole: &str) -> String {
    format!("{part} / {whole}")
}

/// One sum divided by another that may be 0.
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
pub fn all() -> [Board; 5] {
    [
        Board {
            name: "pgtally-overview",
            title: "pgtally: all servers",
            panels: panels! {
                @ "Average active sessions", "short", Lines:
                    "Sessions and background processes that were not idle, on average. If they exceed the CPUs for long, \
                     they wait for something; the server's dashboard shows for what.";
                    rates("instance", "pgtally_time_seconds_total", "class!=\"idle\"") => "{{instance}}";
                    of_selected("pgtally_processors", "") => "{{instance}} CPUs";

                @ "Share of active time on CPU", "percentunit", Lines:
                    "The rest was spent waiting. If the share falls while the load grows, the bottleneck is not \
                     the CPU.";
                    share(
                        &rates("instance", "pgtally_time_seconds_total", "class=\"cpu\""),
                        &rates("instance", "pgtally_time_seconds_total", "class!=\"idle\""),
                    ) => "{{instance}}";

                @ "Commands", "ops", Lines:
                    "Client commands that the server handled, of all kinds.";
                    rates("instance", "pgtally_command_seconds_count", "") => "{{instance}}";

                @ "Commands: 99th percentile", "s", Lines:
                    "99 % of the commands ended within this time. The bounds of the buckets are 1, 2 and 5 times powers of \
                     ten.";
                    quantile(0.99, "instance", "pgtally_command_seconds") => "{{instance}}";

                @ "Commits that wrote WAL", "ops", Lines:
                    "Commits, including those of the server's own processes.";
                    rates("instance", "pgtally_commits_total", "") => "{{instance}}";

                @ "Sessions", "short", Lines:
                    "Client sessions by their current state.";
                    sums("instance, state", "pgtally_sessions", "process=\"client backend\"") => "{{instance}} {{state}}";

                @ "Segment readable", "short", Lines:
                    "1: the server's segment can be read. 0: the server is down, or pg_tally is not loaded.";
                    of_selected("pgtally_up", "") => "{{instance}}";

                @ "Missing: full tables", "short", Lines:
                    "Entries that did not fit into a table of the segment, per second. Anything but 0 is missing from the \
                     figures; `tally status` names the setting to raise.";
                    rates("instance, what", "pgtally_overflow_total", "") => "{{instance}} {{what}}";
            },
        },
        Board {
            name: "pgtally-server",
            title: "pgtally: one server",
            panels: panels! {
                @ "Where the time goes", "short", WholeRow:
                    "Average active sessions by class. The lines add up to the time of all processes that were not idle.";
                    rates("class", "pgtally_time_seconds_total", "class!=\"idle\"") => "{{class}}";

                @ "Largest activities", "short", Lines:
                    "Average active sessions by activity: cpu, or the wait event.";
                    top(10, rates("activity", "pgtally_time_seconds_total", "class!=\"idle\"")) => "{{activity}}";

                @ "Phases", "short", Lines:
                    "Average active sessions by phase of the client's command: parse, bind, execute, simple query.";
                    top(10, rates("phase", "pgtally_time_seconds_total", "class!=\"idle\"")) => "{{phase}}";

                @ "Commands by kind", "ops", Lines:
                    "Protocol messages that clients sent.";
                    rates("command", "pgtally_command_seconds_count", "") => "{{command}}";

                @ "Time of commands", "s", Lines:
                    "From the arrival of a command until the server waits for the next one.";
                    quantile(0.5, "", "pgtally_command_seconds") => "median";
                    quantile(0.95, "", "pgtally_command_seconds") => "95 %";
                    quantile(0.99, "", "pgtally_command_seconds") => "99 %";

                @ "Waits: 99th percentile", "s", Lines:
                    "The ten wait events with the longest waits. Their total time is shown above.";
                    top(10, quantile(0.99, "activity", "pgtally_wait_seconds")) => "{{activity}}";

                @ "Time on files", "short", Lines:
                    "Operations in progress on average, by kind of file and operation.";
                    top(10, rates("file, operation", "pgtally_file_seconds_sum", "")) => "{{file}} {{operation}}";

                @ "Bytes to and from files", "Bps", Lines:
                    "Bytes that file operations transferred; the operating system's cache may serve them.";
                    rates("file, operation", "pgtally_file_bytes_total", "") => "{{file}} {{operation}}";

                @ "File operations: 99th percentile", "s", Lines:
                    "99 % of the operations ended within this time.";
                    top(10, quantile(0.99, "file, operation", "pgtally_file_seconds")) => "{{file}} {{operation}}";

                @ "Processes", "short", Stacked:
                    "Existing processes, by kind and state.";
                    sums("process, state", "pgtally_sessions", "") => "{{process}} {{state}}";

                @ "Sessions that ended", "ops", Lines:
                    "A high rate means that clients connect for each piece of work; a connection pool would save the server \
                     the cost of starting them.";
                    rates("instance", "pgtally_sessions_ended_total", "") => "{{instance}}";
            },
        },
        Board {
            name: "pgtally-statements",
            title: "pgtally: statements",
            panels: panels! {
                @ "Time by statement", "short", WholeRow:
                    "Average active sessions by statement, including parse, plan, execution and commit. Requires \
                     `tally serve --statements N`; `tally statements --id` shows the text.";
                    top(15, rates("queryid, database", "pgtally_statement_seconds_total", "")) => "{{database}} {{queryid}}";

                @ "Calls", "ops", Lines:
                    "Executions that ended without an error.";
                    top(15, rates("queryid, database", "pgtally_statement_calls_total", "")) => "{{database}} {{queryid}}";

                @ "Mean time of a call", "s", Lines:
                    "The time above, divided by the calls.";
                    top(15, ratio(
                        &rates("queryid, database", "pgtally_statement_seconds_total", ""),
                        &rates("queryid, database", "pgtally_statement_calls_total", ""),
                    )) => "{{database}} {{queryid}}";

                @ "Rows", "ops", Lines:
                    "Rows returned or changed, per second.";
                    top(15, rates("queryid, database", "pgtally_statement_rows_total", "")) => "{{database}} {{queryid}}";

                @ "Failures", "ops", Lines:
                    "Executions that ended with an error or were cancelled.";
                    top(15, rates("queryid, database", "pgtally_statement_failures_total", "")) => "{{database}} {{queryid}}";
            },
        },
        Board {
            name: "pgtally-checkpoints",
            title: "pgtally: checkpoints, WAL and commits",
            panels: panels! {
                @ "Checkpoints", "short", Lines:
                    "Checkpoints that ended in the last ten minutes. If there are many, WAL volume forces them: raise \
                     max_wal_size.";
                    increases("instance", "pgtally_checkpoint_seconds_count", "part=\"total\"") => "{{instance}}";

                @ "Time of a checkpoint", "s", Lines:
                    "Mean time of the checkpoints of the last ten minutes, and of their two parts.";
                    ratio(
                        &increases("part", "pgtally_checkpoint_seconds_sum", ""),
                        &increases("part", "pgtally_checkpoint_seconds_count", ""),
                    ) => "{{part}}";

                @ "WAL", "Bps", Stacked:
                    "Bytes of WAL inserted, by kind of process.";
                    rates("process", "pgtally_wal_bytes_total", "") => "{{process}}";

                @ "Full-page images", "ops", Lines:
                    "Full-page images in the WAL, written at the first change of each page after a checkpoint. Fewer \
                     checkpoints write fewer images.";
                    rates("instance", "pgtally_wal_full_page_images_total", "") => "{{instance}}";

                @ "Commits by flush", "ops", Stacked:
                    "leader: flushed the WAL itself; group_committed: another backend's flush covered it; asynchronous: did not \
                     wait.";
                    rates("how", "pgtally_commit_seconds_count", "") => "{{how}}";

                @ "Time of a commit: 99th percentile", "s", Lines:
                    "99 % of the commits ended within this time.";
                    quantile(0.99, "how", "pgtally_commit_seconds") => "{{how}}";

                @ "What commits wait for", "short", Stacked:
                    "Average number of sessions in a commit, by what they wait for.";
                    rates("part", "pgtally_commit_part_seconds_sum", "") => "{{part}}";

                @ "WAL buffers full", "ops", Lines:
                    "Writes because no WAL buffer was free. If there are more than a few, raise wal_buffers.";
                    rates("instance", "pgtally_wal_buffers_full_total", "") => "{{instance}}";
            },
        },
        // With `tally serve --health`.
        Board {
            name: "pgtally-health",
            title: "pgtally: health",
            panels: panels! {
                @ "Standbys: WAL not replayed", "bytes", Lines:
                    "WAL that a standby or another receiver has not replayed; of a receiver that does not replay, not flushed.";
                    of_selected("pgtally_replica_behind_bytes", "") => "{{instance}} {{standby}} {{pid}}";

                @ "Standbys: lag", "s", Lines:
                    "replay_lag of each standby; 0 if nothing is missing.";
                    of_selected("pgtally_replica_lag_seconds", "") => "{{instance}} {{standby}} {{pid}}";

                @ "WAL retained by slots", "bytes", Lines:
                    "An inactive slot retains more and more WAL, until the disk is full or max_slot_wal_keep_size is reached.";
                    of_selected("pgtally_slot_retained_bytes", "") => "{{instance}} {{slot}} {{state}}";

                @ "WAL that waits for the archiver", "bytes", Lines:
                    "Complete WAL files that are not archived. The server keeps them, also if archiving fails for days.";
                    of_selected("pgtally_archiver_waiting_bytes", "") => "{{instance}}";

                @ "This server as a standby", "bytes", Lines:
                    "On a standby: WAL received and not replayed.";
                    of_selected("pgtally_receiver_behind_bytes", "") => "{{instance}}";

                @ "Oldest transaction IDs", "short", Lines:
                    "Transactions since the oldest transaction ID that is not frozen. Autovacuum freezes at 200 million by default; \
                     the server stops at 2.1 billion.";
                    top(10, of_selected("pgtally_database_transaction_age", "")) => "{{instance}} {{database}}";

                @ "Oldest multixacts", "short", Lines:
                    "Multixacts since the oldest one. Autovacuum freezes at 400 million by default; the server stops at 2.1 billion.";
                    top(10, of_selected("pgtally_database_multixact_age", "")) => "{{instance}} {{database}}";

                @ "Sizes of databases", "bytes", Lines:
                    "The largest databases.";
                    top(10, of_selected("pgtally_database_bytes", "")) => "{{instance}} {{database}}";

                @ "Largest tables", "bytes", Lines:
                    "Tables with their indexes and TOAST.";
                    top(15, of_selected("pgtally_table_bytes", "")) => "{{instance}} {{database}} {{table}}";

                @ "Growth of tables in a day", "bytes", Lines:
                    "The tables that have grown most in the 24 hours before.";
                    top(15, day("pgtally_table_bytes", "")) => "{{instance}} {{database}} {{table}}";

                @ "Bloat of tables, estimated", "bytes", Lines:
                    "The part of large tables that holds no rows, estimated from the planner's statistics.";
                    top(15, of_selected("pgtally_table_bloat_estimate_bytes", "")) => "{{instance}} {{database}} {{table}}";

                @ "Indexes without scans", "bytes", Lines:
                    "Large indexes that no scan has used since the statistics began. Check the standbys, too, before you drop an index.";
                    top(15, of_selected("pgtally_unused_index_bytes", "")) => "{{instance}} {{database}} {{table}}: {{index}}";

                @ "Duplicate indexes", "bytes", Lines:
                    "Large indexes like another one of their table, which enforces at least as much.";
                    top(15, of_selected("pgtally_duplicate_index_bytes", "")) => "{{instance}} {{database}} {{table}}: {{index}}";

                @ "Changed settings", "short", Lines:
                    "Settings that changed in the ten minutes before. The page of tally serve says which, with their values.";
                    increases("instance", "pgtally_setting_changes_total", "") => "{{instance}}";

                @ "Settings that wait for a restart", "short", Lines:
                    "Settings whose value in the configuration files needs a restart.";
                    of_selected("pgtally_settings_pending_restart", "") => "{{instance}}";
            },
        },
    ]
}
