// SPDX-License-Identifier: PostgreSQL
//! The statements of a Java client, as its driver executed them.
//!
//! Their figures are statistics `call::<figure>::<id>`. The text of each is stored in pieces in the directory, in
//! entries `sql::<id>::<number>::<piece>`, which are not statistics.

use crate::error::Error;
use crate::interval::StatisticRow;
use crate::layout::stat_kind;
use crate::segment::Segment;
use crate::sessions::SessionRow;
use crate::stat_names;
use crate::timing::Timing;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The id of all statements without an entry of their own.
const OTHERS: &str = "others";
/// The id of the empty text, which the driver sends to find out whether a connection is valid: FNV-1a's offset basis.
const EMPTY: &str = "cbf29ce484222325";

/// The texts of statements, by id.
pub type CallTexts = HashMap<String, String>;

/// Whether a statement's text is that of a COPY.
pub fn is_copy(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("copy"))
}

/// The executions of one statement.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CallRow {
    /// A hash of its text.
    pub id: String,
    /// Its text, with question marks for parameters, truncated if it is long.
    pub text: String,
    /// Executions, not including fetches.
    pub execute: Timing,
    /// Time until the server's first response to executions.
    pub first_seconds: f64,
    /// Additional calls for rows of a cursor, data of a COPY, or types of parameters.
    pub fetch: Timing,
    /// Time in reads and writes of the socket, during executions and fetches.
    pub wait_seconds: f64,
    /// Time in methods of the result, not including fetches.
    pub decode_seconds: f64,
    /// Rows received; rows of a COPY, which count at its end.
    pub rows: u64,
    /// Maximum number of rows received at once.
    pub max_rows: u64,
    /// Messages sent.
    pub messages: u64,
    /// Number of times that the driver sent messages and then waited for the response.
    pub round_trips: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Creation of prepared-statement objects, not including the server.
    pub prepare: Timing,
    /// Closing these objects.
    pub close: Timing,
    /// Executions that ended with an exception.
    pub failed: u64,
    /// Executions of batches.
    pub batches: u64,
    /// Statements, or sets of parameters, in these batches.
    pub batched: u64,
    /// Transactions that executed the statement more than ten times with other parameters than the time before; outside
    /// transactions, borrows of a connection from a pool.
    pub repeating_transactions: u64,
    /// Executions whose fetch size the driver ignored, as with autocommit, and that received more rows.
    pub ignored_fetch_sizes: u64,
    /// Savepoints that the driver set for it (`autosave`).
    pub savepoints: u64,
    /// Maximum number of these savepoints in one transaction, those of other statements included.
    pub max_savepoints: u64,
    /// Executions in these transactions.
    pub repeated: u64,
    /// Maximum number of executions in one of these transactions.
    pub max_repeated: u64,
}

impl CallRow {
    /// Time from execution to the last value, not including time that the application spent in between.
    pub fn elapsed_seconds(&self) -> f64 {
        self.execute.seconds + self.fetch.seconds + self.decode_seconds
    }

    /// Time in the driver, neither waiting for the server nor decoding.
    pub fn driver_seconds(&self) -> f64 {
        (self.execute.seconds + self.fetch.seconds - self.wait_seconds).max(0.0)
    }

    /// Whether it copies rows, which are not in the client's memory at once.
    pub fn is_copy(&self) -> bool {
        is_copy(&self.text)
    }

