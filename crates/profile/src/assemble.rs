// SPDX-License-Identifier: PostgreSQL
//! Turns samples into a profile: names accounts, statements and functions, and counts equal samples.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use error::Error;
use segment::kernel::KernelView;
use segment::{AccountNumber, Interval, Segment, StatementKey, WaitClass};

use crate::cpu_sampler::{Account as Sampled, Addresses, CpuSample, CpuSamples};
use crate::maps::Maps;
use crate::profile::{
    Account, LedgerRow, Process, Profile, Quality, Scope, SessionSamples, Stack, StatementText,
    Symbol, FORMAT,
};
use crate::sums::half_width;
use crate::symbols::{Function, Symbols, UNKNOWN};
use crate::timeline::{Timeline, Track, Wait};
use crate::wall_sampler::{Hits, WallSamples};

/// The samples of all samplers.
#[derive(Debug)]
pub struct ProfileSamples {
    /// Samples of each CPU.
    pub cpus: Vec<CpuSamples>,
    /// Samples of all sessions.
    pub wall: WallSamples,
    /// Start of sampling, CLOCK_MONOTONIC in ns.
    pub begun_ns: u64,
}

/// The processes seen while sampling.
#[derive(Debug, Default)]
pub struct SeenProcesses {
    /// "client backend", ... for processes with a slot.
    pub kinds: HashMap<i32, String>,
    /// Commands of processes outside the server.
    pub names: HashMap<i32, String>,
    /// Their mappings.
    pub maps: HashMap<i32, Maps>,
    /// Processes of the server.
    pub ours: HashSet<i32>,
    /// The postmaster; 0 if unknown.
    pub postmaster: i32,
}

/// How it was sampled.
#[derive(Debug, Clone, Copy)]
pub struct SamplingMethod {
    /// Samples per second.
    pub hertz: f64,
    /// Sampled processes.
    pub scope: Scope,
    /// Whether the kernel was sampled too.
    pub kernel: bool,
}

/// Functions at which the stack of a thread begins.
const BEGINNINGS: [&str; 7] = [
    "main",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
];

/// Numbers things in the order in which they are first seen.
struct Numbered<T>(Vec<T>, HashMap<T, usize>);

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered(Vec::new(), HashMap::new())
    }

    fn number(&mut self, thing: T) -> usize {
        if let Some(number) = self.1.get(&thing) {
            return *number;
        }
        self.0.push(thing.clone());
        self.1.insert(thing, self.0.len() - 1);
        self.0.len() - 1
    }
}

/// Names of accounts.
struct Accounts(HashMap<AccountNumber, (Account, String)>);

impl Accounts {
    fn resolve(
        &mut self,
        segment: &mut Segment,
        number: AccountNumber,
    ) -> Result<&(Account, String), Error> {
        if let std::collections::hash_map::Entry::Vacant(e) = self.0.entry(number) {
            let stat = segment.account(number)?;
            let named = stat.map_or_else(Default::default, |stat| {
                let (phase, activity) = (stat.phase().to_string(), stat.activity().to_string());
                (Account { phase, activity }, stat.class().name().to_string())
            });
            e.insert(named);
        }
        Ok(&self.0[&number])
    }
}

/// Frames of a stack: their functions, and whether the user-space part reaches its beginning.
#[derive(Clone)]
struct Frames {
    functions: Arc<[usize]>,
    user: bool,
    whole: bool,
    /// The image in which the user-space part ends.
    outermost: Option<Arc<str>>,
}

struct Assembler<'a> {
    seen: &'a SeenProcesses,
    symbols: Symbols,
    functions: Numbered<Function>,
    frames: HashMap<(i32, usize, u32), Frames>,
    root: PathBuf,
}

