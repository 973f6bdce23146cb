// SPDX-License-Identifier: PostgreSQL
//! A trace as OpenTelemetry spans: sent by OTLP, or written as OTLP/JSON, one request per line.
//!
//! Attributes have the names of the semantic conventions for database calls if there is one. The times of the classes,
//! `pgtally.time.*`, add up to the length of the span.

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use error::Error;
use live::target::SegmentSource;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{
    status::StatusCode, ResourceSpans, ScopeSpans, Span as OtlpSpan, Status,
};
use prost::Message;
use segment::Traced;
use view::escape::visible;

use super::names;
use super::names::commit_name;
use super::spans::{self, Spans, Subject, TraceSpan, Work};
use super::story::{Story, TraceItem, Unit};
use super::{Context, Sink};
use otlp::attribute::{number, real, scope, text};
use otlp::queue::Queue;
use otlp::resource;
use otlp::sender::Sender;
use otlp::settings;
use otlp::signal::Signal;

/// Maximum number of spans in a request.
const BATCH: usize = 500;
/// How long spans wait to be sent together.
const EVERY: Duration = Duration::from_secs(1);
/// How long sending the last spans may take at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// The output of requests.
enum RequestOutput {
    /// A file.
    File(Box<dyn Write>),
    /// A receiver with this name.
    Receiver(Arc<Queue>, JoinHandle<()>, String),
}

/// The sink.
pub struct Otlp {
    out: Option<RequestOutput>,
    place: SegmentSource,
    extra: Vec<(String, String)>,
    from: Duration,
    resource: Resource,
    spans: Option<Spans>,
    ready: Vec<OtlpSpan>,
    sent: Instant,
}

impl Otlp {
    /// A sink that sends to the receiver at `url`, or to that of the environment.
    pub fn to(url: Option<&str>, place: SegmentSource, from: Duration) -> Result<Otlp, Error> {
        let get = |name: &str| std::env::var(name).ok();
        let target = settings::target(url, Signal::Traces, &get)?;
        let (queue, shown) = (Arc::new(Queue::default()), target.shown());
        let sender = Sender::new(Signal::Traces, target, Arc::clone(&queue))?;
        let thread = std::thread::Builder::new().name("otlp traces".to_string());
        let thread = thread.spawn(move || sender.work())?;
        Otlp::new(RequestOutput::Receiver(queue, thread, shown), place, from)
    }

    /// A sink that writes to a file.
    pub fn file(out: Box<dyn Write>, place: SegmentSource, from: Duration) -> Result<Otlp, Error> {
        Otlp::new(RequestOutput::File(out), place, from)
    }

    fn new(out: RequestOutput, place: SegmentSource, from: Duration) -> Result<Otlp, Error> {
        Ok(Otlp {
            out: Some(out),
            extra: settings::resource(&|name| std::env::var(name).ok())?,
            resource: Resource::default(),
            place,
            from,
            spans: None,
            ready: Vec::new(),
            sent: Instant::now(),
        })
    }

    fn add(
        &mut self,
        context: &mut Context,
        who: &Traced,
        unit: &Unit,
        asked: bool,
    ) -> Result<(), Error> {
        if let Some(spans) = &mut self.spans {
            let Context { segment, names, .. } = &*context;
            spans.unit(&|account| names.account(segment, account), who, unit, asked);
        }
        self.collect(context)
    }

