// SPDX-License-Identifier: PostgreSQL
//! Alert rules. Thresholds suit servers in general; change them in the file.

/// An alert.
#[derive(Debug)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// It fires while this expression has a result ...
    pub expression: &'static str,
    /// ... for this long (in Prometheus' notation).
    pub lasts: &'static str,
    /// `warning` or `critical`.
    pub severity: &'static str,
    /// What happens, with Prometheus' templates.
    pub summary: &'static str,
    /// What to look at or do.
    pub remedy: &'static str,
}

/// All alerts.
pub const ALL: &[Alert] = &[
    Alert {
        name: "PgtallyServerNotRead",
        expression: "pgtally_up == 0",
        lasts: "2m",
        severity: "critical",
        summary: "{{ $labels.instance }}: the server is down or pg_tally is not loaded",
        remedy: "Run `tally status` on that machine.",
    },
    Alert {
        name: "PgtallyFiguresIncomplete",
        expression: "sum by (instance, what) (increase(pgtally_overflow_total[10m])) > 0",
        lasts: "1m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value }} {{ $labels.what }} did not fit into pg_tally's tables in 10 min",
        remedy: "Run `tally status`, which names the setting to raise.",
    },
    Alert {
        name: "PostgresCpuDemandExceedsCpus",
        expression: "sum by (instance) (rate(pgtally_time_seconds_total{class=\"cpu\"}[5m])) > on (instance) pgtally_processors",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize }} processes need a CPU, more than the machine has",
        remedy: "Run `tally statements --sort cpu` to see which statements use them; fewer connections queue better.",
    },
    Alert {
        name: "PostgresSessionsWaitForLocks",
        expression: "sum by (instance) (rate(pgtally_time_seconds_total{class=\"lock\"}[5m])) > 1",
        lasts: "5m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize }} sessions wait for locks on average",
        remedy: "Run `tally blocking`, which shows the blocking session and what it did last.",
    },
    Alert {
        name: "PostgresSessionsWaitForLightweightLocks",
        expression: "sum by (instance, activity) (rate(pgtally_time_seconds_total{class=\"lwlock\"}[5m])) > on (instance) group_left () \
                     pgtally_processors",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize }} sessions wait for {{ $labels.activity }} on average",
        remedy: "Run `tally level locks --for 60s` and `tally top` to see who holds it, and `tally doctor` for advice.",
    },
    Alert {
        name: "PostgresCommitsAreSlow",
        expression: "histogram_quantile(0.99, sum by (instance, le) (rate(pgtally_commit_seconds_bucket[5m]))) > 0.1",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.instance }}: 1 % of commits take longer than {{ $value | humanizeDuration }}",
        remedy: "Check the device of the WAL: `tally top --view io`.",
    },
    Alert {
        name: "PostgresCheckpointsTooOften",
        expression: "sum by (instance) (increase(pgtally_checkpoint_seconds_count{part=\"total\"}[10m])) > 10",
        lasts: "1m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize }} checkpoints in 10 min",
        remedy: "Raise max_wal_size; `tally events --kind checkpoint` shows why each one started.",
    },
    Alert {
        name: "PostgresFileOperationsFail",
        expression: "sum by (instance, file, operation) (increase(pgtally_file_failures_total{operation!~\"open|unlink|truncate\"}[10m])) > 0",
        lasts: "1m",
        severity: "critical",
        summary: "{{ $labels.instance }}: {{ $labels.operation }} of {{ $labels.file }} files failed {{ $value | humanize }} times in 10 min",
        remedy: "Check the server's log, the kernel's log and the free disk space.",
    },
    Alert {
        name: "PostgresConnectionStorm",
        expression: "sum by (instance) (rate(pgtally_sessions_ended_total[5m])) > 50",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize }} sessions start and end per second",
        remedy: "Keep connections open: use a pool in the application, or PgBouncer in front of the server.",
    },
];
