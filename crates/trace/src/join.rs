// SPDX-License-Identifier: PostgreSQL
//! Joins a client's calls with the server's work for each, by server process and ordinal of the messages: the driver
//! counts messages when it sends them, and the server counts the same messages when it reads them. A client on another
//! machine has a different clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Write;
use std::time::{Duration, Instant};

use error::Error;
use segment::calls::is_copy;
use segment::{Clock, Traced};
use serde::Serialize;
use view::statements::beginning;

use super::names;
use super::offset::Offset;
use super::parts::Parts;
use super::story::{Story, TraceItem, Unit};
use super::{Context, Sink};
use client::call::{ClientCall, Span};
use client::ring::Client;
use client::stream::Stream;

/// A call whose messages have not arrived after this time is not joined.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum difference between clocks of two processors and of two kinds, ns.
const SKEW: u64 = 200_000;
/// Maximum number of messages kept for a process.
const MOST_MESSAGES: usize = 100_000;
/// Characters of a statement to print.
const QUOTED: usize = 60;

/// A message handled by the server.
#[derive(Debug, Default)]
struct Handled {
    kind: u8,
    start: u64,
    over: bool,
    /// Handling time without waits for the client.
    busy: Vec<Span>,
    query: Option<String>,
}

/// A traced process.
#[derive(Debug, Default)]
struct TracedProcess {
    /// Messages by ordinal.
    messages: BTreeMap<u64, Handled>,
    /// Ordinal of the first message seen.
    first: Option<u64>,
}

/// Numbers of calls that could not be joined, by reason.
#[derive(Debug, Default, Serialize)]
struct Unjoined {
    /// The connection is older than the agent, or the server's statistics were reset.
    not_counted: u64,
    /// The call precedes the trace of the process.
    before: u64,
    /// The server's records were lost.
    lost: u64,
    /// The messages with these ordinals were handled at a different time.
    elsewhere: u64,
    /// The process was not traced.
    other_processes: u64,
}

/// The calls of one statement.
#[derive(Debug, Default)]
struct StatementCalls {
    text: String,
    count: u64,
    parts: Parts,
}

/// A joined call, as `--json` prints it.
#[derive(Debug, Serialize)]
struct JoinedCallJson<'a> {
    what: &'static str,
    pid: i32,
    ns: i64,
    length_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_offset_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_error_ns: Option<u64>,
    encode_ns: u64,
    network_ns: u64,
    server_ns: u64,
    driver_ns: u64,
    collecting_ns: u64,
    overlap_ns: u64,
    fetches: bool,
    failed: bool,
    rows: u32,
    first_message: u64,
    messages: Vec<&'static str>,
    statement_id: &'a str,
    statement: &'a str,
    server_query: Option<&'a str>,
}

/// The calls of a COPY, which are one line of text: its start, each part of its data, and its end. Only the first one has
/// messages with ordinals.
#[derive(Debug)]
struct CopyLine {
    /// Start of the line.
    begins: String,
    /// Ordinal of its last message.
    ordinal: u64,
    statement: String,
    parts: Parts,
    rows: u64,
    /// Its messages.
    kinds: String,
}

impl CopyLine {
    /// Whether the call, whose first message has this ordinal, goes on with this COPY.
    fn goes_on(&self, call: &ClientCall, ordinal: u64) -> bool {
        call.messages == 0 && ordinal == self.ordinal && call.id == self.statement
    }

    fn add(&mut self, parts: &Parts, rows: u32) {
        self.parts.add(parts);
        self.rows += u64::from(rows);
    }

    fn text(&self) -> String {
        let CopyLine { begins, parts, rows, kinds, .. } = self;
        format!("{begins}, {rows} rows: {} ({kinds})", in_words(parts, 1))
    }
}

/// The last line.
#[derive(Debug, Serialize)]
struct End<'a> {
    what: &'static str,
    joined: u64,
    unjoined: &'a Unjoined,
    records_lost: u64,
}

/// Where calls come from.
pub enum Calls {
    /// A client of this machine.
    Here(Box<Client>),
    /// Another machine, with its own clock.
    Elsewhere(Stream, Offset),
}

impl Calls {
    fn poll(&mut self) -> Result<Vec<ClientCall>, Error> {
        match self {
            Calls::Here(client) => client.poll(),
            Calls::Elsewhere(stream, _) => stream.poll(),
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Calls::Here(client) => client.lost,
            Calls::Elsewhere(stream, _) => stream.lost,
        }
    }

    /// Converts a time of the server to the client's clock.
    fn of_client(&self, server: u64) -> u64 {
        match self {
            Calls::Here(_) => server,
            Calls::Elsewhere(_, offset) => offset.of_client(server),
        }
    }

