// SPDX-License-Identifier: PostgreSQL
//! Samples beside the exact ledger, of the same seconds on the same server: how often the 95 % intervals contain the truth, and how
//! large the bias is, by class of activity and by how late the samples were.
//!
//! A comparison is one activity in one stretch of time. The two readings cannot be taken at the same instant; the exact time is scaled to
//! the length of the sampled stretch, and one session may have changed in between. A peer's profile can be compared as well.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use live::target::SegmentSource;
use pq::Conninfo;
use scratch::{Cluster, Load, RunningPgbench};
use segment::clock::monotonic_ns;
use segment::interval::Interval;
use segment::{Segment, Snapshot, WaitClass};

use crate::support::{eventually, flushing, plain, segment as segment_of, start};

/// A load: name, sessions, script, and whether each transaction has a connection of its own.
struct Kind(&'static str, u32, &'static str, bool);

const ACCOUNT: &str = "\\set aid random(1, 500000)\n";

/// The loads; pgbench's TPC-B, which is built in, is not among them.
const LOADS: [Kind; 12] = [
    Kind("idle", 4, "\\sleep 3600 s\n", false),
    Kind("CPU-bound, 1 session", 1, "select count(*) from generate_series(1, 100000);\n", false),
    Kind("CPU-bound, 6 sessions", 6, "select count(*) from generate_series(1, 100000);\n", false),
    Kind("short statements", 8, "select abalance from pgbench_accounts where aid = :aid;\n", false),
    Kind(
        "thinking clients",
        8,
        "\\sleep 10 ms\nselect abalance from pgbench_accounts where aid = :aid;\n",
        false,
    ),
    Kind(
        "commits",
        4,
        "update pgbench_accounts set abalance = abalance + 1 where aid = :aid;\n",
        false,
    ),
    Kind(
        "one hot row",
        6,
        "begin;\nupdate pgbench_branches set bbalance = bbalance + 1 where bid = 1;\nselect pg_sleep(0.02);\nend;\n",
        false,
    ),
    Kind("sleeps", 6, "\\set ms random(1, 30)\nselect pg_sleep(:ms * 0.001);\n", false),
    Kind("long statements", 3, "select pg_sleep(1.3);\n\\sleep 400 ms\n", false),
    // All sessions wake up together, twice per second.
    Kind(
        "storms",
        6,
        "select pg_sleep(0.5 - extract(epoch from clock_timestamp())::numeric % 0.5);\nselect count(*) from pgbench_accounts where aid between :aid and :aid + 20000;\n",
        false,
    ),
    Kind(
        "parallel",
        1,
        "set max_parallel_workers_per_gather = 2;\nset min_parallel_table_scan_size = 0;\nset parallel_setup_cost = 0;\nselect sum(abalance) from pgbench_accounts;\n",
        false,
    ),
    Kind("connections", 3, "select 1;\n", true),
];

impl Kind {
    fn start(&self, cluster: &Cluster) -> RunningPgbench {
        let Kind(_, sessions, script, connects) = *self;
        let load = Load::Script(format!("{ACCOUNT}{script}"));
        let bench = cluster.pgbench().load(load).clients(sessions).until_stopped();
        let bench = if connects { bench.arg("--connect") } else { bench };
        bench.spawn().unwrap()
    }
}

/// A reading of both, and how much later the exact one was taken, seconds.
struct Pair {
    sampled: Snapshot,
    exact: Snapshot,
    late: f64,
}

/// A sampler, and the ledger that is read beside it. Samplers of several rates run at the same time, each with instants of its own.
struct Readers {
    rate: u32,
    sampled: Segment,
    exact: Segment,
}

impl Readers {
    fn open(cluster: &Cluster, rate: u32) -> Readers {
        let conninfo = Conninfo::parse(&cluster.connection_string()).unwrap();
        let source = SegmentSource::Samples(conninfo, rate.to_string().parse().unwrap());
        let exact = Segment::open(&segment_of(cluster)).unwrap();
        Readers { rate, sampled: source.open().unwrap(), exact }
    }