    fn add(&mut self, figure: &str, of: &StatisticRow) {
        let (total, max) = (of.total as u64, of.max.unwrap_or(0.0) as u64);
        match figure {
            stat_names::CALL_EXECUTE => self.execute = timing(of),
            stat_names::CALL_FIRST => self.first_seconds = of.total,
            stat_names::CALL_FETCH => self.fetch = timing(of),
            stat_names::CALL_WAIT => self.wait_seconds = of.total,
            stat_names::CALL_DECODE => self.decode_seconds = of.total,
            stat_names::CALL_ROWS => (self.rows, self.max_rows) = (total, max),
            stat_names::CALL_MESSAGES => self.messages = total,
            stat_names::CALL_TRIPS => self.round_trips = total,
            stat_names::CALL_SENT => self.bytes_sent = total,
            stat_names::CALL_RECEIVED => self.bytes_received = total,
            stat_names::CALL_PREPARE => self.prepare = timing(of),
            stat_names::CALL_CLOSE => self.close = timing(of),
            stat_names::CALL_FAILED => self.failed = of.count,
            stat_names::CALL_UNFETCHED => self.ignored_fetch_sizes = of.count,
            stat_names::CALL_SAVEPOINT => (self.savepoints, self.max_savepoints) = (of.count, max),
            stat_names::CALL_BATCH => (self.batches, self.batched) = (of.count, total),
            stat_names::CALL_REPEATED => {
                (self.repeating_transactions, self.repeated, self.max_repeated) =
                    (of.count, total, max);
            }
            _ => {}
        }
    }
}

fn timing(of: &StatisticRow) -> Timing {
    Timing {
        count: of.count,
        seconds: of.total,
        mean_seconds: (of.count > 0).then(|| of.total / of.count as f64),
        min_seconds: of.min,
        max_seconds: of.max,
        p50_seconds: of.p50,
        p99_seconds: of.p99,
        half_width_seconds: None,
        doubt_seconds: 0.0,
        refused: false,
    }
}

/// A number that the agent samples about once a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SampledNumber {
    /// Mean of the samples.
    pub mean: f64,
    /// Maximum since measuring began.
    pub max: u64,
}

impl SampledNumber {
    /// The samples of a statistic; `None` if there are none.
    pub fn from_row(of: &StatisticRow) -> Option<SampledNumber> {
        let mean = of.total / of.count as f64;
        (of.count > 0).then(|| SampledNumber { mean, max: of.max.unwrap_or(0.0) as u64 })
    }
}

/// A client's connections, and its waits for one from a pool.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClientConnections {
    /// Requests to a pool; `None`: there was no pool, or it is not known.
    pub pool_wait: Option<Timing>,
    /// Waits that ended with an exception: there was no connection in time, or a new one could not be opened.
    pub pool_failed: Option<Timing>,
    /// Open connections, each a session on the server; `None`: there was none, or the agent is older.
    pub open_connections: Option<SampledNumber>,
    /// Connections that pools have handed out; the maximum is exact.
    pub borrowed_connections: Option<SampledNumber>,
    /// Borrowed connections that have executed nothing for a long time.
    pub unused_connections: Option<SampledNumber>,
}

/// A connection that a pool has handed out, and that has executed nothing for a long time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnusedConnection {
    /// The pool's name, or its class.
    pub pool: String,
    /// The thread that borrowed it.
    pub thread: String,
    /// "server process 4711"
    pub server: String,
    /// Time since its last statement, or since it was borrowed.
    pub seconds: f64,
}

/// The kind of their slots (client/java, Connections).
const UNUSED: &str = "pooled connection";

/// The connections that are borrowed and unused at the end of an interval, longest first.
pub fn unused_connections(sessions: &[SessionRow]) -> Vec<UnusedConnection> {
    let mut unused: Vec<UnusedConnection> = sessions
        .iter()
        .filter(|session| session.kind == UNUSED && session.state != "dead")
        .map(|session| UnusedConnection {
            pool: session.database.clone().unwrap_or_default(),
            thread: session.application.clone(),
            server: session.user.clone().unwrap_or_default(),
            seconds: session.age_seconds.unwrap_or(0.0),
        })
        .collect();
    unused.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    unused
}