    /// The offset of the other machine's clock; `None` if there is only one clock.
    fn offset(&self) -> Option<&Offset> {
        match self {
            Calls::Here(_) => None,
            Calls::Elsewhere(_, offset) => Some(offset),
        }
    }

    /// Whether the times of a call fit the times at which the server began to handle its messages.
    fn fits(&mut self, call: &ClientCall, first: u64, last: u64) -> bool {
        let (begin, end) = call.call.span;
        match self {
            // COPY data has no ordinal of its own: its message began before the call.
            Calls::Here(_) => first <= end + SKEW && (call.messages == 0 || first + SKEW >= begin),
            Calls::Elsewhere(_, offset) => {
                call.messages == 0 || offset.narrow((begin, end), first, last)
            }
        }
    }
}

/// The sink.
pub struct Join {
    client: Calls,
    out: Box<dyn Write>,
    json: bool,
    clock: Option<Clock>,
    origin: Option<(u64, u64)>,
    servers: HashMap<i32, TracedProcess>,
    pending: VecDeque<(Instant, ClientCall)>,
    sums: HashMap<String, StatementCalls>,
    /// COPYs whose line is not printed yet, by process.
    copies: HashMap<i32, CopyLine>,
    joined: u64,
    unjoined: Unjoined,
}

/// How to proceed with a call.
enum Fate {
    Joined,
    Waits,
    Left(fn(&mut Unjoined) -> &mut u64),
}

impl Join {
    /// A sink that writes calls of this client to `out`.
    pub fn new(client: Calls, out: Box<dyn Write>, json: bool) -> Join {
        Join {
            client,
            out,
            json,
            clock: None,
            origin: None,
            servers: HashMap::new(),
            pending: VecDeque::new(),
            sums: HashMap::new(),
            copies: HashMap::new(),
            joined: 0,
            unjoined: Unjoined::default(),
        }
    }

    fn join(&mut self, at_end: bool) -> Result<(), Error> {
        let now = Instant::now();
        self.pending.extend(self.client.poll()?.into_iter().map(|call| (now, call)));
        let mut kept = VecDeque::new();
        for (since, call) in std::mem::take(&mut self.pending) {
            match self.fate(&call, at_end || since.elapsed() >= PATIENCE) {
                Fate::Joined => self.print(&call)?,
                Fate::Waits => kept.push_back((since, call)),
                Fate::Left(why) => *why(&mut self.unjoined) += 1,
            }
        }
        self.pending = kept;
        Ok(())
    }

    fn fate(&mut self, call: &ClientCall, late: bool) -> Fate {
        let Some(server) = self.servers.get(&call.pid) else {
            return if late {
                Fate::Left(|unjoined| &mut unjoined.other_processes)
            } else {
                Fate::Waits
            };
        };
        let Some((first, last)) = ordinals(call) else {
            return Fate::Left(|unjoined| &mut unjoined.not_counted);
        };
        match server.first {
            Some(seen) if first < seen => return Fate::Left(|unjoined| &mut unjoined.before),
            None if late => return Fate::Left(|unjoined| &mut unjoined.not_counted),
            _ => {}
        }
        let there =
            server.messages.range(first..=last).filter(|(_, message)| message.over).count() as u64;
        if there != last - first + 1 {
            return if late { Fate::Left(|unjoined| &mut unjoined.lost) } else { Fate::Waits };
        }
        let start = |ordinal| server.messages.get(ordinal).map_or(0, |message| message.start);
        if !self.client.fits(call, start(&first), start(&last)) {
            return Fate::Left(|unjoined| &mut unjoined.elsewhere);
        }
        Fate::Joined
    }