impl Assembler<'_> {
    /// The maps of a process; those of the postmaster if the process ended too early.
    fn maps(&self, pid: i32) -> Option<&Maps> {
        let fallback =
            || self.seen.ours.contains(&pid).then(|| self.seen.maps.get(&self.seen.postmaster));
        self.seen.maps.get(&pid).or_else(|| fallback().flatten())
    }

    fn frames(&mut self, cpu: usize, sample: &CpuSample, stacks: &[Addresses]) -> Frames {
        let key = (sample.pid, cpu, sample.stack);
        if let Some(known) = self.frames.get(&key) {
            return known.clone();
        }
        let addresses = &stacks[sample.stack as usize];
        let (kernel, user) = addresses.frames.split_at(addresses.kernel as usize);
        // Outer frames are return addresses: the call is just before them, possibly the last code of its function.
        let call = |at: usize, address: u64| if at == 0 { address } else { address - 1 };
        let mut functions = Vec::with_capacity(addresses.frames.len());
        for (at, address) in kernel.iter().enumerate() {
            functions.push(self.symbols.kernel(call(at, *address)));
        }
        let mut whole = user.is_empty();
        let mut outermost = None;
        let maps = self.maps(sample.pid).cloned();
        for (at, address) in user.iter().enumerate().filter(|frame| *frame.1 != 0) {
            let function = self.symbols.user(maps.as_ref(), call(at, *address), &self.root);
            whole |= BEGINNINGS
                .iter()
                .any(|beginning| function.name.split('@').next() == Some(beginning));
            if &*function.image == UNKNOWN && at > 0 {
                // After a frame without a frame pointer, the values are arbitrary.
                break;
            }
            outermost = Some(function.image.clone());
            functions.push(function);
        }
        let numbers: Vec<usize> =
            functions.into_iter().map(|function| self.functions.number(function)).collect();
        let frames = Frames { functions: numbers.into(), user: !user.is_empty(), whole, outermost };
        self.frames.insert(key, frames.clone());
        frames
    }
}

