// SPDX-License-Identifier: PostgreSQL
//! Turns messages into spans: one for each statement, for each transaction of several statements, and for each parallel
//! worker.
//!
//! A statement's span lasts from its first message to the answer, including its commit, and thus covers several
//! messages of the extended protocol. Its time is divided completely among classes. Long waits and steps become spans
//! within it; their number is limited: the longest are kept, and the others are counted.

use std::collections::{BTreeMap, HashMap, VecDeque};

use segment::{ExecutionParameters, SlotTexts, TraceParent, TraceStep, Traced, WaitClass};

use super::names::{self, Account};
use super::story::{TraceItem, Unit};

/// Maximum number of parts of a statement that become spans.
const MOST_PARTS: usize = 128;
/// Number of recent statements of a leader to search for a worker's statement.
const REMEMBERED: usize = 16;

/// Looks up an account by number.
type Accounts<'a> = &'a dyn Fn(Option<u32>) -> Account;

/// The ID of a span and its trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanId {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// Flags of the client's trace.
    pub flags: u8,
}

impl SpanId {
    fn new_trace() -> SpanId {
        SpanId { trace: rand::random(), span: rand::random(), flags: 1 }
    }

    fn in_trace(trace: [u8; 16], flags: u8) -> SpanId {
        SpanId { trace, span: rand::random(), flags }
    }
}

/// The subject of a span.
#[derive(Debug)]
pub enum Subject {
    /// A statement, or a message without one.
    Statement(Box<Work>),
    /// A transaction of this many statements.
    Transaction(u64),
    /// The work of a parallel worker.
    Worker(Box<Work>),
    /// A wait, a step or a commit.
    Part(TraceItem),
}

/// A span.
#[derive(Debug)]
pub struct TraceSpan {
    /// Its ID and trace.
    pub place: SpanId,
    /// The parent span.
    pub parent: Option<[u8; 8]>,
    /// A linked span.
    pub link: Option<SpanId>,
    /// Start, tick.
    pub start: u64,
    /// End, tick.
    pub end: u64,
    /// The process.
    pub pid: i32,
    /// User, database and application of the session.
    pub texts: SlotTexts,
    /// Its subject.
    pub subject: Subject,
}

/// The time of a statement or of a worker.
#[derive(Debug, Default)]
pub struct Work {
    /// Start, tick.
    pub start: u64,
    /// The tick up to which it is known.
    pub end: u64,
    /// Number of the message's kind.
    pub message: Option<u8>,
    /// The statement.
    pub id: Option<u64>,
    /// Ticks by class.
    pub times: BTreeMap<&'static str, u64>,
    /// Number of waits.
    pub waits: u64,
    /// Rows of its execution, if it was executed.
    pub rows: Option<u64>,
    /// Whether it failed.
    pub failed: bool,
    /// The parameters of its execution, if they were recorded.
    pub parameters: Option<ExecutionParameters>,
    /// Records lost during it.
    pub lost: u64,
    /// Number of parts long enough for a span of their own that have none, because there are too many.
    pub left_out: u64,
    parts: Vec<TraceItem>,
    executed: bool,
    /// Whether its last message is one that the server answers immediately.
    answered: bool,
    /// Items since its last message, which is not answered yet, while the session waits for its client.
    pause: Option<Vec<TraceItem>>,
    parent: Option<TraceParent>,
}

impl Work {
    fn at(start: u64, message: Option<u8>) -> Work {
        Work { start, end: start, message, ..Work::default() }
    }

