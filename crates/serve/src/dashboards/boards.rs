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
    /// Whether the lines add up to something.
    pub stacked: bool,
    /// Of the 24 columns of a dashboard, how many it takes.
    pub width: u64,
    /// Expressions, and the names of their lines.
    pub lines: Vec<(&'static str, &'static str)>,
}

/// Half a row.
fn half(
    title: &'static str,
    unit: &'static str,
    help: &'static str,
    lines: &[(&'static str, &'static str)],
) -> Panel {
    Panel { title, help, unit, stacked: false, width: 12, lines: lines.to_vec() }
}

impl Panel {
    fn stacked(self) -> Panel {
        Panel { stacked: true, ..self }
    }

    fn whole_row(self) -> Panel {
        Panel { width: 24, ..self }
    }
}

/// All dashboards.
pub fn all() -> [Board; 4] {
    [overview(), server(), statements(), checkpoints()]
}

fn overview() -> Board {
    let panels = vec![
        half(
            "Average active sessions",
            "short",
            "Sessions and background processes that were not idle, on average. More than the CPUs for long means that they \
             wait for something; the server's dashboard says for what.",
            &[
                (
                    "sum by (instance) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class!=\"idle\"}[$__rate_interval]))",
                    "{{instance}}",
                ),
                ("pgtally_processors{instance=~\"$instance\"}", "{{instance}} CPUs"),
            ],
        ),
        half(
            "Share of active time on CPU",
            "percentunit",
            "The rest was spent waiting. A share that falls while the load grows points to a bottleneck outside the CPU.",
            &[(
                "sum by (instance) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class=\"cpu\"}[$__rate_interval])) / \
                 sum by (instance) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class!=\"idle\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
        half(
            "Commands",
            "ops",
            "Commands of clients that the server handled, of all kinds.",
            &[(
                "sum by (instance) (rate(pgtally_command_seconds_count{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
        half(
            "Commands: 99th percentile",
            "s",
            "99 % of the commands ended within this time. Bounds of the buckets are 1, 2 and 5 times powers of ten.",
            &[(
                "histogram_quantile(0.99, sum by (instance, le) (rate(pgtally_command_seconds_bucket{instance=~\"$instance\"}[$__rate_interval])))",
                "{{instance}}",
            )],
        ),
        half(
            "Commits that wrote WAL",
            "ops",
            "Commits, those of the server's own processes included.",
            &[(
                "sum by (instance) (rate(pgtally_commits_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
        half(
            "Sessions",
            "short",
            "Client sessions by what they do now.",
            &[(
                "sum by (instance, state) (pgtally_sessions{instance=~\"$instance\",process=\"client backend\"})",
                "{{instance}} {{state}}",
            )],
        ),
        half(
            "Measured at all",
            "short",
            "1: the server's segment can be read. 0: it is stopped, or pg_tally is not loaded.",
            &[("pgtally_up{instance=~\"$instance\"}", "{{instance}}")],
        ),
        half(
            "Not measured: full tables",
            "short",
            "What did not fit into a table of the segment, per second. Anything but 0 is missing from the figures; \
             `tally status` names the setting to raise.",
            &[(
                "sum by (instance, what) (rate(pgtally_overflow_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}} {{what}}",
            )],
        ),
    ];
    Board { name: "pgtally-overview", title: "pgtally: all servers", panels }
}

fn server() -> Board {
    let panels = vec![
        half(
            "Where the time goes",
            "short",
            "Average active sessions by class. The lines add up to all time of all processes that was not idle.",
            &[(
                "sum by (class) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class!=\"idle\"}[$__rate_interval]))",
                "{{class}}",
            )],
        )
        .stacked()
        .whole_row(),
        half(
            "Largest activities",
            "short",
            "Average active sessions by activity: cpu, or the wait event.",
            &[(
                "topk(10, sum by (activity) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class!=\"idle\"}[$__rate_interval])))",
                "{{activity}}",
            )],
        ),
        half(
            "Phases",
            "short",
            "Average active sessions by what they do for the client: parse, bind, execute, simple query.",
            &[(
                "topk(10, sum by (phase) (rate(pgtally_time_seconds_total{instance=~\"$instance\",class!=\"idle\"}[$__rate_interval])))",
                "{{phase}}",
            )],
        ),
        half(
            "Commands by kind",
            "ops",
            "Messages of the protocol that clients sent.",
            &[(
                "sum by (command) (rate(pgtally_command_seconds_count{instance=~\"$instance\"}[$__rate_interval]))",
                "{{command}}",
            )],
        ),
        half(
            "Time of commands",
            "s",
            "From a command's arrival until the server awaits the next one.",
            &[
                ("histogram_quantile(0.5, sum by (le) (rate(pgtally_command_seconds_bucket{instance=~\"$instance\"}[$__rate_interval])))", "median"),
                ("histogram_quantile(0.95, sum by (le) (rate(pgtally_command_seconds_bucket{instance=~\"$instance\"}[$__rate_interval])))", "95 %"),
                ("histogram_quantile(0.99, sum by (le) (rate(pgtally_command_seconds_bucket{instance=~\"$instance\"}[$__rate_interval])))", "99 %"),
            ],
        ),
        half(
            "Waits: 99th percentile",
            "s",
            "The ten wait events with the longest waits. How much time they take in all is shown above.",
            &[(
                "topk(10, histogram_quantile(0.99, sum by (activity, le) (rate(pgtally_wait_seconds_bucket{instance=~\"$instance\"}[$__rate_interval]))))",
                "{{activity}}",
            )],
        ),
        half(
            "Time on files",
            "short",
            "Operations in progress on average, by kind of file and operation.",
            &[(
                "topk(10, sum by (file, operation) (rate(pgtally_file_seconds_sum{instance=~\"$instance\"}[$__rate_interval])))",
                "{{file}} {{operation}}",
            )],
        ),
        half(
            "Bytes to and from files",
            "Bps",
            "Bytes that operations on files transferred; the operating system may have them in its cache.",
            &[(
                "sum by (file, operation) (rate(pgtally_file_bytes_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{file}} {{operation}}",
            )],
        ),
        half(
            "Operations on files: 99th percentile",
            "s",
            "99 % of the operations ended within this time.",
            &[(
                "topk(10, histogram_quantile(0.99, sum by (file, operation, le) (rate(pgtally_file_seconds_bucket{instance=~\"$instance\"}[$__rate_interval]))))",
                "{{file}} {{operation}}",
            )],
        ),
        half(
            "Processes",
            "short",
            "Processes that exist, by kind and state.",
            &[(
                "sum by (process, state) (pgtally_sessions{instance=~\"$instance\"})",
                "{{process}} {{state}}",
            )],
        )
        .stacked(),
        half(
            "Sessions that ended",
            "ops",
            "A high rate means that clients connect for each piece of work; a pool would save the server their start.",
            &[(
                "sum by (instance) (rate(pgtally_sessions_ended_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
    ];
    Board { name: "pgtally-server", title: "pgtally: one server", panels }
}

fn statements() -> Board {
    let panels = vec![
        half(
            "Time by statement",
            "short",
            "Average active sessions by statement, whole messages with parse, plan, execution and commit. Needs \
             `tally serve --statements N`; `tally statements --id` shows the text.",
            &[(
                "topk(15, sum by (queryid, database) (rate(pgtally_statement_seconds_total{instance=~\"$instance\"}[$__rate_interval])))",
                "{{database}} {{queryid}}",
            )],
        )
        .stacked()
        .whole_row(),
        half(
            "Calls",
            "ops",
            "Executions that ended without an error.",
            &[(
                "topk(15, sum by (queryid, database) (rate(pgtally_statement_calls_total{instance=~\"$instance\"}[$__rate_interval])))",
                "{{database}} {{queryid}}",
            )],
        ),
        half(
            "Mean time of a call",
            "s",
            "The time above divided by the calls.",
            &[(
                "topk(15, sum by (queryid, database) (rate(pgtally_statement_seconds_total{instance=~\"$instance\"}[$__rate_interval])) / \
                 (sum by (queryid, database) (rate(pgtally_statement_calls_total{instance=~\"$instance\"}[$__rate_interval])) > 0))",
                "{{database}} {{queryid}}",
            )],
        ),
        half(
            "Rows",
            "ops",
            "Rows returned or changed, per second.",
            &[(
                "topk(15, sum by (queryid, database) (rate(pgtally_statement_rows_total{instance=~\"$instance\"}[$__rate_interval])))",
                "{{database}} {{queryid}}",
            )],
        ),
        half(
            "Failures",
            "ops",
            "Executions that ended by an error or were cancelled.",
            &[(
                "topk(15, sum by (queryid, database) (rate(pgtally_statement_failures_total{instance=~\"$instance\"}[$__rate_interval])))",
                "{{database}} {{queryid}}",
            )],
        ),
    ];
    Board { name: "pgtally-statements", title: "pgtally: statements", panels }
}

fn checkpoints() -> Board {
    let panels = vec![
        half(
            "Checkpoints",
            "short",
            "Checkpoints that ended in the last ten minutes. Many of them are forced by the WAL: raise max_wal_size.",
            &[(
                "sum by (instance) (increase(pgtally_checkpoint_seconds_count{instance=~\"$instance\",part=\"total\"}[10m]))",
                "{{instance}}",
            )],
        ),
        half(
            "Time of a checkpoint",
            "s",
            "Mean of the checkpoints of the last ten minutes, and of their two parts.",
            &[(
                "sum by (part) (increase(pgtally_checkpoint_seconds_sum{instance=~\"$instance\"}[10m])) / \
                 (sum by (part) (increase(pgtally_checkpoint_seconds_count{instance=~\"$instance\"}[10m])) > 0)",
                "{{part}}",
            )],
        ),
        half(
            "WAL",
            "Bps",
            "Bytes of WAL inserted, by kind of process.",
            &[(
                "sum by (process) (rate(pgtally_wal_bytes_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{process}}",
            )],
        )
        .stacked(),
        half(
            "Full-page images",
            "ops",
            "Images of whole pages in the WAL: the first change of each page after a checkpoint. Fewer checkpoints, fewer images.",
            &[(
                "sum by (instance) (rate(pgtally_wal_full_page_images_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
        half(
            "Commits by flush",
            "ops",
            "leader: synced the WAL itself; group_committed: covered by another's sync; asynchronous: did not wait.",
            &[("sum by (how) (rate(pgtally_commit_seconds_count{instance=~\"$instance\"}[$__rate_interval]))", "{{how}}")],
        )
        .stacked(),
        half(
            "Time of a commit: 99th percentile",
            "s",
            "99 % of the commits ended within this time.",
            &[(
                "histogram_quantile(0.99, sum by (how, le) (rate(pgtally_commit_seconds_bucket{instance=~\"$instance\"}[$__rate_interval])))",
                "{{how}}",
            )],
        ),
        half(
            "What commits wait for",
            "short",
            "Sessions within a commit on average, by what they wait for.",
            &[("sum by (part) (rate(pgtally_commit_part_seconds_sum{instance=~\"$instance\"}[$__rate_interval]))", "{{part}}")],
        )
        .stacked(),
        half(
            "WAL buffers full",
            "ops",
            "Writes because no WAL buffer was free. More than a few: raise wal_buffers.",
            &[(
                "sum by (instance) (rate(pgtally_wal_buffers_full_total{instance=~\"$instance\"}[$__rate_interval]))",
                "{{instance}}",
            )],
        ),
    ];
    Board { name: "pgtally-checkpoints", title: "pgtally: checkpoints, WAL and commits", panels }
}
