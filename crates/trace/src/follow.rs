// SPDX-License-Identifier: PostgreSQL
//! Follows the rings of the traced processes until it is stopped, and passes the trace on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use error::Error;
use live::target;
use segment::{
    Segment, SessionStatement, TraceEnd, TraceKind, TraceReader, TraceRecord, TraceRequest,
    TraceState, TraceSwitch, Traced,
};

use super::names::Names;
use super::sampler::Sampler;
use super::story::{Story, TraceItem, Unit};
use super::{Chosen, Context, Sink, TraceArgs};

/// How often to read: a ring has 16,384 records, and a busy session writes about 100,000 per second.
const NAP: Duration = Duration::from_millis(10);
/// How often to renew the requests.
const RENEW: Duration = Duration::from_secs(1);
/// How often to read the ledger for comparison.
const COMPARE: Duration = Duration::from_millis(200);
/// Rings that wait for further sessions; all others are left to other traces. A session that finds none is traced a little
/// later. Rings that sessions have taken stay with the trace.
const SPARE: usize = 2;
/// Rings for parallel workers of one process.
const WORKERS: u32 = 4;
/// When to report that a process is inactive.
const PATIENCE: Duration = Duration::from_secs(2);

/// A ring and the story read from it.
struct Ring {
    reader: TraceReader,
    story: Option<Story>,
    /// Whether the first records of the trace are read.
    begun: bool,
    over: bool,
}

/// Traces until the end.
pub fn follow(
    args: &TraceArgs,
    chosen: &Chosen,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let segment = Segment::open(target::source(chosen.target)?.file("tally trace")?)?;
    ready(&segment, chosen)?;
    let mut switch = TraceSwitch::open(&segment)?;
    let rings = arm(&mut switch, args, chosen.pid)?;
    let (origin, origin_realtime_ns) = segment.clock().time_of_day();
    let mut context = Context { origin, origin_realtime_ns, segment, names: Names::default() };
    let sampler = args.nodes.then(|| Sampler::start(&context.segment)).transpose()?;
    let pid = chosen.pid;
    let mut trace = RunningTrace {
        args,
        pid,
        sink,
        rings,
        sampler,
        done: Vec::new(),
        passed: 0,
        refused: None,
        has_parameters: false,
    };
    let outcome = trace.watch(&mut context, &mut switch, stop);
    switch.stop();
    trace.poll(&mut context, false, false)?;
    trace.end(&mut context)?;
    outcome
}

/// Checks that this server can be traced.
fn ready(segment: &Segment, chosen: &Chosen) -> Result<(), Error> {
    target::need_measured(segment)?;
    match chosen.pid {
        Some(pid) if !has_slot(segment, pid)? => Err(Error::Failed(format!(
            "process {pid} is not a measured process of this server; `tally top --view sessions` lists those"
        ))),
        _ => Ok(()),
    }
}

fn has_slot(segment: &Segment, pid: i32) -> Result<bool, Error> {
    Ok(segment.slot_of(pid)?.is_some())
}

/// The request for the chosen process, or for sessions with the chosen names.
fn request(args: &TraceArgs, pid: Option<i32>) -> TraceRequest {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    TraceRequest {
        pid,
        workers: false,
        nodes: args.nodes,
        parameters: args.parameters,
        slow: false,
        application: text(&args.application),
        user: text(&args.user),
        database: text(&args.database),
    }
}

/// Rings to arm for sessions if so many are taken and so many wait.
fn missing(sessions: u32, taken: usize, waiting: usize) -> u32 {
    let most = (sessions as usize).saturating_sub(taken).min(SPARE);
    most.saturating_sub(waiting) as u32
}