    /// Collects the spans that are complete by now.
    fn collect(&mut self, context: &mut Context) -> Result<(), Error> {
        let done = self.spans.as_mut().map(Spans::take).unwrap_or_default();
        for span in done {
            self.ready.push(encode(context, span)?);
            if self.ready.len() >= BATCH {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        self.sent = Instant::now();
        let spans = std::mem::take(&mut self.ready);
        if spans.is_empty() {
            return Ok(());
        }
        let count = spans.len() as u64;
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
        let resource = Some(self.resource.clone());
        let of_resource = ResourceSpans { resource, scope_spans, ..ResourceSpans::default() };
        let request = ExportTraceServiceRequest { resource_spans: vec![of_resource] };
        match &mut self.out {
            Some(RequestOutput::File(out)) => {
                serde_json::to_writer(&mut *out, &request)?;
                out.write_all(b"\n")?;
            }
            Some(RequestOutput::Receiver(queue, ..)) => queue.push(request.encode_to_vec(), count),
            None => {}
        }
        Ok(())
    }
}

impl Sink for Otlp {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        if self.spans.is_none() {
            self.resource =
                resource::describe_server(&self.place, Some(context.segment.header()), &self.extra);
            let from = context.segment.clock().ticks(self.from.as_secs_f64());
            self.spans = Some(Spans::new(from));
        }
        let texts = context.segment.slot_texts(who.slot, who.slot_generation)?.unwrap_or_default();
        if let Some(spans) = &mut self.spans {
            spans.session(who, texts);
        }
        Ok(())
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.add(context, who, unit, true)
    }

    fn left_out(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.add(context, who, unit, false)
    }

    fn ended(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        if let Some(spans) = &mut self.spans {
            spans.ended(who.pid);
        }
        self.collect(context)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.sent.elapsed() >= EVERY {
            self.send()?;
        }
        match &mut self.out {
            Some(RequestOutput::File(out)) => Ok(out.flush()?),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, context: &mut Context, _stories: &[Story]) -> Result<(), Error> {
        if let Some(spans) = &mut self.spans {
            spans.finish();
        }
        self.collect(context)?;
        self.send()?;
        self.flush()?;
        let Some(RequestOutput::Receiver(queue, thread, receiver)) = self.out.take() else {
            return Ok(());
        };
        queue.close(Instant::now() + FAREWELL);
        // If the thread has failed, the counts show how much was not sent.
        let _ = thread.join();
        let fate = queue.fate();
        let lost = fate.dropped + fate.waiting;
        if lost > 0 {
            return Err(Error::Failed(format!(
                "{receiver} did not accept {lost} of {} spans",
                lost + fate.accepted
            )));
        }
        view::escape::say(&format!("sent {} spans to {receiver}", fate.accepted));
        Ok(())
    }
}

fn encode(context: &mut Context, span: TraceSpan) -> Result<OtlpSpan, Error> {
    let mut attributes =
        vec![text("db.system.name", "postgresql"), number("process.pid", i64::from(span.pid))];
    for (key, value) in [("db.namespace", &span.texts.database), ("user.name", &span.texts.user)] {
        if !value.is_empty() {
            attributes.push(text(key, &visible(value)));
        }
    }
    let (name, failed) = match &span.subject {
        Subject::Statement(work) => {
            of_work(context, work, &mut attributes);
            (of_statement(context, work, &span.texts.database, &mut attributes)?, work.failed)
        }
        Subject::Worker(work) => {
            of_work(context, work, &mut attributes);
            ("parallel worker".to_string(), work.failed)
        }
        Subject::Transaction(statements) => {
            attributes.push(number("pgtally.statements", whole(*statements)));
            ("transaction".to_string(), false)
        }
        Subject::Part(item) => of_part(context, item, &mut attributes)?,
    };
    if failed {
        // The trace does not have the error code.
        attributes.push(text("error.type", "_OTHER"));
    }
    let kind = match span.subject {
        Subject::Statement(_) => SpanKind::Server,
        _ => SpanKind::Internal,
    };
    let code = if failed { StatusCode::Error } else { StatusCode::Unset };
    let link = span.link.map(|to| Link {
        trace_id: to.trace.to_vec(),
        span_id: to.span.to_vec(),
        flags: u32::from(to.flags),
        ..Link::default()
    });
    Ok(OtlpSpan {
        trace_id: span.place.trace.to_vec(),
        span_id: span.place.span.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        flags: u32::from(span.place.flags),
        name,
        kind: kind as i32,
        start_time_unix_nano: context.realtime_ns(span.start),
        end_time_unix_nano: context.realtime_ns(span.end),
        attributes,
        links: link.into_iter().collect(),
        status: Some(Status { code: code as i32, ..Status::default() }),
        ..OtlpSpan::default()
    })
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn of_work(context: &Context, work: &Work, attributes: &mut Vec<KeyValue>) {
    for (class, ticks) in &work.times {
        let seconds = context.segment.clock().seconds(*ticks);
        attributes.push(real(&format!("pgtally.time.{class}"), seconds));
    }
    attributes.push(number("pgtally.waits", whole(work.waits)));
    for (key, count) in
        [("pgtally.records_lost", work.lost), ("pgtally.spans_left_out", work.left_out)]
    {
        if count > 0 {
            attributes.push(number(key, whole(count)));
        }
    }
}

/// Adds the attributes of a statement. Returns the span's name: command and database, as the conventions require.
fn of_statement(
    context: &mut Context,
    work: &Work,
    database: &str,
    attributes: &mut Vec<KeyValue>,
) -> Result<String, Error> {
    if let Some(rows) = work.rows {
        attributes.push(number("db.response.returned_rows", whole(rows)));
    }
    let message = work.message.map_or("statement", names::message);
    let Some(id) = work.id else { return Ok(message.to_string()) };
    attributes.push(number("pgtally.query.id", id as i64));
    // The semantic conventions count parameters from 0.
    for (number, value, _) in work.parameters.iter().flat_map(|parameters| parameters.texts()) {
        let key = format!("db.query.parameter.{}", number.saturating_sub(1));
        attributes.push(text(&key, &visible(&value)));
    }
    let query = context.names.statement(&mut context.segment, id)?;
    let Some(query) = query else { return Ok(format!("{message} {}", visible(database))) };
    attributes.push(text("db.query.text", &visible(query)));
    let command = operation(query);
    if command.is_empty() {
        return Ok(format!("{message} {}", visible(database)));
    }
    attributes.push(text("db.operation.name", &command));
    Ok(format!("{command} {}", visible(database)))
}

/// The first word of a statement, after comments and parentheses, in upper case.
fn operation(query: &str) -> String {
    let mut rest = query;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        rest = if rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if rest.starts_with("/*") {
            after_comment(rest)
        } else {
            let word = rest.chars().take_while(char::is_ascii_alphabetic);
            return word.map(|letter| letter.to_ascii_uppercase()).collect();
        };
    }
}

/// The text after the comment with which it begins; comments may be nested.
fn after_comment(text: &str) -> &str {
    let mut depth = 0u32;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return &text[at..];
            }
        } else {
            at += 1;
        }
    }
    ""
}

