// SPDX-License-Identifier: PostgreSQL
//! A role without privileges reads the segment while the data that it reads becomes another role's: before each
//! instruction of its reading, an eviction gives a statement's entry and blocks to another statement, or a
//! session ends and another one takes its slot. The result contains nothing of the other role.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use postgres::{Client, NoTls, SimpleQueryMessage};
use scratch::Cluster;

use crate::support;
use crate::support::eventually;
use crate::support::stepping::Stepped;

/// A word that only the other role has: in its texts, and as the name of its application.
const SECRET: &str = "ZZZZZZZZ";
/// Only the other role's sessions use the network: the addresses in their books start like this.
const ADDRESS: &[u8; 8] = b"127.0.0.";
/// Texts of three blocks.
const TEXT: usize = 600;

/// The data that becomes the other role's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The blocks of a statement's text, or its entry.
    Statement,
    /// The slot of a session.
    Slot,
}

/// The sessions of a server besides the reader.
struct Others {
    cluster: Cluster,
    port: u16,
    /// This session is not counted itself.
    admin: Client,
    /// Statements of the reader's role, whose data becomes the other role's.
    own: Option<Client>,
    /// Statements of the other role.
    other: Option<Client>,
    /// Database and user, side by side, as in the keys of statements and in the entries of slots.
    identity_of_other: u64,
    /// Counts the executions of the reader's role, so that each is another statement.
    executed: usize,
}

impl Others {
    fn start() -> Others {
        let settings = [
            ("shared_preload_libraries", "pg_tally"),
            ("pg_tally.max_slots", "24"),
            ("pg_tally.max_statements", "100"),
            ("pg_tally.max_plans", "8"),
            ("pg_tally.plan_threshold", "0"),
            ("pg_tally.statements_application", "on"),
            ("autovacuum", "off"),
        ];
        let (cluster, port) = support::on_loopback(support::plain().settings(settings));
        support::create_views(&cluster);
        let mut admin = cluster.connect().unwrap();
        admin.batch_execute("set pg_tally.statements = none").unwrap();
        let password = scratch::password();
        let roles = "create role poor login; create role other superuser login password";
        admin.batch_execute(&format!("{roles} '{password}'")).unwrap();
        let sql = "select r.oid::bigint << 32 | d.oid::bigint from pg_roles r, pg_database d \
                   where rolname = 'other' and datname = current_database()";
        let identity_of_other = admin.query_one(sql, &[]).unwrap().get::<_, i64>(0) as u64;
        let own = Some(connect(&cluster, "poor", "own"));
        let other = Some(connect_other(port));
        // Statements that others executed before are not among these.
        admin.batch_execute("select tally.reset(10)").unwrap();
        Others { cluster, port, admin, own, other, identity_of_other, executed: 0 }
    }

    /// A session of the reader's role has data that can become the other's.
    fn prepare(&mut self, change: Change) {
        let reset = "select tally.reset(oid) from pg_roles where rolname in ('poor', 'other')";
        self.admin.batch_execute(reset).unwrap();
        if change == Change::Slot {
            // Sessions take the lowest free slot.
            if let Some(other) = self.other.take() {
                self.end(other);
            }
            if let Some(own) = self.own.take() {
                self.end(own);
            }
            self.own = Some(connect(&self.cluster, "poor", "own"));
        }
        self.executed += 1;
        let own = self.own.as_mut().unwrap();
        // Another text of one statement: its ID, and therefore its place among the others, stays the same.
        let text = format!("select 1 /* {}{} */", "o".repeat(TEXT), self.executed);
        own.batch_execute(&text).unwrap();
    }

    /// The slot of the session that ends.
    fn slot(&mut self) -> usize {
        let pid = support::pid_of(self.own.as_mut().unwrap());
        let mut segment = segment::Segment::open(&support::segment(&self.cluster)).unwrap();
        let books = segment.snapshot(None).unwrap().books;
        books.iter().find(|book| book.pid == pid).unwrap().slot as usize
    }

    /// It becomes the other role's.
    fn change(&mut self, change: Change) {
        match change {
            // The blocks that were freed last are reused first.
            Change::Statement => {
                let sql = "select tally.reset(oid) from pg_roles where rolname = 'poor'";
                self.admin.batch_execute(sql).unwrap();
            }
            Change::Slot => {
                let own = self.own.take().unwrap();
                self.end(own);
                self.other = Some(connect_other(self.port));
            }
        }
        self.other.as_mut().unwrap().batch_execute(&secret_statement()).unwrap();
    }