/// Whether a session that executes a statement after these records, the first of its trace, executed the same one when they
/// began.
fn is_within_statement(records: &[(u64, TraceRecord)]) -> bool {
    let is_whole = records.iter().all(|(lost, _)| *lost == 0);
    let begins = |kind: &TraceKind| {
        matches!(kind, TraceKind::Message { .. } | TraceKind::Statement { depth: 0, .. })
    };
    let first = records.first().map(|(_, record)| &record.kind);
    is_whole
        && matches!(first, Some(TraceKind::Begin { .. }))
        && !records.iter().any(|(_, record)| begins(&record.kind))
}

fn rings(readers: Vec<TraceReader>) -> impl Iterator<Item = Ring> {
    readers.into_iter().map(|reader| Ring { reader, story: None, begun: false, over: false })
}

fn arm(switch: &mut TraceSwitch, args: &TraceArgs, pid: Option<i32>) -> Result<Vec<Ring>, Error> {
    let request = request(args, pid);
    let most = if pid.is_some() { 1 } else { missing(args.sessions, 0, 0) };
    let mut readers = switch.arm(&request, most)?;
    if readers.is_empty() {
        return Err(Error::Failed(format!(
            "all {} trace rings are in use by other traces (pg_tally.max_traces)",
            switch.rings()
        )));
    }
    if pid.is_some() {
        readers.extend(switch.arm(&TraceRequest { workers: true, ..request }, WORKERS)?);
    }
    Ok(rings(readers).collect())
}

struct RunningTrace<'a> {
    args: &'a TraceArgs,
    pid: Option<i32>,
    sink: &'a mut dyn Sink,
    rings: Vec<Ring>,
    /// Samples running nodes, if the user asked for nodes.
    sampler: Option<Sampler>,
    /// Stories of processes that have ended.
    done: Vec<Story>,
    /// Units passed on.
    passed: u64,
    /// When no further ring was free.
    refused: Option<Instant>,
    /// Whether any process recorded a parameter.
    has_parameters: bool,
}

