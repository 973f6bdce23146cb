// SPDX-License-Identifier: PostgreSQL
//! Spans of sessions whose messages come with and without waits between them.

use super::*;

const IDLE: u32 = 1;
const IN_TRANSACTION: u32 = 2;
const WHO: Traced = Traced { pid: 7, leader_pid: None, slot: 0, slot_generation: 0, begun: 0 };

fn accounts(stat: Option<u32>) -> Account {
    let phase = if stat == Some(IDLE) { "idle" } else { "idle in transaction" };
    Account { phase: phase.into(), activity: "Client:ClientRead".into(), idle: true }
}

/// First message, start and end of a statement, and whether it is within another span.
type Statement = (&'static str, u64, u64, bool);

/// A client whose messages are 10 ticks long each, as are waits for the client.
struct Client {
    spans: Spans,
    now: u64,
    asked: bool,
}

impl Client {
    fn new() -> Client {
        let mut spans = Spans::new(1000);
        spans.session(&WHO, SlotTexts::default());
        Client { spans, now: 0, asked: true }
    }

    /// A message, whether a transaction was open when it arrived, and the wait for the client after it.
    fn message(&mut self, name: &str, in_transaction: bool, idle: Option<u32>) {
        let kind = (0..14).find(|&kind| names::message(kind) == name);
        let start = self.now;
        let runs = |step| TraceItem::Begin { start, step, id: 1, depth: 0 };
        let items = match name {
            "Query" => vec![TraceItem::Statement { start, id: 1, depth: 0 }, runs(TraceStep::Run)],
            "Execute" => vec![runs(TraceStep::Run)],
            _ => Vec::new(),
        };
        self.now += 10;
        let unit = Unit {
            message: kind,
            start,
            end: Some(self.now),
            idle,
            in_transaction: Some(in_transaction),
            ordinal: None,
            continued: false,
            items,
        };
        self.spans.unit(&accounts, &WHO, &unit, self.asked);
        if idle.is_some() {
            let wait = TraceItem::Wait {
                start: self.now,
                ticks: 10,
                account: idle,
                node: None,
                file: None,
                lock: None,
            };
            let start = self.now;
            self.now += 10;
            let unit = Unit {
                message: None,
                idle: None,
                start,
                end: Some(self.now),
                items: vec![wait],
                ..unit
            };
            self.spans.unit(&accounts, &WHO, &unit, self.asked);
        }
    }

    /// Statements with their first message, start and end; transactions with their number of statements.
    fn done(mut self) -> (Vec<Statement>, Vec<u64>) {
        self.spans.ended(WHO.pid);
        let (mut statements, mut transactions) = (Vec::new(), Vec::new());
        for span in self.spans.take() {
            match span.subject {
                Subject::Statement(work) => {
                    let name = work.message.map_or("", names::message);
                    statements.push((name, span.start, span.end, span.parent.is_some()));
                }
                Subject::Transaction(count) => transactions.push(count),
                _ => {}
            }
        }
        (statements, transactions)
    }
}

#[test]
fn messages_that_come_before_they_are_waited_for_are_no_transaction() {
    let mut client = Client::new();
    client.message("Bind", false, None);
    client.message("Execute", true, None);
    client.message("Sync", true, None);
    client.message("Close", false, None);
    client.message("Sync", false, None);
    client.message("Query", false, Some(IDLE));
    let (statements, transactions) = client.done();
    let expected = vec![("Bind", 0, 30, false), ("Close", 30, 50, false), ("Query", 50, 60, false)];
    assert_eq!(statements, expected);
    assert!(transactions.is_empty(), "{transactions:?}");
}

#[test]
fn statements_before_one_sync_are_a_transaction_and_so_is_a_block() {
    let mut client = Client::new();
    for (first, in_transaction) in [("Bind", false), ("Bind", true)] {
        client.message(first, in_transaction, None);
        client.message("Execute", true, None);
    }
    client.message("Sync", true, None);
    for in_transaction in [false, true, true] {
        client.message("Query", in_transaction, None);
    }
    client.message("Query", false, Some(IDLE));
    let (statements, transactions) = client.done();
    let within: Vec<bool> = statements.iter().map(|(.., within)| *within).collect();
    assert_eq!(within, [true, true, true, true, true, false], "{statements:?}");
    assert_eq!(transactions, [2, 3]);
}

#[test]
fn a_wait_for_the_rest_of_a_statement_does_not_end_it() {
    let mut client = Client::new();
    client.message("Parse", false, None);
    client.message("Flush", true, Some(IN_TRANSACTION));
    client.message("Bind", true, None);
    client.message("Execute", true, Some(IN_TRANSACTION));
    client.message("Sync", true, Some(IDLE));
    let (statements, transactions) = client.done();
    assert_eq!(statements, [("Parse", 0, 70, false)]);
    assert!(transactions.is_empty(), "{transactions:?}");

    // Another statement follows: the first ended before the wait.
    let mut client = Client::new();
    client.message("Bind", false, None);
    client.message("Execute", true, Some(IN_TRANSACTION));
    client.message("Bind", true, None);
    client.message("Execute", true, None);
    client.message("Sync", true, Some(IDLE));
    let (statements, transactions) = client.done();
    assert_eq!(statements, [("Bind", 0, 20, true), ("Bind", 30, 60, true)]);
    assert_eq!(transactions, [2]);
}

#[test]
fn a_message_that_was_not_asked_for_ends_a_transaction() {
    let mut client = Client::new();
    client.message("Query", false, Some(IN_TRANSACTION));
    client.asked = false;
    client.message("Query", true, Some(IN_TRANSACTION));
    client.asked = true;
    client.message("Query", true, Some(IN_TRANSACTION));
    client.asked = false;
    client.message("Query", true, Some(IDLE));
    client.asked = true;
    client.message("Query", false, Some(IDLE));
    let (statements, transactions) = client.done();
    let within: Vec<bool> = statements.iter().map(|(.., within)| *within).collect();
    assert_eq!(within, [true, true, false]);
    assert_eq!(transactions, [2]);
}

/// A message of a session, or of a worker without one, with these items.
fn unit(message: Option<u8>, start: u64, end: u64, items: Vec<TraceItem>) -> Unit {
    let (idle, in_transaction) = (message.map(|_| IDLE), Some(false));
    Unit {
        message,
        start,
        end: Some(end),
        idle,
        in_transaction,
        ordinal: None,
        continued: false,
        items,
    }
}

fn query() -> Option<u8> {
    (0..14).find(|&kind| names::message(kind) == "Query")
}

fn wait(start: u64, ticks: u64) -> TraceItem {
    TraceItem::Wait { start, ticks, account: None, node: None, file: None, lock: None }
}

fn statement(spans: &mut Spans, start: u64, end: u64, items: Vec<TraceItem>) {
    spans.unit(&accounts, &WHO, &unit(query(), start, end, items), true);
}

#[test]
fn long_parts_are_within_the_shortest_around_them_and_nested_ends_are_not_the_statements() {
    let mut spans = Spans::new(1000);
    spans.session(&WHO, SlotTexts::default());
    let step = |start, end, depth, rows, failed| TraceItem::End {
        start,
        end,
        step: TraceStep::Run,
        id: 1,
        depth,
        rows,
        failed,
    };
    let items = vec![
        wait(0, 1000),
        wait(1000, 999),
        wait(3000, 1000),
        step(2000, 4000, 1, 7, true),
        wait(4500, 1200),
        step(0, 6000, 0, 3, false),
    ];
    statement(&mut spans, 0, 6100, items);
    let done = spans.take();
    let of = |id: [u8; 8]| {
        done.iter().find(|span| span.place.span == id).map(|span| (span.start, span.end))
    };
    let mut parts: Vec<_> = done
        .iter()
        .filter(|span| matches!(span.subject, Subject::Part(_)))
        .map(|span| ((span.start, span.end), span.parent.and_then(of)))
        .collect();
    parts.sort();
    let all = Some((0, 6000));
    let expected = [
        ((0, 1000), all),
        ((0, 6000), Some((0, 6100))),
        ((2000, 4000), all),
        ((3000, 4000), Some((2000, 4000))),
        ((4500, 5700), all),
    ];
    assert_eq!(parts, expected);
    let Subject::Statement(work) = &done[0].subject else { panic!("{:?}", done[0]) };
    assert_eq!((work.rows, work.failed, work.waits, work.left_out), (Some(3), false, 4, 0));
}

#[test]
fn the_longest_parts_are_kept_and_the_others_counted() {
    let mut spans = Spans::new(1);
    spans.session(&WHO, SlotTexts::default());
    let many = MOST_PARTS as u64 + 5;
    statement(&mut spans, 0, 10_000_000, (1..=many).map(|n| wait(n * 10_000, n)).collect());
    let done = spans.take();
    let lengths: Vec<u64> = done
        .iter()
        .filter(|span| matches!(span.subject, Subject::Part(_)))
        .map(|span| span.end - span.start)
        .collect();
    assert_eq!(lengths, (6..=many).collect::<Vec<_>>());
    let Subject::Statement(work) = &done[0].subject else { panic!("{:?}", done[0]) };
    assert_eq!(work.left_out, 5);
}

#[test]
fn a_worker_is_within_the_statement_in_which_it_began() {
    let mut spans = Spans::new(1000);
    spans.session(&WHO, SlotTexts::default());
    let worker = |pid, begun| Traced { pid, leader_pid: Some(WHO.pid), begun, ..WHO };
    // One worker ends before the statement of its leader and after others of it; one ends later.
    spans.session(&worker(8, 450), SlotTexts::default());
    spans.ended(8);
    for n in 0..REMEMBERED as u64 + 4 {
        statement(&mut spans, n * 100, n * 100 + 90, Vec::new());
    }
    let last = REMEMBERED as u64 * 100 + 310;
    spans.session(&worker(9, last), SlotTexts::default());
    spans.ended(9);
    let done = spans.take();
    let workers: Vec<_> = done
        .iter()
        .filter(|span| matches!(span.subject, Subject::Worker(_)))
        .map(|span| {
            (span.pid, done.iter().find(|of| Some(of.place.span) == span.parent).map(|of| of.start))
        })
        .collect();
    assert_eq!(workers, [(8, Some(400)), (9, Some(last - 10))]);
}