    /// Returns when its slot is free.
    fn end(&mut self, mut client: Client) {
        let pid = support::pid_of(&mut client);
        drop(client);
        let sql = "select count(*) from tally.session_rows() where pid = $1";
        eventually("the session's slot is free", || {
            self.admin.query_one(sql, &[&pid]).unwrap().get::<_, i64>(0) == 0
        });
    }
}

fn secret_statement() -> String {
    format!("unlisten \"{}\"", SECRET.repeat(TEXT / SECRET.len()))
}

/// A session of the role without privileges.
struct Reader {
    client: Client,
    stepped: Stepped,
    identity_of_other: u64,
    /// The data of the segment that it has received so far.
    image: File,
    mark: i64,
}

/// One reading, which calls that function, and what its result must not contain.
type Read = fn(&mut Reader, &mut dyn FnMut(&mut Stepped, u64)) -> Vec<String>;

impl Reader {
    /// `None` if no process can be stopped here.
    fn start(others: &Others) -> Option<Reader> {
        let mut client = connect(&others.cluster, "poor", "reader");
        let stepped = Stepped::attach(support::pid_of(&mut client), "pg_tally.so")?;
        let image = tempfile::tempfile().unwrap();
        let identity_of_other = others.identity_of_other;
        Some(Reader { client, stepped, identity_of_other, image, mark: 0 })
    }

    fn rows(
        &mut self,
        sql: &str,
        stopped: &mut dyn FnMut(&mut Stepped, u64),
    ) -> Vec<Vec<Option<String>>> {
        let client = &mut self.client;
        let messages = self.stepped.during(|| client.simple_query(sql), stopped).unwrap();
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        rows.map(|row| (0..row.len()).map(|at| row.get(at).map(String::from)).collect()).collect()
    }

    /// Through `tally.segment_changes`: the other role's data in everything that was ever transferred.
    fn changes(&mut self, stopped: &mut dyn FnMut(&mut Stepped, u64)) -> Vec<String> {
        let sql = format!(
            "select next_mark, raw_size, encode(changes, 'hex') from tally.segment_changes({}, 3)",
            self.mark
        );
        let rows = self.rows(&sql, stopped);
        let [Some(mark), Some(raw_size), Some(changes)] = &rows[0][..] else { panic!("{rows:?}") };
        self.mark = mark.parse().unwrap();
        let digits = changes.as_bytes().chunks_exact(2);
        let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16));
        let bytes: Vec<u8> = bytes.map(Result::unwrap).collect();
        live::remote::apply(&self.image, &bytes, raw_size.parse().unwrap()).unwrap();
        let words = extents(&self.image).into_iter().flat_map(|(at, bytes)| {
            let words = bytes.chunks_exact(8).enumerate();
            let identity = self.identity_of_other.to_ne_bytes();
            let foreign =
                words.filter(|(_, word)| is_secret(word) || *word == identity || *word == ADDRESS);
            foreign
                .map(|(n, word)| format!("{:#x}: {word:?}", at + n as u64 * 8))
                .collect::<Vec<_>>()
        });
        words.collect()
    }

    /// Through a view: the other role's data.
    fn view(&mut self, sql: &str, stopped: &mut dyn FnMut(&mut Stepped, u64)) -> Vec<String> {
        let fields = self.rows(sql, stopped).into_iter().flatten().flatten();
        fields.filter(|field| is_secret(field.as_bytes())).collect()
    }

    fn sessions(&mut self, stopped: &mut dyn FnMut(&mut Stepped, u64)) -> Vec<String> {
        self.view("select * from tally.session_rows()", stopped)
    }

    fn statements(&mut self, stopped: &mut dyn FnMut(&mut Stepped, u64)) -> Vec<String> {
        self.view("select * from tally.statement_rows(true)", stopped)
    }

    /// The instructions of the library that a call of `function` executes after each call of `anchor`, up to the
    /// next one, except those with which the image stores its input, and which read nothing from the segment.
    fn instructions(&mut self, read: Read, function: &str, anchor: &str) -> Vec<Vec<u64>> {
        let (function, anchor) = (self.address_of(function), self.address_of(anchor));
        let library = self
            .stepped
            .functions(|function| function.size > 0 && !function.name.starts_with("remote_image_"));
        let ranges: BTreeMap<u64, u64> =
            library.iter().map(|function| (function.address, function.size)).collect();
        let in_library = |at: u64| {
            ranges.range(..=at).next_back().is_some_and(|(begin, size)| at - begin < *size)
        };
        let mut calls: Vec<BTreeSet<u64>> = Vec::new();
        self.stepped.stop_at([function]);
        read(self, &mut |stepped, _| {
            stepped.step_through(|address| {
                if address == anchor {
                    calls.push(BTreeSet::new());
                }
                if let Some(last) = calls.last_mut().filter(|_| in_library(address)) {
                    last.insert(address);
                }
            });
        });
        assert!(!calls.is_empty(), "it does not get there");
        calls.into_iter().map(|call| call.into_iter().collect()).collect()
    }

    fn address_of(&self, function: &str) -> u64 {
        self.stepped.functions(|symbol| symbol.name == function)[0].address
    }

    /// Repeats the reading until it has stopped at each of these instructions, which are executed after the nth
    /// call of `anchor`; the change happens at that point.
    fn at_each(
        &mut self,
        read: Read,
        (anchor, nth): (&str, usize),
        instructions: &[u64],
        others: &mut Others,
        change: Change,
    ) {
        let anchor = self.address_of(anchor);
        let mut reached = 0;
        for address in instructions {
            others.prepare(change);
            let (mut calls, mut changed) = (0, false);
            self.stepped.stop_at([anchor]);
            let foreign = read(self, &mut |stepped, at| {
                if changed {
                    return;
                }
                if calls <= nth {
                    calls += 1;
                    if calls <= nth {
                        return;
                    }
                    if at != *address {
                        stepped.stop_next_at(*address);
                        return;
                    }
                }
                changed = true;
                others.change(change);
            });
            let place = &self.stepped.function_at(*address).name;
            assert!(foreign.is_empty(), "{change:?} in {place}, {address:#x}: {foreign:?}");
            reached += usize::from(changed);
        }
        println!("{change:?}: at {reached} of {} instructions", instructions.len());
        // Which of the reader's statements comes first depends on their IDs.
        assert!(reached * 4 >= instructions.len() * 3, "{reached} of {}", instructions.len());
    }
}

