// SPDX-License-Identifier: PostgreSQL
//! A traced session whose trace is ended from outside, at any point of its own code: it responds, the server
//! stays up, everything that it wrote until then is complete, and it can be traced again.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use postgres::{Client, NoTls, SimpleQueryMessage};
use scratch::Cluster;
use segment::layout::{header, trace};
use segment::{
    Level, Segment, TraceEnd, TraceKind, TraceReader, TraceRequest, TraceState, TraceSwitch,
};

use crate::support::segment as segment_of;
use crate::support::shared;
use crate::support::stepping::{Function, Stepped};

/// Plans, nodes of a join, a commit, a utility statement, an error that is caught, and the client's own trace.
const STATEMENTS: &str = "begin; update b set i = i where i = 1; commit;
    do $$ begin perform i / 0 from a; exception when others then null; end $$;
    select count(*) from a join b using (i) \
    /*traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/";

/// The position of the kind in a record, and the kind of nodes (libtally/include/tally_trace.h).
const KIND: u64 = 24;
const NODE: u8 = 11;

/// The ways to end a trace from outside.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The reader gives the ring back, with its memory.
    Withdrawn,
    /// The reader ends the trace, and reads what is left.
    Stopped,
    /// The reader was killed: nothing changes until the time that it requested is over.
    Lapsed,
    /// Nothing is measured any more.
    LevelOff,
}

const ENDS: [End; 4] = [End::Withdrawn, End::Stopped, End::Lapsed, End::LevelOff];

/// A session that can be stopped.
struct Session {
    cluster: Cluster,
    client: Client,
    pid: i32,
    segment: Segment,
    /// A request that no process answers. While there is one, each further request changes the level word.
    _other: TraceSwitch,
    file: File,
    stepped: Stepped,
}

impl Session {
    /// `None` if no process can be stopped here.
    fn start() -> Option<Session> {
        let cluster = shared();
        let tables = "create table a as select generate_series(1, 3) i; \
                      create table b as select i from a; analyze";
        cluster.psql(tables).unwrap();
        let mut client = cluster.config().connect(NoTls).unwrap();
        let pid = support::pid_of(&mut client);
        // The one-time work of a session is done.
        client.simple_query(STATEMENTS).unwrap();
        let path = segment_of(&cluster);
        let segment = Segment::open(&path).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let nobody = TraceRequest { database: "none".into(), ..Default::default() };
        let (other, _) = arm(&segment, &file, &nobody);
        let stepped = Stepped::attach(pid, "pg_tally.so")?;
        Some(Session { cluster, client, pid, segment, _other: other, file, stepped })
    }

    /// The functions that write traces.
    fn functions(&self) -> Vec<Function> {
        let of_traces = ["trace_", "tally_trace_"];
        self.stepped.functions(|function| {
            function.file.starts_with("trace")
                || of_traces.iter().any(|name| function.name.starts_with(name))
        })
    }

    /// It is traced from its next message on, until somebody ends that.
    fn arm(&self) -> (TraceSwitch, TraceReader) {
        let request = TraceRequest { pid: Some(self.pid), nodes: true, ..Default::default() };
        arm(&self.segment, &self.file, &request)
    }

    /// The last value of the last row.
    fn execute(&mut self, sql: &str, stopped: impl FnMut(&mut Stepped, u64)) -> String {
        let client = &mut self.client;
        let messages = self.stepped.during(|| client.simple_query(sql), stopped);
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(row.len() - 1).map(String::from),
            _ => None,
        });
        rows.last().expect("it returns a row")
    }

    /// Executes the statements traced; the trace is ended at the stop that `ends_here` selects. Returns false if
    /// it never did.
    fn end(&mut self, end: End, mut ends_here: impl FnMut(&Stepped, u64) -> bool) -> bool {
        let (switch, mut reader) = self.arm();
        let mut switch = Some(switch);
        let level = self.segment.level_switch().unwrap();
        let until = until_at(&self.file, &reader);
        let file = self.file.try_clone().unwrap();
        let mut ended = false;
        let answer = self.execute(STATEMENTS, |stepped, address| {
            if ended || !ends_here(stepped, address) {
                return;
            }
            ended = true;
            match end {
                End::Withdrawn => drop(switch.take()),
                End::Stopped => switch.as_ref().unwrap().stop(),
                End::Lapsed => file.write_all_at(&1_u64.to_ne_bytes(), until).unwrap(),
                End::LevelOff => {
                    level.set(Level::Off);
                }
            }
        });
        assert_eq!(answer, "3");
        if switch.is_some() {
            self.execute("select 1", |_, _| ());
            level.set(Level::Waits);
            if ended {
                self.check(&mut reader, end);
            }
        }
        ended
    }

    /// Everything that was written is there, in a trace that is over.
    fn check(&self, reader: &mut TraceReader, end: End) {
        let state = reader.state(&self.segment).unwrap();
        let mut kinds = Vec::new();
        let lost_last = reader.poll(&self.segment, |lost, record| kinds.push((lost, record.kind)));
        assert_eq!(lost_last.unwrap() + kinds.iter().map(|(lost, _)| lost).sum::<u64>(), 0);
        if kinds.is_empty() {
            // It was too late to start.
            return;
        }
        assert_eq!(state, TraceState::Ended);
        assert!(matches!(kinds[0].1, TraceKind::Begin { .. }), "{:?}", kinds[0]);
        let last = match &kinds[kinds.len() - 1].1 {
            TraceKind::End(reason) => *reason,
            _ => None,
        };
        let expected = match end {
            End::Withdrawn | End::Stopped => None,
            End::Lapsed => Some(TraceEnd::NotRenewed),
            End::LevelOff => Some(TraceEnd::LevelOff),
        };
        assert_eq!(last, expected);
        let ends = kinds.iter().filter(|(_, kind)| matches!(kind, TraceKind::End(_)));
        assert_eq!(ends.count(), usize::from(expected.is_some()));
    }

    /// The server has not crashed.
    fn has_lived(self) {
        assert!(!self.cluster.log().contains("terminated by signal"));
    }
}

/// Arms a ring, for as long as its switch lives.
fn arm(segment: &Segment, file: &File, request: &TraceRequest) -> (TraceSwitch, TraceReader) {
    let mut switch = TraceSwitch::open(segment).unwrap();
    let reader = switch.arm(request, 1).unwrap().remove(0);
    file.write_all_at(&u64::MAX.to_ne_bytes(), until_at(file, &reader)).unwrap();
    (switch, reader)
}

/// The position of the tick up to which the reader has requested the ring.
fn until_at(file: &File, reader: &TraceReader) -> u64 {
    let mut words = [0; 16];
    file.read_exact_at(&mut words, header::TRACES as u64).unwrap();
    let [rings, size] = [0, 8].map(|at| u64::from_ne_bytes(words[at..at + 8].try_into().unwrap()));
    rings + u64::from(reader.ring()) * (size >> 32) + trace::UNTIL as u64
}

/// Nodes of a plan are recorded one after another, each from its own look at the request.
#[test]
fn it_may_end_between_the_records_of_two_nodes() {
    let Some(mut session) = Session::start() else { return };
    let put = session.stepped.functions(|function| function.name == "trace_put");
    session.stepped.stop_at(put.iter().map(|function| function.address));
    for end in ENDS {
        for nodes in 0.. {
            let mut seen = 0;
            let ended = session.end(end, |stepped, _| {
                let [kind] = stepped.read(stepped.argument() + KIND);
                seen += u32::from(kind == NODE);
                seen > nodes
            });
            if !ended {
                assert!(nodes > 5, "{nodes} records of nodes");
                break;
            }
        }
    }
    session.has_lived();
}

#[test]
fn it_may_end_in_each_call_of_a_function_that_writes_it() {
    let Some(mut session) = Session::start() else { return };
    let functions = session.functions();
    let armed = session.arm();
    session.stepped.stop_at(functions.iter().map(|function| function.address));
    let mut called = BTreeMap::new();
    session.execute(STATEMENTS, |_, address| *called.entry(address).or_insert(0) += 1);
    drop(armed);
    let mut all = 0;
    for (address, calls) in called {
        session.stepped.stop_at([address]);
        println!("{}: {calls} calls", session.stepped.function_at(address).name);
        for (call, end) in (0..calls).flat_map(|call| ENDS.map(|end| (call, end))) {
            let mut before = 0;
            all += u32::from(session.end(end, |_, _| {
                before += 1;
                before > call
            }));
        }
    }
    assert!(all > 1000, "{all}");
    session.has_lived();
}

#[test]
fn it_may_end_before_each_instruction_that_writes_it() {
    let Some(mut session) = Session::start() else { return };
    let functions = session.functions();
    let entries: Vec<u64> = functions.iter().map(|function| function.address).collect();
    let writes = |at: u64| {
        functions
            .iter()
            .any(|function| (function.address..function.address + function.size).contains(&at))
    };
    session.stepped.stop_at(entries);
    let armed = session.arm();
    let mut instructions = BTreeSet::new();
    session.execute(STATEMENTS, |stepped, _| {
        stepped.step_through(|address| {
            if writes(address) {
                instructions.insert(address);
            }
        });
    });
    drop(armed);
    let mut reached = 0;
    for address in &instructions {
        session.stepped.stop_at([*address]);
        reached += u32::from(session.end(End::Withdrawn, |_, _| true));
    }
    println!("at {reached} of {} instructions", instructions.len());
    assert!(reached > 1000, "{reached} of {}", instructions.len());
    session.has_lived();
}