    fn print(&mut self, call: &ClientCall) -> Result<(), Error> {
        let (Some((first, last)), Some(server)) = (ordinals(call), self.servers.get_mut(&call.pid))
        else {
            return Ok(());
        };
        let own = &self.client;
        let mut busy = Vec::new();
        let (mut kinds, mut query) = (Vec::new(), None);
        for (_, handled) in server.messages.range(first..=last) {
            busy.extend(
                handled.busy.iter().map(|span| (own.of_client(span.0), own.of_client(span.1))),
            );
            kinds.push(names::message(handled.kind));
            query = query.or(handled.query.as_deref());
        }
        let parts = Parts::divide(&call.call, &busy);
        let (begin, end) = call.call.span;
        let sum = self.sums.entry(call.id.clone()).or_default();
        sum.text.clone_from(&call.text);
        // The parts of a COPY are one call.
        let goes_on = call.messages == 0 && is_copy(&call.text);
        sum.count += u64::from(!goes_on || sum.count == 0);
        sum.parts.add(&parts);
        self.joined += 1;
        let (origin, realtime) = self.origin.unwrap_or_default();
        // From the server's time of the origin.
        let origin = self.client.of_client(origin);
        let line = JoinedCallJson {
            what: "call",
            pid: call.pid,
            ns: begin as i64 - origin as i64,
            clock_offset_ns: self.client.offset().map(Offset::middle),
            clock_error_ns: self.client.offset().and_then(Offset::error),
            length_ns: end - begin,
            encode_ns: parts.encode,
            network_ns: parts.network,
            server_ns: parts.server,
            driver_ns: parts.driver,
            collecting_ns: parts.collecting,
            overlap_ns: parts.overlap,
            fetches: call.fetches,
            failed: call.failed,
            rows: call.rows,
            first_message: first,
            messages: kinds,
            statement_id: &call.id,
            statement: &call.text,
            server_query: query,
        };
        if self.json {
            serde_json::to_writer(&mut self.out, &line)?;
            writeln!(self.out)?;
        } else if let Some(copy) =
            self.copies.get_mut(&call.pid).filter(|copy| copy.goes_on(call, last))
        {
            copy.add(&parts, call.rows);
        } else {
            if let Some(copy) = self.copies.remove(&call.pid) {
                writeln!(self.out, "{}", copy.text())?;
            }
            let at = realtime.saturating_add_signed(line.ns);
            let text = beginning(&call.text, QUOTED);
            let begins = format!("{} process {} {text}", super::sink::time_of_day(at), call.pid);
            let kinds = line.messages.join(" ");
            if is_copy(&call.text) {
                let (statement, rows) = (call.id.clone(), u64::from(call.rows));
                let copy = CopyLine { begins, ordinal: last, statement, parts, rows, kinds };
                self.copies.insert(call.pid, copy);
            } else {
                let fetch = if call.fetches { ", fetch" } else { "" };
                writeln!(self.out, "{begins}{fetch}: {} ({kinds})", in_words(&parts, 1))?;
            }
        }
        // Calls of a connection arrive in order; COPY data belongs to the message before.
        server.messages = server.messages.split_off(&first.min(last));
        Ok(())
    }

    fn finish_text(&mut self) -> Result<(), Error> {
        for copy in std::mem::take(&mut self.copies).into_values() {
            writeln!(self.out, "{}", copy.text())?;
        }
        let mut sums: Vec<&StatementCalls> = self.sums.values().collect();
        sums.sort_by_key(|sum| (std::cmp::Reverse(sum.parts.sum()), sum.text.clone()));
        for sum in sums {
            writeln!(
                self.out,
                "{} calls, on average {}: {}",
                sum.count,
                in_words(&sum.parts, sum.count),
                beginning(&sum.text, QUOTED)
            )?;
        }
        if let Some(error) = self.client.offset().and_then(Offset::error) {
            let ms = error as f64 / 1e6;
            writeln!(
                self.out,
                "the other machine's clock is known to within {ms:.3} ms; network and server may be off by that"
            )?;
        }
        let unjoined = &self.unjoined;
        writeln!(self.out, "{} calls joined with the server's messages", self.joined)?;
        for (count, why) in [
            (unjoined.not_counted, "on connections older than the agent, or used while it was off, so that their messages are not all counted"),
            (unjoined.before, "from before the trace of their process began"),
            (unjoined.lost, "whose messages the server's trace lost"),
            (unjoined.elsewhere, "whose messages were handled at another time (is there a pooler in between?)"),
            (
                unjoined.other_processes,
                "of processes that were not traced or are not of this server (is there a pooler in between?)",
            ),
            (self.client.lost(), "records lost by the client"),
        ] {
            if count > 0 {
                writeln!(self.out, "not joined: {count} {why}")?;
            }
        }
        Ok(())
    }
}

/// Ordinals of the first and last message of a call; for a call without messages, of the message still being handled.
fn ordinals(call: &ClientCall) -> Option<(u64, u64)> {
    let first = call.first?;
    Some(match call.messages {
        0 => (first.checked_sub(1)?, first - 1),
        messages => (first, first + messages - 1),
    })
}

/// Formats "1.234 ms = client 0.010 + ...", averaged over a number of calls.
fn in_words(parts: &Parts, calls: u64) -> String {
    let ms = |ns: u64| ns as f64 / calls.max(1) as f64 / 1e6;
    format!(
        "{:.3} ms = client {:.3} + network {:.3} + server {:.3} + driver {:.3} + garbage collection {:.3}",
        ms(parts.sum()),
        ms(parts.encode),
        ms(parts.network),
        ms(parts.server),
        ms(parts.driver),
        ms(parts.collecting)
    )
}

impl Sink for Join {
    fn wants_more(&self) -> bool {
        match &self.client {
            Calls::Here(_) => true,
            Calls::Elsewhere(stream, _) => !stream.has_ended() || !self.pending.is_empty(),
        }
    }