/// The statements in an interval's statistics, ordered by id, and the client's connections.
pub fn rows(statistics: &[StatisticRow], texts: &CallTexts) -> (Vec<CallRow>, ClientConnections) {
    let mut rows: BTreeMap<&str, CallRow> = BTreeMap::new();
    let mut connections = ClientConnections::default();
    for of in statistics {
        let sampled = || SampledNumber::from_row(of);
        match &*of.name {
            stat_names::POOL_WAIT => connections.pool_wait = Some(timing(of)),
            stat_names::POOL_FAILED => {
                connections.pool_failed = Some(timing(of)).filter(|failed| failed.count > 0);
            }
            stat_names::CONNECTIONS_OPEN => connections.open_connections = sampled(),
            stat_names::CONNECTIONS_BORROWED => connections.borrowed_connections = sampled(),
            stat_names::CONNECTIONS_UNUSED => connections.unused_connections = sampled(),
            name => {
                let tags =
                    name.strip_prefix(stat_names::CALL).and_then(|tags| tags.split_once("::"));
                if let Some((figure, id)) = tags {
                    rows.entry(id).or_default().add(figure, of);
                }
            }
        }
    }
    let named = rows.into_iter().map(|(id, row)| {
        let text = match id {
            OTHERS => "(statements without an entry of their own)".to_string(),
            EMPTY => "(empty, as of Connection.isValid)".to_string(),
            id => texts.get(id).cloned().unwrap_or_default(),
        };
        CallRow { id: id.to_string(), text, ..row }
    });
    (named.collect(), connections)
}

impl Segment {
    /// The texts of a client's statements.
    pub fn call_texts(&self) -> Result<CallTexts, Error> {
        let mut pieces: BTreeMap<(String, u32), String> = BTreeMap::new();
        self.each_name(stat_kind::NAME, |name| {
            let Some(tags) = name.strip_prefix(stat_names::SQL) else { return };
            let mut tags = tags.splitn(3, "::");
            if let (Some(id), Some(Ok(number)), Some(piece)) =
                (tags.next(), tags.next().map(str::parse), tags.next())
            {
                pieces.insert((id.to_string(), number), piece.to_string());
            }
        })?;
        let mut texts = CallTexts::new();
        for ((id, _), piece) in pieces {
            texts.entry(id).or_default().push_str(&piece);
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistic(name: &str, count: u64, total: f64) -> StatisticRow {
        StatisticRow {
            name: name.into(),
            unit: String::new(),
            count,
            total,
            min: None,
            max: Some(total),
            p50: None,
            p99: None,
        }
    }

    #[test]
    fn figures_of_a_statement_come_together_and_time_of_the_driver_is_the_rest() {
        let statistics = [
            statistic("call::execute::a1", 4, 2.0),
            statistic("call::fetch::a1", 2, 1.0),
            statistic("call::wait::a1", 6, 2.5),
            statistic("call::decode::a1", 9, 0.25),
            statistic("call::rows::a1", 6, 40.0),
            statistic("call::received::a1", 6, 4000.0),
            statistic("call::prepare::a1", 3, 0.5),
            statistic("call::execute::others", 1, 1.0),
            statistic("call::pool::wait", 3, 0.5),
            statistic("call::pool::failed", 1, 0.25),
            statistic("call::savepoint::a1", 4, 3.0),
            statistic("call::unfetched::a1", 2, 70.0),
            statistic("call::execute::cbf29ce484222325", 1, 1.0),
            statistic("gc::G1", 1, 1.0),
            StatisticRow { max: Some(4.0), ..statistic("connections::open", 10, 25.0) },
            statistic("connections::borrowed", 0, 0.0),
        ];
        let texts = CallTexts::from([("a1".to_string(), "select ?".to_string())]);
        let (rows, connections) = rows(&statistics, &texts);
        assert_eq!(
            rows.iter().map(|row| &*row.id).collect::<Vec<_>>(),
            ["a1", "cbf29ce484222325", "others"]
        );
        assert!(rows[1].text.contains("isValid"));
        assert_eq!((rows[0].savepoints, rows[0].ignored_fetch_sizes), (4, 2));
        assert_eq!((&*rows[0].text, rows[0].rows, rows[0].execute.count), ("select ?", 40, 4));
        assert_eq!((rows[0].bytes_received, rows[0].prepare.count), (4000, 3));
        assert_eq!((rows[0].elapsed_seconds(), rows[0].driver_seconds()), (3.25, 0.5));
        let waits = [connections.pool_wait, connections.pool_failed];
        assert_eq!(waits.map(|wait| wait.unwrap().count), [3, 1]);
        let open = connections.open_connections.unwrap();
        assert_eq!((open.mean, open.max, connections.borrowed_connections), (2.5, 4, None));
    }
}
