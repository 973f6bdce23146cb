// SPDX-License-Identifier: PostgreSQL
//! Synthetic recordings of a fake server whose activity is known to the nanosecond.

use std::path::Path;
use std::sync::Arc;

use recording::{
    About, Batch, FrameRow, RecordedStatementRow, RetentionPolicy, Series, ServerRow, SettingRow,
    StatRow, StatementAccountRow, TextRow, Writer,
};
use segment::directory::{Stat, StatKind};

/// 2026-03-01 00:00:00 UTC, microseconds since 1970.
pub const MIDNIGHT: i64 = 1_772_323_200_000_000;
const SECOND: u64 = 1_000_000_000;

/// Reproducible pseudo-random numbers.
pub struct Dice(pub u64);

impl Dice {
    /// 0 to 1.
    pub fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    /// Between 1 - `share` and 1 + `share`.
    pub fn around(&mut self, share: f64) -> f64 {
        1.0 + share * (2.0 * self.throw() - 1.0)
    }
}

/// An account's name, its time per transaction in ns, and how much that scatters from second to second (share).
pub type Account = (&'static str, f64, f64);

/// A server and its load.
#[derive(Clone)]
pub struct FakeServer {
    pub host: &'static str,
    pub settings: Vec<(&'static str, &'static str)>,
    pub accounts: Vec<Account>,
    /// Text, query id, and share of the total time.
    pub statements: Vec<(&'static str, i64, f64)>,
    /// Timed functions: name, inclusive and exclusive time per transaction in ns.
    pub functions: Vec<(&'static str, u64, u64)>,
    pub transactions: f64,
    pub seed: u64,
    pub from_us: i64,
    /// The recorder was killed: it has not read the last statements.
    pub killed: bool,
    /// How much the time of a statement varies from second to second, as a share.
    pub own: f64,
    /// Statements are read often at the beginning, as the recorder does.
    pub early: bool,
    /// Eight sessions wait for a standby that has stopped, and commit when they are released in the last second.
    pub standby_lost: bool,
}

impl Default for FakeServer {
    fn default() -> FakeServer {
        FakeServer {
            host: "machine",
            settings: vec![("shared_buffers", "16384"), ("port", "5432")],
            accounts: vec![
                ("execute::cpu", 200_000.0, 0.1),
                ("execute::wait::IO:DataFileRead", 80_000.0, 0.3),
                ("commit::wait::IO:WALSync", 300_000.0, 0.2),
                ("parse::cpu", 20_000.0, 0.05),
                ("execute::wait::LWLock:BufferContent", 3_000.0, 0.9),
            ],
            statements: vec![("select $1", 11, 0.3), ("update t set x = $1", 12, 0.7)],
            functions: Vec::new(),
            transactions: 900.0,
            seed: 1,
            from_us: MIDNIGHT,
            killed: false,
            own: 0.0,
            early: false,
            standby_lost: false,
        }
    }
}

/// The totals of what was written.
#[derive(Debug, Default, Clone, Copy)]
pub struct WrittenTotals {
    pub ns: u64,
    pub commits: u64,
}

impl FakeServer {
    /// The same server with other random numbers.
    pub fn seed(mut self, seed: u64) -> FakeServer {
        self.seed = seed;
        self
    }

    /// Sets an account's time per transaction, in ns.
    pub fn account(mut self, name: &'static str, ns: f64) -> FakeServer {
        self.accounts.retain(|account| account.0 != name);
        self.accounts.push((name, ns, 0.3));
        self
    }

    /// Writes a recording of this length to a directory; `each` may change an interval's row.
    pub fn write(
        &self,
        to: &Path,
        seconds: u64,
        each: impl Fn(u64, &mut FrameRow),
    ) -> WrittenTotals {
        let about = About {
            format: recording::FORMAT,
            made_by: "a test".to_string(),
            host: self.host.to_string(),
            server: "PostgreSQL 15.20".to_string(),
            data_directory: "/data".to_string(),
            interval_ns: SECOND,
            detail_ns: 10 * SECOND,
            begun_us: self.from_us,
        };
        let mut writer = Writer::open(to, about, RetentionPolicy::default()).unwrap();
        let mut first = Batch {
            servers: vec![ServerRow {
                server: 1,
                time_us: self.from_us,
                name: "PostgreSQL 15.20".into(),
                data_directory: "/data".into(),
                clock: "tsc".into(),
                ..ServerRow::default()
            }],
            ..Batch::default()
        };
        first.settings = self.settings.iter().map(|setting| self.setting(setting)).collect();
        writer.push(first).unwrap();
        let mut dice = Dice(self.seed);
        let (mut sum, mut since) = (WrittenTotals::default(), 0);
        let mut detail = vec![WrittenTotals::default(); self.statements.len()];
        for second in 1..=seconds {
            let number = writer.next_frame();
            let time_us = self.from_us + second as i64 * 1_000_000;
            let (batch, of_second) =
                self.second((number, time_us, second == seconds), &mut dice, |row| {
                    each(second, row)
                });
            sum.ns += of_second.ns;
            sum.commits += of_second.commits;
            for (sum, (.., share)) in detail.iter_mut().zip(&self.statements) {
                sum.ns += (of_second.ns as f64 * share * dice.around(self.own)) as u64;
                sum.commits += of_second.commits;
            }
            let mut batch = batch;
            if self.is_detail(second, time_us) || second == seconds && !self.killed {
                batch.frames[0].detail = true;
                let length = SECOND * (second - std::mem::replace(&mut since, second));
                self.detail(&mut batch, length, &detail);
                detail.fill(WrittenTotals::default());
            }
            writer.push(batch).unwrap();
        }
        writer.close().unwrap();
        sum
    }

    fn setting(&self, (name, value): &(&str, &str)) -> SettingRow {
        SettingRow {
            time_us: self.from_us,
            group: "server".into(),
            name: (*name).into(),
            value: (*value).into(),
            unit: if *name == "shared_buffers" { "8kB" } else { "" }.into(),
            source: "sql".into(),
            ..SettingRow::default()
        }
    }

    fn second(
        &self,
        (frame, time_us, is_last): (u64, i64, bool),
        dice: &mut Dice,
        each: impl FnOnce(&mut FrameRow),
    ) -> (Batch, WrittenTotals) {
        let commits = match (self.standby_lost, is_last) {
            (false, _) => (self.transactions * dice.around(0.1)) as u64,
            (true, false) => 0,
            (true, true) => 160,
        };
        let row = |process: &str, name: &str, kind, count, total| StatRow {
            frame,
            time_us,
            series: Arc::new(Series {
                process: process.into(),
                stat: Arc::new(Stat::new(name.to_string(), kind, "ticks".to_string())),
            }),
            count,
            total,
            amount: 0,
            follows: 0,
        };
        let client = "client backend";
        let mut sum = WrittenTotals { ns: 0, commits };
        let mut statistics = Vec::new();
        for (name, each, scatter) in &self.accounts {
            let ns = (each * commits as f64 * dice.around(*scatter)) as u64;
            sum.ns += ns;
            statistics.push(row(client, name, StatKind::Account, commits, ns));
        }
        if self.standby_lost {
            let ns = (7.9 * SECOND as f64 * dice.around(0.05)) as u64;
            sum.ns += ns;
            statistics.push(row(client, "commit::wait::IPC:SyncRep", StatKind::Account, 8, ns));
        }
        let idle = 3 * SECOND;
        statistics.push(row(client, "idle::wait::Client:ClientRead", StatKind::Account, 1, idle));
        statistics.push(row("checkpointer", "background::cpu", StatKind::Account, 1, 1_000_000));
        let timer = StatKind::Timer;
        statistics.push(row(client, "commit::leader", timer, commits, 1));
        statistics.push(row(client, "command::Query::handle", timer, 7 * commits, sum.ns));
        statistics.push(row(client, "lwlock::ProcArray::held::execute::shared", timer, commits, 9));
        for (name, inclusive, exclusive) in &self.functions {
            for (part, each) in [("inclusive", inclusive), ("exclusive", exclusive)] {
                let name = format!("function::{name}::{part}::commit");
                statistics.push(row(client, &name, timer, commits, each * commits));
            }
        }
        let mut head = FrameRow {
            frame,
            time_us,
            interval_ns: SECOND,
            server: 1,
            level: "waits".into(),
            ticks_per_second: 1e9,
            cores: 2,
            wall_ns: sum.ns + idle,
            busy_ns: sum.ns,
            exact: true,
            commands: 7 * commits,
            functions_probed: self.functions.len() as _,
            ..FrameRow::default()
        };
        each(&mut head);
        (Batch { frames: vec![head], statistics, ..Batch::default() }, sum)
    }

    /// At multiples of a length since 1970, as the recorder does.
    fn is_detail(&self, second: u64, time_us: i64) -> bool {
        let length = match second {
            1..32 if self.early => 1,
            32..80 if self.early => 2,
            80..160 if self.early => 5,
            _ => 10,
        };
        let number = |us: i64| us.div_euclid(length * 1_000_000);
        number(time_us) != number(time_us - 1_000_000)
    }

    /// Each transaction calls each statement once.
    fn detail(&self, batch: &mut Batch, length_ns: u64, sums: &[WrittenTotals]) {
        let FrameRow { frame, time_us, .. } = batch.frames[0];
        for ((text, queryid, _), sum) in self.statements.iter().zip(sums) {
            batch.statements.push(RecordedStatementRow {
                frame,
                time_us,
                interval_ns: length_ns,
                queryid: *queryid,
                toplevel: true,
                database: "app".into(),
                user: "app".into(),
                calls: sum.commits,
                exec_ns: sum.ns,
                ..RecordedStatementRow::default()
            });
            batch.statement_accounts.push(StatementAccountRow {
                frame,
                time_us,
                queryid: *queryid,
                toplevel: true,
                account: "execute::cpu".into(),
                count: sum.commits,
                total_ns: sum.ns as i64,
                ..StatementAccountRow::default()
            });
            batch.statement_texts.push(TextRow {
                frame,
                time_us,
                queryid: *queryid,
                toplevel: true,
                text: (*text).into(),
                fingerprint: recording::fingerprint(text).into(),
                kept_bytes: text.len() as u32,
                whole_bytes: text.len() as u32,
                ..TextRow::default()
            });
        }
    }
}
