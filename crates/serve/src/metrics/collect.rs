// SPDX-License-Identifier: PostgreSQL
//! Converts the totals since the segment was created to metrics (docs/reference-metrics.md). Labels are the
//! server's names of activities, processes, files and locks; the size of the segment's directory bounds their
//! number.

use std::collections::BTreeMap;

use segment::delta::Total;
use segment::interval::{is_idle, Timing};
use segment::{Frame, Interval};

use super::family::{Family, Kind, Spread, Value};
use super::health::add_health;
use super::settings::SettingMetrics;
use super::statements::NamedStatements;
use otlp::queue::Fate;
use view::statements::StatementsTable;
use view::vacuum::Vacuum;

use Kind::{Counter, Gauge, Histogram, Summary};

/// The data of a server that can be read.
#[derive(Debug)]
pub struct Present<'p> {
    /// Totals since the segment was created.
    pub frame: &'p Frame,
    /// Number of events since the segment was created.
    pub events: u64,
    /// The statements since their last reset, if requested and available.
    pub statements: Option<(&'p StatementsTable, &'p NamedStatements)>,
    /// What the server's catalogs say, if requested and known.
    pub health: Option<&'p Vacuum>,
    /// What is known of its settings, if requested.
    pub settings: Option<SettingMetrics>,
}

/// What happened to the readings and events that are sent by OTLP.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Delivery {
    /// When counting started, seconds since 1970.
    pub since: f64,
    /// Fate of the readings of all metrics.
    pub readings: Fate,
    /// Fate of the events.
    pub events: Fate,
}

