// SPDX-License-Identifier: PostgreSQL
//! A trace as Perfetto's protocol buffers (protos/perfetto/trace/trace.proto), for ui.perfetto.dev: each traced process
//! has a track for messages, steps and waits, and one for commits.

use std::io::Write;

use error::Error;
use prost::Message;
use segment::Traced;

use super::names;
use super::names::commit_name;
use super::story::{Story, TraceItem, Unit};
use super::{Context, Sink};

/// The sink.
pub struct Perfetto {
    out: Box<dyn Write>,
    begun: bool,
}

/// All packets of one writer have this sequence number.
const SEQUENCE: u32 = 1;
/// TrackEvent.Type
const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;
/// Number of tracks reserved for a process; a track's number is the process's number times this, plus one of the
/// following.
const TRACKS: u64 = 4;
const PROCESS: u64 = 0;
const WORK: u64 = 1;
const COMMITS: u64 = 2;
/// TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED
const CLEARED: u32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
struct PerfettoTrace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

fn text(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.into()), string_value: Some(value), int_value: None }
}

fn number(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.into()), int_value: Some(value), string_value: None }
}

fn track(who: &Traced, of: u64) -> u64 {
    // Slots are reused, so the generation is part of the number.
    (u64::from(who.slot) << 32 | u64::from(who.slot_generation)).wrapping_mul(TRACKS) + of + 1
}

impl Perfetto {
    /// A sink that writes to `out`.
    pub fn new(out: Box<dyn Write>) -> Perfetto {
        Perfetto { out, begun: false }
    }