/// Makes a profile of these samples.
pub fn assemble(
    segment: &mut Segment,
    found: &ProfileSamples,
    seen: &SeenProcesses,
    interval: &Interval,
    how: SamplingMethod,
) -> Result<(Profile, Timeline), Error> {
    let root = match seen.postmaster {
        0 => PathBuf::from("/"),
        pid => Path::new("/proc").join(pid.to_string()).join("root"),
    };
    let mut assembler = Assembler {
        seen,
        symbols: Symbols::new(),
        functions: Numbered::new(),
        frames: HashMap::new(),
        root,
    };
    let mut accounts = Accounts(HashMap::new());
    let mut processes = Numbered::new();
    let mut statements = Numbered::new();
    let mut stacks = Numbered::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut tracks: HashMap<i32, Track> = HashMap::new();
    let mut quality = Quality {
        instants: found.wall.instants,
        instants_missed: found.wall.missed,
        first: found.wall.first && found.cpus.iter().all(|cpu| cpu.first),
        kernel_symbols: assembler.symbols.knows_kernel(),
        ..Quality::default()
    };
    let mut cut_in: HashMap<Arc<str>, u64> = HashMap::new();
    for (cpu, samples) in found.cpus.iter().enumerate() {
        quality.lost += samples.lost;
        quality.throttled += samples.throttled;
        quality.other_samples += samples.others;
        quality.unwound_stacks += samples.unwound;
        for sample in &samples.samples {
            let ours = matches!(sample.account, Sampled::Known(_) | Sampled::Moved)
                || seen.ours.contains(&sample.pid);
            let frames = assembler.frames(cpu, sample, &samples.stacks);
            let mut statement = None;
            let account = match sample.account {
                Sampled::Known(doing) => {
                    quality.account_known += 1;
                    statement = doing.statement.map(|key| statements.number(key));
                    accounts.resolve(segment, doing.account)?.0.clone()
                }
                Sampled::Moved => {
                    quality.account_moved += 1;
                    Account::default()
                }
                Sampled::NoSlot => {
                    quality.no_slot += u64::from(ours);
                    Account::default()
                }
            };
            if ours {
                quality.cpu_samples += 1;
                quality.user_stacks += u64::from(frames.user);
                if frames.user && !frames.whole {
                    quality.cut_stacks += 1;
                    *cut_in.entry(frames.outermost.clone().unwrap_or_default()).or_insert(0) += 1;
                }
            } else {
                quality.other_samples += 1;
            }
            let process =
                processes.number(Process { name: seen.name(sample.pid, ours), server: ours });
            let number = stacks.number((process, account, statement, frames.functions));
            counts.resize(counts.len().max(number + 1), 0);
            counts[number] += 1;
            if ours {
                let track = tracks.entry(sample.pid).or_default();
                track.samples.push((since(found.begun_ns, sample.time), number));
            }
        }
    }
    let mut sessions = Vec::new();
    for ((account, statement), samples) in &found.wall.statements {
        let account = accounts.resolve(segment, *account)?.0.clone();
        let statement = statement.map(|key| statements.number(key));
        sessions.push(SessionSamples { account, statement, samples: *samples });
    }
    sessions.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.account.cmp(&b.account)));
    let mut stacks: Vec<Stack> = stacks
        .0
        .into_iter()
        .zip(counts)
        .map(|((process, account, statement, frames), samples)| Stack {
            process,
            account,
            statement,
            frames: frames.to_vec(),
            samples,
        })
        .collect();
    let timeline = timeline(segment, found, seen, tracks, &mut accounts)?;
    let mut hits: HashMap<Account, Hits> = HashMap::new();
    for (number, found) in &found.wall.accounts {
        let sum = hits.entry(accounts.resolve(segment, *number)?.0.clone()).or_default();
        sum.samples += found.samples;
        sum.squares += found.squares;
    }
    stacks.iter_mut().for_each(|stack| stack.frames.shrink_to_fit());
    let mut cut_in: Vec<_> =
        cut_in.into_iter().filter(|file| 5 * file.1 > quality.cut_stacks).collect();
    cut_in.sort_by_key(|file| std::cmp::Reverse(file.1));
    quality.cut_in = cut_in.into_iter().map(|file| file.0.to_string()).collect();
    quality.stripped = assembler.symbols.stripped().map(|file| file.to_string()).collect();
    let kernel = of_all(interval);
    let profile = Profile {
        format: FORMAT.to_string(),
        time: interval.time,
        seconds: interval.interval_seconds,
        hertz: how.hertz,
        server: interval.server.name.clone(),
        host: interval.server.host.clone(),
        cores: interval.cores,
        scope: how.scope,
        kernel: how.kernel,
        commands: interval.commands_handled,
        transactions: None,
        on_cpu_seconds: kernel.map(|view| view.on_cpu_seconds),
        run_queue_seconds: kernel.map(|view| view.run_queue_seconds),
        ledger: ledger(interval, &hits, found.wall.instants, &stacks),
        statements: texts(segment, &statements.0)?,
        processes: processes.0,
        symbols: assembler
            .functions
            .0
            .iter()
            .map(|function| Symbol {
                name: function.name.to_string(),
                image: function.image.to_string(),
            })
            .collect(),
        quality,
        stacks,
        sessions,
    };
    Ok((profile, timeline))
}

fn since(begun_ns: u64, ns: u64) -> f64 {
    (ns as f64 - begun_ns as f64) * 1e-9
}

impl SeenProcesses {
    fn name(&self, pid: i32, ours: bool) -> String {
        if let Some(kind) = self.kinds.get(&pid) {
            return kind.clone();
        }
        match ours {
            true if pid == self.postmaster => "postmaster".into(),
            true => "server process".into(),
            false => self.names.get(&pid).cloned().unwrap_or_else(|| "(ended)".into()),
        }
    }
}