/// Adds the attributes of a part. Returns the span's name, and whether the part failed.
fn of_part(
    context: &mut Context,
    item: &TraceItem,
    attributes: &mut Vec<KeyValue>,
) -> Result<(String, bool), Error> {
    Ok(match item {
        TraceItem::Wait { account, node, file, lock, .. } => {
            let account = context.names.account(&context.segment, *account);
            attributes.push(text("pgtally.phase", &account.phase));
            attributes.push(text("pgtally.class", spans::class(&account.activity)));
            let object =
                names::object(&context.names, &context.segment, file.as_ref(), lock.as_ref());
            if !object.is_empty() {
                attributes.push(text("pgtally.object", &visible(&object)));
            }
            if let Some(wait) = file {
                attributes.push(text("pgtally.operation", names::operation(wait.operation)));
                if let Some(segment::TraceFile::Relation { block: Some(block), .. }) = wait.file {
                    attributes.push(number("pgtally.block", i64::from(block)));
                }
            }
            if let Some(pid) = lock.as_ref().and_then(|wait| wait.blockers.first()) {
                attributes.push(number("pgtally.blocker.pid", i64::from(*pid)));
            }
            if let Some(node) = node {
                attributes.push(number("pgtally.node", i64::from(*node)));
            }
            (account.activity, file.as_ref().is_some_and(|wait| wait.error != 0))
        }
        TraceItem::End { step, id, depth, failed, .. } => {
            attributes.push(number("pgtally.query.id", *id as i64));
            attributes.push(number("pgtally.depth", i64::from(*depth)));
            if let Some(query) = context.names.statement(&mut context.segment, *id)? {
                attributes.push(text("db.query.text", &visible(query)));
            }
            (step.name().to_string(), *failed)
        }
        TraceItem::Commit { kind, .. } => {
            attributes.push(text("pgtally.commit", commit_name(*kind)));
            ("commit".to_string(), false)
        }
        _ => ("other".to_string(), false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_the_first_word_after_comments() {
        for (query, expected) in [
            ("select 1", "SELECT"),
            ("/* a /* nested */ one */ -- and\n\t(insert into t", "INSERT"),
            ("--only a comment", ""),
            ("/* without an end", ""),
            ("/**/delete from t", "DELETE"),
            ("/* \u{e4} */update t", "UPDATE"),
            ("$1", ""),
        ] {
            assert_eq!(operation(query), expected, "{query}");
        }
    }
}
