// SPDX-License-Identifier: PostgreSQL
//! Turns the records of one process into its work, message by message, and its time, account by account.
//!
//! A record says when something ended or changed; what ran in between follows from that. The time adds up exactly to
//! the process's ledger, which [`Story::check`] verifies each time it gets one.

use std::collections::{BTreeMap, HashMap};

use segment::{
    ExecutionParameters, Ledger, LockTag, TraceEnd, TraceFile, TraceKind, TraceParameter,
    TraceParent, TraceRecord, TraceStep, Traced,
};

pub use super::node_time::NodeId;
use super::node_time::{NodeTimes, NodeUse, Plan};

/// Maximum number of items of a message kept until it ends.
const MOST_ITEMS: usize = 50_000;
/// Maximum number of ledgers to compare; more come only while records are lost.
const MOST_LEDGERS: usize = 64;

/// A file operation of a wait.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWait {
    /// Number of the operation.
    pub operation: u8,
    /// errno value; 0 for success.
    pub error: u8,
    /// Bytes moved.
    pub bytes: u64,
    /// The file, if known.
    pub file: Option<TraceFile>,
}

/// The lock of a wait.
#[derive(Debug, Clone, PartialEq)]
pub struct LockWait {
    /// The lock.
    pub lock: LockTag,
    /// LOCKMODE.
    pub mode: u16,
    /// PIDs of the first blocking processes.
    pub blockers: Vec<i32>,
    /// Number of blocking processes.
    pub count: u8,
}

/// An event or activity of a process; times are ticks.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceItem {
    /// An account ran for a while without a wait.
    Cpu { start: u64, ticks: u64, account: Option<u32> },
    /// A wait.
    Wait {
        start: u64,
        ticks: u64,
        account: Option<u32>,
        node: Option<NodeId>,
        file: Option<FileWait>,
        lock: Option<LockWait>,
    },
    /// The server has analysed a statement.
    Statement { start: u64, id: u64, depth: u8 },
    /// A step begins.
    Begin { start: u64, step: TraceStep, id: u64, depth: u8 },
    /// The end of a step.
    End { start: u64, end: u64, step: TraceStep, id: u64, depth: u8, rows: u64, failed: bool },
    /// A commit, which contains waits before it in the list.
    Commit { start: u64, ticks: u64, kind: u8 },
    /// A plan node that starts.
    Node { start: u64, node: NodeId, parent: Option<NodeId>, name: String, id: u64 },
    /// The rows and the time of a node of this statement's plan.
    NodeEnd { start: u64, node: NodeId, rows: u64, calls: u64, id: u64, took: NodeUse },
    /// Records were overwritten before they were read.
    Lost { start: u64, records: u64 },
    /// All totals were reset to zero.
    Reset { start: u64 },
    /// The client's span that the statement belongs to.
    Context { start: u64, parent: TraceParent },
    /// The parameters of the execution that starts.
    Parameters { start: u64, id: u64, depth: u8, parameters: ExecutionParameters },
}

/// A unit of work: a message with all work for it, a time without a message, or work without messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Number of the message's kind; `None` if no message was handled.
    pub message: Option<u8>,
    /// Start, tick.
    pub start: u64,
    /// End, tick; `None` for a part of a unit that continues.
    pub end: Option<u64>,
    /// The account of the wait for the client that ended it; `None` if something else ended it.
    pub idle: Option<u32>,
    /// Whether a transaction was open when it arrived, if known.
    pub in_transaction: Option<bool>,
    /// The message's ordinal in the session, if known.
    pub ordinal: Option<u64>,
    /// Whether parts of it were passed on before.
    pub continued: bool,
    /// Its items, in order.
    pub items: Vec<TraceItem>,
}

/// The comparison of the trace with the ledger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conservation {
    /// Number of ticks compared.
    pub ticks: u64,
    /// Number of waits in them.
    pub waits: u64,
    /// Number of comparisons.
    pub times: u64,
    /// The first account that differed: ticks in the trace, in the ledger.
    pub difference: Option<(u32, u64, u64)>,
}