impl RunningTrace<'_> {
    fn watch(
        &mut self,
        context: &mut Context,
        switch: &mut TraceSwitch,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let began = Instant::now();
        let (mut renewed, mut compared, mut flushed, mut reported) = (began, began, began, false);
        loop {
            let stops = stop.load(Ordering::Relaxed)
                || self.args.seconds.is_some_and(|seconds| began.elapsed() >= seconds);
            let compares = stops || compared.elapsed() >= COMPARE;
            if compares {
                compared = Instant::now();
            }
            let flushes = flushed.elapsed() >= RENEW;
            if flushes {
                flushed = Instant::now();
            }
            self.poll(context, compares, flushes)?;
            self.sink.flush()?;
            if stops || !self.sink.wants_more() {
                return Ok(());
            }
            if renewed.elapsed() >= RENEW {
                switch.renew();
                renewed = Instant::now();
                if context.segment.replaced()
                    || context.segment.server_changed()
                    || context.segment.server_runs() == Some(false)
                {
                    return Err(Error::Failed("the server has stopped or was restarted".into()));
                }
                if self.ended(context)? {
                    return Ok(());
                }
            }
            self.again(context, switch)?;
            self.arm_more(switch)?;
            if self.pid.is_some() && self.done.iter().any(|story| Some(story.who.pid) == self.pid) {
                return Ok(());
            }
            if !reported
                && !self.args.quiet
                && began.elapsed() >= PATIENCE
                && self.pid.is_some()
                && self.is_silent()
            {
                reported = true;
                view::escape::say("the process is inactive; waiting for its next message");
            }
            std::thread::sleep(NAP);
        }
    }

    fn is_silent(&self) -> bool {
        self.done.is_empty() && self.rings.iter().all(|ring| ring.story.is_none())
    }

    /// Whether the only process has ended without a record of its end.
    fn ended(&mut self, context: &mut Context) -> Result<bool, Error> {
        let Some(pid) = self.pid else { return Ok(false) };
        if has_slot(&context.segment, pid)? {
            return Ok(false);
        }
        self.poll(context, false, false)?;
        Ok(true)
    }

    /// Arms rings whose process has ended for the next process.
    fn again(&mut self, context: &mut Context, switch: &mut TraceSwitch) -> Result<(), Error> {
        let mut kept = Vec::new();
        for mut ring in std::mem::take(&mut self.rings) {
            if !ring.over {
                kept.push(ring);
                continue;
            }
            if let Some(sampler) = &self.sampler {
                sampler.leave(ring.reader.node());
            }
            let mut units = Vec::new();
            if let Some(mut story) = ring.story.take() {
                story.finish(&mut units);
                self.pass(context, &story.who, units)?;
                self.sink.ended(context, &story.who)?;
                self.done.push(story);
            }
            if let Some(reader) = switch.again(&ring.reader)? {
                kept.push(Ring { reader, story: None, begun: false, over: false });
            }
        }
        self.rings = kept;
        Ok(())
    }

    /// Arms rings for further sessions in place of those that sessions have taken.
    fn arm_more(&mut self, switch: &mut TraceSwitch) -> Result<(), Error> {
        if self.pid.is_some() || self.refused.is_some_and(|at| at.elapsed() < RENEW) {
            return Ok(());
        }
        let taken = self.rings.iter().filter(|ring| ring.story.is_some()).count();
        let missing = missing(self.args.sessions, taken, self.rings.len() - taken);
        if missing > 0 {
            let readers = switch.arm(&request(self.args, None), missing)?;
            // Until another trace gives one back.
            self.refused = ((readers.len() as u32) < missing).then(Instant::now);
            self.rings.extend(rings(readers));
        }
        Ok(())
    }

    /// Reads the records written since the last call. `compares`: compare each process with its ledger, as at its
    /// beginning; `flushes`: also pass on unfinished work.
    fn poll(&mut self, context: &mut Context, compares: bool, flushes: bool) -> Result<(), Error> {
        for i in 0..self.rings.len() {
            let ring = &mut self.rings[i];
            let state = ring.reader.state(&context.segment)?;
            let is_new = ring.story.is_none();
            if is_new {
                let Some(who) = ring.reader.traced(&context.segment)? else { continue };
                self.sink.session(context, &who)?;
                ring.story = Some(Story::new(who));
            }
            let Some(story) = &mut ring.story else { continue };
            let mut units = Vec::new();
            let Context { segment, names, .. } = &*context;
            let is_idle = |stat: u32| names.account(segment, Some(stat)).idle;
            let mut idle = None;
            // Before the records are read, so that they tell whether another statement has begun since.
            let executing = match ring.begun {
                false => segment.session_statement(story.who.slot)?,
                true => SessionStatement::None,
            };
            if compares || is_new {
                let ledger = segment.ledger(story.who.slot, story.who.slot_generation)?;
                if let Some(ledger) = ledger {
                    idle = ledger
                        .running
                        .filter(|&account| is_idle(account))
                        .map(|account| (ledger.tick, account));
                    story.check(ledger);
                }
            }
            // When these records are there, so are all samples of their time.
            let mut records = Vec::new();
            let lost = ring.reader.poll(segment, |lost, record| records.push((lost, record)))?;
            ring.begun |= !records.is_empty();
            if let SessionStatement::Runs(key) = executing {
                // A worker executes a part of its leader's statement.
                let is_session = story.who.leader_pid.is_none();
                if is_session && key.toplevel && is_within_statement(&records) {
                    story.begins_within(key.id);
                }
            }
            for (tick, node) in
                self.sampler.iter().flat_map(|sampler| sampler.take(ring.reader.node()))
            {
                story.sampled(tick, node);
            }
            for (lost, record) in records {
                self.has_parameters |= matches!(record.kind, TraceKind::Parameter { .. });
                story.feed(lost, record, is_idle, &mut units);
            }
            story.lost += lost;
            if let Some((tick, account)) = idle {
                story.idles(tick, Some(account), &mut units);
            }
            if flushes {
                story.flush(&mut units);
            }
            ring.over = state == TraceState::Ended && story.ended.is_some();
            let who = story.who;
            self.pass(context, &who, units)?;
        }
        Ok(())
    }

    fn pass(&mut self, context: &mut Context, who: &Traced, units: Vec<Unit>) -> Result<(), Error> {
        for unit in units {
            if self.is_asked_for(context, &unit) {
                self.passed += 1;
                self.sink.unit(context, who, &unit)?;
            } else {
                self.sink.left_out(context, who, &unit)?;
            }
        }
        Ok(())
    }

    fn is_asked_for(&self, context: &Context, unit: &Unit) -> bool {
        let (statement, slower) = (self.args.statement, self.args.slower_than);
        if statement.is_none() && slower.is_none() {
            return true;
        }
        let runs = |item: &TraceItem| match item {
            TraceItem::Statement { id, .. }
            | TraceItem::Begin { id, .. }
            | TraceItem::End { id, .. } => statement == Some(*id as i64),
            _ => false,
        };
        let end = unit.end.or_else(|| unit.items.last().map(TraceItem::end)).unwrap_or(unit.start);
        let took = context.segment.clock().seconds(end.saturating_sub(unit.start));
        unit.message.is_some()
            && (statement.is_none() || unit.items.iter().any(runs))
            && slower.is_none_or(|slower| took >= slower.as_secs_f64())
    }

    fn end(&mut self, context: &mut Context) -> Result<(), Error> {
        for ring in std::mem::take(&mut self.rings) {
            let Some(mut story) = ring.story else { continue };
            let mut units = Vec::new();
            story.finish(&mut units);
            self.pass(context, &story.who, units)?;
            self.sink.ended(context, &story.who)?;
            self.done.push(story);
        }
        self.sink.finish(context, &self.done)?;
        self.sink.flush()?;
        if self.args.parameters && !self.has_parameters && !self.args.quiet {
            view::escape::say(
                "no parameters were recorded: the setting pg_tally.trace_parameters is off in these sessions, or \
                 their statements have no parameters",
            );
        }
        for story in &self.done {
            if story.ended == Some(Some(TraceEnd::LevelOff)) && !self.args.quiet {
                view::escape::say(&format!(
                    "process {}: the trace ended because the level is off",
                    story.who.pid
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_begins_within_a_statement_if_no_other_has_begun_since() {
        let of = |kinds: &[TraceKind]| {
            let record = |kind: &TraceKind| TraceRecord {
                tick: 1,
                ticks: 0,
                node: None,
                kind: kind.clone(),
            };
            is_within_statement(&kinds.iter().map(|kind| (0, record(kind))).collect::<Vec<_>>())
        };
        let begin = TraceKind::Begin { account: Some(1) };
        let wait = TraceKind::Wait { account: Some(2), next: Some(1), file: None };
        let nested = TraceKind::Statement { id: 5, depth: 1 };
        let message =
            TraceKind::Message { kind: 0, account: Some(1), in_transaction: None, ordinal: None };
        let other = TraceKind::Statement { id: 4, depth: 0 };
        assert!(of(&[begin.clone(), wait.clone(), nested]));
        assert!(!of(&[begin.clone(), wait.clone(), message]));
        assert!(!of(&[begin.clone(), other]));
        // Without the record of the beginning, it is not known what came before.
        assert!(!of(&[wait]));
        assert!(!of(&[]));
    }

    #[test]
    fn two_rings_wait_until_all_sessions_are_traced() {
        assert_eq!(
            [missing(8, 0, 0), missing(8, 0, 1), missing(8, 0, 2), missing(8, 0, 3)],
            [2, 1, 0, 0]
        );
        assert_eq!(
            [missing(8, 6, 0), missing(8, 7, 0), missing(8, 8, 0), missing(8, 9, 0)],
            [2, 1, 0, 0]
        );
        assert_eq!(missing(1, 0, 0), 1);
    }
}
