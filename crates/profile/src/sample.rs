// SPDX-License-Identifier: PostgreSQL
//! An invented profile for tests: 40 samples at 100 Hz, in one server process.

use crate::profile::{
    Account, LedgerRow, Process, Profile, Quality, Scope, SessionSamples, Stack, StatementText,
    Symbol, FORMAT,
};
use crate::timeline::{Timeline, Track, Wait};

fn account(activity: &str) -> Account {
    Account { phase: "execute".into(), activity: activity.into() }
}

pub fn profile() -> Profile {
    let symbol = |name: &str, image: &str| Symbol { name: name.into(), image: image.into() };
    let stack = |frames: &[usize], samples| Stack {
        process: 0,
        account: account("cpu"),
        statement: Some(0),
        frames: frames.to_vec(),
        samples,
    };
    let row = |activity: &str, seconds, samples, cpu_samples| LedgerRow {
        account: account(activity),
        class: activity.split(':').next().unwrap_or_default().to_lowercase(),
        idle: false,
        seconds,
        samples,
        sampled_seconds: samples as f64 * 0.01,
        half_width_seconds: 0.1,
        cpu_samples,
    };
    let session = |activity: &str, samples| SessionSamples {
        account: account(activity),
        statement: Some(0),
        samples,
    };
    Profile {
        format: FORMAT.into(),
        time: 1_782_907_200.0,
        seconds: 1.0,
        hertz: 100.0,
        server: "PostgreSQL 15.20".into(),
        host: "/data".into(),
        cores: 2,
        scope: Scope::Server,
        kernel: true,
        commands: 1_000,
        transactions: None,
        quality: Quality {
            cpu_samples: 40,
            account_known: 40,
            instants: 100,
            ..Quality::default()
        },
        on_cpu_seconds: Some(0.41),
        run_queue_seconds: Some(0.0),
        ledger: vec![row("cpu", 0.4, 41, 40), row("IO:DataFileRead", 0.6, 59, 0)],
        statements: vec![StatementText { query_id: -7, query: Some("select 1".into()) }],
        processes: vec![Process { name: "client backend".into(), server: true }],
        symbols: vec![
            symbol("leaf", "/usr/bin/postgres"),
            symbol("main", "/usr/bin/postgres"),
            symbol("do_read", crate::KERNEL),
        ],
        stacks: vec![stack(&[0, 1], 10), stack(&[2, 0, 1], 30)],
        sessions: vec![session("cpu", 41), session("IO:DataFileRead", 59)],
    }
}

pub fn timeline() -> Timeline {
    let wait =
        Wait { account: account("IO:DataFileRead"), class: "io".into(), begin: 0.1, end: 0.2 };
    let track = Track {
        pid: 7,
        name: "client backend".into(),
        samples: vec![(0.05, 0), (0.06, 1)],
        waits: vec![wait],
    };
    Timeline { tracks: vec![track], waits_dropped: 0 }
}