    fn add(&mut self, accounts: Accounts, item: &TraceItem, from: u64) {
        self.end = self.end.max(item.end());
        match item {
            TraceItem::Cpu { ticks, .. } => *self.times.entry("cpu").or_default() += ticks,
            TraceItem::Wait { ticks, account, .. } => {
                let account = accounts(*account);
                *self.times.entry(class(&account.activity)).or_default() += ticks;
                self.waits += 1;
                self.part(item, *ticks, from);
            }
            TraceItem::Statement { id, depth: 0, .. } => self.id = Some(*id),
            TraceItem::Begin { step, id, depth: 0, .. } => {
                self.id = self.id.or(Some(*id));
                self.executed |= matches!(step, TraceStep::Run | TraceStep::Utility);
            }
            TraceItem::End { start, end, step, depth, rows, failed, .. } => {
                if *depth == 0 {
                    if matches!(step, TraceStep::Run | TraceStep::Utility) {
                        self.rows = Some(*rows);
                    }
                    self.failed |= failed;
                }
                self.part(item, end.saturating_sub(*start), from);
            }
            TraceItem::Commit { ticks, .. } => self.part(item, *ticks, from),
            TraceItem::Lost { records, .. } => self.lost += records,
            TraceItem::Context { parent, .. } => self.parent = Some(*parent),
            TraceItem::Parameters { depth: 0, parameters, .. } => {
                self.parameters = Some(parameters.clone());
            }
            _ => {}
        }
    }

    fn part(&mut self, item: &TraceItem, ticks: u64, from: u64) {
        if ticks >= from {
            self.parts.push(item.clone());
            if self.parts.len() >= 4 * MOST_PARTS {
                self.keep_longest();
            }
        }
    }

    fn keep_longest(&mut self) {
        if self.parts.len() > MOST_PARTS {
            self.parts.sort_by_key(|item| std::cmp::Reverse(length(item)));
            self.left_out += (self.parts.len() - MOST_PARTS) as u64;
            self.parts.truncate(MOST_PARTS);
        }
    }
}

/// The name of an activity's class in attributes.
pub fn class(activity: &str) -> &'static str {
    WaitClass::of_name(activity).shown_as().name()
}

/// Whether the answer to this message ends a statement. Messages of the extended protocol are answered together, at
/// Sync.
fn is_answered(kind: u8) -> bool {
    !matches!(names::message(kind), "Parse" | "Bind" | "Describe" | "Execute" | "Close" | "Flush")
}

fn start(item: &TraceItem) -> u64 {
    match item {
        TraceItem::Wait { start, .. }
        | TraceItem::End { start, .. }
        | TraceItem::Commit { start, .. } => *start,
        other => other.end(),
    }
}

fn length(item: &TraceItem) -> u64 {
    item.end().saturating_sub(start(item))
}

/// An open transaction of several statements.
#[derive(Debug)]
struct Transaction {
    place: SpanId,
    parent: Option<[u8; 8]>,
    start: u64,
    end: u64,
    statements: u64,
}

#[derive(Debug)]
struct Session {
    who: Traced,
    texts: SlotTexts,
    work: Option<Work>,
    transaction: Option<Transaction>,
    /// The latest statements, for workers.
    recent: VecDeque<(u64, u64, SpanId)>,
}

/// Makes spans from the messages of all traced processes.
#[derive(Debug)]
pub struct Spans {
    /// Parts of at least this many ticks get spans.
    from: u64,
    sessions: HashMap<i32, Session>,
    /// Workers that have ended before their leader's statement.
    workers: Vec<(Session, Work)>,
    done: Vec<TraceSpan>,
}

impl Spans {
    /// Parts of at least `from` ticks get spans.
    pub fn new(from: u64) -> Spans {
        Spans { from, sessions: HashMap::new(), workers: Vec::new(), done: Vec::new() }
    }

    /// Takes the complete spans.
    pub fn take(&mut self) -> Vec<TraceSpan> {
        std::mem::take(&mut self.done)
    }

    /// The trace of a process begins.
    pub fn session(&mut self, who: &Traced, texts: SlotTexts) {
        let work = who.leader_pid.map(|_| Work::at(who.begun, None));
        let recent = VecDeque::new();
        let session = Session { who: *who, texts, work, transaction: None, recent };
        self.sessions.insert(who.pid, session);
    }