/// One traced process.
#[derive(Debug)]
pub struct Story {
    /// The process.
    pub who: Traced,
    /// Ticks of each account since the beginning, by directory number.
    pub ticks: BTreeMap<u32, u64>,
    /// Waits of each account.
    pub waits: BTreeMap<u32, u64>,
    /// Records lost.
    pub lost: u64,
    /// Why it ended.
    pub ended: Option<Option<TraceEnd>>,
    /// The comparison with the ledger.
    pub conservation: Conservation,
    /// Tick up to which time is charged to accounts: a transition of the ledger.
    at: u64,
    /// Tick up to which items say what ran.
    shown: u64,
    running: Option<u32>,
    known: bool,
    unit: Unit,
    /// Start and statement of each open step.
    steps: Vec<(u64, u64)>,
    node_times: NodeTimes,
    lock: Option<LockWait>,
    names: HashMap<NodeId, NodeName>,
    naming: Option<NodeId>,
    ledgers: Vec<Ledger>,
    base: Option<Base>,
    /// The statement within which the trace begins.
    executing: Option<u64>,
}

/// The known part of a node's name.
#[derive(Debug, Default)]
struct NodeName {
    parent: Option<NodeId>,
    bytes: Vec<u8>,
    encoding: i32,
}

/// The starting point of the next comparison.
#[derive(Debug)]
struct Base {
    ticks: BTreeMap<u32, u64>,
    waits: u64,
    ledger: Ledger,
}

impl Story {
    /// The story of a process whose trace begins.
    pub fn new(who: Traced) -> Story {
        Story {
            who,
            ticks: BTreeMap::new(),
            waits: BTreeMap::new(),
            lost: 0,
            ended: None,
            conservation: Conservation::default(),
            at: who.begun,
            shown: who.begun,
            running: None,
            known: false,
            unit: Unit::begin(None, who.begun),
            steps: Vec::new(),
            node_times: NodeTimes::default(),
            lock: None,
            names: HashMap::new(),
            naming: None,
            ledgers: Vec::new(),
            base: None,
            executing: None,
        }
    }

    /// Says that the session was executing this statement when its trace began. Must come before the first record.
    pub fn begins_within(&mut self, id: u64) {
        self.executing = Some(id);
    }

    /// Gives it the ledger of the same process, read before the records that are fed next.
    pub fn check(&mut self, ledger: Ledger) {
        if ledger.tick >= self.at && self.ledgers.len() < MOST_LEDGERS {
            self.ledgers.push(ledger);
        }
    }

    /// Adds a sample: at this tick this node ran, or none. All samples before a record must be added before it is fed.
    pub fn sampled(&mut self, tick: u64, node: Option<NodeId>) {
        self.node_times.sampled(tick, node);
    }

    /// Says that the session has waited for its client since `tick`, and that all records before are read: the
    /// message is over. The record of that wait comes when the wait ends.
    pub fn idles(&mut self, tick: u64, account: Option<u32>, out: &mut Vec<Unit>) {
        if tick >= self.at && self.unit.message.is_some() {
            self.advance(tick);
            self.unit.idle = account;
            self.cut(Some(tick), out);
            self.unit = Unit::begin(None, tick);
        }
    }

    /// Passes on the unit in progress as far as it is known, for work without messages.
    pub fn flush(&mut self, out: &mut Vec<Unit>) {
        if self.unit.message.is_none() && !self.unit.items.is_empty() {
            self.cut(None, out);
        }
    }

    /// The trace is over: passes on the rest.
    pub fn finish(&mut self, out: &mut Vec<Unit>) {
        if !self.unit.items.is_empty() || self.unit.message.is_some() {
            let end = self.ended.map(|_| self.shown);
            self.cut(end, out);
        }
    }