    fn packet(&mut self, packet: TracePacket) -> Result<(), Error> {
        let flags = (!std::mem::replace(&mut self.begun, true)).then_some(CLEARED);
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: flags,
            ..packet
        };
        Ok(self.out.write_all(&PerfettoTrace { packet: vec![packet] }.encode_to_vec())?)
    }

    fn event(&mut self, context: &Context, tick: u64, event: TrackEvent) -> Result<(), Error> {
        // Since 1970: any clock will do for a file with one sequence.
        let ns = context.origin_realtime_ns as i128 + i128::from(context.ns(tick));
        let timestamp = Some(u64::try_from(ns).unwrap_or(0));
        self.packet(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() })
    }

    fn slice(
        &mut self,
        context: &Context,
        track: u64,
        (start, end): (u64, u64),
        category: &str,
        name: String,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> Result<(), Error> {
        self.begin(context, track, start, category, name, debug_annotations)?;
        self.end(context, track, end, Vec::new())
    }

    fn end(
        &mut self,
        context: &Context,
        track: u64,
        tick: u64,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> Result<(), Error> {
        let end = TrackEvent {
            kind: Some(END),
            track_uuid: Some(track),
            debug_annotations,
            ..TrackEvent::default()
        };
        self.event(context, tick, end)
    }

    fn begin(
        &mut self,
        context: &Context,
        track: u64,
        tick: u64,
        category: &str,
        name: String,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> Result<(), Error> {
        let begin = TrackEvent {
            kind: Some(BEGIN),
            track_uuid: Some(track),
            name: Some(name),
            categories: vec![category.into()],
            debug_annotations,
        };
        self.event(context, tick, begin)
    }

    fn instant(
        &mut self,
        context: &Context,
        track: u64,
        tick: u64,
        name: String,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> Result<(), Error> {
        let instant = TrackEvent {
            kind: Some(INSTANT),
            track_uuid: Some(track),
            name: Some(name),
            categories: vec!["notes".into()],
            debug_annotations,
        };
        self.event(context, tick, instant)
    }

    fn item(&mut self, context: &mut Context, who: &Traced, item: &TraceItem) -> Result<(), Error> {
        let work = track(who, WORK);
        match item {
            // Where nothing else is drawn, the process was running.
            TraceItem::Cpu { .. } => Ok(()),
            TraceItem::Wait { start, account, node, file, lock, .. } => {
                let account = context.names.account(&context.segment, *account);
                let mut notes = Vec::new();
                let object =
                    names::object(&context.names, &context.segment, file.as_ref(), lock.as_ref());
                if !object.is_empty() {
                    notes.push(text("object", object));
                }
                if let Some(wait) = file {
                    if let Some(segment::TraceFile::Relation { block: Some(block), .. }) =
                        &wait.file
                    {
                        notes.push(number("block", i64::from(*block)));
                    }
                    notes.push(text("operation", names::operation(wait.operation).into()));
                    notes.push(number("bytes", wait.bytes as i64));
                }
                notes.extend(node.map(|node| number("node", i64::from(node))));
                let category = account.activity.split(':').next().unwrap_or("wait").to_string();
                let span = (*start, item.end());
                self.slice(context, work, span, &category, account.activity, notes)
            }
            TraceItem::Statement { start, id, .. } => {
                let query =
                    context.names.statement(&mut context.segment, *id)?.unwrap_or("").to_string();
                let notes = vec![number("queryid", *id as i64), text("query", query)];
                self.instant(context, work, *start, "statement".into(), notes)
            }
            TraceItem::Begin { start, step, id, .. } => {
                let query =
                    context.names.statement(&mut context.segment, *id)?.unwrap_or("").to_string();
                let notes = vec![number("queryid", *id as i64), text("query", query)];
                self.begin(context, work, *start, "steps", step.name().into(), notes)
            }
            TraceItem::End { end, rows, failed, .. } => {
                let mut notes = vec![number("rows", *rows as i64)];
                if *failed {
                    notes.push(text("failed", "with an error".into()));
                }
                self.end(context, work, *end, notes)
            }
            TraceItem::Commit { start, kind, .. } => {
                let name = format!("commit ({})", commit_name(*kind));
                let span = (*start, item.end());
                self.slice(context, track(who, COMMITS), span, "commits", name, Vec::new())
            }
            TraceItem::Node { start, node, name, .. } => {
                let notes = vec![number("node", i64::from(*node))];
                self.instant(context, work, *start, name.clone(), notes)
            }
            TraceItem::NodeEnd { start, node, rows, calls, took, .. } => {
                let mut notes = vec![
                    number("node", i64::from(*node)),
                    number("rows", *rows as i64),
                    number("calls", *calls as i64),
                ];
                if let Some((ticks, half_width)) = took.cpu() {
                    notes.push(number("cpu_ns", context.length_ns(ticks)));
                    notes.push(number("cpu_half_width_ns", context.length_ns(half_width)));
                }
                self.instant(context, work, *start, format!("node {node} ends"), notes)
            }
            TraceItem::Lost { start, records } => {
                let notes = vec![number("records", *records as i64)];
                self.instant(context, work, *start, "records lost".into(), notes)
            }
            TraceItem::Context { start, parent } => {
                let notes = vec![text("traceparent", super::names::traceparent(parent))];
                self.instant(context, work, *start, "traceparent".into(), notes)
            }
            TraceItem::Parameters { start, parameters, .. } => {
                let notes = vec![text("parameters", parameters.to_string())];
                self.instant(context, work, *start, "parameters".into(), notes)
            }
            TraceItem::Reset { start } => {
                self.instant(context, work, *start, "totals reset".into(), Vec::new())
            }
        }
    }
}

impl Sink for Perfetto {
    fn session(&mut self, _: &mut Context, who: &Traced) -> Result<(), Error> {
        let name = match who.leader_pid {
            Some(leader) => format!("parallel worker of {leader}"),
            None => "postgres".to_string(),
        };
        let describe = |uuid, name: &str, parent_uuid, process| TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name.into()),
                parent_uuid,
                process,
            }),
            ..TracePacket::default()
        };
        let process = track(who, PROCESS);
        let descriptor = ProcessDescriptor { pid: Some(who.pid), process_name: Some(name.clone()) };
        self.packet(describe(process, &name, None, Some(descriptor)))?;
        self.packet(describe(track(who, WORK), "session", Some(process), None))?;
        self.packet(describe(track(who, COMMITS), "commits", Some(process), None))
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        let work = track(who, WORK);
        if let Some(kind) = unit.message.filter(|_| !unit.continued) {
            let name = names::message(kind).to_string();
            self.begin(context, work, unit.start, "messages", name, Vec::new())?;
        }
        for item in &unit.items {
            self.item(context, who, item)?;
        }
        if let (Some(_), Some(end)) = (unit.message, unit.end) {
            self.end(context, work, end, Vec::new())?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(self.out.flush()?)
    }

    fn finish(&mut self, _: &mut Context, _: &[Story]) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_of_a_slot_has_tracks_of_its_own() {
        let mut all: Vec<u64> = Vec::new();
        for (slot, slot_generation) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let who = Traced { pid: 7, leader_pid: None, slot, slot_generation, begun: 0 };
            all.extend([PROCESS, WORK, COMMITS].map(|of| track(&who, of)));
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), all.contains(&0)), (12, false));
    }
}