    fn read(&mut self, earlier: Option<&Pair>) -> Pair {
        // All that have arrived, and then the next one.
        self.sampled.refresh().unwrap();
        self.sampled.refresh().unwrap();
        let exact = self.exact.snapshot(earlier.map(|pair| &pair.exact)).unwrap();
        let now = monotonic_ns();
        let sampled = self.sampled.snapshot(earlier.map(|pair| &pair.sampled)).unwrap();
        let late = now.saturating_sub(sampled.tick) as f64 * 1e-9;
        Pair { sampled, exact, late }
    }

    fn intervals(&self, from: &Pair, to: &Pair) -> (Interval, Interval) {
        let of = |segment, from, to| {
            let frame = segment::Frame::between(segment, Some(from), to);
            let interval = Interval::with_others(&frame);
            interval.without_own().clone()
        };
        (of(&self.sampled, &from.sampled, &to.sampled), of(&self.exact, &from.exact, &to.exact))
    }
}

/// One activity in one stretch, as one sampler has seen it.
struct Comparison {
    load: &'static str,
    rate: u32,
    samples: u64,
    class: WaitClass,
    activity: String,
    estimate: f64,
    half_width: Option<f64>,
    /// The part of it that is not chance.
    doubt: f64,
    truth: f64,
    tolerance: f64,
    /// Mean lateness of the samples, s.
    late: f64,
    refused: bool,
}

impl Comparison {
    fn is_contained(&self) -> bool {
        let half = self.half_width.unwrap_or(0.0) + self.tolerance;
        (self.estimate - self.truth).abs() <= half
    }
}

fn compare(load: &'static str, pairs: [&Pair; 2], readers: &Readers) -> Vec<Comparison> {
    let (sampled, exact) = readers.intervals(pairs[0], pairs[1]);
    let sampling = sampled.sampling.unwrap();
    let ratio = sampled.interval_seconds / exact.interval_seconds;
    // A microsecond for what rounding does to the lengths.
    let tolerance = pairs[0].late + pairs[1].late + 1e-6;
    let truths = exact.activities();
    let compared = sampled.activities().into_iter().map(|row| {
        // Where samples cannot tell CPU time apart, it is among what is unknown.
        let is_unknown = *row.activity == *segment::sampling::UNKNOWN;
        let activity = if is_unknown { "cpu" } else { &*row.activity };
        let truth = truths.iter().find(|truth| *truth.activity == *activity);
        Comparison {
            load,
            rate: readers.rate,
            samples: sampling.samples,
            class: WaitClass::of_name(activity),
            activity: activity.to_string(),
            estimate: row.timing.seconds,
            half_width: row.timing.half_width_seconds,
            doubt: row.timing.doubt_seconds,
            truth: truth.map_or(0.0, |truth| truth.timing.seconds) * ratio,
            tolerance,
            late: sampling.late_seconds,
            refused: row.timing.refused,
        }
    });
    // Main loops of background processes take all of the time of these; they would only raise the numbers.
    compared.filter(|row| row.estimate > 0.0 && row.class != WaitClass::Activity).collect()
}

/// Does something under each of the loads that PGTALLY_LOADS names.
fn for_each_load(cluster: &Cluster, work: &mut dyn FnMut(&'static str)) {
    let only = std::env::var("PGTALLY_LOADS").unwrap_or_default();
    let is_chosen = |name: &str| only.split(',').any(|part| name.contains(part));
    let mut under = |name: &'static str, start: &dyn Fn() -> RunningPgbench| {
        if is_chosen(name) {
            let _bench = start();
            std::thread::sleep(Duration::from_millis(500));
            work(name);
        }
    };
    let tpcb = |sessions: u32| {
        cluster.pgbench().load(Load::TpcB).clients(sessions).until_stopped().spawn().unwrap()
    };
    for kind in &LOADS {
        under(kind.0, &|| kind.start(cluster));
    }
    under("TPC-B, 1 session", &|| tpcb(1));
    under("TPC-B, 8 sessions", &|| tpcb(8));
}