    /// Feeds a record, and the number of records lost before it. Complete units go to `out`. `is_idle`: whether an
    /// account is the wait for a client's next message.
    pub fn feed(
        &mut self,
        lost: u64,
        record: TraceRecord,
        is_idle: impl Fn(u32) -> bool,
        out: &mut Vec<Unit>,
    ) {
        if lost > 0 {
            self.lost(record.tick, lost, out);
        }
        self.name_node(&record);
        let TraceRecord { tick, ticks, node, kind } = record;
        match kind {
            TraceKind::Begin { account } => {
                (self.at, self.shown) = (tick, tick);
                (self.running, self.known) = (account, true);
                self.unit = Unit::begin(None, tick);
                if let Some(id) = self.executing.take() {
                    self.push(TraceItem::Statement { start: tick, id, depth: 0 });
                }
            }
            TraceKind::End(reason) => {
                self.show(tick);
                self.ended = Some(reason);
            }
            TraceKind::Wait { account, next, file } => {
                self.advance(tick);
                let ends = account.is_some_and(is_idle) && self.unit.message.is_some();
                if ends {
                    self.unit.idle = account;
                    self.cut(Some(tick), out);
                    self.unit = Unit::begin(None, tick);
                }
                self.wait(tick, ticks, account, node, file);
                (self.running, self.known) = (next, true);
                self.compare();
            }
            TraceKind::Message { kind, account, in_transaction, ordinal } => {
                self.advance(tick);
                self.cut(Some(tick), out);
                self.unit = Unit { in_transaction, ordinal, ..Unit::begin(Some(kind), tick) };
                (self.running, self.known) = (account, true);
                self.steps.clear();
            }
            TraceKind::Switch { account } => {
                self.advance(tick);
                (self.running, self.known) = (account, true);
            }
            TraceKind::Statement { id, depth } => {
                self.show(tick);
                self.push(TraceItem::Statement { start: tick, id, depth });
            }
            TraceKind::StepBegin { step, id, depth } => {
                self.show(tick);
                self.steps.truncate(usize::from(depth));
                self.steps.push((tick, id));
                self.push(TraceItem::Begin { start: tick, step, id, depth });
            }
            TraceKind::StepEnd { step, id, depth, rows, failed } => {
                self.show(tick);
                // A step that began before the trace has no start.
                let start =
                    self.steps.get(usize::from(depth)).map_or(self.unit.start, |step| step.0);
                self.steps.truncate(usize::from(depth));
                self.push(TraceItem::End { start, end: tick, step, id, depth, rows, failed });
            }
            TraceKind::Lock { lock, mode, blockers, count } => {
                self.lock = Some(LockWait { lock, mode, blockers, count });
            }
            TraceKind::Commit(kind) => self.push(TraceItem::Commit { start: tick, ticks, kind }),
            TraceKind::NodeEnd { rows, calls } => {
                self.show(tick);
                if let Some(node) = node {
                    let took = self.node_times.use_of(self.plan(), node);
                    let id = self.plan().map_or(0, |(_, id)| id);
                    self.push(TraceItem::NodeEnd { start: tick, node, rows, calls, id, took });
                }
            }
            TraceKind::Context(parent) => self.context(tick, parent),
            TraceKind::Parameter { number, count, part } => {
                self.parameter(tick, number, count, part)
            }
            TraceKind::Reset => self.push(TraceItem::Reset { start: tick }),
            TraceKind::Node { parent, part, .. } => {
                self.show(tick);
                // The first named node is the root.
                if let Some(plan) = self.plan().filter(|_| parent.is_none() && part == 0) {
                    self.node_times.starts(plan);
                }
            }
            // Calls belong to clients.
            TraceKind::Call { .. }
            | TraceKind::CallWait { .. }
            | TraceKind::Execution { .. }
            | TraceKind::Other(_) => self.show(tick),
        }
        if self.unit.items.len() >= MOST_ITEMS {
            self.cut(None, out);
        }
    }