    /// A message, or a part of one. One that the user has not `asked` for only marks where a statement or transaction
    /// ends.
    pub fn unit(&mut self, accounts: Accounts, who: &Traced, unit: &Unit, asked: bool) {
        let Some(mut session) = self.sessions.remove(&who.pid) else { return };
        match (unit.message, who.leader_pid) {
            (Some(kind), _) => self.message(accounts, &mut session, kind, unit, asked),
            (None, Some(_)) if asked => {
                let work = session.work.get_or_insert_with(|| Work::at(unit.start, None));
                for item in &unit.items {
                    work.add(accounts, item, self.from);
                }
            }
            (None, Some(_)) => {}
            // A wait for the client: between two statements, or within one.
            (None, None) => {
                if let Some(pause) = session.work.as_mut().and_then(|work| work.pause.as_mut()) {
                    pause.extend_from_slice(&unit.items);
                }
            }
        }
        self.sessions.insert(who.pid, session);
    }

    fn message(
        &mut self,
        accounts: Accounts,
        session: &mut Session,
        kind: u8,
        unit: &Unit,
        asked: bool,
    ) {
        if !unit.continued {
            self.arrives(accounts, session, kind, unit);
        }
        let goes_on = unit.idle.map(|idle| accounts(Some(idle)).phase != "idle");
        if !asked && session.work.is_none() {
            if goes_on == Some(false) {
                self.transaction(session);
            }
            return;
        }
        for item in &unit.items {
            if let TraceItem::Statement { start, depth: 0, .. } = item {
                if let Some(mut work) = session.work.take_if(|work| work.executed) {
                    work.end = *start;
                    self.statement(session, work, true);
                    session.work = Some(Work::at(*start, Some(kind)));
                }
            }
            let work = session.work.get_or_insert_with(|| Work::at(unit.start, Some(kind)));
            work.add(accounts, item, self.from);
        }
        let work = session.work.get_or_insert_with(|| Work::at(unit.start, Some(kind)));
        if let Some(end) = unit.end {
            work.end = end;
        }
        work.answered = is_answered(kind);
        match (goes_on, session.work.take()) {
            (Some(goes_on), Some(work)) if work.answered => self.statement(session, work, goes_on),
            (Some(_), Some(work)) => {
                session.work = Some(Work { pause: Some(Vec::new()), ..work });
            }
            (_, work) => session.work = work,
        }
    }

    /// A message arrives: earlier work is over, unless it belongs to the same statement.
    fn arrives(&mut self, accounts: Accounts, session: &mut Session, kind: u8, unit: &Unit) {
        let name = names::message(kind);
        let begins = matches!(name, "Query" | "Parse" | "Bind" | "FunctionCall");
        if let Some(mut work) = session.work.take() {
            let pause = work.pause.take().unwrap_or_default();
            if unit.start != pause.last().map_or(work.end, TraceItem::end) {
                // Messages in between were lost.
                self.statement(session, work, false);
            } else if work.answered && !name.starts_with("Copy") {
                self.statement(session, work, unit.in_transaction.unwrap_or(false));
            } else if begins && work.executed {
                self.statement(session, work, unit.in_transaction.unwrap_or(true));
            } else {
                for item in &pause {
                    work.add(accounts, item, self.from);
                }
                session.work = Some(work);
            }
        }
        if session.work.is_none() && unit.in_transaction == Some(false) {
            self.transaction(session);
        }
    }

    /// A statement is over. `goes_on`: its transaction continues.
    fn statement(&mut self, session: &mut Session, work: Work, goes_on: bool) {
        let (start, end, parent) = (work.start, work.end, work.parent);
        if goes_on && session.transaction.is_none() {
            let place = match parent {
                Some(parent) => SpanId::in_trace(parent.trace, parent.flags),
                None => SpanId::new_trace(),
            };
            let parent = parent.map(|parent| parent.span);
            session.transaction = Some(Transaction { place, parent, start, end, statements: 0 });
        }
        let within = session.transaction.as_mut().map(|transaction| {
            transaction.end = end;
            transaction.statements += 1;
            transaction.place
        });
        let (place, parent, link) = match (parent, within) {
            (Some(parent), within) => {
                (SpanId::in_trace(parent.trace, parent.flags), Some(parent.span), within)
            }
            (None, Some(within)) => {
                (SpanId::in_trace(within.trace, within.flags), Some(within.span), None)
            }
            (None, None) => (SpanId::new_trace(), None, None),
        };
        self.push(session, place, parent, link, work);
        session.recent.push_back((start, end, place));
        if session.recent.len() > REMEMBERED {
            session.recent.pop_front();
        }
        let leader = session.who.pid;
        let (ours, others) =
            std::mem::take(&mut self.workers).into_iter().partition(|(worker, work)| {
                worker.who.leader_pid == Some(leader) && (start..=end).contains(&work.start)
            });
        self.workers = others;
        let ours: Vec<(Session, Work)> = ours;
        for (worker, work) in ours {
            self.worker(&worker, work, Some(place));
        }
        if !goes_on {
            self.transaction(session);
        }
    }