/// The numbers in an environment variable.
fn numbers(name: &str, usual: &str) -> Vec<u32> {
    let text = std::env::var(name).unwrap_or_else(|_| usual.to_string());
    text.split(',').map(|number| number.parse().unwrap()).collect()
}

#[derive(Default)]
struct Agreement {
    comparisons: usize,
    contained: usize,
    refused: usize,
    estimate: f64,
    truth: f64,
}

impl Agreement {
    fn add(&mut self, row: &Comparison) {
        if row.refused {
            self.refused += 1;
            return;
        }
        self.comparisons += 1;
        self.contained += usize::from(row.is_contained());
        self.estimate += row.estimate;
        self.truth += row.truth;
    }

    fn line(&self) -> String {
        format!(
            "{:>5} comparisons, {:>5.1} % contain the truth, bias {:>+6.1} %, {} refused",
            self.comparisons,
            100.0 * self.contained as f64 / self.comparisons.max(1) as f64,
            100.0 * (self.estimate / self.truth.max(1e-12) - 1.0),
            self.refused,
        )
    }
}

fn table(rows: &[Comparison], title: &str, key: impl Fn(&Comparison) -> String) {
    let mut sums: BTreeMap<String, Agreement> = BTreeMap::new();
    rows.iter().for_each(|row| sums.entry(key(row)).or_default().add(row));
    println!("{title}");
    for (name, sum) in sums {
        println!("  {name:<28} {}", sum.line());
    }
}

fn lateness(row: &Comparison) -> &'static str {
    match row.late * 1e3 {
        ms if ms < 0.3 => "below 0.3 ms",
        ms if ms < 1.0 => "0.3 to 1 ms",
        ms if ms < 3.0 => "1 to 3 ms",
        _ => "from 3 ms",
    }
}

/// Appends the comparisons to a file.
fn save(path: &str, rows: &[Comparison]) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    for row in rows {
        writeln!(
            file,
            "{};{};{};{:?};{};{};{};{};{};{};{};{}",
            row.load,
            row.rate,
            row.samples,
            row.class,
            row.activity,
            row.estimate,
            row.half_width.unwrap_or(f64::NAN),
            row.truth,
            row.tolerance,
            row.late,
            row.refused,
            row.doubt,
        )
        .unwrap();
    }
}

#[test]
#[ignore = "verify: 95 % intervals of samples contain the exact time"]
fn verify_samples_against_the_ledger() {
    let rates = numbers("PGTALLY_SAMPLES", "10,20,50,100");
    let length = Duration::from_secs(numbers("PGTALLY_SECONDS", "5")[0].into());
    let stretches = numbers("PGTALLY_STRETCHES", "6")[0];
    let builder = flushing().setting("shared_preload_libraries", "pg_tally");
    // Small, so that accounts are read again and again.
    let cluster = start(builder.setting("shared_buffers", "2MB"));
    cluster.pgbench_init(5).unwrap();
    let mut readers: Vec<Readers> =
        rates.iter().map(|rate| Readers::open(&cluster, *rate)).collect();
    let mut rows = Vec::new();
    for_each_load(&cluster, &mut |name| {
        let mut before: Vec<Pair> = readers.iter_mut().map(|one| one.read(None)).collect();
        for _ in 0..stretches {
            std::thread::sleep(length);
            let pairs = readers.iter_mut().zip(&before);
            let after: Vec<Pair> = pairs.map(|(one, pair)| one.read(Some(pair))).collect();
            for ((one, before), after) in readers.iter().zip(&before).zip(&after) {
                rows.extend(compare(name, [before, after], one));
            }
            before = after;
        }
    });
    if let Ok(path) = std::env::var("PGTALLY_TABLE") {
        save(&path, &rows);
    }
    table(&rows, "by class", |row| format!("{:?}", row.class));
    table(&rows, "by load", |row| row.load.to_string());
    table(&rows, "by rate", |row| format!("{}/s", row.rate));
    table(&rows, "cpu by lateness", |row| {
        if row.class == WaitClass::Cpu { lateness(row) } else { "(not cpu)" }.to_string()
    });
    table(&rows, "all by lateness", |row| lateness(row).to_string());
    let mut sum = Agreement::default();
    rows.iter().for_each(|row| sum.add(row));
    println!(
        "verify\t95 % intervals of samples contain the exact time\t{}\t-\t-\t-",
        sum.line().trim()
    );
    let share = sum.contained as f64 / sum.comparisons as f64;
    assert!(share >= 0.93, "{}", sum.line());
}