/// Whether it belongs to the other role.
fn is_secret(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|window| window == &SECRET.as_bytes()[..4])
}

fn connect(cluster: &Cluster, role: &str, application: &str) -> Client {
    let mut config = cluster.config();
    config.user(role).application_name(application).connect(NoTls).unwrap()
}

fn connect_other(port: u16) -> Client {
    let mut config = postgres::Config::new();
    config.host("127.0.0.1").port(port).user("other").dbname("postgres");
    config.password(scratch::password());
    config.application_name(SECRET).connect(NoTls).unwrap()
}

/// The parts of a file that are not holes, and their positions.
fn extents(file: &File) -> Vec<(u64, Vec<u8>)> {
    let seek = |at: i64, whence| {
        // SAFETY: the descriptor is open; no memory is involved.
        unsafe { libc::lseek(file.as_raw_fd(), at, whence) }
    };
    let (mut all, mut at) = (Vec::new(), 0);
    loop {
        let from = seek(at, libc::SEEK_DATA);
        if from < 0 {
            return all;
        }
        at = seek(from, libc::SEEK_HOLE);
        let mut bytes = vec![0; (at - from) as usize];
        file.read_exact_at(&mut bytes, from as u64).unwrap();
        all.push((from as u64, bytes));
    }
}

/// The one-time work of a session is done.
fn started() -> Option<(Others, Reader)> {
    let mut others = Others::start();
    let mut reader = Reader::start(&others)?;
    for _ in 0..2 {
        others.prepare(Change::Statement);
        assert_eq!(reader.changes(&mut |_, _| ()), [""; 0]);
        assert_eq!(reader.sessions(&mut |_, _| ()), [""; 0]);
        assert_eq!(reader.statements(&mut |_, _| ()), [""; 0]);
    }
    Some((others, reader))
}

#[test]
fn no_byte_of_another_roles_statement_is_sent() {
    let Some((mut others, mut reader)) = started() else { return };
    let anchor = "tally_read_statement_parts";
    others.prepare(Change::Statement);
    let calls = reader.instructions(Reader::changes, "remote_put_statements", anchor);
    // Bytes of the session's own statement, and of the one that becomes another's.
    assert_eq!(calls.len(), 2);
    let end = without(&calls[1], &calls[0]);
    for (nth, instructions) in [&calls[0], &end].into_iter().enumerate() {
        reader.at_each(
            Reader::changes,
            (anchor, nth),
            instructions,
            &mut others,
            Change::Statement,
        );
    }
}

/// Elements of the first that are not in the second.
fn without(all: &[u64], known: &[u64]) -> Vec<u64> {
    all.iter().filter(|address| !known.contains(address)).copied().collect()
}