/// All metrics; without a server only `pgtally_up` 0, the build info, and `delivery`.
pub fn collect(present: Option<&Present<'_>>, delivery: Option<&Delivery>) -> Vec<Family> {
    let mut up = Family::new(
        "pgtally_up",
        Gauge,
        "Whether the server's segment can be read (1) or not (0).",
    );
    up.number([], if present.is_some() { 1.0 } else { 0.0 });
    let mut build =
        Family::new("pgtally_build_info", Gauge, "Version of pgtally in the labels; always 1.");
    build.number([("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let mut families = vec![up, build];
    if let Some(delivery) = delivery {
        delivered(delivery, &mut families);
    }
    if let Some(present) = present {
        let interval = Interval::from_frame(present.frame);
        about(present, &interval, &mut families);
        ledger(present.frame, interval.sampling.is_none(), &mut families);
        half_widths(&interval, &mut families);
        if interval.sampling.is_none() {
            commands(present.frame, &mut families);
            commits(present.frame, &interval, &mut families);
            files(&interval, &mut families);
            locks(&interval, &mut families);
            others(&interval, &mut families);
        }
        if let Some((statements, named)) = present.statements {
            named.metrics(statements, &mut families);
        }
        if let Some(health) = present.health {
            add_health(health, &mut families);
        }
        if let Some(settings) = present.settings {
            settings.add(&mut families);
        }
        families.retain(|family| !family.samples.is_empty());
    }
    for family in &mut families {
        family.settle();
    }
    families
}

fn one(families: &mut Vec<Family>, name: &'static str, kind: Kind, help: &'static str, value: f64) {
    let mut family = Family::new(name, kind, help);
    family.number([], value);
    families.push(family);
}

fn delivered(delivery: &Delivery, families: &mut Vec<Family>) {
    let mut accepted = Family::new(
        "pgtally_otlp_accepted_total",
        Counter,
        "Readings and events that the OTLP receiver has accepted.",
    );
    let mut dropped = Family::new(
        "pgtally_otlp_dropped_total",
        Counter,
        "Readings and events that the OTLP receiver refused, or that were dropped from a full queue.",
    );
    let mut waiting = Family::new(
        "pgtally_otlp_waiting",
        Gauge,
        "Readings and events that wait to be sent to the OTLP receiver.",
    );
    for (what, fate) in [("readings", &delivery.readings), ("events", &delivery.events)] {
        let labels = [("what", what)];
        accepted.number_since(labels, fate.accepted as f64, delivery.since);
        dropped.number_since(labels, fate.dropped as f64, delivery.since);
        waiting.number(labels, fate.waiting as f64);
    }
    families.extend([accepted, dropped, waiting]);
}

fn about(present: &Present<'_>, interval: &Interval, families: &mut Vec<Family>) {
    let server = &interval.server;
    let mut info =
        Family::new("pgtally_server_info", Gauge, "The measured server in the labels; always 1.");
    info.number(
        [
            ("server", server.name.as_str()),
            ("data_directory", &server.host),
            ("producer", &server.producer),
            ("source", if interval.sampling.is_some() { "sampled" } else { "exact" }),
        ],
        1.0,
    );
    let mut level =
        Family::new("pgtally_level_info", Gauge, "The measuring level in the labels; always 1.");
    level.number([("level", &interval.level.to_string())], 1.0);
    let mut sessions = Family::new("pgtally_sessions", Gauge, "Existing processes.");
    for row in &present.frame.population {
        let labels = [("process", &*row.process), ("state", row.state)];
        sessions.number(labels, f64::from(row.sessions));
    }
    families.extend([info, level, sessions]);
    one(
        families,
        "pgtally_segment_created_timestamp_seconds",
        Gauge,
        "Time at which the segment was created and all counters started, in seconds since 1970.",
        server.created,
    );
    if interval.cores > 0 {
        one(families, "pgtally_processors", Gauge, "CPUs of the machine.", interval.cores as f64);
    }
    one(
        families,
        "pgtally_session_seconds_total",
        Counter,
        "Lifetime of all processes: the sum of pgtally_time_seconds_total.",
        interval.wall_seconds,
    );
    one(
        families,
        "pgtally_sessions_ended_total",
        Counter,
        "Processes that have ended.",
        interval.ended.sessions as f64,
    );
    match &interval.sampling {
        Some(sampling) => one(
            families,
            "pgtally_samples_total",
            Counter,
            "Samples from which the other figures are estimated; only if the server is sampled.",
            sampling.samples as f64,
        ),
        None => one(
            families,
            "pgtally_events_total",
            Counter,
            "Notable events: slow operations, checkpoints, warnings.",
            present.events as f64,
        ),
    }
    one(
        families,
        "pgtally_torn_sessions",
        Gauge,
        "Processes that were paused in the middle of an update and read as they were.",
        interval.torn_sessions as f64,
    );
    let mut overflow = Family::new(
        "pgtally_overflow_total",
        Counter,
        "Entries that did not fit into a full table; anything but 0 is missing from the figures.",
    );
    let lost = &interval.overflow;
    for (what, count) in [
        ("slots", lost.slots),
        ("statistics", lost.statistics),
        ("directory", lost.directory),
        ("groups", lost.groups),
        ("memory", lost.memory),
        ("lost_merges", lost.lost_merges),
        ("statements", lost.statements_dropped),
        ("statements_lost", lost.statements_lost),
        ("texts", lost.texts_cut),
    ] {
        overflow.number([("what", what)], count as f64);
    }
    families.push(overflow);
}

/// Sums of totals by labels.
type Totals<const N: usize> = BTreeMap<[String; N], Total>;

fn add<const N: usize>(totals: &mut Totals<N>, labels: [&str; N], total: &Total) {
    totals.entry(labels.map(str::to_string)).or_default().merge(total);
}

fn spread(total: &Total, frame: &Frame) -> Value {
    let sum = frame.clock.seconds(total.change.total);
    let rate = frame.clock.ticks_per_second;
    Value::Spread(Spread::from_histogram(total.change.count, sum, &total.histogram, rate))
}

/// The time of all accounts and, where waits were counted, each wait.
fn ledger(frame: &Frame, counted: bool, families: &mut Vec<Family>) {
    let mut time = Family::new(
        "pgtally_time_seconds_total",
        Counter,
        "Time of all processes by phase and activity, including activities in progress.",
    );
    let mut waits: Totals<2> = BTreeMap::new();
    for figure in &frame.statistics {
        if figure.stat.kind != segment::directory::StatKind::Account {
            continue;
        }
        let (phase, activity) = (&**figure.stat.phase(), &**figure.stat.activity());
        let idle = is_idle(&figure.stat);
        let class = if idle { "idle" } else { figure.stat.class().name() };
        time.number(
            [
                ("process", &*figure.process),
                ("phase", phase),
                ("activity", activity),
                ("class", class),
            ],
            frame.clock.seconds(figure.total.change.total),
        );
        if counted && figure.stat.is_wait() && !idle {
            add(&mut waits, [activity, class], &figure.total);
        }
    }
    let mut family = Family::new(
        "pgtally_wait_seconds",
        Histogram,
        "Waits by activity; the sum includes waits in progress, the count does not.",
    );
    for ([activity, class], total) in &waits {
        family.push([("activity", activity), ("class", class)], spread(total, frame));
    }
    families.extend([time, family]);
}

/// How uncertain the time is, of a server that is sampled. It is known for all processes together.
fn half_widths(interval: &Interval, families: &mut Vec<Family>) {
    let mut family = Family::new(
        "pgtally_time_half_width_seconds",
        Gauge,
        "Half of the 95 % interval of pgtally_time_seconds_total of all processes together; only if the server is sampled.",
    );
    for account in &interval.ledger {
        if let Some(half_width) = account.timing.half_width_seconds {
            let labels = [("phase", &*account.phase), ("activity", &*account.activity)];
            family.number(labels, half_width);
        }
    }
    families.push(family);
}

fn commands(frame: &Frame, families: &mut Vec<Family>) {
    let (mut handled, mut read): (Totals<1>, Totals<1>) = Default::default();
    for figure in &frame.statistics {
        match figure.command() {
            Some((kind, true)) => add(&mut handled, [kind], &figure.total),
            Some((kind, false)) => add(&mut read, [kind], &figure.total),
            None => {}
        }
    }
    let mut handle = Family::new(
        "pgtally_command_seconds",
        Histogram,
        "Time to handle a client's command, from its arrival until the server waits for the next.",
    );
    for ([kind], total) in &handled {
        handle.push([("command", kind)], spread(total, frame));
    }
    let mut waited = Family::new(
        "pgtally_command_read_seconds",
        Summary,
        "Time that the server waited for a client's next command.",
    );
    for ([kind], total) in &read {
        let seconds = frame.clock.seconds(total.change.total);
        waited.timed([("command", kind)], total.change.count, seconds);
    }
    families.extend([handle, waited]);
}

fn commits(frame: &Frame, interval: &Interval, families: &mut Vec<Family>) {
    one(
        families,
        "pgtally_commits_total",
        Counter,
        "Commits that wrote WAL.",
        interval.commits.count as f64,
    );
    let mut whole: Totals<1> = BTreeMap::new();
    for figure in &frame.statistics {
        if let Some(how) = segment::commits::whole_commit(&figure.stat) {
            add(&mut whole, [how], &figure.total);
        }
    }
    let mut commits = Family::new(
        "pgtally_commit_seconds",
        Histogram,
        "Duration of commits that wrote WAL: leader (flushed itself), group_committed (another backend's \
         flush covered it), asynchronous.",
    );
    for ([how], total) in &whole {
        commits.push([("how", how)], spread(total, frame));
    }
    let mut parts =
        Family::new("pgtally_commit_part_seconds", Summary, "Waits of commits, by kind of wait.");
    let waits = &interval.commits;
    for (part, timing) in [
        ("insert", &waits.insert),
        ("queue", &waits.queue),
        ("delay", &waits.delay),
        ("write", &waits.write),
        ("sync", &waits.sync),
        ("replication", &waits.replication),
    ] {
        timed(&mut parts, [("part", part)], timing);
    }
    let mut checkpoints = Family::new(
        "pgtally_checkpoint_seconds",
        Summary,
        "Duration of completed checkpoints and restartpoints, and of their two parts.",
    );
    let ended = &interval.checkpoints;
    for (part, timing) in [("total", &ended.total), ("write", &ended.write), ("sync", &ended.sync)]
    {
        timed(&mut checkpoints, [("part", part)], timing);
    }
    families.extend([commits, parts, checkpoints]);
    let mut figures = [
        Family::new("pgtally_wal_records_total", Counter, "WAL records inserted."),
        Family::new("pgtally_wal_full_page_images_total", Counter, "Full-page images inserted."),
        Family::new("pgtally_wal_bytes_total", Counter, "Bytes of WAL inserted."),
        Family::new(
            "pgtally_wal_buffers_full_total",
            Counter,
            "WAL writes because the WAL buffers were full.",
        ),
    ];
    for row in &interval.wal {
        let counts = [row.records, row.full_page_images, row.bytes, row.buffers_full];
        for (family, count) in figures.iter_mut().zip(counts) {
            family.number([("process", row.process.as_str())], count as f64);
        }
    }
    families.extend(figures);
}

fn timed<const N: usize>(family: &mut Family, labels: [(&'static str, &str); N], timing: &Timing) {
    if timing.count > 0 {
        family.timed(labels, timing.count, timing.seconds);
    }
}

fn files(interval: &Interval, families: &mut Vec<Family>) {
    let mut time = Family::new(
        "pgtally_file_seconds",
        Histogram,
        "Completed file operations, including failed ones.",
    );
    let mut bytes =
        Family::new("pgtally_file_bytes_total", Counter, "Bytes transferred by file operations.");
    let mut failed =
        Family::new("pgtally_file_failures_total", Counter, "File operations that failed.");
    for row in &interval.files {
        let labels = [
            ("file", &*row.file),
            ("tablespace", row.tablespace.as_deref().unwrap_or("")),
            ("operation", &*row.operation),
        ];
        let (count, sum) = (row.timing.count, row.timing.seconds);
        let rate = interval.clock.ticks_per_second;
        time.push(labels, Value::Spread(Spread::from_histogram(count, sum, row.histogram(), rate)));
        if row.bytes > 0 {
            bytes.number(labels, row.bytes as f64);
        }
        failed.number(labels, row.failed as f64);
    }
    families.extend([time, bytes, failed]);
}

/// Sums of counts and seconds by labels.
type Sums<const N: usize> = BTreeMap<[String; N], (u64, f64)>;

fn sum<const N: usize>(sums: &mut Sums<N>, labels: [&str; N], timing: &Timing) {
    let (count, seconds) = sums.entry(labels.map(str::to_string)).or_default();
    *count = count.saturating_add(timing.count);
    *seconds += timing.seconds;
}

fn summary<const N: usize>(
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    sums: &Sums<N>,
) -> Family {
    let mut family = Family::new(name, Summary, help);
    for (values, (count, seconds)) in sums.iter().filter(|(_, (count, _))| *count > 0) {
        let mut at = 0;
        let pairs = labels.map(|label| {
            at += 1;
            (label, values.get(at - 1).map_or("", String::as_str))
        });
        family.timed(pairs, *count, *seconds);
    }
    family
}

fn locks(interval: &Interval, families: &mut Vec<Family>) {
    let (mut waits, mut acquired, mut held): (Sums<2>, Sums<2>, Sums<2>) = Default::default();
    for row in &interval.lwlocks {
        sum(&mut waits, [&row.lock, &row.mode], &row.wait);
        sum(&mut acquired, [&row.lock, &row.mode], &row.acquire);
        sum(&mut held, [&row.lock, &row.mode], &row.held);
    }
    families.push(summary(
        "pgtally_lwlock_wait_seconds",
        "Sleeps in the queues of lightweight locks, while the level is locks.",
        ["lock", "mode"],
        &waits,
    ));
    families.push(summary(
        "pgtally_lwlock_acquire_seconds",
        "Acquisitions of lightweight locks, timed if they queued, while the level is locks.",
        ["lock", "mode"],
        &acquired,
    ));
    families.push(summary(
        "pgtally_lwlock_held_seconds",
        "Time that lightweight locks were held, while the level is locks.",
        ["lock", "mode"],
        &held,
    ));
    let mut waits: Sums<2> = BTreeMap::new();
    for row in &interval.locks {
        sum(&mut waits, [&row.kind, &row.mode], &row.wait);
    }
    families.push(summary(
        "pgtally_lock_wait_seconds",
        "Waits for heavyweight locks, while the level is locks.",
        ["type", "mode"],
        &waits,
    ));
}

fn others(interval: &Interval, families: &mut Vec<Family>) {
    let mut calls: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    let mut inclusive: Sums<1> = BTreeMap::new();
    for row in &interval.functions {
        let sums = calls.entry(&row.name).or_default();
        *sums = (sums.0.saturating_add(row.calls), sums.1 + row.exclusive_seconds);
        sum(&mut inclusive, [&row.name], &row.inclusive);
    }
    let mut all = Family::new("pgtally_function_calls_total", Counter, "Calls of timed functions.");
    let mut own = Family::new(
        "pgtally_function_own_seconds_total",
        Counter,
        "Time of timed functions, without the other timed functions that they called.",
    );
    for (name, (calls, seconds)) in calls {
        all.number([("function", name)], calls as f64);
        own.number([("function", name)], seconds);
    }
    let timed_calls = summary(
        "pgtally_function_seconds",
        "Timed calls of these functions, including the functions that they called.",
        ["function"],
        &inclusive,
    );
    let mut timers = Family::new(
        "pgtally_statistic_seconds",
        Summary,
        "Any other statistic that measures a time.",
    );
    let mut values =
        Family::new("pgtally_statistic", Summary, "Any other statistic that is a number.");
    for row in &interval.statistics {
        if row.unit == "seconds" {
            timers.timed([("name", row.name.as_str())], row.count, row.total);
        } else {
            let labels = [("name", row.name.as_str()), ("unit", &row.unit)];
            values.timed(labels, row.count, row.total);
        }
    }
    families.extend([all, own, timed_calls, timers, values]);
}