    /// Adds a trace context. A statement names it when it is analysed, and again when it starts. The next statement
    /// of the same message may name the same context.
    fn context(&mut self, tick: u64, parent: TraceParent) {
        self.show(tick);
        let items = self.unit.items.iter().rev();
        let its = items.take_while(|item| !matches!(item, TraceItem::Statement { depth: 0, .. }));
        let mut known = its.filter_map(|item| match item {
            TraceItem::Context { parent, .. } => Some(*parent),
            _ => None,
        });
        if known.next() != Some(parent) {
            self.push(TraceItem::Context { start: tick, parent });
        }
    }

    /// Adds a parameter to those before it, in the step that encloses it.
    fn parameter(&mut self, tick: u64, number: u16, count: u32, part: TraceParameter) {
        let mut items = self.unit.items.iter_mut().rev();
        let before =
            items.find(|item| !matches!(item, TraceItem::Cpu { .. } | TraceItem::Wait { .. }));
        let part = match before {
            Some(TraceItem::Parameters { parameters, .. }) => parameters.add(number, part),
            _ => Some(part),
        };
        let begun = part.and_then(|part| ExecutionParameters::begin(number, count, part));
        if let (Some(parameters), Some((depth, id))) = (begun, self.plan()) {
            let depth = u8::try_from(depth).unwrap_or(u8::MAX);
            self.push(TraceItem::Parameters { start: tick, id, depth, parameters });
        }
    }

    fn wait(
        &mut self,
        start: u64,
        ticks: u64,
        account: Option<u32>,
        node: Option<NodeId>,
        file: Option<(u8, u8, u64, Option<TraceFile>)>,
    ) {
        if let Some(account) = account {
            *self.ticks.entry(account).or_default() += ticks;
            *self.waits.entry(account).or_default() += 1;
        }
        let file =
            file.map(|(operation, error, bytes, file)| FileWait { operation, error, bytes, file });
        let lock = self.lock.take();
        if let Some(node) = node {
            self.node_times.waited(self.plan(), node, ticks);
        }
        self.push(TraceItem::Wait { start, ticks, account, node, file, lock });
        let end = start.saturating_add(ticks);
        (self.at, self.shown) = (self.at.max(end), self.shown.max(end));
    }

    fn cut(&mut self, end: Option<u64>, out: &mut Vec<Unit>) {
        let next = Unit {
            continued: end.is_none(),
            ordinal: self.unit.ordinal.filter(|_| end.is_none()),
            ..Unit::begin(self.unit.message, end.unwrap_or(self.unit.start))
        };
        let mut unit = std::mem::replace(&mut self.unit, next);
        unit.end = end;
        if unit.message.is_some() || !unit.items.is_empty() {
            out.push(unit);
        }
    }

    fn push(&mut self, item: TraceItem) {
        self.unit.items.push(item);
    }

    /// Charges time to the running account up to `tick`, a transition.
    fn advance(&mut self, tick: u64) {
        while let Some(checked) = self.ledgers.first().map(|ledger| ledger.tick) {
            if checked > tick {
                break;
            }
            self.book(checked);
            self.compare();
        }
        self.book(tick);
        self.show(tick);
    }

    fn book(&mut self, tick: u64) {
        if let Some(account) = self.running.filter(|_| self.known && tick > self.at) {
            *self.ticks.entry(account).or_default() += tick - self.at;
        }
        self.at = self.at.max(tick);
    }

    /// Adds an item for the running account up to an event. The clock of another processor may put it slightly earlier.
    fn show(&mut self, tick: u64) {
        if tick <= self.shown {
            return;
        }
        let start = std::mem::replace(&mut self.shown, tick);
        let plan = self.plan().filter(|_| self.known);
        self.node_times.ran(plan, start, tick);
        if self.known {
            self.push(TraceItem::Cpu { start, ticks: tick - start, account: self.running });
        }
    }

    /// The running plan, that of the innermost step.
    fn plan(&self) -> Option<Plan> {
        self.steps.last().map(|&(_, id)| (self.steps.len() - 1, id))
    }

