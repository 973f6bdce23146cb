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
    // Those that follow have data with `tally serve --health`.
    Alert {
        name: "PostgresArchivingFails",
        expression: "pgtally_archiver_failing == 1",
        lasts: "5m",
        severity: "critical",
        summary: "{{ $labels.instance }}: WAL is not archived, and the server keeps it",
        remedy: "Run `tally doctor`, which says why and for how long the disk will last; the message is in the server's log.",
    },
    Alert {
        name: "PostgresArchivingLags",
        expression: "pgtally_archiver_waiting_bytes > 4 * 2 ^ 30",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value | humanize1024 }}B of WAL are waiting for the archiver",
        remedy: "Make archive_command faster, or archive with a program that sends several files at a time.",
    },
    Alert {
        name: "PostgresSlotRetainsWal",
        expression: "pgtally_slot_retained_bytes{state!~\".*lost\"} > 4 * 2 ^ 30",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $labels.instance }}: slot {{ $labels.slot }} ({{ $labels.state }}) retains {{ $value | humanize1024 }}B of WAL",
        remedy: "Start its consumer or find out why it is slow; drop the slot if nobody needs it; max_slot_wal_keep_size limits it.",
    },
    Alert {
        name: "PostgresSlotLost",
        expression: "pgtally_slot_retained_bytes{state=~\".*lost\"}",
        lasts: "1m",
        severity: "critical",
        summary: "{{ $labels.instance }}: WAL that slot {{ $labels.slot }} needs was removed",
        remedy: "Build its standby or subscription again, and drop the slot.",
    },
    Alert {
        name: "PostgresStandbyLags",
        expression: "pgtally_replica_lag_seconds > 60",
        lasts: "5m",
        severity: "warning",
        summary: "{{ $labels.instance }}: standby {{ $labels.standby }} is {{ $value | humanizeDuration }} behind",
        remedy: "Run `tally doctor` here and on the standby: its recovery may wait for a query, its disk or the network.",
    },
    Alert {
        name: "PostgresStandbyReceivesNothing",
        expression: "pgtally_receiver_up == 0",
        lasts: "5m",
        severity: "critical",
        summary: "{{ $labels.instance }}: the standby has no WAL receiver",
        remedy: "See its log. Remove this alert for standbys that read WAL from an archive only.",
    },
    Alert {
        name: "PostgresWraparoundNear",
        expression: "pgtally_database_transaction_age > 500e6 or pgtally_database_multixact_age > 500e6",
        lasts: "10m",
        severity: "critical",
        summary: "{{ $labels.instance }}: database {{ $labels.database }} has transaction IDs or multixacts of age {{ $value | humanize }}; \
                  the server stops at 2.1 billion",
        remedy: "Run `tally doctor` to see what keeps autovacuum from freezing them, then VACUUM FREEZE.",
    },
    Alert {
        name: "PostgresConfigurationError",
        expression: "pgtally_configuration_errors > 0",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.instance }}: {{ $value }} lines of the configuration files cannot be applied; the server would not start again",
        remedy: "Run `tally doctor`, which names the first ones, correct them and reload.",
    },
];