/// The profile of pg_wait_sampling: samples by process and wait event.
struct PeerProfile(BTreeMap<(i32, String), i64>);

impl PeerProfile {
    fn read(client: &mut postgres::Client) -> PeerProfile {
        let rows = client
            .query(
                "select p.pid, p.event_type || ':' || p.event, sum(p.count)::bigint
                   from pg_wait_sampling_profile p left join pg_stat_activity a using (pid)
                  where p.event is not null and coalesce(a.application_name, '') not like 'tally%'
                  group by 1, 2",
                &[],
            )
            .unwrap();
        PeerProfile(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect())
    }

    /// Seconds by wait event since an earlier one, in a stretch of this length. A process that always waits, such as an idle one of
    /// the background, tells how many samples it took.
    fn seconds_since(&self, earlier: &PeerProfile, length: f64) -> BTreeMap<String, f64> {
        let mut of_processes: BTreeMap<i32, i64> = BTreeMap::new();
        let mut of_events: BTreeMap<String, i64> = BTreeMap::new();
        for (key @ (pid, event), count) in &self.0 {
            let more = count - earlier.0.get(key).copied().unwrap_or(0);
            *of_processes.entry(*pid).or_default() += more;
            *of_events.entry(event.clone()).or_default() += more;
        }
        let samples = of_processes.into_values().max().unwrap_or(0).max(1) as f64;
        of_events.into_iter().map(|(event, n)| (event, length * n as f64 / samples)).collect()
    }
}

/// Sums of one class of waits, and of the errors of both samplers in each stretch, seconds.
#[derive(Default)]
struct PeerSum {
    truth: f64,
    ours: f64,
    peer: f64,
    our_error: f64,
    peer_error: f64,
}

/// Needs Debian's postgresql-15-pg-wait-sampling or its like.
#[test]
#[ignore = "verify: pg_wait_sampling and samples of the same seconds, beside the exact time"]
fn verify_samples_beside_pg_wait_sampling() {
    let length = Duration::from_secs(numbers("PGTALLY_SECONDS", "5")[0].into());
    let stretches = numbers("PGTALLY_STRETCHES", "6")[0];
    let libraries = "pg_tally, pg_wait_sampling";
    let builder = flushing().setting("shared_preload_libraries", libraries);
    let cluster = start(builder.setting("shared_buffers", "2MB"));
    cluster.pgbench_init(5).unwrap();
    let mut client = cluster.connect().unwrap();
    // All three see this session idle.
    client.batch_execute("create extension pg_wait_sampling").unwrap();
    // As often as the peer does by default.
    let mut readers = Readers::open(&cluster, 100);
    let mut sums: BTreeMap<String, PeerSum> = BTreeMap::new();
    for_each_load(&cluster, &mut |load| {
        for _ in 0..stretches {
            let (before, peer_before) = (readers.read(None), PeerProfile::read(&mut client));
            std::thread::sleep(length);
            let (peer, after) = (PeerProfile::read(&mut client), readers.read(Some(&before)));
            let (sampled, exact) = readers.intervals(&before, &after);
            let of_peer = peer.seconds_since(&peer_before, exact.interval_seconds);
            let ratio = exact.interval_seconds / sampled.interval_seconds;
            let of_ours: BTreeMap<String, f64> = sampled
                .activities()
                .into_iter()
                .map(|row| (row.activity.to_string(), row.timing.seconds * ratio))
                .collect();
            for row in exact.activities() {
                let event = &*row.activity;
                // Main loops of the background, the peer's own among them, and what has no wait event.
                let no_waits =
                    [WaitClass::Activity, WaitClass::Extension, WaitClass::Cpu, WaitClass::Other];
                if no_waits.contains(&WaitClass::of_name(event)) {
                    continue;
                }
                let of = |all: &BTreeMap<String, f64>| all.get(event).copied().unwrap_or(0.0);
                let (truth, ours, theirs) = (row.timing.seconds, of(&of_ours), of(&of_peer));
                for name in [format!("{:?}", WaitClass::of_name(event)), load.to_string()] {
                    let sum = sums.entry(name).or_default();
                    sum.truth += truth;
                    sum.ours += ours;
                    sum.peer += theirs;
                    sum.our_error += (ours - truth).abs();
                    sum.peer_error += (theirs - truth).abs();
                }
            }
        }
    });
    for (name, sum) in sums {
        let share = |value: f64| 100.0 * value / sum.truth.max(1e-9);
        println!(
            "verify\twaits, {name}\texact {:.1} s\tsamples of tally {:+.1} %, errors {:.1} %\tpg_wait_sampling {:+.1} %, errors {:.1} %",
            sum.truth,
            share(sum.ours) - 100.0,
            share(sum.our_error),
            share(sum.peer) - 100.0,
            share(sum.peer_error),
        );
    }
}

