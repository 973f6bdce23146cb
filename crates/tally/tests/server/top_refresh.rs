// SPDX-License-Identifier: PostgreSQL
//! A refresh of the full-screen view sends only the difference, in one write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use crate::maker::{Maker, Shape, Slot, Who, ACCOUNT, TIMER};
use crate::support::pty::Pty;
use crate::support::stopped::Stopped;
use crate::support::{while_working, Load};
use segment::clock::monotonic_ns;

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// Number of refreshes that are checked.
const REFRESHES: usize = 30;

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The refreshes, and what was sent outside them.
fn parts(mut bytes: &[u8]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    while let Some(begin) = find(bytes, BEGIN) {
        outside.push(&bytes[..begin]);
        let Some(end) = find(&bytes[begin..], END) else { break };
        inside.push(&bytes[begin + BEGIN.len()..begin + end]);
        bytes = &bytes[begin + end + END.len()..];
    }
    outside.push(bytes);
    (inside, outside)
}

/// Sessions that never stop.
struct World {
    maker: Maker,
    accounts: Vec<u32>,
    timers: Vec<u32>,
    sessions: Vec<Slot>,
}

impl World {
    fn new(path: &Path) -> World {
        let mut maker = Maker::new(path, Shape { slots: 8, groups: 2, stats_per_book: 32 });
        let waits = ["cpu", "wait::IO:WALSync", "wait::LWLock:WALWrite", "wait::Lock:tuple"];
        let accounts: Vec<u32> =
            waits.map(|wait| maker.stat(&format!("execute::{wait}"), ACCOUNT)).into();
        let kinds = ["Query", "Parse", "Bind", "Execute", "Sync"];
        let timers =
            kinds.map(|kind| maker.stat(&format!("command::{kind}::handle"), TIMER)).into();
        let now = monotonic_ns();
        let claim = |slot| maker.claim(slot, 1, Who::client(), accounts[0], now);
        let sessions = (0..8).map(claim).collect();
        World { maker, accounts, timers, sessions }
    }

    /// The reader is stopped meanwhile: otherwise it would report a session whose writer has no processor in the middle of an
    /// update, and that line would come and go.
    fn work(&mut self, stop: &AtomicBool, reader: i32) {
        for turn in 1u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let stopped = Stopped::new(reader);
            for (number, session) in (1u64..).zip(&mut self.sessions) {
                let account = self.accounts[(turn + number) as usize % self.accounts.len()];
                session.switch(account, monotonic_ns());
                for (timer, length) in self.timers.iter().zip(1u64..) {
                    session.record(*timer, 1000 * number * length + turn);
                }
                self.maker.write(session);
            }
            drop(stopped);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn a_refresh_sends_only_the_difference_in_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pg_tally.1.2");
    let world = Mutex::new(World::new(&path));
    for size in [(80, 24), (200, 50)] {
        refreshes(&world, &path, size);
    }
}

fn refreshes(world: &Mutex<World>, segment: &Path, (width, height): (u16, u16)) {
    let segment = segment.to_str().unwrap();
    let tally = env!("CARGO_BIN_EXE_tally");
    let arguments = ["top", "--no-config", "--no-witness", "--view", "ledger", "--interval", "0.1"];
    let command = [&[tally], &arguments[..], &[segment]].concat();
    let mut pty = Pty::run(width, height, &command);
    let reader = pty.pid();
    let work = |stop: &AtomicBool| world.lock().unwrap().work(stop, reader);
    while_working(&[&work as &Load], || {
        pty.until("the refreshes", |bytes| parts(bytes).0.len() > REFRESHES + 5);
    });
    pty.press("q");
    let (code, bytes) = pty.end();
    assert_eq!(code, Some(0));
    let (refreshes, outside) = parts(&bytes);
    let later = &refreshes[5..5 + REFRESHES];
    // Content that stays the same is sent once: a title, the keys.
    for text in ["1 Ledger", "quit", "help"] {
        let sent = |bytes: &&&[u8]| find(bytes, text.as_bytes()).is_some();
        assert!(refreshes[..5].iter().any(|bytes| sent(&bytes)), "{text}");
        assert_eq!(later.iter().filter(sent).count(), 0, "{text}");
    }
    assert!(later.iter().all(|bytes| find(bytes, b"\x1b[2J").is_none()));
    let between = &outside[1..outside.len() - 1];
    assert!(between.iter().all(|bytes| bytes.is_empty()), "{between:?}");
    assert!(find(outside[outside.len() - 1], b"\x1b[?1049l").is_some(), "it is given back");
}