    fn lost(&mut self, tick: u64, records: u64, out: &mut Vec<Unit>) {
        self.lost += records;
        self.push(TraceItem::Lost { start: self.at, records });
        self.cut(None, out);
        self.unit = Unit::begin(None, tick);
        (self.at, self.shown) = (self.at.max(tick), self.shown.max(tick));
        self.known = false;
        (self.base, self.lock) = (None, None);
        self.ledgers.clear();
        self.steps.clear();
        self.node_times.forget();
    }

    /// Compares with a ledger of exactly this tick.
    fn compare(&mut self) {
        while let Some(ledger) = self.ledgers.first() {
            if ledger.tick > self.at {
                return;
            }
            let ledger = self.ledgers.remove(0);
            // The ledger is not at a transition of the trace: the trace was incomplete there.
            if ledger.tick != self.at || !self.known {
                continue;
            }
            let waits = self.waits.values().sum();
            match self.base.take().filter(|base| base.ledger.resets == ledger.resets) {
                None => {}
                Some(base) => {
                    let grown = |now: &BTreeMap<u32, u64>, then: &BTreeMap<u32, u64>, stat: u32| {
                        let of = |map: &BTreeMap<u32, u64>| map.get(&stat).copied().unwrap_or(0);
                        of(now).wrapping_sub(of(then))
                    };
                    let stats = self.ticks.keys().chain(ledger.ticks.keys());
                    let different = stats
                        .map(|&stat| {
                            let traced = grown(&self.ticks, &base.ticks, stat);
                            (stat, traced, grown(&ledger.ticks, &base.ledger.ticks, stat))
                        })
                        .find(|(_, traced, ledger)| traced != ledger);
                    let kept = &mut self.conservation;
                    kept.difference = kept.difference.or(different);
                    kept.ticks += ledger.tick - base.ledger.tick;
                    kept.waits += waits - base.waits;
                    kept.times += 1;
                }
            }
            self.base = Some(Base { ticks: self.ticks.clone(), waits, ledger });
        }
    }

    /// Names come in parts; a node is passed on when its name is complete.
    fn name_node(&mut self, record: &TraceRecord) {
        let whole = |story: &mut Self, node: NodeId, start: u64| {
            if let Some(NodeName { parent, bytes, encoding }) = story.names.get(&node) {
                let name = segment::encoding::decode(bytes, *encoding);
                let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
                let parent = *parent;
                let id = story.plan().map_or(0, |(_, id)| id);
                story.push(TraceItem::Node { start, node, parent, name, id });
            }
        };
        let named = match (&record.kind, record.node) {
            (TraceKind::Node { parent, part, name, encoding }, Some(node)) => {
                let name = NodeName { parent: *parent, bytes: name.clone(), encoding: *encoding };
                Some((node, *part, name))
            }
            _ => None,
        };
        let continues =
            named.as_ref().is_some_and(|(node, part, _)| *part > 0 && self.naming == Some(*node));
        if let Some(node) = self.naming.take_if(|_| !continues) {
            whole(self, node, record.tick);
        }
        if let Some((node, part, name)) = named {
            if part == 0 {
                self.names.insert(node, name);
            } else {
                self.names.entry(node).or_default().bytes.extend_from_slice(&name.bytes);
            }
            self.naming = Some(node);
        }
    }
}

impl Unit {
    fn begin(message: Option<u8>, start: u64) -> Unit {
        Unit {
            message,
            start,
            end: None,
            idle: None,
            in_transaction: None,
            ordinal: None,
            continued: false,
            items: Vec::new(),
        }
    }
}