/// CPU time of the server process that is sampled through, in ns.
fn cpu_ns(pid: i32) -> u64 {
    let pid = u32::try_from(pid).unwrap();
    process::Proc::default().schedstat(pid).unwrap().on_cpu_ns
}

#[test]
#[ignore = "verify: what samples cost a server with 200 sessions"]
fn verify_cost_of_samples() {
    let seconds = u64::from(numbers("PGTALLY_SECONDS", "60")[0]);
    let cluster = start(plain().setting("max_connections", "230"));
    let load = Load::Script("select pg_sleep(0.5);\n\\sleep 500 ms\n".to_string());
    let _sessions = cluster.pgbench().load(load).clients(200).until_stopped().spawn().unwrap();
    let mut admin = cluster.connect().unwrap();
    eventually("all sessions are there", || {
        let sessions = "select count(*) from pg_stat_activity where application_name = 'pgbench'";
        admin.query_one(sessions, &[]).unwrap().get::<_, i64>(0) == 200
    });
    for rate in numbers("PGTALLY_SAMPLES", "1,10,100") {
        let conninfo = Conninfo::parse(&cluster.connection_string()).unwrap();
        let source = SegmentSource::Samples(conninfo, rate.to_string().parse().unwrap());
        let mut sampled = source.open().unwrap();
        let ours = "select pid from pg_stat_activity where application_name = 'tally' \
                    and query like '%tally_sample%' and state <> 'disabled'";
        let pid: i32 = admin.query_one(ours, &[]).unwrap().get(0);
        sampled.refresh().unwrap();
        let (before, began) = (sampled.snapshot(None).unwrap(), cpu_ns(pid));
        std::thread::sleep(Duration::from_secs(seconds));
        sampled.refresh().unwrap();
        let after = sampled.snapshot(Some(&before)).unwrap();
        let spent = (cpu_ns(pid) - began) as f64 * 1e-9;
        let sampling = Interval::between(&sampled, Some(&before), &after).sampling.unwrap();
        println!(
            "verify\tsamples cost the server, {rate}/s, 200 sessions\t{:.3} % of a CPU\t{:.2} ms a sample\t{} samples, {:.3} % as shown",
            100.0 * spent / sampling.sampled_seconds,
            1e3 * spent / sampling.samples as f64,
            sampling.samples,
            100.0 * sampling.cost_share,
        );
        drop(sampled);
        eventually("its session has ended", || admin.query(ours, &[]).unwrap().is_empty());
    }
}
