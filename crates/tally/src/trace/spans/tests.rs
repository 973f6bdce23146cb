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

/// First message, beginning and end of a statement, and whether it is within another span.
type Statement = (&'static str, u64, u64, bool);

/// Its messages are each 10 ticks long; a wait for the client takes 10, too.
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
        let runs = |step| Item::Begin { start, step, id: 1, depth: 0 };
        let items = match name {
            "Query" => vec![Item::Statement { start, id: 1, depth: 0 }, runs(TraceStep::Run)],
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
            let wait = Item::Wait {
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

    /// Statements by their first message, and when they began and ended; transactions by how many statements they have.
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

    // What comes is another statement: the first has ended before the wait.
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