/// Without any race: data that belonged to another role before.
#[test]
fn what_is_left_behind_the_end_of_a_text_is_not_sent() {
    let Some((mut others, mut reader)) = started() else { return };
    let table = SECRET.repeat(7);
    others.admin.batch_execute(&format!("create table \"{table}\" (i int)")).unwrap();
    let select = format!("select * from \"{table}\"");
    for sql in [&secret_statement(), &select, &select] {
        others.other.as_mut().unwrap().batch_execute(sql).unwrap();
    }
    let plans = "select count(*) from tally.plans where usename = $1";
    let of = |others: &mut Others, role: &str| {
        others.admin.query_one(plans, &[&role]).unwrap().get::<_, i64>(0)
    };
    assert_eq!(of(&mut others, "other"), 1);
    let reset = "select tally.reset(oid) from pg_roles where rolname in ('poor', 'other')";
    others.admin.batch_execute(reset).unwrap();
    for sql in ["unlisten own", "select 1", "select 1"] {
        others.own.as_mut().unwrap().batch_execute(sql).unwrap();
    }
    assert_eq!(of(&mut others, "poor"), 1);
    assert_eq!(reader.changes(&mut |_, _| ()), [""; 0]);
}

#[test]
fn no_byte_of_another_roles_session_is_sent() {
    let Some((mut others, mut reader)) = started() else { return };
    let anchor = "tally_read_entry";
    // Twice: from the second time on, sessions take the same slots.
    others.prepare(Change::Slot);
    others.change(Change::Slot);
    others.prepare(Change::Slot);
    let slot = others.slot();
    let books = reader.instructions(Reader::changes, "remote_put_books", anchor);
    reader.at_each(Reader::changes, (anchor, slot), &books[slot], &mut others, Change::Slot);
    let rows = reader.instructions(Reader::sessions, "pg_tally_sessions", anchor);
    let rows = without(&rows[slot], &books[slot]);
    reader.at_each(Reader::sessions, (anchor, slot), &rows, &mut others, Change::Slot);
}

#[test]
fn no_row_has_the_text_of_another_roles_statement() {
    let Some((mut others, mut reader)) = started() else { return };
    let anchor = "tally_read_statement_parts";
    others.prepare(Change::Statement);
    let calls = reader.instructions(Reader::statements, "pg_tally_statements", anchor);
    let [first, ..] = &calls[..] else { panic!("no statement is read") };
    reader.at_each(Reader::statements, (anchor, 0), first, &mut others, Change::Statement);
}

/// The reverse: the writer is stopped before each instruction with which it enters its statement where the
/// reader's was.
#[test]
fn nothing_is_sent_of_a_statement_that_is_being_entered() {
    let Some((mut others, mut reader)) = started() else { return };
    let mut other = others.other.take().unwrap();
    let Some(mut writer) = Stepped::attach(support::pid_of(&mut other), "pg_tally.so") else {
        return;
    };
    let writes = ["tally_statement_insert", "tally_statement_remove", "tally_text_store"];
    let functions = writer.functions(|function| writes.contains(&&*function.name));
    let mut instructions = BTreeSet::new();
    others.prepare(Change::Statement);
    writer.stop_at(functions.iter().map(|function| function.address));
    writer.during(
        || other.batch_execute(&secret_statement()).unwrap(),
        |stepped, _| {
            stepped.step_through(|at| {
                instructions.insert(at);
            });
        },
    );
    instructions.retain(|at| {
        functions
            .iter()
            .any(|function| (function.address..function.address + function.size).contains(at))
    });
    assert!(instructions.len() > 100, "{}", instructions.len());
    let mut reached = 0;
    for address in &instructions {
        others.prepare(Change::Statement);
        reader.changes(&mut |_, _| ());
        let reset = "select tally.reset(oid) from pg_roles where rolname = 'poor'";
        others.admin.batch_execute(reset).unwrap();
        writer.stop_at([*address]);
        let mut read = false;
        writer.during(
            || other.batch_execute(&secret_statement()).unwrap(),
            |stopped, _| {
                if !std::mem::replace(&mut read, true) {
                    let mut foreign = reader.changes(&mut |_, _| ());
                    foreign.extend(reader.statements(&mut |_, _| ()));
                    let place = &stopped.function_at(*address).name;
                    assert!(foreign.is_empty(), "{place}, {address:#x}: {foreign:?}");
                }
            },
        );
        reached += usize::from(read);
    }
    assert!(reached * 10 >= instructions.len() * 9, "{reached} of {}", instructions.len());
}