impl TraceItem {
    /// End, tick.
    pub fn end(&self) -> u64 {
        match self {
            TraceItem::Cpu { start, ticks, .. }
            | TraceItem::Wait { start, ticks, .. }
            | TraceItem::Commit { start, ticks, .. } => start.saturating_add(*ticks),
            TraceItem::End { end, .. } => *end,
            TraceItem::Statement { start, .. }
            | TraceItem::Begin { start, .. }
            | TraceItem::Node { start, .. }
            | TraceItem::NodeEnd { start, .. }
            | TraceItem::Lost { start, .. }
            | TraceItem::Reset { start }
            | TraceItem::Context { start, .. }
            | TraceItem::Parameters { start, .. } => *start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: u32 = 9;

    /// A traced process with given records.
    struct FedProcess {
        story: Story,
        units: Vec<Unit>,
    }

    impl FedProcess {
        /// Account 1 runs from tick 100 on.
        fn new() -> FedProcess {
            let who = Traced { pid: 7, leader_pid: None, slot: 0, slot_generation: 0, begun: 100 };
            let mut fed = FedProcess { story: Story::new(who), units: Vec::new() };
            fed.feed(0, 100, 0, TraceKind::Begin { account: Some(1) });
            fed
        }

        fn feed(&mut self, lost: u64, tick: u64, ticks: u64, kind: TraceKind) {
            let record = TraceRecord { tick, ticks, node: None, kind };
            self.story.feed(lost, record, |account| account == IDLE, &mut self.units);
        }

        fn wait(&mut self, tick: u64, ticks: u64, account: u32) {
            self.feed(
                0,
                tick,
                ticks,
                TraceKind::Wait { account: Some(account), next: Some(1), file: None },
            );
        }

        fn message(&mut self, tick: u64, ordinal: u64) {
            let ordinal = Some(ordinal);
            let kind =
                TraceKind::Message { kind: 0, account: Some(1), in_transaction: None, ordinal };
            self.feed(0, tick, 0, kind);
        }

        fn check(&mut self, tick: u64, resets: u32, ticks: &[(u32, u64)]) {
            let ticks = ticks.iter().copied().collect();
            self.story.check(Ledger { tick, running: Some(1), resets, ticks });
        }

        fn ticks(&self) -> Vec<(u32, u64)> {
            self.story.ticks.iter().map(|(account, ticks)| (*account, *ticks)).collect()
        }
    }

    #[test]
    fn each_tick_is_in_one_account_but_those_in_which_records_were_lost() {
        let mut fed = FedProcess::new();
        fed.wait(130, 20, 2);
        fed.feed(0, 180, 0, TraceKind::Switch { account: Some(3) });
        fed.wait(200, 10, 2);
        assert_eq!(fed.ticks(), [(1, 60), (2, 30), (3, 20)]);
        // Between lost records and the next transition, it is unknown what ran.
        fed.feed(5, 400, 0, TraceKind::Statement { id: 4, depth: 0 });
        fed.wait(450, 10, 2);
        fed.wait(480, 10, 2);
        assert_eq!((fed.ticks(), fed.story.lost), (vec![(1, 80), (2, 50), (3, 20)], 5));
        fed.story.finish(&mut fed.units);
        let items: Vec<&TraceItem> = fed.units.iter().flat_map(|unit| &unit.items).collect();
        let shown = |item: &&TraceItem| matches!(item, TraceItem::Cpu { start, .. } if (210..460).contains(start));
        assert!(!items.iter().any(shown), "{items:?}");
        let ran: u64 = items
            .iter()
            .map(|item| if let TraceItem::Cpu { ticks, .. } = item { *ticks } else { 0 })
            .sum();
        assert_eq!(ran, 60 + 20 + 20);
    }

    #[test]
    fn the_trace_equals_the_ledger_or_names_the_first_account_that_differs() {
        let mut fed = FedProcess::new();
        fed.check(140, 0, &[]);
        fed.check(150, 0, &[(1, 530), (2, 520)]);
        fed.wait(130, 20, 2);
        assert_eq!(fed.story.conservation, Conservation::default(), "the first was within a wait");
        fed.check(190, 0, &[(1, 570), (2, 520)]);
        fed.check(250, 0, &[(1, 631), (2, 520)]);
        fed.check(300, 0, &[(1, 690), (2, 520)]);
        fed.check(350, 1, &[(1, 50)]);
        fed.check(400, 1, &[(1, 100)]);
        fed.feed(0, 420, 0, TraceKind::Switch { account: Some(3) });
        let expected =
            Conservation { ticks: 150 + 50, waits: 0, times: 4, difference: Some((1, 60, 61)) };
        assert_eq!(fed.story.conservation, expected, "none across the reset");
    }

    #[test]
    fn locks_steps_and_names_belong_to_what_follows_or_ends_them() {
        let mut fed = FedProcess::new();
        fed.message(110, 3);
        let lock = LockTag { fields: [1, 2, 3], field4: 4, kind: 5, method: 1 };
        fed.feed(0, 120, 0, TraceKind::Lock { lock, mode: 6, blockers: vec![8], count: 1 });
        fed.wait(120, 5, 2);
        fed.wait(130, 5, 2);
        let (step, id, depth) = (TraceStep::Run, 4, 0);
        fed.feed(0, 140, 0, TraceKind::StepBegin { step, id, depth });
        for tick in [150, 160] {
            fed.feed(0, tick, 0, TraceKind::StepEnd { step, id, depth, rows: 1, failed: false });
        }
        // A character is split between the parts, in EUC_JP.
        for (part, name) in [(0, &b"Seq\x1b \xc6"[..]), (1, &b"\xfcScan"[..])] {
            let kind = TraceKind::Node { parent: None, part, name: name.to_vec(), encoding: 1 };
            fed.story.feed(
                0,
                TraceRecord { tick: 170, ticks: 0, node: Some(1), kind },
                |_| false,
                &mut fed.units,
            );
        }
        fed.wait(180, 5, IDLE);
        let message = fed.units.iter().find(|unit| unit.message.is_some()).unwrap();
        let items = &message.items;
        let locks: Vec<_> = items
            .iter()
            .filter_map(|item| {
                if let TraceItem::Wait { lock, .. } = item {
                    Some(lock.is_some())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(locks, [true, false]);
        // The second step has no start, so it gets that of its message.
        let ends: Vec<_> = items
            .iter()
            .filter_map(|item| {
                if let TraceItem::End { start, end, .. } = item {
                    Some((*start, *end))
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(ends, [(140, 150), (110, 160)]);
        assert!(
            items
                .iter()
                .any(|item| matches!(item, TraceItem::Node { name, .. } if name == "Seq? 日Scan")),
            "{items:?}"
        );
        assert_eq!((message.end, message.idle), (Some(180), Some(IDLE)));
    }

    #[test]
    fn a_trace_that_begins_within_a_statement_names_it_first() {
        let mut fed = FedProcess::new();
        fed.story.begins_within(4);
        fed.feed(0, 100, 0, TraceKind::Begin { account: Some(1) });
        fed.wait(130, 20, 2);
        fed.message(160, 3);
        let named = |unit: &Unit| {
            matches!(unit.items.first(), Some(TraceItem::Statement { id: 4, start: 100, .. }))
        };
        assert_eq!(fed.units.iter().map(named).collect::<Vec<_>>(), [true], "{:?}", fed.units);
        fed.wait(180, 5, IDLE);
        assert_eq!(fed.units.iter().filter(|unit| named(unit)).count(), 1);
    }

    #[test]
    fn parts_of_a_long_message_are_one_message() {
        let mut fed = FedProcess::new();
        fed.message(110, 3);
        (0..MOST_ITEMS).for_each(|_| fed.feed(0, 110, 0, TraceKind::Reset));
        fed.wait(180, 5, IDLE);
        fed.message(200, 4);
        let messages = fed.units.iter().filter(|unit| unit.message.is_some());
        let parts: Vec<_> = messages.map(|unit| (unit.ordinal, unit.continued, unit.end)).collect();
        assert_eq!(parts, [(Some(3), false, None), (Some(3), true, Some(180))]);
    }
}