    fn transaction(&mut self, session: &mut Session) {
        let Some(transaction) = session.transaction.take() else { return };
        self.done.push(TraceSpan {
            place: transaction.place,
            parent: transaction.parent,
            link: None,
            start: transaction.start,
            end: transaction.end,
            pid: session.who.pid,
            texts: session.texts.clone(),
            subject: Subject::Transaction(transaction.statements),
        });
    }

    fn worker(&mut self, worker: &Session, work: Work, leader: Option<SpanId>) {
        let place = match leader {
            Some(leader) => SpanId::in_trace(leader.trace, leader.flags),
            None => SpanId::new_trace(),
        };
        self.push(worker, place, leader.map(|leader| leader.span), None, work);
    }

    /// Adds the span of a statement or a worker, and spans of its parts, each within the shortest one that contains it.
    fn push(
        &mut self,
        session: &Session,
        place: SpanId,
        parent: Option<[u8; 8]>,
        link: Option<SpanId>,
        mut work: Work,
    ) {
        work.keep_longest();
        let mut parts = std::mem::take(&mut work.parts);
        parts.sort_by_key(|item| (start(item), std::cmp::Reverse(item.end())));
        let (from, to, pid) = (work.start, work.end, session.who.pid);
        let work = Box::new(work);
        let subject = match session.who.leader_pid {
            Some(_) => Subject::Worker(work),
            None => Subject::Statement(work),
        };
        let texts = session.texts.clone();
        let span = |place, parent, link, start, end, subject| TraceSpan {
            place,
            parent,
            link,
            start,
            end,
            pid,
            texts: texts.clone(),
            subject,
        };
        self.done.push(span(place, parent, link, from, to, subject));
        let mut open: Vec<(u64, [u8; 8])> = Vec::new();
        for item in parts {
            let (start, end) = (start(&item), item.end());
            while open.pop_if(|(until, _)| *until < end).is_some() {}
            let above = open.last().map_or(place.span, |(_, span)| *span);
            let own = SpanId::in_trace(place.trace, place.flags);
            open.push((end, own.span));
            self.done.push(span(own, Some(above), None, start, end, Subject::Part(item)));
        }
    }

    /// The trace of a process is over: its unfinished work ends here.
    pub fn ended(&mut self, pid: i32) {
        let Some(mut session) = self.sessions.remove(&pid) else { return };
        match (session.work.take(), session.who.leader_pid) {
            (Some(work), Some(leader)) => {
                let found = self.sessions.get(&leader).and_then(|leader| {
                    let mut all = leader.recent.iter();
                    all.find(|(start, end, _)| (*start..=*end).contains(&work.start))
                });
                match found.map(|(_, _, place)| *place) {
                    Some(place) => self.worker(&session, work, Some(place)),
                    None => self.workers.push((session, work)),
                }
            }
            (Some(work), None) => self.statement(&mut session, work, false),
            (None, _) => self.transaction(&mut session),
        }
    }

    /// All traces are over: workers without a leader's statement become spans without a parent.
    pub fn finish(&mut self) {
        for (worker, work) in std::mem::take(&mut self.workers) {
            self.worker(&worker, work, None);
        }
    }
}

#[cfg(test)]
mod tests;