/// The kernel's accounting, if it covers all processes of the ledger: it forgets processes that end.
fn of_all(interval: &Interval) -> Option<&KernelView> {
    let on_cpu = interval.ledger.iter().filter(|row| row.class == WaitClass::Cpu);
    let cpu: f64 = on_cpu.map(|row| row.timing.seconds).sum();
    let kernel = &interval.kernel;
    (kernel.available && kernel.cpu_account_seconds >= 0.99 * cpu).then_some(kernel)
}

/// The exact ledger with the samples of each account, plus accounts that appear only in samples.
fn ledger(
    interval: &Interval,
    hits: &HashMap<Account, Hits>,
    instants: u64,
    stacks: &[Stack],
) -> Vec<LedgerRow> {
    let mut on_cpu: HashMap<&Account, u64> = HashMap::new();
    for stack in stacks.iter().filter(|stack| !stack.account.phase.is_empty()) {
        *on_cpu.entry(&stack.account).or_default() += stack.samples;
    }
    // Each sample stands for that much time.
    let each = if instants == 0 { 0.0 } else { interval.interval_seconds / instants as f64 };
    let row = |account: Account, class: &str, idle: bool, seconds: f64| {
        let found = hits.get(&account).copied().unwrap_or_default();
        LedgerRow {
            class: class.into(),
            idle,
            seconds,
            samples: found.samples,
            sampled_seconds: found.samples as f64 * each,
            half_width_seconds: half_width(found.samples, found.squares, instants) * each,
            cpu_samples: on_cpu.get(&account).copied().unwrap_or_default(),
            account,
        }
    };
    let known = interval.ledger.iter().map(|known_row| {
        let account = Account {
            phase: known_row.phase.to_string(),
            activity: known_row.activity.to_string(),
        };
        row(account, known_row.class.name(), known_row.idle, known_row.timing.seconds)
    });
    known.collect()
}

fn texts(segment: &mut Segment, keys: &[StatementKey]) -> Result<Vec<StatementText>, Error> {
    let read = if keys.is_empty() { None } else { segment.statements()? };
    let text = |key: &StatementKey| {
        let statement = read.as_ref().and_then(|texts| texts.get(key));
        Some(statement?.text.as_ref()?.shown.to_string())
    };
    Ok(keys
        .iter()
        .map(|key| StatementText { query_id: key.query_id(), query: text(key) })
        .collect())
}

fn timeline(
    segment: &mut Segment,
    found: &ProfileSamples,
    seen: &SeenProcesses,
    mut tracks: HashMap<i32, Track>,
    accounts: &mut Accounts,
) -> Result<Timeline, Error> {
    let clock = *segment.clock();
    for stretch in &found.wall.stretches {
        let (account, class) = accounts.resolve(segment, stretch.account)?.clone();
        if class == "cpu" {
            continue;
        }
        let [begin, end] =
            [stretch.since, stretch.seen].map(|tick| since(found.begun_ns, clock.ns_of(tick)));
        let track = tracks.entry(stretch.pid).or_default();
        track.waits.push(Wait { account, class, begin, end });
    }
    let mut all: Vec<Track> = tracks
        .into_iter()
        .map(|(pid, mut track)| {
            (track.pid, track.name) = (pid, seen.name(pid, true));
            track.samples.sort_by(|a, b| a.0.total_cmp(&b.0));
            track
        })
        .collect();
    all.sort_by_key(|track| track.pid);
    Ok(Timeline { tracks: all, waits_dropped: found.wall.stretches_dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_without_a_slot_are_named_by_what_is_known() {
        let seen = SeenProcesses {
            kinds: HashMap::from([(1, "walwriter".into())]),
            names: HashMap::from([(4, "bash".into())]),
            postmaster: 2,
            ..SeenProcesses::default()
        };
        for (pid, ours, name) in [
            (1, true, "walwriter"),
            (2, true, "postmaster"),
            (3, true, "server process"),
            (4, false, "bash"),
            (5, false, "(ended)"),
        ] {
            assert_eq!(seen.name(pid, ours), name);
        }
        assert_eq!(since(2_000_000_000, 1_500_000_000), -0.5);
    }
}