    fn session(&mut self, _context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.servers.entry(who.pid).or_default();
        Ok(())
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        let clock = *self.clock.get_or_insert_with(|| {
            let mut clock = *context.segment.clock();
            clock.measure();
            clock
        });
        self.origin.get_or_insert((clock.ns_of(context.origin), context.origin_realtime_ns));
        let (Some(ordinal), Some(kind)) = (unit.ordinal, unit.message) else { return Ok(()) };
        let mut busy: Vec<Span> = Vec::new();
        let mut query = None;
        for item in &unit.items {
            let (start, ticks) = match item {
                TraceItem::Cpu { start, ticks, .. } => (*start, *ticks),
                TraceItem::Wait { start, ticks, account, .. } => {
                    let account = context.names.account(&context.segment, *account);
                    if account.activity.starts_with("Client:") {
                        continue;
                    }
                    (*start, *ticks)
                }
                TraceItem::Statement { id, .. } | TraceItem::Begin { id, .. }
                    if query.is_none() =>
                {
                    let text = context.names.statement(&mut context.segment, *id)?;
                    query = text.map(str::to_string);
                    continue;
                }
                _ => continue,
            };
            let span = (clock.ns_of(start), clock.ns_of(start + ticks));
            match busy.last_mut() {
                Some(last) if last.1 + 1 >= span.0 => last.1 = last.1.max(span.1),
                _ => busy.push(span),
            }
        }
        let server = self.servers.entry(who.pid).or_default();
        server.first.get_or_insert(ordinal);
        let handled = server.messages.entry(ordinal).or_insert_with(|| Handled {
            kind,
            start: clock.ns_of(unit.start),
            ..Handled::default()
        });
        handled.over = unit.end.is_some();
        handled.busy.extend(busy);
        handled.query = handled.query.take().or(query);
        if server.messages.len() > MOST_MESSAGES {
            server.messages.pop_first();
        }
        Ok(())
    }

    fn left_out(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.unit(context, who, unit)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.clock = None;
        self.join(false)?;
        Ok(self.out.flush()?)
    }

    fn finish(&mut self, _context: &mut Context, _stories: &[Story]) -> Result<(), Error> {
        self.join(true)?;
        if !self.json {
            return self.finish_text();
        }
        let end = End {
            what: "calls",
            joined: self.joined,
            unjoined: &self.unjoined,
            records_lost: self.client.lost(),
        };
        serde_json::to_writer(&mut self.out, &end)?;
        Ok(writeln!(self.out)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_copy_are_one_line() {
        let call = |first, messages, text: &str| ClientCall {
            first: Some(first),
            messages,
            id: text.into(),
            text: text.into(),
            ..ClientCall::default()
        };
        let parts = |server| Parts { server, ..Parts::default() };
        let mut copy = CopyLine {
            begins: "12:00:00 process 1 copy t from stdin".into(),
            ordinal: 7,
            statement: "copy t from stdin".into(),
            parts: parts(1_000_000),
            rows: 0,
            kinds: "Query".into(),
        };
        let part = call(8, 0, "copy t from stdin");
        let (_, last) = ordinals(&part).unwrap();
        assert!(copy.goes_on(&part, last) && !copy.goes_on(&part, last + 1));
        let next = call(8, 1, "copy t from stdin");
        assert!(!copy.goes_on(&next, ordinals(&next).unwrap().1), "another COPY has a message");
        copy.add(&parts(2_000_000), 5);
        let text = copy.text();
        assert!(
            text.starts_with("12:00:00 process 1 copy t from stdin, 5 rows: 3.000 ms"),
            "{text}"
        );
        assert!(text.ends_with("(Query)"), "{text}");
        assert!(is_copy("COPY t to stdout") && !is_copy("select copy") && !is_copy(""));
    }

    #[test]
    fn a_call_without_messages_belongs_to_the_one_before_and_sums_become_means() {
        let of =
            |first, messages| ordinals(&ClientCall { first, messages, ..ClientCall::default() });
        let found = [of(Some(5), 3), of(Some(5), 1), of(Some(5), 0), of(Some(0), 0), of(None, 3)];
        assert_eq!(found, [Some((5, 7)), Some((5, 5)), Some((4, 4)), None, None]);
        let parts = Parts {
            encode: 2_000_000,
            network: 4_000_000,
            server: 6_000_000,
            driver: 8_000,
            collecting: 0,
            overlap: 0,
        };
        assert_eq!(
            in_words(&parts, 2),
            "6.004 ms = client 1.000 + network 2.000 + server 3.000 + driver 0.004 + garbage collection 0.000"
        );
    }
}
